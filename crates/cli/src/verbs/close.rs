//! `patterm close`: ends processes and removes them.

use clap::Args;
use patterm_wire::method::Empty;
use patterm_wire::tools::{CloseProcess, ListProcesses, ProcessRef, ProcessSummary};

use super::several::each;
use crate::client::Client;
use crate::print::print;

/// End processes and everything they started, and remove them
#[derive(Debug, Args)]
pub(crate) struct CloseVerb {
    /// Ids, unique names, or unique prefixes of either
    #[arg(value_name = "ID", required_unless_present = "exited")]
    processes: Vec<String>,
    /// Close everything that has ended, except declared processes, processes that `patterm restore` would restore,
    /// and those that started something that is still running
    #[arg(long, conflicts_with = "processes")]
    exited: bool,
}

impl CloseVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let ids = match self.exited {
            true => ended(&client.query::<ListProcesses>(&Empty {})?.result.processes),
            false => client.resolve_all(&self.processes)?,
        };
        if ids.is_empty() {
            print("nothing to close: no process has ended");
        }
        // A process is closed with everything below it.
        let mut closed = Vec::new();
        each(&ids, |id| {
            if !closed.iter().any(|closed| closed == id) {
                let process_id = id.to_owned();
                let reply = client.call::<CloseProcess>(&ProcessRef { process_id })?;
                closed.extend(reply.result.closed);
                print(&format!("closed {id}"));
            }
            Ok(())
        })
    }
}

/// The processes that `--exited` closes, oldest first.
fn ended(processes: &[ProcessSummary]) -> Vec<String> {
    let has_ended = |process: &ProcessSummary| {
        let is_due = process.next_restart_in.is_some() || process.can_be_restored;
        !process.is_alive() && !process.declared && !is_due
    };
    let may_close = |process: &&ProcessSummary| {
        has_ended(process) && below(processes, &process.process_id).into_iter().all(has_ended)
    };
    processes.iter().filter(may_close).map(|process| process.process_id.clone()).collect()
}

/// The processes that a process started, and those that they started. Each is listed once, whatever a server claims
/// about parents.
fn below<'a>(processes: &'a [ProcessSummary], id: &str) -> Vec<&'a ProcessSummary> {
    let children = |id: &str| {
        let id = id.to_owned();
        processes.iter().filter(move |process| process.parent_id.as_ref() == Some(&id))
    };
    let mut found: Vec<_> = children(id).collect();
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        for child in children(&process.process_id) {
            if !found.iter().any(|known| known.process_id == child.process_id) {
                found.push(child);
            }
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use patterm_wire::follow::ProcessStatus;

    use super::*;

    use ProcessStatus::{Exited, Failed, Running, Stopped};

    fn process(id: &str, parent: Option<&str>, status: ProcessStatus) -> ProcessSummary {
        ProcessSummary {
            process_id: id.into(),
            parent_id: parent.map(str::to_owned),
            status,
            ..ProcessSummary::default()
        }
    }

    #[test]
    fn processes_that_started_each_other_are_listed_once() {
        let processes = [
            process("p1", Some("p2"), Exited),
            process("p2", Some("p1"), Exited),
            process("p3", Some("p3"), Exited),
            process("p4", Some("p2"), Running),
        ];
        let ids = below(&processes, "p1").into_iter().map(|process| process.process_id.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), ["p2", "p1", "p4"]);
        assert_eq!(ended(&processes), ["p3"]);
    }

    #[test]
    fn ended_processes_are_closed_unless_something_still_needs_them() {
        let processes = [
            process("p1", None, Running),
            process("p2", Some("p1"), Exited),
            process("p3", None, Exited),
            process("p4", Some("p3"), Running),
            ProcessSummary { declared: true, ..process("p5", None, Stopped) },
            ProcessSummary { can_be_restored: true, ..process("p6", None, Exited) },
            process("p7", None, Failed),
            process("p8", Some("p7"), Stopped),
        ];
        assert_eq!(ended(&processes), ["p2", "p7", "p8"]);
    }
}
