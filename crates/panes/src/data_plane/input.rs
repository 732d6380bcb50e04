//! Queued input of a process: one queue in the order of arrival, so that the bytes of two writers never mix.

use std::collections::VecDeque;

/// Bytes that may wait for a program that does not read: more than anybody types or pastes, and small enough to
/// report an error in time.
pub const INPUT_BYTES: usize = 1 << 20;

/// The queue of one process.
#[derive(Debug, Default)]
pub(super) struct Input {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are already written.
    written: usize,
    /// Bytes in both queues that are not written.
    waiting: usize,
    /// A writer has reserved the keyboard; input of others waits in `after` until it is released.
    reserved: bool,
    after: VecDeque<Vec<u8>>,
}

/// The queue is full, because the program does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputFull;

impl Input {
    /// Queues pieces, each to be written separately with nothing in between; all or none.
    pub(super) fn push(&mut self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        let reserved = self.reserved;
        self.put(pieces, reserved)
    }

    /// The same for the writer that has reserved the keyboard, and for replies of the terminal itself.
    pub(super) fn push_now(&mut self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        self.put(pieces, false)
    }

    fn put(&mut self, pieces: Vec<Vec<u8>>, after: bool) -> Result<(), InputFull> {
        let bytes: usize = pieces.iter().map(Vec::len).sum();
        if self.waiting + bytes > INPUT_BYTES {
            return Err(InputFull);
        }
        self.waiting += bytes;
        let queue = if after { &mut self.after } else { &mut self.pieces };
        queue.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        Ok(())
    }

    /// Reserves the keyboard for one writer; `false` if another has it.
    pub(super) fn reserve(&mut self) -> bool {
        !std::mem::replace(&mut self.reserved, true)
    }

    /// Releases the keyboard: input that others wrote meanwhile follows.
    pub(super) fn release(&mut self) {
        self.reserved = false;
        self.pieces.append(&mut self.after);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes with `write` until that fails or the queue is empty.
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

    /// Drops all input.
    pub(super) fn clear(&mut self) {
        *self = Self { reserved: self.reserved, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    fn drained(input: &mut Input) -> String {
        let mut seen = Vec::new();
        let _ = input.drain(|bytes| {
            seen.extend_from_slice(bytes);
            Ok::<_, ()>(bytes.len())
        });
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn pieces_are_written_completely_and_in_order_however_short_the_writes_are() {
        let mut input = Input::default();
        for texts in [&["one ", ""][..], &[], &["two ", "three"]] {
            input.push(pieces(texts)).unwrap();
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
    fn a_full_queue_accepts_all_pieces_or_none() {
        let mut input = Input::default();
        input.push(vec![vec![0; INPUT_BYTES - 1]]).unwrap();
        assert_eq!(input.push(pieces(&["a", "b"])), Err(InputFull));
        input.push(pieces(&["a"])).unwrap();
        assert_eq!(input.waiting, INPUT_BYTES);
    }

    #[test]
    fn input_of_others_follows_after_a_reservation() {
        let mut input = Input::default();
        input.push(pieces(&["before "])).unwrap();
        assert!(input.reserve() && !input.reserve());
        input.push_now(pieces(&["paste "])).unwrap();
        input.push(pieces(&["a person's key "])).unwrap();
        assert_eq!(drained(&mut input), "before paste ");
        input.push_now(pieces(&["enter "])).unwrap();
        input.release();
        assert_eq!(drained(&mut input), "enter a person's key ");
        assert_eq!(input.waiting, 0);
    }
}
