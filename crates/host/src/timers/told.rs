//! What callers and people are told of a process's activity, beyond what is seen of the process itself.

use super::sight::{BusyAgent, Sight};
use super::words::name_busy;
use crate::activity::{State, Verdict};
use crate::host::Host;
use crate::process::{Kind, Process, ProcessId};

impl Host {
    /// The agents below a process that do not rest.
    pub(super) fn busy_agents_below(&self, id: &ProcessId) -> Vec<BusyAgent> {
        let below = self.processes.below(id).into_iter();
        let agents = below.filter(|process| process.kind == Kind::Agent);
        let look = |Process { id, name, .. }: Process| {
            let look = Sight::of(self, &id).look;
            BusyAgent { id, name, look }
        };
        agents.map(look).filter(|agent| agent.look.is_busy()).collect()
    }

    /// What is told of a process's activity. One at rest is not done while its agents work or messages
    /// wait for it, and one that waits for others to be ready has not ended.
    pub(crate) fn told_activity(&self, process: &Process) -> Verdict {
        if let Some(others) = self.starts_after(process) {
            let reason = format!("it is started as soon as {} is ready", others.join(", "));
            return Verdict::new(State::Unknown, &reason);
        }
        let mut verdict = self.activities.get(&process.id).verdict;
        if verdict.state != State::Idle {
            return verdict;
        }
        let busy = self.busy_agents_below(&process.id);
        if !busy.is_empty() {
            verdict.reason += &format!("; below it, {}", name_busy(&busy));
        }
        let queue = self.deliveries.queue_of(&process.id).filter(|_| process.status.is_alive());
        if let Some((texts, why)) = queue {
            let texts = match texts {
                1 => "a text is queued for it".to_owned(),
                _ => format!("{texts} texts are queued for it"),
            };
            verdict.reason += &format!("; {texts}: {why}");
        }
        verdict
    }
}
