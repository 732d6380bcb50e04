//! Classifies the input of the user's terminal: keys in all encodings, pastes, mouse, focus, and replies
//! to queries. Keys keep their bytes, so that they can be forwarded unchanged. Both the server and the
//! TUI use this module, so that they agree on what a person typed.

mod parse;
#[cfg(test)]
mod tests;

use crate::Key;

pub use parse::InputParser;

/// One event that the terminal sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// A key.
    Key(KeyEvent),
    /// Pasted text, without its markers.
    Paste(Vec<u8>),
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// A mouse event.
    Mouse(MouseEvent),
    /// A reply to a query; never a key.
    Reply(TerminalReply),
}

impl InputEvent {
    /// Whether a person typed it: pressed a key or pasted. Mouse events and key releases do not count, and
    /// the terminal itself sends focus reports and replies.
    pub fn is_typed(&self) -> bool {
        match self {
            Self::Key(key_event) => !key_event.released,
            Self::Paste(_) => true,
            Self::Focus(_) | Self::Mouse(_) | Self::Reply(_) => false,
        }
    }
}

/// How a key was encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEncoding {
    /// The traditional encoding.
    Legacy,
    /// modifyOtherKeys.
    ModifyOther,
    /// The kitty keyboard protocol.
    Kitty,
}

/// A key press or release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEvent {
    /// Which key; `None` for one that has no name in [`Key`].
    pub key: Option<Key>,
    /// It was released.
    pub released: bool,
    /// How it was encoded.
    pub encoding: KeyEncoding,
    /// Its bytes.
    pub raw: Vec<u8>,
}

/// A mouse event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MouseEvent {
    /// As in SGR reports: buttons, modifiers, movement, wheel.
    pub code: u16,
    /// The column, 0 at the left.
    pub x: u16,
    /// The row, 0 at the top.
    pub y: u16,
    /// A button was released.
    pub released: bool,
}

impl MouseEvent {
    /// The shift key was held.
    pub fn shift(&self) -> bool {
        self.code & 4 != 0
    }

    /// The alt key was held.
    pub fn alt(&self) -> bool {
        self.code & 8 != 0
    }

    /// The control key was held.
    pub fn ctrl(&self) -> bool {
        self.code & 16 != 0
    }

    /// It was moved.
    pub fn moved(&self) -> bool {
        self.code & 32 != 0
    }

    /// Rows to scroll, from the wheel; up is negative.
    pub fn wheel(&self) -> Option<i32> {
        match self.code & !28 {
            64 => Some(-3),
            65 => Some(3),
            _ => None,
        }
    }

    /// The left button was pressed.
    pub fn pressed_left(&self) -> bool {
        self.code & !28 == 0 && !self.released
    }
}

/// A terminal's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// The kitty keyboard's flags: the terminal supports it.
    KittyKeyboard(u8),
    /// What kind of terminal it is (DA1): every terminal answers this.
    Attributes,
    /// The state of a private mode (DECRPM): its number, and 0 if it is unknown, 1 set, 2 reset.
    Mode(u16, u16),
    /// A string (DCS), such as a setting or a capability.
    String(Vec<u8>),
    /// Anything else.
    Other,
}
