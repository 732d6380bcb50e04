//! How a process is stopped.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checked;
use super::command::{COMMAND_OR_LINE, RawCommand, argv};
use super::schema::{Schema, key};
use super::visible::command_line;

/// The signals that programs use to end, by name.
const SIGNALS: &[&str] = &[
    "SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGWINCH", "TERM",
    "INT", "QUIT", "HUP", "KILL", "USR1", "USR2", "WINCH",
];

/// `stop`.
pub(super) const STOP: Schema = Schema::Table(&[
    key(
        "signal",
        Schema::Choice(SIGNALS),
        "The signal that asks it to end; SIGTERM by default. Its whole process group gets it.",
    ),
    key(
        "grace_seconds",
        Schema::Seconds,
        "How long it may take to end before everything that is left of it is killed; 5 by default.",
    ),
    key(
        "command",
        COMMAND_OR_LINE,
        "A command that ends it, instead of the signal. It gets the environment and the working directory of \
         the process, and `grace_seconds`. If it fails, the signal is sent.",
    ),
]);

/// How a process is stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stop {
    /// The signal that asks it to end; `None` for SIGTERM.
    pub signal: Option<i32>,
    /// How long it may take; `None` for the default.
    pub grace: Option<Duration>,
    /// What to run instead of sending the signal.
    pub command: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(super) struct RawStop {
    signal: Option<String>,
    grace_seconds: Option<f64>,
    command: Option<RawCommand>,
}

/// Reads `stop` of the process at `path`.
pub(super) fn stop(checked: &mut Checked<'_>, path: &str, raw: RawStop) -> Stop {
    Stop {
        signal: raw.signal.as_deref().and_then(number),
        grace: raw.grace_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        command: raw.command.map(|raw| argv(checked, &format!("{path}.stop.command"), raw)),
    }
}

/// The signal for a process whose `stop` names none.
const SIGTERM: i32 = 15;

/// The number of a signal on Linux.
fn number(name: &str) -> Option<i32> {
    Some(match name.strip_prefix("SIG").unwrap_or(name) {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => 9,
        "USR1" => 10,
        "USR2" => 12,
        "TERM" => 15,
        "WINCH" => 28,
        _ => return None,
    })
}

impl Stop {
    /// How it is stopped, for a person who decides about trust; `None` if as any other process.
    pub(super) fn words(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let how = match (&self.command, self.signal) {
            (Some(argv), _) => command_line(argv),
            (None, signal) => {
                let is_it = |name: &&&str| number(name) == Some(signal.unwrap_or(SIGTERM));
                SIGNALS.iter().find(is_it).copied().unwrap_or("SIGTERM").to_owned()
            }
        };
        let grace = self.grace.map(|grace| format!(", killed after {} s", grace.as_secs_f64()));
        Some(how + &grace.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_of_the_schema_has_a_number() {
        for name in SIGNALS {
            assert!(number(name).is_some(), "{name}");
        }
        assert_eq!(number("SIGINT"), number("INT"));
    }
}
