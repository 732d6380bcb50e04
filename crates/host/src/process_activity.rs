//! What timers and callers see of a process's activity: its own, that of the agents below it, what is
//! queued for it, and what it waits for before it starts.

use std::sync::Arc;

use patterm_agents::Agents;
use patterm_agents::activity::{Activity, ActivityState, ActivityStatus, FAILED};
use patterm_panes::Panes;
use patterm_panes::process::{Kind, Process, ProcessId, Status};
use patterm_project::declared::Declared;
use patterm_timers::{BusyAgent, Following, Look, Observe, ObservedActivity, Sight, name_busy};

/// The activity of all processes.
#[derive(Debug)]
pub(crate) struct ProcessActivity {
    pub(crate) panes: Arc<Panes>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) declared: Arc<Declared>,
}

impl ProcessActivity {
    /// What callers see of a process's activity. One at rest is not done while its agents work or
    /// messages wait for it, and one that waits for others to be ready has not ended.
    pub(crate) fn of(&self, process: &Process) -> Activity {
        if let Some(others) = self.declared.starts_after(process) {
            let reason = format!("it is started as soon as {} is ready", others.join(", "));
            return Activity::new(ActivityState::Unknown, &reason);
        }
        let mut activity = self.agents.activities.get(&process.id).activity;
        if activity.state != ActivityState::Idle {
            return activity;
        }
        let busy = self.busy_below(&process.id);
        if !busy.is_empty() {
            activity.reason += &format!("; below it, {}", name_busy(&busy));
        }
        let queue = self.agents.deliveries.queue_of(&process.id);
        if let Some((texts, why)) = queue.filter(|_| process.status.is_alive()) {
            let texts = match texts {
                1 => "a text is queued for it".to_owned(),
                _ => format!("{texts} texts are queued for it"),
            };
            activity.reason += &format!("; {texts}: {why}");
        }
        activity
    }
}

impl Observe for ProcessActivity {
    fn process(&self, id: &ProcessId) -> Option<Process> {
        self.panes.processes.get(id)
    }

    fn sight(&self, id: &ProcessId) -> Sight {
        let process = self.panes.processes.get(id);
        if process.as_ref().is_some_and(Process::awaits_decision) {
            // It was ended with everything, which is no rest, and may be restored.
            return Sight::default();
        }
        if process.as_ref().is_some_and(|process| self.declared.starts_after(process).is_some()) {
            return Sight::of(Look::ToStart);
        }
        let status = self.agents.activities.get(id);
        let mut sight = Sight::new(process.map(|process| process.status), seen(&status));
        // Its observer may not have heard yet that a message is on its way to it.
        if sight.look == Look::Idle && self.agents.deliveries.has_open(id) {
            sight.look = Look::Pausing;
        }
        sight
    }

    fn changed(&self, id: ProcessId) -> Following {
        let mut follower = self.agents.activities.follow(&id);
        let alive = Some(Status::Running);
        let before = Sight::new(alive, seen(&follower.status.borrow_and_update()));
        Box::pin(async move {
            // Its reason may change with every letter on its screen; that is nobody's alarm. An end of
            // the channel is a close, which is seen in the table.
            let changed = |status: &ActivityStatus| Sight::new(alive, seen(status)) != before;
            let _ = follower.status.wait_for(changed).await;
            id
        })
    }

    fn busy_below(&self, id: &ProcessId) -> Vec<BusyAgent> {
        let below = self.panes.processes.below(id).into_iter();
        let agents = below.filter(|process| process.kind == Kind::Agent);
        let look = |Process { id, name, .. }: Process| {
            let look = self.sight(&id).look;
            BusyAgent { id, name, look }
        };
        agents.map(look).filter(|agent| agent.look.is_busy()).collect()
    }

    fn has_failed(&self, id: &ProcessId) -> bool {
        let Activity { state, reason, .. } = self.agents.activities.get(id).activity;
        state == ActivityState::Idle && reason.starts_with(FAILED)
    }

    fn awaits_text(&self, id: &ProcessId) -> bool {
        self.agents.deliveries.has_open(id)
    }

    fn limited_until(&self, id: &ProcessId) -> Option<String> {
        self.agents.activities.get(id).activity.limited_until
    }
}

fn seen(status: &ActivityStatus) -> ObservedActivity {
    let look = match status.activity.state {
        ActivityState::Idle => Look::Idle,
        ActivityState::Working => Look::Working,
        ActivityState::Blocked => Look::Blocked,
        ActivityState::Limited => Look::Limited,
        ActivityState::Unknown => Look::Unknown,
    };
    ObservedActivity { look, settled: status.settled, rests: status.rests }
}
