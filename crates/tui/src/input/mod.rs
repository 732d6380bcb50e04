//! What the person's terminal sends: keys in every form there is, pastes, mouse, focus, and answers
//! to questions. Each is kept with its bytes, so that a key can pass on as it came.

mod parse;
#[cfg(test)]
mod tests;

use patterm_screen::Key;

pub(crate) use parse::Parser;

/// One thing that the terminal sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A key.
    Key(Stroke),
    /// Pasted text, without its marks.
    Paste(Vec<u8>),
    /// The terminal has the focus now, or no longer.
    Focus(bool),
    /// The mouse.
    Mouse(MouseEvent),
    /// The answer to a question; never a key.
    Reply(Reply),
}

/// In which of its forms a key came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As terminals always had it.
    Legacy,
    /// As modifyOtherKeys has it.
    ModifyOther,
    /// As the kitty keyboard has it.
    Kitty,
}

/// A key that was pressed, or let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stroke {
    /// Which key; `None` for one that has no name here.
    pub(crate) key: Option<Key>,
    /// It was let go.
    pub(crate) released: bool,
    /// How it came.
    pub(crate) form: Form,
    /// Its bytes.
    pub(crate) raw: Vec<u8>,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseEvent {
    /// As SGR reports have it: buttons, modifiers, movement, wheel.
    pub(crate) code: u16,
    /// The column, 0 at the left.
    pub(crate) x: u16,
    /// The row, 0 at the top.
    pub(crate) y: u16,
    /// A button was let go.
    pub(crate) released: bool,
}

impl MouseEvent {
    pub(crate) fn shift(&self) -> bool {
        self.code & 4 != 0
    }

    pub(crate) fn moved(&self) -> bool {
        self.code & 32 != 0
    }

    /// Rows that the wheel asks for: up is negative.
    pub(crate) fn wheel(&self) -> Option<i32> {
        match self.code & !28 {
            64 => Some(-3),
            65 => Some(3),
            _ => None,
        }
    }

    /// The left button was pressed.
    pub(crate) fn pressed_left(&self) -> bool {
        self.code & !28 == 0 && !self.released
    }
}

/// What a terminal answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The kitty keyboard's flags: it has one.
    KittyKeyboard(u8),
    /// Anything else.
    Other,
}
