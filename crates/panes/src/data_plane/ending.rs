//! The end of a run, on its way from the reader to the parser.

use std::sync::Mutex;

use patterm_store::sync::lock;

use crate::offset::Offset;
use crate::process::Exit;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The program exited or was killed by a signal.
    Exited(Exit),
    /// The init that watched the program is gone, and the exit status with it.
    Lost,
}

impl RunEnd {
    pub(super) fn exit(self) -> Option<Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            Self::Lost => None,
        }
    }
}

impl From<Option<Exit>> for RunEnd {
    fn from(exit: Option<Exit>) -> Self {
        exit.map_or(Self::Lost, Self::Exited)
    }
}

/// Hands the end of a run over: the reader announces it once it has read all output, and the parser takes it once
/// it has parsed that output. The reader queues the run for the parser afterwards, so the parser always looks.
/// The mutex is taken once per turn of the parser and is contended only at the end of a run.
#[derive(Debug, Default)]
pub(super) struct Ending(Mutex<Option<(RunEnd, Offset)>>);

impl Ending {
    /// Called by the reader: the run ended, and its output ends at `output_end`.
    pub(super) fn announce(&self, end: RunEnd, output_end: Offset) {
        *lock(&self.0) = Some((end, output_end));
    }

    /// Called by the parser: returns the end, once, if everything before it is parsed.
    pub(super) fn take_reached(&self, parsed: Offset) -> Option<RunEnd> {
        let reached = lock(&self.0).take_if(|(_, output_end)| parsed >= *output_end);
        reached.map(|(end, _)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_taken_once_and_only_after_all_output() {
        let ending = Ending::default();
        assert_eq!(ending.take_reached(Offset::new(9)), None);
        ending.announce(RunEnd::Lost, Offset::new(10));
        assert_eq!(ending.take_reached(Offset::new(9)), None);
        assert_eq!(ending.take_reached(Offset::new(10)), Some(RunEnd::Lost));
        assert_eq!(ending.take_reached(Offset::new(10)), None);
    }
}
