//! What is kept of a timer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::countdown::Countdown;
use crate::sight::{Look, Sight};
use patterm_panes::process::ProcessId;

/// The id of a timer: `t1`, `t2`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TimerId(String);

impl TimerId {
    pub(crate) fn new(number: u64) -> Self {
        Self(format!("t{number}"))
    }

    /// The id that a caller named; there may be no such timer.
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

/// Which of the watched processes must rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One of them.
    Any,
    /// All of them.
    All,
}

/// A process that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its id.
    pub id: ProcessId,
    /// Its name when it was last known to have one.
    pub(crate) name: String,
    /// It was idle when the timer was armed, and was not seen at work since.
    pub(crate) resting: bool,
    /// How many of its rests do not count: those up to the one at arming.
    #[serde(skip)]
    pub(crate) uncounted: u64,
    #[serde(skip)]
    pub(crate) seen: Sight,
}

impl Watched {
    pub(crate) fn arm(id: ProcessId, name: String, seen: Sight) -> Self {
        let mut watched = Self { id, name, resting: false, uncounted: 0, seen };
        watched.arm_again(seen);
        watched
    }

    pub(crate) fn arm_again(&mut self, seen: Sight) {
        self.seen = seen;
        self.resting = seen.look == Look::Pausing || seen.look.is_idle();
        // A rest that has begun and is not counted yet will be.
        self.uncounted = seen.rests + u64::from(self.resting && !seen.counted);
    }

    /// The next server counts rests from nought: it will count one that goes on as its first.
    pub(crate) fn count_anew(&mut self) {
        self.seen = Sight::default();
        self.uncounted = u64::from(self.resting);
    }

    /// Notes what is seen; true if that is worth writing down.
    pub(crate) fn observe(&mut self, sight: Sight) -> bool {
        self.seen = sight;
        let worked = self.resting && sight.look.is_busy();
        if worked {
            self.resting = false;
            self.uncounted = self.uncounted.min(sight.rests);
        }
        worked
    }

    /// Whether it came to rest since the timer was armed.
    pub(crate) fn has_rested(&self) -> bool {
        self.seen.rests > self.uncounted || (self.seen.look.is_idle() && !self.resting)
    }

    pub(crate) fn look(&self) -> Look {
        self.seen.look
    }
}

/// What a timer waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// A time that is over.
    Delay(Countdown),
    /// Processes that rest.
    Idle {
        /// Which of them must rest.
        mode: Mode,
        /// They must have ended. Servers before 0.1.1 do not know this, and wait for their rest.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exits: bool,
        /// The processes.
        watched: Vec<Watched>,
        /// The time after which it fires whatever they do.
        max_wait: Option<Countdown>,
    },
}

/// A timer that has not fired yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Its id.
    pub id: TimerId,
    /// Who gets the text.
    pub owner: ProcessId,
    /// Who set it; `None` outside the project.
    pub set_by: Option<ProcessId>,
    /// Its name for its owner.
    pub label: Option<String>,
    /// The text; `None` for the fixed line of `timer_wait`.
    pub body: Option<String>,
    /// When it was set, in milliseconds since 1970.
    pub set_at: u64,
    /// It does not count.
    pub paused: bool,
    /// What it waits for.
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

    /// Whether it fires after some time whatever the watched processes do.
    pub fn has_max_wait(&self) -> bool {
        self.countdown().is_some()
    }

    /// What is left until it fires by time, where it does.
    pub fn left_ms(&self, now: &Moment) -> Option<u64> {
        self.countdown().map(|time| time.left_ms(now))
    }

    /// The processes that it watches.
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

    /// The watched processes of which nothing tells whether they rest.
    pub fn watched_in_the_dark(&self) -> Vec<ProcessId> {
        let dark = self.watched().iter().filter(|watched| watched.look() == Look::Unknown);
        dark.map(|watched| watched.id.clone()).collect()
    }

    /// The watched processes that wait for the end of a limit.
    pub fn watched_at_a_limit(&self) -> Vec<ProcessId> {
        let limited = self.watched().iter().filter(|watched| watched.look() == Look::Limited);
        limited.map(|watched| watched.id.clone()).collect()
    }

    /// The watched processes that it need not wait for (`true`) or waits for (`false`).
    pub fn watched_that_rest(&self, rest: bool) -> Vec<ProcessId> {
        let Wake::Idle { mode, exits, watched, .. } = &self.wake else { return Vec::new() };
        // A pause that began before `any` was armed does not count; `all` wants to be sure of it.
        let rests = |look: Look| match *exits {
            true => look.is_over(),
            false => look.is_idle() || (*mode == Mode::Any && look == Look::Pausing),
        };
        let those = watched.iter().filter(|watched| rests(watched.look()) == rest);
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

/// A timer that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) id: TimerId,
    pub(crate) how: End,
}
