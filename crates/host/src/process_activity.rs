//! The activity of a process as timers and callers see it: its own state, the agents below it,
//! its queued deliveries, and the dependencies it waits for.

use std::sync::Arc;

use patterm_agents::Agents;
use patterm_agents::activity::{Activity, ActivityState, ActivityStatus, FAILED};
use patterm_panes::Panes;
use patterm_panes::process::{Kind, Process, ProcessId, Status};
use patterm_project::declared::Declared;
use patterm_timers::{
    BusyAgent, Observation, Observe, ObservedActivity, StateChange, WatchState, name_busy,
};

/// The activity of all processes.
#[derive(Debug)]
pub(crate) struct ProcessActivity {
    pub(crate) panes: Arc<Panes>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) declared: Arc<Declared>,
}

impl ProcessActivity {
    /// The activity of a process. An idle process is not done while its agents work or
    /// deliveries are queued for it, and a process that waits for its dependencies has not
    /// ended.
    pub(crate) fn of(&self, process: &Process) -> Activity {
        if let Some(others) = self.declared.starts_after(process) {
            let reason = format!("it is waiting for {}", others.join(", "));
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

    fn observation(&self, id: &ProcessId) -> Observation {
        let process = self.panes.processes.get(id);
        if process.as_ref().is_some_and(Process::awaits_decision) {
            // It ended with the server, which does not count as idle, and may be restored.
            return Observation::default();
        }
        if process.as_ref().is_some_and(|process| self.declared.starts_after(process).is_some()) {
            return Observation::of(WatchState::ToStart);
        }
        let status = self.agents.activities.get(id);
        let mut observation =
            Observation::new(process.map(|process| process.status), seen(&status));
        // Its observer may not know yet about a message on its way.
        if observation.state == WatchState::Idle && self.agents.deliveries.has_open(id) {
            observation.state = WatchState::Settling;
        }
        observation
    }

    fn changed(&self, id: ProcessId) -> StateChange {
        let mut follower = self.agents.activities.follow(&id);
        let alive = Some(Status::Running);
        let before = Observation::new(alive, seen(&follower.status.borrow_and_update()));
        Box::pin(async move {
            // The reason may change with every character on the screen, and does not
            // matter here. The channel ends when the process is closed, which the
            // table shows.
            let changed = |status: &ActivityStatus| Observation::new(alive, seen(status)) != before;
            let _ = follower.status.wait_for(changed).await;
            id
        })
    }

    fn busy_below(&self, id: &ProcessId) -> Vec<BusyAgent> {
        let below = self.panes.processes.below(id).into_iter();
        let agents = below.filter(|process| process.kind == Kind::Agent);
        let describe = |Process { id, name, .. }: Process| {
            let state = self.observation(&id).state;
            BusyAgent { id, name, state }
        };
        agents.map(describe).filter(|agent| agent.state.is_busy()).collect()
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
    let state = match status.activity.state {
        ActivityState::Idle => WatchState::Idle,
        ActivityState::Working => WatchState::Working,
        ActivityState::Blocked => WatchState::Blocked,
        ActivityState::Limited => WatchState::Limited,
        ActivityState::Unknown => WatchState::Unknown,
    };
    ObservedActivity { state, settled: status.settled, idle_periods: status.rests }
}
