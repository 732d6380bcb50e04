//! Encodes text for a program, pasted as a block or typed.

use crate::keys::{Key, KeyCode};
use crate::modes::Modes;

const BEGIN: &str = "\x1b[200~";
const END: &str = "\x1b[201~";

/// The kitty keyboard's flag that makes every key an escape sequence.
const ALL_KEYS: u8 = 8;

/// The bytes that paste a text. Line ends become carriage returns, as terminals send them; tabs stay;
/// paste markers and all other control characters are removed, so that nothing in the text can end
/// the paste and be taken as keys.
#[must_use]
pub fn paste(text: &str, modes: &Modes) -> Vec<u8> {
    let text = text.replace(BEGIN, "").replace(END, "");
    let mut out = String::with_capacity(text.len() + BEGIN.len() + END.len());
    if modes.bracketed_paste {
        out.push_str(BEGIN);
    }
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                out.push('\r');
            }
            '\n' => out.push('\r'),
            '\t' => out.push('\t'),
            character if character.is_control() => {}
            character => out.push(character),
        }
    }
    if modes.bracketed_paste {
        out.push_str(END);
    }
    out.into_bytes()
}

/// The bytes that type a text, character by character. Line ends become Enter; control characters are
/// sent unchanged, because the caller typed them on purpose.
#[must_use]
pub fn type_text(text: &str, modes: &Modes) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let code = match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                KeyCode::Enter
            }
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            character => KeyCode::Char(character),
        };
        match code {
            KeyCode::Char(character)
                if modes.kitty_keyboard & ALL_KEYS == 0 || character.is_control() =>
            {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            code => out.extend(Key::from(code).encode(modes)),
        }
    }
    out
}
