//! What a timer sees of a process that it watches.

use patterm_panes::process::{ProcessId, Status};

/// How a watched process looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Look {
    /// It does something.
    Working,
    /// It waits for a person, which is no rest.
    Blocked,
    /// It waits for the end of a limit, which is none either.
    Limited,
    /// Nothing tells; never taken for idle.
    #[default]
    Unknown,
    /// It is started as soon as the processes that it needs are ready.
    ToStart,
    /// Idle, but not for long enough to be sure.
    Pausing,
    /// It rests.
    Idle,
    /// Its program ended.
    Exited,
    /// Its entry is gone.
    Closed,
}

impl Look {
    /// Whether it counts as idle for whoever waits for that.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Exited | Self::Closed)
    }

    /// Whether its program has ended.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Exited | Self::Closed)
    }

    /// Whether it does something, or is about to once a person answered or a limit ended.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Working | Self::Blocked | Self::Limited)
    }
}

/// What is seen of a process that runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObservedActivity {
    /// How it looks.
    pub look: Look,
    /// It is idle, and has been for long enough to be sure.
    pub settled: bool,
    /// How often it came to that since this server began.
    pub rests: u64,
}

/// A watched process at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sight {
    /// How it looks.
    pub look: Look,
    /// How often it came to rest since this server began.
    pub(crate) rests: u64,
    /// Its present rest is counted in `rests`.
    pub(crate) counted: bool,
}

impl Sight {
    /// A process that looks like this, and of which nothing more is known.
    pub fn of(look: Look) -> Self {
        Self { look, ..Self::default() }
    }

    /// What a process's status in the table and its activity make together; `None` is a process that
    /// is closed.
    pub fn new(status: Option<Status>, seen: ObservedActivity) -> Self {
        let look = match (status, seen.settled, seen.look) {
            (None, ..) => Look::Closed,
            (Some(status), ..) if !status.is_alive() => Look::Exited,
            (_, true, _) => Look::Idle,
            (.., Look::Idle) => Look::Pausing,
            (.., look) => look,
        };
        Self { look, rests: seen.rests, counted: seen.settled }
    }

    /// Whether it counts as idle for whoever waits for that.
    pub fn is_idle(self) -> bool {
        self.look.is_idle()
    }
}

/// An agent that does not rest, and how it is.
#[derive(Debug)]
pub struct BusyAgent {
    /// Its id.
    pub id: ProcessId,
    /// Its label.
    pub name: String,
    /// How it looks.
    pub look: Look,
}
