//! `patterm restore`: restarts everything that was running when the server ended or the machine was rebooted.

use clap::Args;
use patterm_wire::restore::{Restore, RestoreMode, RestoreRequest, RestoreResult};
use patterm_wire::tools::ProcessSummary;
use serde_json::Value;

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Restart what was running when the server or the machine went down
#[derive(Debug, Args)]
pub(crate) struct RestoreVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl RestoreVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.json)
    }
}

pub(super) fn run(json: bool) -> anyhow::Result<()> {
    let reply = Client::connect()?.call::<Restore>(&RestoreRequest::default())?;
    let processes = reply.result.processes.clone();
    match (json, processes.is_empty()) {
        (true, _) => print_json(&reply.read_as::<RestoreResult<Value>>()?.processes)?,
        (false, true) => print("nothing to restore"),
        (false, false) => {
            for process in &processes {
                print(&one_line(&format!("{:<6} {process}", process.process_id)));
            }
        }
    }
    let failed = processes.iter().filter(|process| process.how == RestoreMode::Not).count();
    anyhow::ensure!(failed == 0, "{failed} of {} processes could not be restored", processes.len());
    Ok(())
}

/// The line that `patterm ps` adds if there are processes to restore.
pub(super) fn hint(processes: &[ProcessSummary]) -> Option<String> {
    let waiting = processes.iter().filter(|process| process.can_be_restored).count();
    let (which, them) = match waiting {
        0 => return None,
        1 => ("1 process was".to_owned(), "it"),
        many => (format!("{many} processes were"), "them"),
    };
    Some(format!("{which} running when everything was ended; `patterm restore` restarts {them}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_counts() {
        let waiting = ProcessSummary { can_be_restored: true, ..ProcessSummary::default() };
        let other = ProcessSummary::default();
        assert_eq!(hint(std::slice::from_ref(&other)), None);
        assert!(hint(&[other, waiting.clone()]).unwrap().starts_with("1 process was running"));
        assert!(hint(&[waiting.clone(), waiting]).unwrap().starts_with("2 processes were running"));
    }
}
