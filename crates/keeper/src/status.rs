//! The status of a pane's program, as its init records it. The record is a small file in memory
//! that the init, the keeper and the server share, so that it outlives any of them.

use std::os::fd::AsFd;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What is known about a pane's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramStatus {
    /// The process id of the init above it.
    pub init: i32,
    /// The process id of the program itself.
    pub program: i32,
    /// How it ended, once it has.
    pub exit: Option<Exit>,
    /// No process that it ever started is left.
    pub empty: bool,
}

const SIZE: usize = 24;
const RUNNING: i32 = 1;
const EXITED: i32 = 2;
const SIGNALLED: i32 = 3;

impl ProgramStatus {
    pub(crate) fn running(init: i32, program: i32) -> Self {
        Self { init, program, exit: None, empty: false }
    }

    /// Writes the record in one step.
    pub(crate) fn write(&self, file: impl AsFd) -> rustix::io::Result<()> {
        let (state, value) = match self.exit {
            None => (RUNNING, 0),
            Some(Exit::Code(code)) => (EXITED, code),
            Some(Exit::Signal(signal)) => (SIGNALLED, signal),
        };
        let words = [self.init, self.program, state, value, i32::from(self.empty), 0];
        let mut bytes = [0; SIZE];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        rustix::io::pwrite(file, &bytes, 0).map(drop)
    }

    /// Reads the record; `None` before it was first written.
    pub fn read(file: impl AsFd) -> rustix::io::Result<Option<Self>> {
        let mut bytes = [0; SIZE];
        if rustix::io::pread(file, &mut bytes, 0)? < SIZE {
            return Ok(None);
        }
        let word = |n: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[n * 4..n * 4 + 4]);
            i32::from_ne_bytes(word)
        };
        let exit = match word(2) {
            EXITED => Some(Exit::Code(word(3))),
            SIGNALLED => Some(Exit::Signal(word(3))),
            _ => None,
        };
        Ok(Some(Self { init: word(0), program: word(1), exit, empty: word(4) != 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_status_is_read_back() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(ProgramStatus::read(&file).unwrap(), None);
        for (exit, empty) in [
            (None, false),
            (Some(Exit::Code(3)), false),
            (Some(Exit::Code(-1)), true),
            (Some(Exit::Signal(9)), true),
        ] {
            let status = ProgramStatus { init: 5, program: 6, exit, empty };
            status.write(&file).unwrap();
            assert_eq!(ProgramStatus::read(&file).unwrap(), Some(status));
        }
    }
}
