//! What is on its way into a process: one queue, in the order of arrival, so that two writers
//! never mix bytes.

use std::collections::VecDeque;

/// Bytes that may wait for a program that does not read: more than anybody types or pastes, and
/// small enough to say no in time.
pub(crate) const INPUT_BYTES: usize = 1 << 20;

/// The queue of one process.
#[derive(Debug, Default)]
pub(super) struct Input {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are written already.
    written: usize,
    waiting: usize,
}

/// The queue is full: the program does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputFull;

impl Input {
    /// Puts bytes in line, all or none.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), InputFull> {
        if self.waiting + bytes.len() > INPUT_BYTES {
            return Err(InputFull);
        }
        if !bytes.is_empty() {
            self.waiting += bytes.len();
            self.pieces.push_back(bytes.to_vec());
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes with `write` until it takes no more.
    pub(super) fn drain<E>(
        &mut self,
        mut write: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        while let Some(piece) = self.pieces.front() {
            let bytes = write(&piece[self.written..])?;
            self.written += bytes;
            self.waiting -= bytes;
            if self.written == piece.len() {
                self.pieces.pop_front();
                self.written = 0;
            }
        }
        Ok(())
    }

    /// Nobody reads any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_whole_and_in_order_however_little_is_taken() {
        let mut input = Input::default();
        for piece in ["one ", "", "two ", "three"] {
            input.push(piece.as_bytes()).unwrap();
        }
        let mut seen = Vec::new();
        let mut turns = 0;
        while !input.is_empty() {
            let _ = input.drain(|bytes| {
                turns += 1;
                if turns % 2 == 0 {
                    return Err(());
                }
                seen.extend_from_slice(&bytes[..bytes.len().min(3)]);
                Ok(bytes.len().min(3))
            });
        }
        assert_eq!(seen, b"one two three");
        assert_eq!(input.waiting, 0);
    }

    #[test]
    fn a_full_queue_takes_all_or_nothing() {
        let mut input = Input::default();
        input.push(&vec![0; INPUT_BYTES - 1]).unwrap();
        assert_eq!(input.push(b"ab"), Err(InputFull));
        input.push(b"a").unwrap();
        assert_eq!(input.waiting, INPUT_BYTES);
    }
}
