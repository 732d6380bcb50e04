//! A person's hand on a keyboard: when it last typed, and whether it left something unfinished.

use tokio::time::Instant;

/// What is known of the person who types into a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hand {
    /// When something was last typed.
    pub(crate) typed: Option<Instant>,
    /// Something was typed and neither entered nor given up.
    pub(crate) draft: bool,
}

impl Hand {
    /// Notes what was typed.
    pub(super) fn type_in(&mut self, bytes: &[u8]) {
        if is_report(bytes) {
            return;
        }
        self.typed = Some(Instant::now());
        match bytes {
            // A key that is no text, and the end of a line, of a thought, of a program.
            [b'\r' | b'\n' | 0x03 | 0x04 | 0x15 | 0x1b] => self.draft = false,
            [0x1b, ..] if !bytes.starts_with(b"\x1b[200~") => {}
            _ => self.draft = !matches!(bytes.last(), Some(b'\r' | b'\n')),
        }
    }
}

/// Whether bytes from a view are what its terminal reports by itself: focus and mouse.
fn is_report(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1b[<") || matches!(bytes, b"\x1b[I" | b"\x1b[O")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_was_typed_and_not_entered() {
        let mut hand = Hand::default();
        for (typed, draft) in [
            ("h", true),
            ("\x1b[D", true),
            ("\r", false),
            ("\x1b[A", false),
            ("ls\r", false),
            ("\x1b[200~two\rlines\x1b[201~", true),
            ("\x03", false),
            ("\x1b[<0;1;1M", false),
            ("é", true),
        ] {
            hand.type_in(typed.as_bytes());
            assert_eq!(hand.draft, draft, "{typed:?}");
        }
    }

    #[test]
    fn focus_and_mouse_are_no_typing() {
        let mut hand = Hand::default();
        for report in ["\x1b[I", "\x1b[O", "\x1b[<35;10;3M"] {
            hand.type_in(report.as_bytes());
        }
        assert!(hand.typed.is_none());
    }
}
