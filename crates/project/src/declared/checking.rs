//! The health of a process that is ready: it is checked again and again while it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

use super::file_status::Declared;
use super::probing;
use crate::project_file::Healthy;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Process, RunNumber};

/// Checks a run of a process until it ends or the project file says otherwise.
pub(super) async fn watch(
    declared: Arc<Declared>,
    name: String,
    process: Process,
    healthy: Healthy,
) {
    let run = declared.panes.run_of(&process.id).filter(|run| run.number == process.runs);
    let Some(run) = run else { return };
    let (changes, mut progress) = (declared.changes(), run.watch_life());
    let check = || check(declared.clone(), run.clone(), process.clone(), healthy.clone());
    let note = |outcome| {
        let mut state = declared.state();
        let health = &mut state.managed.of(&name).health;
        let has_changed = health.note(outcome, healthy.failures, Instant::now());
        drop(state);
        if has_changed {
            declared.panes.processes.notify();
            declared.notify();
        }
    };
    tokio::select! {
        // What was found out about it still decides whether it is restarted.
        _ = progress.wait_for(|progress| progress.is_over()) => return,
        () = until_redefined(&declared, changes, &name, &healthy) => {}
        never = repeat(healthy.every, check, note) => match never {},
    }
    // The driver begins again with the new definition.
    let mut state = declared.state();
    let managed = state.managed.of(&name);
    if managed.checked == process.runs {
        managed.checked = RunNumber::NONE;
    }
    drop(state);
    declared.notify();
}

async fn check(
    declared: Arc<Declared>,
    run: Arc<ProcessRun>,
    process: Process,
    healthy: Healthy,
) -> Result<(), String> {
    let tried =
        probing::attempt(&declared.panes, &run, &process, &healthy.probe, healthy.try_timeout);
    tried.await.map(drop)
}

/// Checks without end; a check begins only after the previous one has ended.
async fn repeat<C: Future<Output = Result<(), String>>>(
    every: Duration,
    check: impl Fn() -> C,
    mut note: impl FnMut(Result<(), String>),
) -> std::convert::Infallible {
    loop {
        note(check().await);
        sleep(every).await;
    }
}

/// Waits until the project file in effect says something else about the health of a process.
async fn until_redefined(
    declared: &Declared,
    mut changes: Receiver<u64>,
    name: &str,
    healthy: &Healthy,
) {
    let is_same = || {
        let file = declared.effect().unwrap_or_default();
        file.processes.get(name).and_then(|now| now.healthy.as_ref()) == Some(healthy)
    };
    while is_same() {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_begins_only_after_the_one_before_has_ended() {
        let (every, slow) = (Duration::from_secs(10), Duration::from_secs(25));
        let (begun, running) = (RefCell::new(Vec::new()), Cell::new(0));
        let start = Instant::now();
        let check = || async {
            assert_eq!(running.replace(1), 0, "two checks at once");
            begun.borrow_mut().push(start.elapsed().as_secs());
            sleep(slow).await;
            running.set(0);
            Err("no".into())
        };
        let noted = Cell::new(0);
        let checking = repeat(every, check, |_| noted.set(noted.get() + 1));
        let _ = tokio::time::timeout(Duration::from_secs(100), checking).await;
        assert_eq!((begun.into_inner(), noted.get()), (vec![0, 35, 70], 3));
    }
}
