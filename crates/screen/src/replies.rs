//! Answers to a program that wait until they are written to it.

/// Answers that may wait to be taken. A program that asks without reading loses what is beyond.
const REPLY_LIMIT: usize = 4 << 10;

/// Answers waiting to be taken.
#[derive(Debug, Default)]
pub(crate) struct Replies(String);

impl Replies {
    /// Adds an answer, unless too much waits already.
    pub(crate) fn push(&mut self, text: &str) {
        if self.0.len() + text.len() <= REPLY_LIMIT {
            self.0.push_str(text);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).into_bytes()
    }
}
