//! Which names could be mistaken for an id, or for another name.

/// Whether a text has the form of an id, or looks like one: a process with such a name could not be distinguished
/// from the one with that id. A bare number counts, since people leave out the `p`.
pub(super) fn is_like_id(text: &str) -> bool {
    let seen: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    let digits = seen.strip_prefix(is_like_p).unwrap_or(&seen);
    !digits.is_empty() && digits.chars().all(char::is_numeric)
}

/// Whether a character is a `p`, or another script's or style's letter that looks the same.
fn is_like_p(c: char) -> bool {
    /// Mathematical letters come in alphabets of 26 capital and 26 small letters.
    const MATHEMATICAL: std::ops::RangeInclusive<char> = '\u{1d400}'..='\u{1d6a3}';
    let place = u32::from(c).wrapping_sub(u32::from(*MATHEMATICAL.start())) % 52;
    let is_mathematical = MATHEMATICAL.contains(&c) && matches!(place, 15 | 41);
    // Full-width, circled, Cyrillic and Greek ones.
    let is_other = matches!(c, 'Ｐ' | 'ｐ' | 'Ⓟ' | 'ⓟ' | 'Р' | 'р' | 'Ρ' | 'ρ' | 'ℙ');
    matches!(c, 'p' | 'P') || is_mathematical || is_other
}

/// Whether a character is not seen by itself: it controls how others are shown, or nothing.
fn is_unseen(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
            ..='\u{180f}' | '\u{200b}'
            ..='\u{200f}' | '\u{2060}'
            ..='\u{206f}' | '\u{fe00}'
            ..='\u{fe0f}' | '\u{fff0}'
            ..='\u{fffb}' | '\u{e0000}'
            ..='\u{e0fff}'
    );
    is_format || patterm_wire::printable::is_active(c)
}

/// Whether a name contains a character that hides or changes others. Joiners and variation selectors are allowed:
/// emoji and several scripts need them.
pub fn has_hidden_character(name: &str) -> bool {
    let is_allowed = |c| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    name.chars().any(|c| is_unseen(c) && !is_allowed(c))
}

/// Whether a name has a character that can be seen: not only blanks, joiners or marks without a letter.
pub fn is_readable(name: &str) -> bool {
    patterm_screen::has_visible_character(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_of_ids_are_recognized() {
        for name in [
            "p5",
            "P5",
            "7",
            "007",
            "p5\u{200b}",
            "p５",
            "ｐ５",
            "𝐩𝟓",
            "р5",
            "\u{202e}p5",
            "p\u{200d}5",
            "p٥",
        ] {
            assert!(is_like_id(name), "{name:?}");
        }
        for name in ["", "p", "px", "web", "p5x", "7zip", "p-5", "5p", "日本", "\u{200b}"] {
            assert!(!is_like_id(name), "{name:?}");
        }
    }

    #[test]
    fn a_readable_name_has_a_visible_character() {
        for name in ["", " ", "\u{2800}", "\u{301}", "\u{200d}", "\u{fe0f}", "\u{200d}\u{fe0f} "] {
            assert!(!is_readable(name), "{name:?}");
        }
        for name in ["web", "日本", "e\u{301}", "👩\u{200d}💻", "-", "\u{2801}"] {
            assert!(is_readable(name), "{name:?}");
        }
    }

    #[test]
    fn hidden_characters_are_recognized() {
        for name in ["\u{202e}px", "web\u{200b}", "a\u{ad}b", "a\u{e0041}", "a\u{7}", "a\u{2028}b"]
        {
            assert!(has_hidden_character(name), "{name:?}");
        }
        for name in ["web", "日本 1", "👩\u{200d}💻", "❤\u{fe0f}", "naïve"] {
            assert!(!has_hidden_character(name), "{name:?}");
        }
    }
}
