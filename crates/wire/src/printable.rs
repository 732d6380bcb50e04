//! Text that others wrote, made safe to print on a terminal: what a terminal would act on instead of
//! showing it is spelt out. Everything that patterm prints of names, errors and contents passes here.

use std::fmt::Write;

/// Whether a terminal acts on a character instead of showing it: control characters (C0, DEL, C1),
/// those that turn the direction of text, separators that some terminals take for line ends, and
/// characters that take no room or look like a blank, with which a name can imitate another. Those that
/// join letters and emoji stay.
pub fn is_active(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2060}'
            ..='\u{2064}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
    );
    let turns = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_invisible || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

/// A text for a place where one line is expected.
pub fn one_line(text: &str) -> String {
    spelt(text, |_| false)
}

/// A text of several lines: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    spelt(&text.replace("\r\n", "\n"), |character| matches!(character, '\n' | '\t'))
}

fn spelt(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut spelt = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            character if !is_active(character) || stays(character) => spelt.push(character),
            '\n' => spelt.push_str("\\n"),
            '\t' => spelt.push_str("\\t"),
            '\r' => spelt.push_str("\\r"),
            character => {
                let _ = write!(spelt, "\\u{{{:x}}}", u32::from(character));
            }
        }
    }
    spelt
}

/// JSON that means the same and whose strings hold nothing that a terminal acts on. (Outside of
/// strings JSON has no such characters but line ends and tabs.)
pub fn json(text: &str) -> String {
    let mut spelt = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => spelt.push(character),
            character if is_active(character) => {
                let _ = write!(spelt, "\\u{:04x}", u32::from(character));
            }
            character => spelt.push(character),
        }
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_looks_like_another_by_characters_that_are_not_seen() {
        assert_eq!(one_line("le\u{200b}ad\u{3164}"), "le\\u{200b}ad\\u{3164}");
    }

    const HOSTILE: &str = "a\x1b]0;x\x07\u{9b}2J\x7f\r\u{202e}b\u{2066}\u{2028}c\td\ne";

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        assert_eq!(
            one_line(HOSTILE),
            "a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{7f}\\r\\u{202e}b\\u{2066}\\u{2028}c\\td\\ne"
        );
        assert!(lines(HOSTILE).ends_with("\\u{2028}c\td\ne"));
        assert!(!lines(HOSTILE).chars().any(|c| is_active(c) && !matches!(c, '\n' | '\t')));
        assert_eq!(lines("one\r\ntwo\rthree"), "one\ntwo\\rthree");
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in ["naïve", "漢字", "👩‍👩‍👧", "שלום", "❤️", "a\u{ad}b"] {
            assert_eq!(
                (one_line(text), lines(text), json(text)),
                (text.into(), text.into(), text.into())
            );
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let text = format!("{{\n\t\"a\": \"{}\"}}", "\\u001b\u{9b}\u{7f}\u{202e}\\n");
        assert_eq!(json(&text), "{\n\t\"a\": \"\\u001b\\u009b\\u007f\\u202e\\n\"}");
    }
}
