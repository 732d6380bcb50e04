//! `patterm restart`: ends processes and starts them again.

use clap::Args;
use patterm_wire::tools::{ProcessRef, RestartProcess};

use super::several::{each, print_results};
use super::start::outcome;
use super::{environment, restore, user_settings};
use crate::client::Client;
use crate::print::{print, warn};

/// End processes and start them again
#[derive(Debug, Args)]
pub(crate) struct RestartVerb {
    /// Ids, unique names, or unique prefixes of either
    #[arg(value_name = "ID", required_unless_present = "bring_back")]
    processes: Vec<String>,
    /// The spelling of `patterm restore` in 0.1
    #[arg(long, conflicts_with = "processes", hide = true)]
    bring_back: bool,
    /// Give them this shell's environment, from now on
    #[arg(long, conflicts_with = "bring_back")]
    env_from_here: bool,
    /// Print JSON: an object for one process, a list for several
    #[arg(long)]
    json: bool,
}

impl RestartVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.bring_back {
            return restore::run(self.json);
        }
        let mut client = Client::connect()?;
        let ids = client.resolve_all(&self.processes)?;
        if self.env_from_here {
            environment::pass_for_restart(&mut client)?;
        }
        let mut results = Vec::new();
        let done = each(&ids, |id| {
            let process_id = id.to_owned();
            let reply = client.call::<RestartProcess>(&ProcessRef { process_id })?;
            match self.json {
                true => results.push(reply.json),
                false => print(&outcome("restarted", &reply.result)),
            }
            Ok(())
        });
        user_settings::hint().inspect(|hint| warn(hint));
        if self.json {
            print_results(ids.len(), results)?;
        }
        done
    }
}
