//! Has git write traces of the commands that a run starts.

use patterm_git::{MOST_FILES, TARGET_VARIABLE};
use patterm_keeper::Program;
use tokio::time::Instant;

use crate::environment::{MOST_TRACES_VARIABLE, OWN_TRACES_VARIABLE};
use crate::git_traces::TracedRun;
use crate::panes::Panes;
use crate::process::Process;

impl Panes {
    /// Has git write traces for a run, unless the user has it write them elsewhere. If that is not possible, commits of
    /// this run have no evidence; that is no reason not to start it.
    pub(crate) async fn trace_git(&self, process: &Process, program: &mut Program) {
        let (users, environment) = (self.git_traces.users.clone(), program.env.clone());
        let now = Instant::now().into_std();
        let asked = tokio::task::spawn_blocking(move || users.has_target(&environment, now)).await;
        if asked.unwrap_or(true) {
            return;
        }
        match self.git_traces.make(process) {
            Ok(folder) => {
                program.env.insert(TARGET_VARIABLE, &folder);
                program.env.insert(OWN_TRACES_VARIABLE, folder);
                if program.env.get(MOST_TRACES_VARIABLE).is_none() {
                    program.env.insert(MOST_TRACES_VARIABLE, MOST_FILES.to_string());
                }
            }
            Err(error) => {
                tracing::warn!(id = %process.id, %error, "cannot find out about commits of a process");
            }
        }
    }

    /// The current run of a process, if it is not over, or something that it started still runs.
    pub fn is_traced_run_alive(&self, traced: &TracedRun) -> bool {
        let is_current =
            |process: &Process| process.runs == traced.run && process.status.is_alive();
        let has_left = || {
            let run = self.run_of(&traced.id).filter(|run| run.number == traced.run);
            run.is_some_and(|run| run.pane.is_some() && !run.watch().borrow().empty)
        };
        self.processes.get(&traced.id).as_ref().is_some_and(is_current) || has_left()
    }
}
