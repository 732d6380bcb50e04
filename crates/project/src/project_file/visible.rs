//! Text from an untrusted file, escaped so that a person sees exactly what it contains.

use std::fmt::Write;

use patterm_wire::printable::is_active;
use unicode_width::UnicodeWidthChar;

/// Escapes every character that a terminal would interpret, hide or reorder. Stricter than
/// [`patterm_wire::printable`], because a person decides about trust from this text.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_active(c) || is_hidden(c) || is_right_to_left(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Characters that are invisible or have no width, and whitespace other than the space.
fn is_hidden(c: char) -> bool {
    let blank = c.is_whitespace() && c != ' ';
    let listed = matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
        | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xe0000..=0xe0fff);
    blank || listed || c.width() == Some(0)
}

/// Right-to-left letters: a terminal may reorder the rest of their line.
fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c),
        0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfefe | 0x10800..=0x10fff | 0x1e800..=0x1efff)
}

/// The prefix of a command's second and later lines, so that none of them looks like a line written by patterm.
const NEXT_LINE: &str = "\n             | ";

/// A command, quoted as for a shell.
pub(super) fn command_line(argv: &[String]) -> String {
    let plain = |word: &str| {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        !word.is_empty() && word.chars().all(safe)
    };
    let word = |word: &String| match plain(word) {
        true => word.clone(),
        false => {
            let lines: Vec<_> = word.replace('\'', r"'\''").split('\n').map(visible).collect();
            format!("'{}'", lines.join(NEXT_LINE))
        }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_could_deceive_are_escaped() {
        assert_eq!(
            visible("a\u{1b}[2Kb\u{202e}c\u{200b}\n\u{9b}é漢"),
            "a\\u{1b}[2Kb\\u{202e}c\\u{200b}\\n\\u{9b}é漢"
        );
        // A combining mark, a no-break space, a right-to-left letter.
        assert_eq!(visible("e\u{301} a\u{a0}b א"), "e\\u{301} a\\u{a0}b \\u{5d0}");
        let argv = ["sh", "-c", "curl x | sh\r# ok", ""].map(str::to_owned);
        assert_eq!(command_line(&argv), "sh -c 'curl x | sh\\u{d}# ok' ''");
        let argv = ["sh", "-c", "true\nprocess fake\n\u{1b}[2J"].map(str::to_owned);
        assert_eq!(
            command_line(&argv),
            "sh -c 'true\n             | process fake\n             | \\u{1b}[2J'"
        );
    }
}
