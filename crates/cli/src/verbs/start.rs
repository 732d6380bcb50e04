//! `patterm start`: starts processes that are not running.

use clap::Args;
use patterm_wire::follow::ProcessStatus;
use patterm_wire::method::Empty;
use patterm_wire::tools::{
    ListProcesses, ProcessRef, ProcessSummary, SpawnProcess, SpawnProcessArgs, StartProcess,
    StartedProcess,
};

use super::several::{each, print_results};
use super::{environment, trust, user_settings};
use crate::client::Client;
use crate::print::{one_line, print, warn};

/// Start processes that have ended, or that patterm.toml declares
#[derive(Debug, Args)]
pub(crate) struct StartVerb {
    /// Ids, unique names, or unique prefixes of either; or names that patterm.toml declares
    #[arg(value_name = "ID", required = true)]
    processes: Vec<String>,
    /// Print JSON: an object for one process, a list for several
    #[arg(long)]
    json: bool,
}

impl StartVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        environment::pass_own(&mut client)?;
        let mut results = Vec::new();
        let given = self.processes;
        // A shell or an agent does not depend on the file.
        let listed = client.query::<ListProcesses>(&Empty {})?.result.processes;
        let is_declared = |given: &String| {
            let named = |one: &&ProcessSummary| one.process_id == *given || one.name == *given;
            listed.iter().find(named).is_none_or(|process| process.declared)
        };
        let declared = given.iter().any(is_declared);
        let done = each(&given, |given| {
            let reply = match client.resolve(given) {
                Ok(process_id) => client.call::<StartProcess>(&ProcessRef { process_id })?,
                // A declared process that was closed has no entry.
                Err(unknown) => {
                    let preset = Some(given.to_owned());
                    let args = SpawnProcessArgs { preset, ..SpawnProcessArgs::default() };
                    let started = client.call::<SpawnProcess>(&args);
                    started.map_err(|error| explain(unknown, error))?
                }
            };
            match self.json {
                true => results.push(reply.json),
                false => print(&outcome("started", &reply.result)),
            }
            Ok(())
        });
        if declared {
            trust::outdated_hint().inspect(|hint| warn(hint));
        }
        user_settings::hint().inspect(|hint| warn(hint));
        if self.json {
            print_results(given.len(), results)?;
        }
        done
    }
}

/// Why a name that is not a process cannot be started: the file may declare it but not be trusted.
fn explain(unknown: anyhow::Error, error: anyhow::Error) -> anyhow::Error {
    let details = error.downcast_ref::<crate::errors::ServerError>().map(|e| e.0.details());
    match details.and_then(|details| details.field) {
        Some(field) if field == "preset" => unknown,
        _ => error,
    }
}

/// The outcome for a process that was to be started.
pub(super) fn outcome(done: &str, process: &StartedProcess) -> String {
    let id = one_line(&process.process_id);
    if process.status == ProcessStatus::Starting && !process.waiting_for.is_empty() {
        let others: Vec<_> = process.waiting_for.iter().map(|name| one_line(name)).collect();
        return format!("{id} is waiting for {}", others.join(" and "));
    }
    if !process.status.is_alive() {
        return format!("{id} was started and is {} already", process.status.name());
    }
    let mut text = format!("{done} {id}");
    if let Some(why) = &process.new_conversation {
        text += &format!(" with a new conversation: {}", one_line(why));
    }
    if let Some(why) = &process.environment_changed {
        text += &format!("; {}", one_line(why));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_was_started_is_reported_as_started() {
        let process = StartedProcess { process_id: "p2".into(), ..StartedProcess::default() };
        let shown = |process: StartedProcess| outcome("restarted", &process);
        assert_eq!(shown(process.clone()), "restarted p2");
        let waits = StartedProcess {
            status: ProcessStatus::Starting,
            waiting_for: vec!["db".into(), "cache".into()],
            ..process.clone()
        };
        assert_eq!(shown(waits), "p2 is waiting for db and cache");
        let ended = StartedProcess { status: ProcessStatus::Exited, ..process.clone() };
        assert_eq!(shown(ended), "p2 was started and is exited already");
        let changed = Some("it now runs with the server's environment".into());
        let changed = StartedProcess { environment_changed: changed, ..process.clone() };
        assert_eq!(shown(changed), "restarted p2; it now runs with the server's environment");
        let new = StartedProcess { new_conversation: Some("no id".into()), ..process };
        assert_eq!(shown(new), "restarted p2 with a new conversation: no id");
    }
}
