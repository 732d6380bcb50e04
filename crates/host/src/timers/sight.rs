//! What a timer sees of a process that it watches.

use crate::activity::{Standing, State};
use crate::host::Host;
use crate::process::{Process, ProcessId, Status};

/// How a watched process looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Look {
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
    Idle,
    /// Its program ended.
    Exited,
    /// Its entry is gone.
    Closed,
}

impl Look {
    /// Whether it counts as idle for whoever waits for that.
    pub(crate) fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Exited | Self::Closed)
    }

    /// Whether its program has ended.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Exited | Self::Closed)
    }

    /// Whether it does something, or is about to once a person answered or a limit ended.
    pub(super) fn is_busy(self) -> bool {
        matches!(self, Self::Working | Self::Blocked | Self::Limited)
    }
}

/// A watched process at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(super) look: Look,
    /// How often it came to rest since this server began.
    pub(super) rests: u64,
    /// Its present rest is counted in `rests`.
    pub(super) counted: bool,
}

impl Sight {
    /// What a process's status in the table and its standing make together.
    pub(super) fn new(status: Option<Status>, standing: &Standing) -> Self {
        let look = match (status, standing.settled, standing.verdict.state) {
            (None, ..) => Look::Closed,
            (Some(status), ..) if !status.is_alive() => Look::Exited,
            (_, true, _) => Look::Idle,
            (.., State::Idle) => Look::Pausing,
            (.., State::Working) => Look::Working,
            (.., State::Blocked) => Look::Blocked,
            (.., State::Limited) => Look::Limited,
            (.., State::Unknown) => Look::Unknown,
        };
        Self { look, rests: standing.rests, counted: standing.settled }
    }

    /// Whether it counts as idle for whoever waits for that.
    pub(crate) fn is_idle(self) -> bool {
        self.look.is_idle()
    }

    /// Looks at a process now.
    pub(crate) fn of(host: &Host, id: &ProcessId) -> Self {
        let process = host.processes.get(id);
        if process.as_ref().is_some_and(Process::awaits_decision) {
            // It was ended with everything, which is no rest, and may be restored.
            return Self::default();
        }
        if process.as_ref().is_some_and(|process| host.starts_after(process).is_some()) {
            return Self { look: Look::ToStart, ..Self::default() };
        }
        let mut sight = Self::new(process.map(|process| process.status), &host.activities.get(id));
        // Its observer may not have heard yet that a message is on its way to it.
        if sight.look == Look::Idle && host.deliveries.has_open(id) {
            sight.look = Look::Pausing;
        }
        sight
    }
}

/// An agent that does not rest, and how it is.
#[derive(Debug)]
pub(super) struct BusyAgent {
    pub(super) id: ProcessId,
    pub(super) name: String,
    pub(super) look: Look,
}
