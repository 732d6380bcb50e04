//! The activity of a process that is not an agent: from its output, its foreground program, its use
//! of CPU, and whether it is waiting for input. Silence alone is not idle.

use std::time::Duration;

use crate::activity_state::{Activity, ActivityState};

/// After this time without output, a shell has printed its prompt, and a program its message.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// A program that printed within this time counts as working unless it is waiting for input: longer
/// than the pauses between two steps of a build.
const PRINTED: Duration = Duration::from_secs(10);

/// The time between two measurements of a program's CPU time.
pub(crate) const LOAD_PAUSE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two checks of a program that shows nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// After this many checks, a program that no caller or timer is waiting for is checked again only when
/// it prints: idle programs cost nothing.
const CHECKS: u32 = 4;

/// The program in the terminal's foreground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreground {
    /// The program itself.
    Itself,
    /// Another program that it started.
    Other(String),
    /// It cannot be determined.
    Unknown,
}

/// What is known about a program at one moment.
#[derive(Debug, Clone)]
pub(crate) struct ProgramEvidence {
    /// It is an interactive shell.
    pub shell: bool,
    pub foreground: Foreground,
    /// The state that it reports.
    pub reported: Option<Activity>,
    /// How long ago it last printed something; `None` if it was not seen to print.
    pub quiet: Option<Duration>,
    /// It, or a program that it started, uses CPU; `None` while that is being measured.
    pub busy: Option<bool>,
    /// Its foreground program is waiting for input from the terminal.
    pub waits: bool,
    /// How many checks in a row have shown nothing new.
    pub checks: u32,
    /// A timer or a caller is waiting for a change of its state.
    pub watched: bool,
}

/// The activity of a program, and when to check again even if it prints nothing.
pub(crate) fn program(evidence: &ProgramEvidence) -> (Activity, Option<Duration>) {
    let conclude = |state, reason: &str, again| (Activity::new(state, reason), again);
    if let Some(reported) = &evidence.reported {
        return (reported.clone(), None);
    }
    if let Some(remaining) = evidence.quiet.and_then(|quiet| remaining(QUIET, quiet)) {
        return conclude(ActivityState::Working, "it printed something just now", Some(remaining));
    }
    let pause = FIRST_PAUSE.saturating_mul(1 << evidence.checks.min(8)).min(LONGEST_PAUSE);
    let pause = (evidence.watched || evidence.checks < CHECKS).then_some(pause);
    match (&evidence.foreground, evidence.shell, evidence.busy) {
        (Foreground::Itself, true, Some(true)) => {
            return conclude(ActivityState::Working, "a background job uses CPU", Some(LOAD_PAUSE));
        }
        (Foreground::Itself, true, Some(false)) => {
            return conclude(ActivityState::Idle, "the shell waits at its prompt", None);
        }
        (Foreground::Other(name), true, Some(false)) if evidence.waits => {
            return conclude(ActivityState::Idle, &format!("`{name}` waits for input"), None);
        }
        (Foreground::Other(name), true, _) => {
            let reason = format!("`{name}` runs in its foreground");
            return conclude(ActivityState::Working, &reason, pause);
        }
        (_, _, Some(false)) if evidence.waits => {
            return conclude(ActivityState::Idle, "it waits for input", None);
        }
        (_, _, Some(true)) => {
            return conclude(ActivityState::Working, "it uses CPU", Some(LOAD_PAUSE));
        }
        _ => {}
    }
    if let Some(remaining) = evidence.quiet.and_then(|quiet| remaining(PRINTED, quiet)) {
        let reason = format!("it printed something in the last {} s", PRINTED.as_secs());
        return conclude(ActivityState::Working, &reason, Some(remaining.min(LOAD_PAUSE)));
    }
    match evidence.busy {
        None => conclude(ActivityState::Unknown, "it has not been observed yet", Some(LOAD_PAUSE)),
        Some(_) => {
            let reason = "it prints nothing, uses no CPU, and does not appear to wait for input";
            conclude(ActivityState::Unknown, reason, pause)
        }
    }
}

/// The rest of a time span, if there is any.
fn remaining(time: Duration, passed: Duration) -> Option<Duration> {
    time.checked_sub(passed).filter(|remaining| !remaining.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> ProgramEvidence {
        ProgramEvidence {
            shell: false,
            foreground: Foreground::Itself,
            reported: None,
            quiet: Some(Duration::from_secs(60)),
            busy: Some(false),
            waits: false,
            checks: 0,
            watched: false,
        }
    }

    #[track_caller]
    fn check(evidence: &ProgramEvidence, state: ActivityState, reason: &str) {
        let (activity, again) = program(evidence);
        assert_eq!(activity.state, state, "{evidence:?}: {activity:?}");
        assert!(activity.reason.contains(reason), "{activity:?}");
        assert_eq!(again.is_none(), state == ActivityState::Idle, "{evidence:?}");
    }

    #[test]
    fn silence_alone_is_not_idle() {
        check(&evidence(), ActivityState::Unknown, "does not appear to wait");
        check(
            &ProgramEvidence { busy: Some(true), ..evidence() },
            ActivityState::Working,
            "uses CPU",
        );
        check(
            &ProgramEvidence { waits: true, ..evidence() },
            ActivityState::Idle,
            "waits for input",
        );
        let computes = ProgramEvidence { waits: true, busy: Some(true), ..evidence() };
        check(&computes, ActivityState::Working, "uses CPU");
        let lately = ProgramEvidence { quiet: Some(Duration::from_secs(5)), ..evidence() };
        check(&lately, ActivityState::Working, "in the last 10 s");
        check(&ProgramEvidence { waits: true, ..lately }, ActivityState::Idle, "waits for input");
    }

    #[test]
    fn a_program_that_was_not_seen_to_print_is_unknown() {
        for busy in [None, Some(false)] {
            let silent = ProgramEvidence { quiet: None, busy, ..evidence() };
            assert_eq!(program(&silent).0.state, ActivityState::Unknown, "{busy:?}");
        }
        let silent = ProgramEvidence { quiet: None, shell: true, ..evidence() };
        check(&silent, ActivityState::Idle, "prompt");
    }

    #[test]
    fn a_shell_is_idle_at_its_prompt_unless_a_background_job_uses_cpu() {
        let shell = ProgramEvidence { shell: true, ..evidence() };
        check(&shell, ActivityState::Idle, "prompt");
        check(
            &ProgramEvidence { busy: Some(true), ..shell.clone() },
            ActivityState::Working,
            "background",
        );
        let just_now = ProgramEvidence { quiet: Some(Duration::ZERO), ..shell.clone() };
        check(&just_now, ActivityState::Working, "just now");
        let foreground = Foreground::Other("make".into());
        let other = ProgramEvidence { foreground, ..shell };
        check(&other, ActivityState::Working, "`make` runs");
        check(
            &ProgramEvidence { waits: true, ..other },
            ActivityState::Idle,
            "`make` waits for input",
        );
    }

    #[test]
    fn a_program_that_shows_nothing_is_checked_less_and_less_often() {
        let again = |checks, watched| {
            let again = program(&ProgramEvidence { checks, watched, ..evidence() }).1;
            again.map(|again| again.as_secs())
        };
        let seconds = |watched| [0, 1, 2, 3, 4, 40].map(|checks| again(checks, watched));
        assert_eq!(seconds(true), [1, 2, 4, 8, 10, 10].map(Some));
        assert_eq!(seconds(false), [Some(1), Some(2), Some(4), Some(8), None, None]);
    }
}
