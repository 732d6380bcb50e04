//! The records of timers.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::countdown::Countdown;
use crate::observation::{Observation, WatchState};
use patterm_panes::process::ProcessId;
use patterm_store::clock::Moment;

/// The id of a timer: `t1`, `t2`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TimerId(String);

impl TimerId {
    pub(crate) fn new(number: u64) -> Self {
        Self(format!("t{number}"))
    }

    /// The id that a caller gave; there may be no such timer.
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn number(&self) -> Option<u64> {
        self.0.strip_prefix('t')?.parse().ok()
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many of the watched processes must become idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One of them.
    Any,
    /// All of them.
    All,
}

/// A watched process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its id.
    pub id: ProcessId,
    /// Its last known name.
    pub(crate) name: String,
    /// Whether it was idle when the timer was armed, and has not been seen working since.
    pub(crate) resting: bool,
    /// How many idle periods do not count: those up to the one at arming.
    #[serde(skip)]
    pub(crate) ignored_periods: u64,
    #[serde(skip)]
    pub(crate) seen: Observation,
}

impl Watched {
    pub(crate) fn arm(id: ProcessId, name: String, seen: Observation) -> Self {
        let mut watched = Self { id, name, resting: false, ignored_periods: 0, seen };
        watched.rearm(seen);
        watched
    }

    pub(crate) fn rearm(&mut self, seen: Observation) {
        self.seen = seen;
        self.resting = seen.state == WatchState::Settling || seen.state.is_idle();
        // An idle period that has begun is counted later.
        self.ignored_periods = seen.idle_periods + u64::from(self.resting && !seen.counted);
    }

    /// A new server counts idle periods from zero, and counts a current one as its first.
    pub(crate) fn restart_counting(&mut self) {
        self.seen = Observation::default();
        self.ignored_periods = u64::from(self.resting);
    }

    /// Records the state of the process; returns whether that must be saved.
    pub(crate) fn observe(&mut self, observation: Observation) -> bool {
        self.seen = observation;
        let worked = self.resting && observation.state.is_busy();
        if worked {
            self.resting = false;
            self.ignored_periods = self.ignored_periods.min(observation.idle_periods);
        }
        worked
    }

    /// Whether it became idle since the timer was armed.
    pub(crate) fn became_idle(&self) -> bool {
        self.seen.idle_periods > self.ignored_periods
            || (self.seen.state.is_idle() && !self.resting)
    }

    pub(crate) fn state(&self) -> WatchState {
        self.seen.state
    }
}

/// The condition of a timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// A delay has passed.
    Delay(Countdown),
    /// Processes are idle.
    Idle {
        /// How many of them must be idle.
        mode: Mode,
        /// They must have exited. Servers before 0.1.1 ignore this, and wait until they are idle.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exits: bool,
        /// The processes.
        watched: Vec<Watched>,
        /// The time after which it fires in any case.
        max_wait: Option<Countdown>,
    },
}

/// A timer that has not fired yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Its id.
    pub id: TimerId,
    /// The process that gets the text.
    pub owner: ProcessId,
    /// The process that set it; `None` if that was outside the project.
    pub set_by: Option<ProcessId>,
    /// Its name, for its owner.
    pub label: Option<String>,
    /// The text; `None` for the fixed line of `timer_wait`.
    pub body: Option<String>,
    /// When it was set, in milliseconds since 1970.
    pub set_at: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Its condition.
    pub wake: Wake,
}

impl Timer {
    pub(crate) fn countdown(&self) -> Option<&Countdown> {
        match &self.wake {
            Wake::Delay(time) => Some(time),
            Wake::Idle { max_wait, .. } => max_wait.as_ref(),
        }
    }

    pub(crate) fn countdown_mut(&mut self) -> Option<&mut Countdown> {
        match &mut self.wake {
            Wake::Delay(time) => Some(time),
            Wake::Idle { max_wait, .. } => max_wait.as_mut(),
        }
    }

    /// Whether it fires after some time in any case.
    pub fn has_max_wait(&self) -> bool {
        self.countdown().is_some()
    }

    /// The time until it fires by its delay or maximum wait, if it has one.
    pub fn left_ms(&self, now: &Moment) -> Option<u64> {
        self.countdown().map(|time| time.left_ms(now))
    }

    /// The watched processes.
    pub fn watched(&self) -> &[Watched] {
        match &self.wake {
            Wake::Delay(_) => &[],
            Wake::Idle { watched, .. } => watched,
        }
    }

    pub(crate) fn watched_mut(&mut self) -> &mut [Watched] {
        match &mut self.wake {
            Wake::Delay(_) => &mut [],
            Wake::Idle { watched, .. } => watched,
        }
    }

    /// The watched processes whose state is unknown.
    pub fn watched_unknown(&self) -> Vec<ProcessId> {
        let unknown =
            self.watched().iter().filter(|watched| watched.state() == WatchState::Unknown);
        unknown.map(|watched| watched.id.clone()).collect()
    }

    /// The watched processes that have reached a usage limit.
    pub fn watched_limited(&self) -> Vec<ProcessId> {
        let limited =
            self.watched().iter().filter(|watched| watched.state() == WatchState::Limited);
        limited.map(|watched| watched.id.clone()).collect()
    }

    /// The watched processes that already meet the condition (`true`), or that it waits for
    /// (`false`).
    pub fn watched_done(&self, done: bool) -> Vec<ProcessId> {
        let Wake::Idle { mode, exits, watched, .. } = &self.wake else { return Vec::new() };
        // `any` ignores idle periods that began before it was armed; `all` waits until
        // they are certain.
        let is_done = |state: WatchState| match *exits {
            true => state.has_ended(),
            false => state.is_idle() || (*mode == Mode::Any && state == WatchState::Settling),
        };
        let those = watched.iter().filter(|watched| is_done(watched.state()) == done);
        those.map(|watched| watched.id.clone()).collect()
    }
}

/// How a timer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Fired,
    Cancelled,
    OwnerClosed,
}

/// A timer that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) id: TimerId,
    pub(crate) how: End,
}
