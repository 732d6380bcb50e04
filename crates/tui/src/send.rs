//! Encodes keys, mouse and focus for a pane's program, in the form that it has requested.

use patterm_screen::keys::KeyCode;
use patterm_screen::{Modes, Mouse, MouseEncoding};

use patterm_screen::input::{KeyEncoding, KeyEvent, MouseEvent};

/// The kitty keyboard's flags that change the encoding of a key press.
const KITTY_FORMS: u8 = 1 | 8;

/// The bytes of a key. The user's terminal is in the program's keyboard mode if it supports it, so most keys
/// are passed on unchanged; others are encoded again.
pub(crate) fn key(stroke: &KeyEvent, modes: &Modes) -> Vec<u8> {
    let kitty = modes.kitty_keyboard & KITTY_FORMS != 0;
    let as_it_came = match stroke.encoding {
        KeyEncoding::Kitty => modes.kitty_keyboard != 0,
        KeyEncoding::ModifyOther => modes.modify_other_keys > 0,
        // A key without a name can only be passed on.
        KeyEncoding::Legacy => !kitty && !follows_cursor_mode(stroke),
    };
    match stroke.key {
        Some(key) if !as_it_came => {
            if stroke.released {
                Vec::new()
            } else {
                key.encode(modes)
            }
        }
        None if stroke.encoding == KeyEncoding::Kitty && !as_it_came => Vec::new(),
        _ => stroke.raw.clone(),
    }
}

/// Whether the encoding of a key depends on the cursor key mode, which the user's terminal does not follow.
fn follows_cursor_mode(stroke: &KeyEvent) -> bool {
    use KeyCode::{Down, End, Home, Left, Right, Up};
    stroke.key.is_some_and(|key| {
        matches!(key.code, Up | Down | Left | Right | Home | End)
            && !(key.shift || key.alt || key.ctrl || key.logo)
    })
}

/// The bytes of a paste.
pub(crate) fn paste(text: &[u8], modes: &Modes) -> Vec<u8> {
    match modes.bracketed_paste {
        true => [b"\x1b[200~", text, b"\x1b[201~"].concat(),
        false => text.to_vec(),
    }
}

/// The bytes of a change of focus.
pub(crate) fn focus(gained: bool, modes: &Modes) -> Vec<u8> {
    match (modes.focus_reports, gained) {
        (true, true) => b"\x1b[I".to_vec(),
        (true, false) => b"\x1b[O".to_vec(),
        (false, _) => Vec::new(),
    }
}

/// Whether the program has requested this mouse event.
pub(crate) fn wants(mouse: &MouseEvent, modes: &Modes) -> bool {
    let held = mouse.code & 3 != 3;
    match modes.mouse {
        Mouse::Off => false,
        Mouse::Press => !mouse.released && !mouse.moved(),
        Mouse::Click => !mouse.moved(),
        Mouse::Drag => !mouse.moved() || held,
        Mouse::Motion => true,
    }
}

/// The bytes of a mouse event, relative to the program's screen.
pub(crate) fn mouse(event: &MouseEvent, modes: &Modes) -> Vec<u8> {
    let (x, y) = (event.x + 1, event.y + 1);
    let code = if event.released { event.code & !3 | 3 } else { event.code };
    match modes.mouse_encoding {
        MouseEncoding::Sgr | MouseEncoding::SgrPixels => {
            let last = if event.released { 'm' } else { 'M' };
            format!("\x1b[<{};{x};{y}{last}", event.code).into_bytes()
        }
        MouseEncoding::Urxvt => format!("\x1b[{};{x};{y}M", code + 32).into_bytes(),
        MouseEncoding::Utf8 => {
            let mut text = String::from("\x1b[M");
            let numbers = [code + 32, x + 32, y + 32].map(|n| char::from_u32(n.into()));
            text.extend(numbers.into_iter().flatten());
            text.into_bytes()
        }
        // One byte each: larger values cannot be encoded.
        MouseEncoding::Bytes => {
            let bytes = [code + 32, x + 32, y + 32].map(|n| u8::try_from(n).ok());
            match bytes {
                [Some(code), Some(x), Some(y)] => vec![0x1b, b'[', b'M', code, x, y],
                _ => Vec::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use patterm_screen::{Screen, Size};

    use super::*;
    use patterm_screen::input::{InputEvent, InputParser};

    fn modes(set: &str) -> Modes {
        let mut screen = Screen::new(Size::DEFAULT);
        screen.feed(set.as_bytes());
        screen.modes()
    }

    fn sent(typed: &str, set: &str) -> String {
        let mut parser = InputParser::default();
        parser.feed(typed.as_bytes());
        let mut out = Vec::new();
        let all = std::iter::from_fn(|| parser.next_event()).collect::<Vec<_>>();
        for token in all.into_iter().chain(std::iter::from_fn(|| parser.flush())) {
            let InputEvent::Key(stroke) = token else { panic!("{token:?}") };
            out.extend(key(&stroke, &modes(set)));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_key_arrives_in_the_form_that_the_program_requested() {
        const KITTY: &str = "\x1b[>1u";
        for (typed, set, expected) in [
            ("aü\x02\r", "", "aü\x02\r"),
            ("\x1b[A", "", "\x1b[A"),
            ("\x1b[A", "\x1b[?1h", "\x1bOA"),
            ("\x1bOA", "", "\x1b[A"),
            ("\x1b[1;5A", "\x1b[?1h", "\x1b[1;5A"),
            // A terminal without the kitty keyboard, a program with it.
            ("\x03", KITTY, "\x1b[99;5u"),
            ("\x1b", KITTY, "\x1b[27u"),
            ("a\r", KITTY, "a\r"),
            // The other way round: a key in transit while the mode changed.
            ("\x1b[99;5u", "", "\x03"),
            ("\x1b[13;2u", "", "\r"),
            ("\x1b[99;5:3u", "", ""),
            // Both: unchanged.
            ("\x1b[13;2u", KITTY, "\x1b[13;2u"),
            ("\x1b[57441;2u", KITTY, "\x1b[57441;2u"),
            ("\x1b[57441;2u", "", ""),
            ("\x1b[27;2;13~", "\x1b[>4;2m", "\x1b[27;2;13~"),
            ("\x1b[27;2;13~", "", "\r"),
        ] {
            assert_eq!(sent(typed, set), expected, "{typed:?} with {set:?}");
        }
    }

    #[test]
    fn mouse_events_are_encoded_as_the_program_requested() {
        let at = |code, x, y, released| MouseEvent { code, x, y, released };
        let sgr = modes("\x1b[?1000h\x1b[?1006h");
        assert_eq!(mouse(&at(0, 4, 5, true), &sgr), b"\x1b[<0;5;6m");
        let bytes = modes("\x1b[?1002h");
        assert_eq!(mouse(&at(0, 0, 0, true), &bytes), b"\x1b[M#!!");
        assert_eq!(mouse(&at(0, 300, 0, false), &bytes), b"", "it cannot be encoded");
        assert!(wants(&at(32, 0, 0, false), &bytes) && !wants(&at(35, 0, 0, false), &bytes));
        assert!(!wants(&at(32, 0, 0, false), &sgr) && !wants(&at(0, 0, 0, false), &modes("")));
    }
}
