//! Waiting until a process is ready.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::file_status::Declared;
use crate::project_file::{Ready, ReadyWhen};
use patterm_panes::data_plane::{MatchOutcome, ProcessRun};
use patterm_panes::process::Process;
use patterm_panes::tree;

/// How often the kernel's table is looked at while a port is waited for: it tells nobody by itself.
const PORT_LOOK: Duration = Duration::from_millis(50);

/// The longest time between two looks.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// Waits until a run of a process is ready and notes that; or that it was not in time.
pub(super) async fn watch(declared: Arc<Declared>, name: String, process: Process, ready: Ready) {
    let Some(run) = declared.panes.run_of(&process.id).filter(|run| run.number == process.runs)
    else {
        return;
    };
    let outcome = match &ready.when {
        ReadyWhen::Pattern(pattern) => {
            let mut waiting =
                declared.panes.data_plane.wait(&run, pattern.clone(), process.run_offset);
            // What came before anybody waited is on its screen, or above it.
            let (looked, wanted) = (run.clone(), pattern.clone());
            let there = tokio::task::spawn_blocking(move || shows(&looked, &wanted));
            match there.await.unwrap_or(false) {
                true => Ok(true),
                false => timeout(ready.timeout, &mut waiting.found)
                    .await
                    .map(|found| matches!(found, Ok(MatchOutcome::Line(_)))),
            }
        }
        ReadyWhen::Port(port) => timeout(ready.timeout, listens(&run, *port)).await,
        // Seen by the driver when it ends.
        ReadyWhen::Exits => {
            let mut progress = run.watch();
            let over =
                timeout(ready.timeout, progress.wait_for(|p| p.is_over() && p.settled)).await;
            over.map(|_| false)
        }
    };
    if declared.panes.processes.get(&process.id).is_none_or(|now| now.runs != process.runs) {
        return;
    }
    let mut state = declared.state();
    let managed = state.managed.of(&name);
    match outcome {
        Ok(true) => managed.ready = process.runs,
        Ok(false) => {}
        Err(_) => {
            managed.late = process.runs;
            managed.problem =
                Some(format!("it was not ready within {} s", ready.timeout.as_secs_f64()));
        }
    }
    drop(state);
    declared.notify();
}

/// Whether a line matches, of all that is kept of the output.
fn shows(run: &ProcessRun, pattern: &regex::Regex) -> bool {
    let mut found = false;
    run.visit_lines(0, |line| {
        found = pattern.is_match(&line.text);
        !found
    });
    found
}

/// Waits until something of a run listens on a port; `false` if it ends first.
async fn listens(run: &Arc<ProcessRun>, port: u16) -> bool {
    let mut pause = PORT_LOOK;
    let mut progress = run.watch();
    loop {
        let looked = run.clone();
        let look = tokio::task::spawn_blocking(move || {
            looked.status().is_some_and(|status| tree::listening(status.init).contains(&port))
        });
        if look.await.unwrap_or(false) {
            return true;
        }
        tokio::select! {
            _ = progress.wait_for(|progress| progress.is_over()) => return false,
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_LOOK),
        }
    }
}
