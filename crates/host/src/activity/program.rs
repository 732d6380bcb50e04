//! What a process that is no agent does: by its output and by what stands in its foreground.

use std::time::Duration;

use super::verdict::{State, Verdict};

/// A shell at its prompt has printed it by then.
const PROMPT_QUIET: Duration = Duration::from_secs(1);

/// A program that printed nothing for this long rests, as far as anybody can tell: longer than
/// the pauses between two steps of a build.
pub(crate) const PROGRAM_QUIET: Duration = Duration::from_secs(10);

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
    pub(crate) shell: bool,
    pub(crate) foreground: Foreground,
    pub(crate) alternate_screen: bool,
    /// What it says of itself.
    pub(crate) reported: Option<Verdict>,
    /// How long nothing was printed.
    pub(crate) quiet: Duration,
}

/// What a program does, and when to look again though nothing is printed.
pub(crate) fn program(evidence: &ProgramEvidence) -> (Verdict, Option<Duration>) {
    if let Some(reported) = &evidence.reported {
        return (reported.clone(), None);
    }
    let needed = match (&evidence.foreground, evidence.shell) {
        (Foreground::Itself, true) => PROMPT_QUIET,
        (Foreground::Other(name), true) if !evidence.alternate_screen => {
            let reason = format!("`{name}` runs in its foreground");
            // Its end is seen on the terminal when the shell prints its prompt.
            return (Verdict::new(State::Working, reason), None);
        }
        _ => PROGRAM_QUIET,
    };
    if evidence.quiet < needed {
        let reason = "it printed something just now";
        return (Verdict::new(State::Working, reason), Some(needed - evidence.quiet));
    }
    let reason = match needed == PROMPT_QUIET {
        true => "the shell waits at its prompt".to_owned(),
        false => format!("it printed nothing for {} s", PROGRAM_QUIET.as_secs()),
    };
    (Verdict::new(State::Idle, reason), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shell: bool, foreground: Foreground, quiet_ms: u64, state: State, reason: &str) {
        let quiet = Duration::from_millis(quiet_ms);
        let evidence =
            ProgramEvidence { shell, foreground, alternate_screen: false, reported: None, quiet };
        let (verdict, again) = program(&evidence);
        assert_eq!(verdict.state, state, "{evidence:?}");
        assert!(verdict.reason.contains(reason), "{verdict:?}");
        let waits = state == State::Working && reason == "just now";
        assert_eq!(again.is_some(), waits, "{evidence:?}");
    }

    #[test]
    fn shells_rest_at_their_prompt_and_programs_when_they_are_quiet() {
        let make = || Foreground::Other("make".into());
        check(true, Foreground::Itself, 100, State::Working, "just now");
        check(true, Foreground::Itself, 1_500, State::Idle, "prompt");
        check(true, make(), 60_000, State::Working, "`make` runs");
        check(false, Foreground::Itself, 1_500, State::Working, "just now");
        check(false, Foreground::Itself, 10_000, State::Idle, "nothing for 10 s");
        check(false, make(), 10_000, State::Idle, "nothing for 10 s");
        check(true, Foreground::Unknown, 10_000, State::Idle, "nothing for 10 s");
    }

    #[test]
    fn an_editor_in_a_shell_rests_when_nothing_moves() {
        let evidence = ProgramEvidence {
            shell: true,
            foreground: Foreground::Other("vim".into()),
            alternate_screen: true,
            reported: None,
            quiet: PROGRAM_QUIET,
        };
        assert_eq!(program(&evidence).0.state, State::Idle);
    }
}
