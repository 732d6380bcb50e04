//! The one place where input is classified. What the person's terminal sends: keys in every form there is, pastes, mouse, focus, and answers
//! to questions. Each is kept with its bytes, so that a key can pass on as it came.

mod parse;
#[cfg(test)]
mod tests;

use crate::Key;

pub use parse::InputParser;

/// One thing that the terminal sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// A key.
    Key(KeyEvent),
    /// Pasted text, without its marks.
    Paste(Vec<u8>),
    /// The terminal has the focus now, or no longer.
    Focus(bool),
    /// The mouse.
    Mouse(MouseEvent),
    /// The answer to a question; never a key.
    Reply(TerminalReply),
}

impl InputEvent {
    /// Whether a person typed it: pressed a key or pasted. The mouse is no keyboard, a key that is let
    /// go was typed before, and focus reports and replies are sent by the terminal itself.
    pub fn is_typed(&self) -> bool {
        match self {
            Self::Key(key_event) => !key_event.released,
            Self::Paste(_) => true,
            Self::Focus(_) | Self::Mouse(_) | Self::Reply(_) => false,
        }
    }
}

/// In which of its forms a key came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEncoding {
    /// As terminals always had it.
    Legacy,
    /// As modifyOtherKeys has it.
    ModifyOther,
    /// As the kitty keyboard has it.
    Kitty,
}

/// A key that was pressed, or let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEvent {
    /// Which key; `None` for one that has no name here.
    pub key: Option<Key>,
    /// It was let go.
    pub released: bool,
    /// How it came.
    pub encoding: KeyEncoding,
    /// Its bytes.
    pub raw: Vec<u8>,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MouseEvent {
    /// As SGR reports have it: buttons, modifiers, movement, wheel.
    pub code: u16,
    /// The column, 0 at the left.
    pub x: u16,
    /// The row, 0 at the top.
    pub y: u16,
    /// A button was let go.
    pub released: bool,
}

impl MouseEvent {
    /// The shift key was held.
    pub fn shift(&self) -> bool {
        self.code & 4 != 0
    }

    /// It was moved.
    pub fn moved(&self) -> bool {
        self.code & 32 != 0
    }

    /// Rows that the wheel asks for: up is negative.
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

/// What a terminal answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// The kitty keyboard's flags: it has one.
    KittyKeyboard(u8),
    /// Anything else.
    Other,
}
