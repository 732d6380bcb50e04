//! Where a process of the operating system speaks from: outside, in a pane of a person's, or where
//! agents type. What only people may do is not done for who cannot be placed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::host::Host;
use crate::process::Process;
use crate::tree;

/// A program may speak before its pane is in the books: this long they are looked at again.
const PATIENCE: Duration = Duration::from_secs(2);

/// And this often.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standpoint {
    Outside,
    Person,
    Agents,
    /// In a pane that is not known yet, or not any more.
    Unknown,
}

impl Host {
    /// Whether what this process asks for can be a person's wish: not when it runs in an agent's
    /// pane, in one that an agent started, in one of the project's, or nowhere to be found. It may
    /// take a moment.
    pub(crate) async fn may_be_a_person(self: &Arc<Self>, pid: Option<i32>) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let host = self.clone();
            let found = tokio::task::spawn_blocking(move || host.standpoint(pid)).await;
            match found.unwrap_or(Standpoint::Unknown) {
                Standpoint::Outside | Standpoint::Person => return true,
                Standpoint::Agents => return false,
                Standpoint::Unknown if Instant::now() >= deadline => return false,
                Standpoint::Unknown => tokio::time::sleep(LOOK_PAUSE).await,
            }
        }
    }

    fn standpoint(&self, pid: Option<i32>) -> Standpoint {
        let Some(pid) = pid else { return Standpoint::Agents };
        // Before the table: a pane that is in this line is in the books soon, if it is not already.
        let line = tree::line_of(pid);
        let kept = self.keeping.pid().is_some_and(|keeper| line.contains(&keeper));
        let init = |process: &Process| self.live(&process.id)?.status().map(|status| status.init);
        let is_above = |process: &Process| init(process).is_some_and(|init| line.contains(&init));
        match self.processes.all().iter().find(|process| is_above(process)) {
            Some(process) if self.is_of_agents(process) => Standpoint::Agents,
            Some(_) => Standpoint::Person,
            None if kept => Standpoint::Unknown,
            None if Path::new(&format!("/proc/{pid}")).exists() => Standpoint::Outside,
            None => Standpoint::Agents,
        }
    }

    fn is_of_agents(&self, process: &Process) -> bool {
        process.agent.is_some()
            || process.declared.is_some()
            || process.adopted
            || self.processes.agent_above(process).is_some()
    }
}
