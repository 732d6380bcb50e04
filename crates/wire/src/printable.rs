//! Makes third-party text safe to print on a terminal: characters that a terminal would interpret are
//! escaped. All names, errors and contents that patterm prints pass through here.

use std::fmt::Write;

/// Whether a terminal interprets a character instead of showing it: control characters (C0, DEL, C1),
/// bidirectional controls, separators that some terminals treat as line ends, and invisible characters that
/// make one name look like another. Joiners of letters and emoji are allowed.
pub fn is_active(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2060}'
            ..='\u{2064}' | '\u{206a}'
            ..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'
            ..='\u{fffb}' | '\u{e0000}'
            ..='\u{e007f}'
    );
    let is_bidirectional = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control()
        || is_invisible
        || is_bidirectional
        || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Escapes text for one line.
pub fn one_line(text: &str) -> String {
    escape(text, |_| false)
}

/// Escapes text of several lines: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    escape(&text.replace("\r\n", "\n"), |character| matches!(character, '\n' | '\t'))
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            character if !is_active(character) || stays(character) => escaped.push(character),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            character => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
        }
    }
    escaped
}

/// Escapes JSON without changing its meaning. (Outside of strings JSON has no such characters except line
/// ends and tabs.)
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => escaped.push(character),
            character if is_active(character) => {
                // JSON writes characters beyond the first 65,536 as two numbers.
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(one_line("le\u{200b}ad\u{3164}"), "le\\u{200b}ad\\u{3164}");
        // Tags repeat letters invisibly.
        assert_eq!(one_line("a\u{e0041}\u{e007f}b"), "a\\u{e0041}\\u{e007f}b");
    }

    const HOSTILE: &str = "a\x1b]0;x\x07\u{9b}2J\x7f\r\u{202e}b\u{2066}\u{2028}c\td\ne";

    #[test]
    fn characters_that_a_terminal_interprets_are_escaped() {
        assert_eq!(
            one_line(HOSTILE),
            "a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{7f}\\r\\u{202e}b\\u{2066}\\u{2028}c\\td\\ne"
        );
        assert!(lines(HOSTILE).ends_with("\\u{2028}c\td\ne"));
        assert!(!lines(HOSTILE).chars().any(|c| is_active(c) && !matches!(c, '\n' | '\t')));
        assert_eq!(lines("one\r\ntwo\rthree"), "one\ntwo\\rthree");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["naïve", "漢字", "👩‍👩‍👧", "שלום", "❤️", "a\u{ad}b"] {
            assert_eq!(
                (one_line(text), lines(text), json(text)),
                (text.into(), text.into(), text.into())
            );
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let tag = json("\"\u{e0041}\"");
        assert_eq!(tag, r#""\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&tag).unwrap(), "\u{e0041}");
        let text = format!("{{\n\t\"a\": \"{}\"}}", "\\u001b\u{9b}\u{7f}\u{202e}\\n");
        assert_eq!(json(&text), "{\n\t\"a\": \"\\u001b\\u009b\\u007f\\u202e\\n\"}");
    }
}
