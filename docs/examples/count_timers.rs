//! `patterm count-timers`: prints the number of timers.

use clap::Args;
use patterm_wire::method::Empty;
use patterm_wire::tools::ListTimers;

use crate::client::Client;
use crate::print::print;

/// Print the number of timers of this project
#[derive(Debug, Args)]
pub(crate) struct CountTimersVerb {
    /// Count only the timers of this process
    #[arg(long, value_name = "ID")]
    owner: Option<String>,
}

impl CountTimersVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let timers = Client::connect()?.query::<ListTimers>(&Empty {})?.result.timers;
        let is_counted = |owner: &str| self.owner.as_deref().is_none_or(|wanted| wanted == owner);
        let counted = timers.iter().filter(|timer| is_counted(&timer.owner_process_id));
        print(&counted.count().to_string());
        Ok(())
    }
}
