//! Waiting until a process is ready.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::file_status::Declared;
use super::probing;
use crate::project_file::{Probe, Ready, ReadyWhen};
use patterm_panes::data_plane::{MatchOutcome, ProcessRun};
use patterm_panes::process::Process;

/// The first pause between two tries of a probe.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause, unless the file sets one.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How the wait ended.
enum Outcome {
    /// It is ready.
    Ready,
    /// The run ended before.
    Over,
    /// It took too long; the reason of the last failure, if there is one.
    Late(Option<String>),
}

/// Waits until a run of a process is ready, and records that it is, or that it took too long.
pub(super) async fn watch(declared: Arc<Declared>, name: String, process: Process, ready: Ready) {
    let Some(run) = declared.panes.run_of(&process.id).filter(|run| run.number == process.runs)
    else {
        return;
    };
    let outcome = match &ready.when {
        ReadyWhen::Pattern(pattern) => prints(&declared, &run, &process, pattern, &ready).await,
        ReadyWhen::Succeeds(probe) => {
            succeeds(&declared, &name, &run, &process, probe, &ready).await
        }
        ReadyWhen::Delay(delay) => {
            // It may have been started by an earlier server.
            let now = declared.panes.clock().wall_ms();
            let passed = now.saturating_sub(process.started_at.unwrap_or(now));
            let left = delay.saturating_sub(Duration::from_millis(passed));
            match timeout(left, over(&run)).await {
                Ok(()) => Outcome::Over,
                Err(_) => Outcome::Ready,
            }
        }
        // The driver handles the exit.
        ReadyWhen::Exits => {
            let mut progress = run.watch();
            let over = progress.wait_for(|progress| progress.is_over() && progress.settled);
            match timeout(ready.timeout, over).await {
                Ok(_) => Outcome::Over,
                Err(_) => Outcome::Late(None),
            }
        }
    };
    if declared.panes.processes.get(&process.id).is_none_or(|now| now.runs != process.runs) {
        return;
    }
    let mut state = declared.state();
    let managed = state.managed.of(&name);
    match outcome {
        Outcome::Ready => (managed.ready, managed.problem) = (process.runs, None),
        Outcome::Over => {}
        Outcome::Late(why) => {
            managed.late = process.runs;
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let seconds = ready.timeout.as_secs_f64();
            managed.problem = Some(format!("it was not ready within {seconds} s{why}"));
        }
    }
    drop(state);
    declared.panes.processes.notify();
    declared.notify();
}

/// Waits until a run has ended.
async fn over(run: &ProcessRun) {
    let _ = run.watch_life().wait_for(|progress| progress.is_over()).await;
}

/// Waits for a line of output.
async fn prints(
    declared: &Declared,
    run: &Arc<ProcessRun>,
    process: &Process,
    pattern: &regex::Regex,
    ready: &Ready,
) -> Outcome {
    let mut waiting = declared.panes.data_plane.wait(run, pattern.clone(), process.run_offset);
    // Output from before the wait is on the screen or in the history.
    let (searched, wanted) = (run.clone(), pattern.clone());
    let search = tokio::task::spawn_blocking(move || shows(&searched, &wanted));
    if search.await.unwrap_or(false) {
        return Outcome::Ready;
    }
    match timeout(ready.timeout, &mut waiting.found).await {
        Ok(Ok(MatchOutcome::Line(_))) => Outcome::Ready,
        Ok(_) => Outcome::Over,
        Err(_) => Outcome::Late(None),
    }
}

/// Whether a line of the recorded output matches.
fn shows(run: &ProcessRun, pattern: &regex::Regex) -> bool {
    let mut found = false;
    run.visit_lines(0, |line| {
        found = pattern.is_match(&line.text);
        !found
    });
    found
}

/// Tries a probe, one try after the other, until it succeeds.
async fn succeeds(
    declared: &Declared,
    name: &str,
    run: &Arc<ProcessRun>,
    process: &Process,
    probe: &Probe,
    ready: &Ready,
) -> Outcome {
    let deadline = Instant::now() + ready.timeout;
    let mut pause = ready.every.unwrap_or(FIRST_PAUSE);
    let mut last = None;
    loop {
        let next = async {
            let tried =
                probing::attempt(&declared.panes, run, process, probe, ready.try_timeout).await;
            let why = match tried {
                Ok(None) => return true,
                Ok(Some(address)) => match answers_for_run(declared, name, address).await {
                    Ok(()) => return true,
                    Err(why) => why,
                },
                Err(why) => why,
            };
            last = Some(why);
            sleep(pause).await;
            false
        };
        tokio::select! {
            () = over(run) => return Outcome::Over,
            tried = timeout_at(deadline, next) => match tried {
                Ok(true) => return Outcome::Ready,
                Ok(false) => {}
                Err(_) => return Outcome::Late(last),
            },
        }
        if ready.every.is_none() {
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether somebody who answers at an address of this machine can belong to the run of a process. If not, the process
/// shows the reason.
async fn answers_for_run(
    declared: &Declared,
    name: &str,
    address: SocketAddr,
) -> Result<(), String> {
    let listeners = declared.state().managed.of(name).listeners.clone();
    let answered = tokio::task::spawn_blocking(move || listeners.answered(address)).await;
    let mut state = declared.state();
    let managed = state.managed.of(name);
    match answered.unwrap_or_else(|_| Ok(BTreeSet::new())) {
        Ok(sockets) => {
            managed.listeners.note_own(sockets);
            Ok(())
        }
        Err(why) => {
            let known = managed.problem.replace(why.clone());
            drop(state);
            if known.as_ref() != Some(&why) {
                tracing::warn!(name, why, "an answer does not show that a process is ready");
                declared.panes.processes.notify();
            }
            Err(why)
        }
    }
}
