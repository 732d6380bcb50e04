//! What a process that is no agent does: by its output, by what stands in its foreground, by the CPU it
//! uses, and by whether it waits for input. Silence alone is not idle.

use std::time::Duration;

use crate::activity_state::{Activity, ActivityState};

/// A shell at its prompt has printed it by then, and a program what it had to say.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// A program that printed within this time counts as working unless it is seen to wait for input: longer
/// than the pauses between two steps of a build.
const PRINTED: Duration = Duration::from_secs(10);

/// Between two looks at the CPU time of a program.
pub(crate) const LOAD_PAUSE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two looks at a program that shows nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// After so many looks, one that nobody waits for is looked at again only when it prints: programs at rest
/// cost nothing.
const LOOKS: u32 = 4;

/// Who has the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreground {
    /// The program itself.
    Itself,
    /// Another that it started.
    Other(String),
    /// Nobody knows.
    Unknown,
}

/// What is known of a program at a moment.
#[derive(Debug, Clone)]
pub(crate) struct ProgramEvidence {
    /// It is an interactive shell.
    pub shell: bool,
    pub foreground: Foreground,
    /// What it says of itself.
    pub reported: Option<Activity>,
    /// How long ago it last printed something; `None` if it was not seen to print.
    pub quiet: Option<Duration>,
    /// It, or what it started, uses CPU; `None` while that is being measured.
    pub busy: Option<bool>,
    /// Its foreground waits for input from the terminal.
    pub waits: bool,
    /// How many looks in a row have shown nothing new.
    pub looks: u32,
    /// A timer or a caller waits for a change of its state.
    pub watched: bool,
}

/// What a program does, and when to look again though nothing is printed.
pub(crate) fn program(evidence: &ProgramEvidence) -> (Activity, Option<Duration>) {
    let say = |state, reason: &str, again| (Activity::new(state, reason), again);
    if let Some(reported) = &evidence.reported {
        return (reported.clone(), None);
    }
    if let Some(left) = evidence.quiet.and_then(|quiet| left(QUIET, quiet)) {
        return say(ActivityState::Working, "it printed something just now", Some(left));
    }
    let pause = FIRST_PAUSE.saturating_mul(1 << evidence.looks.min(8)).min(LONGEST_PAUSE);
    let pause = (evidence.watched || evidence.looks < LOOKS).then_some(pause);
    match (&evidence.foreground, evidence.shell, evidence.busy) {
        (Foreground::Itself, true, Some(true)) => {
            return say(ActivityState::Working, "a background job uses CPU", Some(LOAD_PAUSE));
        }
        (Foreground::Itself, true, Some(false)) => {
            return say(ActivityState::Idle, "the shell waits at its prompt", None);
        }
        (Foreground::Other(name), true, Some(false)) if evidence.waits => {
            return say(ActivityState::Idle, &format!("`{name}` waits for input"), None);
        }
        (Foreground::Other(name), true, _) => {
            let reason = format!("`{name}` runs in its foreground");
            return say(ActivityState::Working, &reason, pause);
        }
        (_, _, Some(false)) if evidence.waits => {
            return say(ActivityState::Idle, "it waits for input", None);
        }
        (_, _, Some(true)) => return say(ActivityState::Working, "it uses CPU", Some(LOAD_PAUSE)),
        _ => {}
    }
    if let Some(left) = evidence.quiet.and_then(|quiet| left(PRINTED, quiet)) {
        let reason = format!("it printed something in the last {} s", PRINTED.as_secs());
        return say(ActivityState::Working, &reason, Some(left.min(LOAD_PAUSE)));
    }
    match evidence.busy {
        None => say(ActivityState::Unknown, "nothing was seen of it yet", Some(LOAD_PAUSE)),
        Some(_) => {
            let reason = "it prints nothing, uses no CPU, and is not seen to wait for input";
            say(ActivityState::Unknown, reason, pause)
        }
    }
}

/// What is left of a time, if anything is.
fn left(time: Duration, passed: Duration) -> Option<Duration> {
    time.checked_sub(passed).filter(|left| !left.is_zero())
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
            looks: 0,
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
        check(&evidence(), ActivityState::Unknown, "not seen to wait");
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
    fn a_program_that_was_not_seen_to_print_is_not_said_to_have_printed() {
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
    fn what_shows_nothing_is_looked_at_less_and_less_often() {
        let again = |looks, watched| {
            let again = program(&ProgramEvidence { looks, watched, ..evidence() }).1;
            again.map(|again| again.as_secs())
        };
        let seconds = |watched| [0, 1, 2, 3, 4, 40].map(|looks| again(looks, watched));
        assert_eq!(seconds(true), [1, 2, 4, 8, 10, 10].map(Some));
        assert_eq!(seconds(false), [Some(1), Some(2), Some(4), Some(8), None, None]);
    }
}
