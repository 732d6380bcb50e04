//! What the checks of a process have shown, and what follows from it.

use std::time::Duration;

use tokio::time::Instant;

use crate::project_file::Policy;
use patterm_panes::process::RunNumber;

/// The health of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The last check succeeded, or the failures since are too few.
    Healthy,
    /// Too many consecutive checks failed.
    Unhealthy,
}

impl Health {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// What the checks of one run have shown.
#[derive(Debug, Default)]
pub(super) struct RunHealth {
    run: RunNumber,
    health: Option<Health>,
    /// Consecutive failures.
    failures: u32,
    /// Why the last check failed.
    why: String,
    healthy_since: Option<Instant>,
    /// How long it was healthy, from the first to the last check that succeeded.
    healthy_for: Duration,
    /// What follows from its being unhealthy.
    reaction: Reaction,
}

/// What is done about an unhealthy run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing was decided.
    #[default]
    None,
    /// It is ended, to be restarted.
    Ending,
    /// It has been restarted too often, so it keeps running.
    LeftAlone,
}

impl RunHealth {
    /// The health of a run that has not been checked yet.
    pub(super) fn of(run: RunNumber) -> Self {
        Self { run, ..Self::default() }
    }

    /// Records a check; `limit` consecutive failures make it unhealthy. Returns whether its health has changed.
    pub(super) fn note(&mut self, check: Result<(), String>, limit: u32, now: Instant) -> bool {
        let before = self.health;
        match check {
            Ok(()) => {
                let since = *self.healthy_since.get_or_insert(now);
                self.healthy_for = now.saturating_duration_since(since);
                (self.failures, self.health) = (0, Some(Health::Healthy));
                if self.reaction == Reaction::LeftAlone {
                    self.reaction = Reaction::None;
                }
            }
            Err(why) => {
                self.why = why;
                self.failures = self.failures.saturating_add(1);
                if self.failures >= limit {
                    (self.healthy_since, self.health) = (None, Some(Health::Unhealthy));
                }
            }
        }
        self.health != before
    }

    /// The health of a run, if it is known.
    pub(super) fn health(&self, run: RunNumber) -> Option<Health> {
        self.health.filter(|_| self.run == run && run != RunNumber::NONE)
    }

    /// Whether a run is unhealthy, and nothing was decided about it yet.
    pub(super) fn is_undecided(&self, run: RunNumber) -> bool {
        self.health(run) == Some(Health::Unhealthy) && self.reaction == Reaction::None
    }

    /// Records what is done about it.
    pub(super) fn react(&mut self, reaction: Reaction) {
        self.reaction = reaction;
    }

    /// Whether a run is unhealthy and is not restarted for that.
    pub(super) fn stays_unhealthy(&self, run: RunNumber, policy: Policy) -> bool {
        let is_restarted = match self.reaction {
            Reaction::None => policy != Policy::Never,
            Reaction::Ending => true,
            Reaction::LeftAlone => false,
        };
        self.health(run) == Some(Health::Unhealthy) && !is_restarted
    }

    /// Whether a run is ended, or was, because it is unhealthy.
    pub(super) fn is_ending(&self, run: RunNumber) -> bool {
        self.run == run && self.reaction == Reaction::Ending
    }

    /// How long it was healthy before it became unhealthy.
    pub(super) fn healthy_for(&self) -> Duration {
        self.healthy_for
    }

    /// Why a run is unhealthy, or was when it was ended.
    pub(super) fn problem(&self, run: RunNumber) -> Option<String> {
        if self.is_ending(run) {
            return Some(format!("it was unhealthy: {}", self.why));
        }
        (self.health(run)? == Health::Unhealthy).then(|| {
            let left = "; it was also unhealthy after its last restarts, so it is no longer \
                restarted automatically";
            let left = if self.reaction == Reaction::LeftAlone { left } else { "" };
            format!("it is unhealthy: {}{left}", self.why)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunNumber = RunNumber::FIRST;

    fn failed() -> Result<(), String> {
        Err("it answered 500".into())
    }

    #[test]
    fn a_few_failures_are_forgiven_and_one_success_is_enough() {
        let (mut health, now) = (RunHealth::of(RUN), Instant::now());
        assert!(!health.note(failed(), 3, now));
        assert_eq!(health.health(RUN), None, "it is not known yet");
        assert!(health.note(Ok(()), 3, now));
        for _ in 0..2 {
            assert!(!health.note(failed(), 3, now));
        }
        assert_eq!((health.health(RUN), health.problem(RUN)), (Some(Health::Healthy), None));
        assert!(health.note(failed(), 3, now));
        assert_eq!(health.problem(RUN).unwrap(), "it is unhealthy: it answered 500");
        assert!(!health.note(failed(), 3, now), "it is unhealthy already");
        assert!(health.note(Ok(()), 3, now));
        assert_eq!(health.health(RUN), Some(Health::Healthy));
        assert_eq!(health.health(RUN.next()), None, "another run");
    }

    #[test]
    fn only_checks_that_succeed_count_as_healthy_time() {
        let (mut health, start) = (RunHealth::of(RUN), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for seconds in [0, 10, 20] {
            health.note(Ok(()), 1, at(seconds));
        }
        health.note(failed(), 1, at(90));
        assert_eq!(health.healthy_for(), Duration::from_secs(20));
        health.note(Ok(()), 1, at(100));
        assert_eq!(health.healthy_for(), Duration::ZERO, "it begins again");
    }

    #[test]
    fn a_run_that_is_left_alone_may_recover() {
        let (mut health, now) = (RunHealth::of(RUN), Instant::now());
        health.note(failed(), 1, now);
        assert!(health.is_undecided(RUN));
        health.react(Reaction::LeftAlone);
        assert!(!health.is_undecided(RUN) && !health.is_ending(RUN));
        assert!(health.problem(RUN).unwrap().ends_with("no longer restarted automatically"));
        health.note(Ok(()), 1, now);
        health.note(failed(), 1, now);
        assert!(health.is_undecided(RUN));
    }
}
