//! Replies to a program that are still to be written to it.

/// Bytes of pending replies. A program that queries without reading loses any beyond this.
const REPLY_LIMIT: usize = 4 << 10;

/// Pending replies.
#[derive(Debug, Default)]
pub(crate) struct Replies(String);

impl Replies {
    /// Adds a reply, unless too much is pending.
    pub(crate) fn push(&mut self, text: &str) {
        if self.0.len() + text.len() <= REPLY_LIMIT {
            self.0.push_str(text);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).into_bytes()
    }
}
