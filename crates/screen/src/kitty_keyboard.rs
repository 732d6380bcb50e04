//! The kitty keyboard's flags: a stack for each of the two screens.

/// Flags put aside for each screen; as many as the engine we use elsewhere and kitty keep.
const STACK_LIMIT: usize = 16;

/// The five flags there are.
const FLAGS: u16 = 0b1_1111;

/// The flags in force and those put aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KittyKeyboard {
    shown: Vec<u8>,
    other: Vec<u8>,
}

impl KittyKeyboard {
    pub(crate) fn flags(&self) -> u8 {
        self.shown.last().copied().unwrap_or(0)
    }

    /// The stack of the screen shown, and of the other.
    pub(crate) fn stacks(&self) -> (&[u8], &[u8]) {
        (&self.shown, &self.other)
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
