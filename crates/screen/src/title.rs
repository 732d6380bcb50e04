//! The titles of window and icon, and their stack (XTWINOPS 22 and 23).

/// Longest title kept; longer than any window shows.
pub(crate) const TITLE_LIMIT: usize = 1_024;

/// Depth of the stack; the same as in xterm.
pub(crate) const STACK_LIMIT: usize = 10;

/// The titles and the stack of saved ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Title {
    pub(crate) text: String,
    /// The short one (OSC 1), which nothing shows.
    pub(crate) icon: String,
    /// Both, as they were.
    pub(crate) stack: Vec<(String, String)>,
}

impl Title {
    /// Saves both titles on the stack.
    pub(crate) fn push(&mut self) {
        if self.stack.len() == STACK_LIMIT {
            self.stack.remove(0);
        }
        self.stack.push((self.text.clone(), self.icon.clone()));
    }

    /// Removes and returns the titles that were saved last: of the window and of the icon.
    pub(crate) fn pop(&mut self) -> Option<(String, String)> {
        self.stack.pop()
    }
}

/// Makes text that a program chose safe to show: no control characters, limited length.
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
