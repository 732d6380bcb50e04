//! The window's title and the titles put aside (XTWINOPS 22 and 23).

/// Longest title kept: more than any window shows.
pub(crate) const TITLE_LIMIT: usize = 1_024;

/// Titles put aside; as many as xterm keeps.
const STACK_LIMIT: usize = 10;

/// A title and those put aside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Title {
    pub(crate) text: String,
    stack: Vec<String>,
}

impl Title {
    /// Puts the title aside.
    pub(crate) fn push(&mut self) {
        if self.stack.len() == STACK_LIMIT {
            self.stack.remove(0);
        }
        self.stack.push(self.text.clone());
    }

    /// Takes the last one put aside back.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.stack.pop()
    }
}

/// Text that a program chose, fit to be shown: no control characters, of bounded length.
pub(crate) fn clean(text: &[u8], limit: usize) -> String {
    let mut clean = String::new();
    for character in String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()) {
        if clean.len() + character.len_utf8() > limit {
            break;
        }
        clean.push(character);
    }
    clean
}
