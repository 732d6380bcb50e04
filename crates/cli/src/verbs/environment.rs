//! The environment that `run`, `shell`, `agent`, `start`, `up` and `restart` pass to the programs they start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use patterm_host::minimal_environment;
use patterm_wire::environment::{CallerEnvironment, PassEnvironment};

use crate::client::Client;
use crate::errors::UnknownMethod;
use crate::start;

/// The prefix of patterm's own variables.
const OWN_PREFIX: &[u8] = b"PATTERM_";

#[derive(Debug, Args)]
pub(super) struct EnvironmentArgs {
    /// Set a variable for it; with --clean-env, NAME alone keeps this shell's value
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    #[arg(value_parser = OsStringValueParser::new().try_map(|text| Variable::parse(&text)))]
    variables: Vec<Variable>,
    /// Start it with only a few basic variables, such as HOME and PATH
    #[arg(long)]
    clean_env: bool,
}

/// A variable from the command line.
#[derive(Debug, Clone)]
struct Variable {
    name: OsString,
    /// `None` to keep this shell's value.
    value: Option<OsString>,
}

impl Variable {
    fn parse(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let name = &bytes[..at.unwrap_or(bytes.len())];
        if name.is_empty() {
            return Err("the name of the variable is missing".into());
        }
        if name.starts_with(OWN_PREFIX) {
            return Err("only patterm may set variables that begin with PATTERM_".into());
        }
        let own = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Ok(Self { name: own(name), value: at.map(|at| own(&bytes[at + 1..])) })
    }
}

impl EnvironmentArgs {
    /// Passes the environment to the server, for the programs that this connection starts.
    pub(super) fn pass(&self, client: &mut Client) -> anyhow::Result<()> {
        let mut environment = match self.clean_env {
            true => start::caller_environment(minimal_environment())?,
            false => start::caller_environment(std::env::vars_os())?,
        };
        for Variable { name, value } in &self.variables {
            let value = value.clone().or_else(|| std::env::var_os(name));
            environment.set(name, value.as_deref());
        }
        let is_asked_for = self.clean_env || !self.variables.is_empty();
        pass(client, environment, is_asked_for)
    }
}

/// Passes this shell's environment, for declared processes that this connection starts.
pub(super) fn pass_own(client: &mut Client) -> anyhow::Result<()> {
    pass(client, start::caller_environment(std::env::vars_os())?, false)
}

/// Passes this shell's environment for a restart.
pub(super) fn pass_for_restart(client: &mut Client) -> anyhow::Result<()> {
    let environment = start::caller_environment(std::env::vars_os())?;
    pass(client, CallerEnvironment { restarts: true, ..environment }, true)
}

fn pass(
    client: &mut Client,
    environment: CallerEnvironment,
    is_asked_for: bool,
) -> anyhow::Result<()> {
    match client.call::<PassEnvironment>(&environment) {
        // A 0.1 server does not know this request and starts programs with its own environment.
        Err(error) if error.is::<UnknownMethod>() && !is_asked_for => Ok(()),
        passed => passed.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_on_the_command_line() {
        let parse = |text: &[u8]| {
            Variable::parse(OsStr::from_bytes(text)).map(|Variable { name, value }| (name, value))
        };
        assert_eq!(parse(b"A=b=c").unwrap(), ("A".into(), Some("b=c".into())));
        assert_eq!(parse(b"A=").unwrap(), ("A".into(), Some("".into())));
        assert_eq!(parse(b"A").unwrap(), ("A".into(), None));
        assert_eq!(parse(b"A=\xff").unwrap().1.unwrap().as_bytes(), b"\xff");
        assert!(parse(b"=x").unwrap_err().contains("missing"));
        assert!(parse(b"PATTERM_SOCKET=/x").unwrap_err().contains("only patterm"));
    }
}
