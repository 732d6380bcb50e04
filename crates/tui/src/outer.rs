//! What the person's terminal is set to: always ours, and the keyboard as the program with the focus
//! wants it, so that its keys come in its own form.

use patterm_screen::Mouse;

use crate::model::{Mode, Model};

/// A screen of its own, mouse, focus, marked pastes, and a place for the keyboard's flags.
pub(crate) const ENTER: &[u8] =
    b"\x1b[?1049h\x1b[?7l\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>0u\x1b[2J";

/// All of it undone, and whatever a program may have had switched on.
pub(crate) const LEAVE: &[u8] = b"\x1b[?2026l\x1b[<1u\x1b[>4;0m\x1b>\x1b[?1003l\x1b[?1002l\
    \x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0 q\x1b[0m\x1b[?25h\x1b[?1049l";

/// What follows the program with the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outer {
    kitty: u8,
    modify_other: u8,
    keypad: bool,
    motion: bool,
}

impl Outer {
    /// What a model wants. What we read ourselves comes in the plain form.
    pub(crate) fn of(model: &Model) -> Self {
        let pane = model.focused_pane().filter(|pane| pane.scroll.is_none());
        let Some(modes) = pane.map(|pane| pane.screen.modes()) else { return Self::default() };
        let typing = model.mode == Mode::Typing;
        Self {
            kitty: if typing { modes.kitty_keyboard } else { 0 },
            modify_other: if typing { modes.modify_other_keys } else { 0 },
            keypad: typing && modes.application_keypad,
            motion: modes.mouse == Mouse::Motion,
        }
    }

    /// The bytes that change a terminal from one to the other.
    pub(crate) fn switch(self, next: Self) -> Vec<u8> {
        let mut out = String::new();
        if self.kitty != next.kitty {
            out.push_str(&format!("\x1b[={};1u", next.kitty));
        }
        if self.modify_other != next.modify_other {
            out.push_str(&format!("\x1b[>4;{}m", next.modify_other));
        }
        if self.keypad != next.keypad {
            out.push_str(if next.keypad { "\x1b=" } else { "\x1b>" });
        }
        if self.motion != next.motion {
            out.push_str(if next.motion { "\x1b[?1003h" } else { "\x1b[?1003l\x1b[?1002h" });
        }
        out.into_bytes()
    }
}

/// Puts a text into the terminal's clipboard.
pub(crate) fn copy(text: &str) -> Vec<u8> {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes())).into_bytes()
}

/// A desktop notification, free of anything that could end it early.
pub(crate) fn notify(text: &str) -> Vec<u8> {
    let plain: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("\x1b]9;patterm: {plain}\x07").into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize];
            text.push(if n <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_switched() {
        let plain = Outer::default();
        assert_eq!(plain.switch(plain), b"");
        let kitty = Outer { kitty: 5, motion: true, ..plain };
        assert_eq!(plain.switch(kitty), b"\x1b[=5;1u\x1b[?1003h");
        assert_eq!(kitty.switch(plain), b"\x1b[=0;1u\x1b[?1003l\x1b[?1002h");
    }

    #[test]
    fn a_copy_is_base64_and_a_notice_is_plain() {
        assert_eq!(copy("foob"), b"\x1b]52;c;Zm9vYg==\x07");
        assert_eq!(notify("a\x07\x1b]52;c;x\x07b"), b"\x1b]9;patterm: a]52;c;xb\x07");
    }
}
