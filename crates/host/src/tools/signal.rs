//! Signals as callers give them: by number or by name.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::error::{ErrorKind, ToolError};
use crate::host::Host;
use patterm_panes::process::{Process, Status};

/// The signals of Linux by number, from 1.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The signals that ask a program to end: HUP, INT, QUIT, KILL, TERM.
const ENDING: [i32; 5] = [1, 2, 3, 9, 15];

/// A valid signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signal(i32);

impl Signal {
    /// Its number.
    pub(super) fn number(self) -> i32 {
        self.0
    }

    /// Whether it asks a program to end; others only inform it.
    pub(super) fn is_meant_to_end(self) -> bool {
        ENDING.contains(&self.0)
    }

    fn numbered(number: i64) -> Option<Self> {
        let number = i32::try_from(number).ok()?;
        (1..=31).contains(&number).then_some(Self(number))
    }

    fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_uppercase();
        if let Ok(number) = name.parse() {
            return Self::numbered(number);
        }
        let plain = name.strip_prefix("SIG").unwrap_or(&name);
        let at = NAMES.iter().position(|known| *known == plain)?;
        Self::numbered(i64::try_from(at).ok()? + 1)
    }
}

/// A signal argument.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SignalArg {
    Number(i64),
    Name(String),
}

impl JsonSchema for SignalArg {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Signal".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

/// The signal that a caller gave.
pub(super) fn signal(given: &SignalArg) -> Result<Signal, ToolError> {
    let (known, shown) = match given {
        SignalArg::Number(number) => (Signal::numbered(*number), number.to_string()),
        SignalArg::Name(name) => {
            (Signal::named(name), format!("{:?}", name.chars().take(40).collect::<String>()))
        }
    };
    known.ok_or_else(|| {
        let why = format_args!(
            "takes 1 to {} or a name such as \"TERM\", \"HUP\" or \"USR1\", not {shown}",
            NAMES.len()
        );
        ToolError::invalid("signal", why)
    })
}

/// Checks a signal on a command line before it is sent to a server; the error says what is wrong with it.
pub fn check_signal(name: &str) -> Result<(), String> {
    let checked = signal(&SignalArg::Name(name.to_owned()));
    checked.map(drop).map_err(|error| error.message.trim_start_matches("`signal` ").to_owned())
}

/// Sends a signal to a process's group and does nothing else; returns its status afterwards.
pub(super) fn send(process: &Process, signal: Signal, host: &Host) -> Result<Status, ToolError> {
    let run = host.panes.running(process)?;
    if let Some(pane) = &run.pane {
        pane.signal(signal.number()).map_err(|error| {
            let message = format!("cannot signal {} ({}): {error}", process.id, process.name);
            ToolError::new(ErrorKind::Unavailable, message)
        })?;
    }
    Ok(host.panes.processes.get(&process.id).map_or(process.status, |process| process.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<i32, ToolError> {
        signal(&SignalArg::Name(name.into())).map(Signal::number)
    }

    #[test]
    fn signals_have_names_and_numbers() {
        for (name, number) in
            [("HUP", 1), ("sighup", 1), ("SIGTERM", 15), ("usr1", 10), (" 9 ", 9), ("SYS", 31)]
        {
            assert_eq!(named(name), Ok(number), "{name}");
        }
        for number in [0, -1, 32, 64, i64::MAX] {
            let error = signal(&SignalArg::Number(number)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArgument);
        }
        assert!(named("SIGNONE").unwrap_err().message.contains("\"SIGNONE\""));
    }

    #[test]
    fn only_some_signals_are_meant_to_end_a_program() {
        let ending = ["HUP", "INT", "QUIT", "KILL", "TERM"].map(|name| named(name).unwrap());
        for number in 1..=31 {
            assert_eq!(Signal(number).is_meant_to_end(), ending.contains(&number), "{number}");
        }
    }
}
