//! How far a run has come, for everything that waits for it.

use tokio::sync::watch;

use super::ending::RunEnd;
use crate::offset::Offset;
use crate::process::Exit;

/// A snapshot of how far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// The output before this offset is on the screen.
    pub parsed: Offset,
    /// How the program ended; set once all its output is parsed.
    pub exit: Option<Exit>,
    /// The run is over, but its exit status is unknown.
    pub lost: bool,
    /// The end of the run is in the process table.
    pub settled: bool,
    /// No process that the run started is left.
    pub empty: bool,
    /// The screen shows everything that was printed before this server started.
    pub rebuilt: bool,
    /// So does its history.
    pub complete: bool,
}

impl RunProgress {
    /// Whether the program has ended and all its output is parsed.
    pub fn is_over(&self) -> bool {
        self.exit.is_some() || self.lost
    }
}

/// Publishes the progress of a run. Three threads write it, each its own fields: the parser `parsed`, `exit` and
/// `lost`; the reader `empty`; the control plane `settled`. Before the parser's first turn, the thread that rebuilds
/// the screen sets `parsed` and `rebuilt`, and later `complete`. Fields only ever move forward.
///
/// Output changes it with every key that a person types, which would wake up all that wait for something else. So there
/// are two: `life` does not change with output, and its `parsed` is out of date.
#[derive(Debug)]
pub(super) struct Progress {
    all: watch::Sender<RunProgress>,
    life: watch::Sender<RunProgress>,
}

impl Progress {
    pub(super) fn new(parsed: Offset) -> Self {
        Self::of(RunProgress { parsed, rebuilt: true, complete: true, ..RunProgress::default() })
    }

    /// The progress of a run whose screen is still to be rebuilt.
    pub(super) fn to_rebuild(parsed: Offset) -> Self {
        Self::of(RunProgress { parsed, ..RunProgress::default() })
    }

    fn of(progress: RunProgress) -> Self {
        Self { all: watch::Sender::new(progress), life: watch::Sender::new(progress) }
    }

    /// Changes something besides `parsed`, for all that wait.
    fn change(&self, change: impl Fn(&mut RunProgress)) {
        self.all.send_modify(&change);
        self.life.send_modify(&change);
    }

    /// The screen shows everything before `parsed`; `complete`: so does its history.
    pub(super) fn set_rebuilt(&self, parsed: Offset, complete: bool) {
        self.change(|progress| {
            (progress.parsed, progress.rebuilt, progress.complete) = (parsed, true, complete);
        });
    }

    /// The history has everything as well.
    pub(super) fn set_complete(&self) {
        self.change(|progress| progress.complete = true);
    }

    pub(super) fn watch(&self) -> watch::Receiver<RunProgress> {
        self.all.subscribe()
    }

    /// Follows everything but output.
    pub(super) fn watch_life(&self) -> watch::Receiver<RunProgress> {
        self.life.subscribe()
    }

    pub(super) fn get(&self) -> RunProgress {
        *self.all.borrow()
    }

    /// The parser has reached `parsed`, and with it the end of the run if there is one.
    pub(super) fn advance(&self, parsed: Offset, end: Option<RunEnd>) {
        match end {
            None => self.all.send_modify(|progress| progress.parsed = parsed),
            Some(end) => self.change(|progress| {
                progress.parsed = parsed;
                progress.exit = end.exit();
                progress.lost = end == RunEnd::Lost;
            }),
        }
    }

    /// No process of the run is left.
    pub(super) fn set_empty(&self) {
        if !self.get().empty {
            self.change(|progress| progress.empty = true);
        }
    }

    /// The end of the run is in the process table.
    pub(super) fn set_settled(&self) {
        self.change(|progress| progress.settled = true);
    }

    /// The run was over before this server started.
    pub(super) fn set_over(&self, end: RunEnd) {
        self.change(|progress| {
            progress.exit = end.exit();
            progress.lost = end == RunEnd::Lost;
            progress.settled = true;
            progress.empty = true;
        });
    }
}
