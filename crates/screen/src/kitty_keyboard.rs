//! The kitty keyboard's flags: a stack for each of the two screens.

/// Depth of each screen's stack; the same as in alacritty and kitty.
pub(crate) const STACK_LIMIT: usize = 16;

/// All five flags.
const FLAGS: u16 = 0b1_1111;

/// The flags in effect and those on the stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KittyKeyboard {
    shown: Vec<u8>,
    other: Vec<u8>,
}

impl KittyKeyboard {
    pub(crate) fn flags(&self) -> u8 {
        self.shown.last().copied().unwrap_or(0)
    }

    /// The stack of the visible screen, and that of the other one.
    pub(crate) fn stacks(&self) -> (&[u8], &[u8]) {
        (&self.shown, &self.other)
    }

    /// With these stacks, of the visible screen and of the other one.
    pub(crate) fn from_stacks(shown: Vec<u8>, other: Vec<u8>) -> Self {
        Self { shown, other }
    }

    pub(crate) fn push(&mut self, flags: u16) {
        if self.shown.len() == STACK_LIMIT {
            self.shown.remove(0);
        }
        self.shown.push((flags & FLAGS) as u8);
    }

    pub(crate) fn pop(&mut self, count: usize) {
        self.shown.truncate(self.shown.len().saturating_sub(count));
    }

    /// `how`: 1 replaces, 2 adds, 3 removes.
    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = (flags & FLAGS) as u8;
        if self.shown.is_empty() {
            self.shown.push(0);
        }
        if let Some(top) = self.shown.last_mut() {
            *top = match how {
                2 => *top | flags,
                3 => *top & !flags,
                _ => flags,
            };
        }
    }

    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.shown, &mut self.other);
    }
}
