//! The state of a watched process, as timers see it.

use patterm_panes::process::{ProcessId, Status};

/// The state of a watched process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WatchState {
    /// It is working.
    Working,
    /// It waits for a person, which does not count as idle.
    Blocked,
    /// It has reached a usage limit, which does not count as idle.
    Limited,
    /// There is no evidence; never counted as idle.
    #[default]
    Unknown,
    /// It will be started once its dependencies are ready.
    ToStart,
    /// Idle, but not for long enough to be sure.
    Settling,
    /// It is idle.
    Idle,
    /// Its program exited.
    Exited,
    /// Its entry was closed.
    Closed,
}

impl WatchState {
    /// Whether it counts as idle.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Exited | Self::Closed)
    }

    /// Whether its program has ended.
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Self::Exited | Self::Closed)
    }

    /// Whether it is working, or will be once a person answers or a limit ends.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Working | Self::Blocked | Self::Limited)
    }
}

/// The activity of a running process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObservedActivity {
    /// Its state.
    pub state: WatchState,
    /// Whether it has been idle for long enough to be sure.
    pub settled: bool,
    /// How often it became idle in this way since this server started.
    pub idle_periods: u64,
}

/// A watched process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observation {
    /// Its state.
    pub state: WatchState,
    /// How often it became idle since this server started.
    pub(crate) idle_periods: u64,
    /// Whether `idle_periods` includes its current idle period.
    pub(crate) counted: bool,
}

impl Observation {
    /// A process in this state, without further information.
    pub fn of(state: WatchState) -> Self {
        Self { state, ..Self::default() }
    }

    /// Combines the status and the activity of a process; a status of `None` means that it
    /// was closed.
    pub fn new(status: Option<Status>, seen: ObservedActivity) -> Self {
        let state = match (status, seen.settled, seen.state) {
            (None, ..) => WatchState::Closed,
            (Some(status), ..) if !status.is_alive() => WatchState::Exited,
            (_, true, _) => WatchState::Idle,
            (.., WatchState::Idle) => WatchState::Settling,
            (.., state) => state,
        };
        Self { state, idle_periods: seen.idle_periods, counted: seen.settled }
    }

    /// Whether it counts as idle.
    pub fn is_idle(self) -> bool {
        self.state.is_idle()
    }
}

/// An agent that is not idle.
#[derive(Debug)]
pub struct BusyAgent {
    /// Its id.
    pub id: ProcessId,
    /// Its label.
    pub name: String,
    /// Its state.
    pub state: WatchState,
}
