//! Does what is due for one declared process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::checking;
use super::file_status::Declared;
use super::health::{Reaction, RunHealth};
use super::managed::{ManagedProcess, May};
use super::policy::{End, Next, next};
use super::ready;
use super::restarting::Restarting;
use crate::project_file::{Definition, ProjectFile, ReadyWhen};
use patterm_panes::StartExtra;
use patterm_panes::process::{Process, Status};

/// How long after the last change of a watched file a process is restarted: files are written one
/// after the other.
pub(super) const QUIET: Duration = Duration::from_millis(200);

/// The action that is due for a process.
enum DueAction {
    Nothing,
    /// Start it; `restarts` is the number of consecutive restarts.
    Start {
        restarts: u32,
        pending: Restarting,
    },
    /// Stop it if it is running, and start it.
    Restart,
    /// End it: it is unhealthy, and is restarted after its end.
    EndUnhealthy,
}

/// Does what is due for one process.
pub(super) async fn handle_process(declared: &Arc<Declared>, file: &ProjectFile, name: &str) {
    let Some(definition) = file.processes.get(name) else { return };
    let Some(process) = declared.declared_entry(name) else {
        // It was closed.
        return declared.state().managed.forget(name);
    };
    match process.status {
        Status::Running => {
            begin_to_watch(declared, definition, name, &process);
            begin_to_check(declared, definition, name, &process);
        }
        Status::Starting => return declared.state().managed.put_off(name, QUIET),
        _ => note_end(declared, definition, name, &process),
    }
    match due_action(declared, file, name, &process) {
        DueAction::Nothing => {}
        DueAction::Start { restarts, pending } => {
            start(declared, definition, name, &process, restarts).await;
            drop(pending);
        }
        // It may take as long as the process takes to end.
        DueAction::Restart => drop(tokio::spawn(restart(declared.clone(), process))),
        DueAction::EndUnhealthy => drop(tokio::spawn(end_unhealthy(declared.clone(), process))),
    }
}

/// Decides what is due for one process; it counts as done from here on.
fn due_action(
    declared: &Arc<Declared>,
    file: &ProjectFile,
    name: &str,
    process: &Process,
) -> DueAction {
    let now = Instant::now();
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if let Some((_, first)) = managed.changed.filter(|(at, _)| *at <= now) {
        managed.changed = None;
        // A process that was stopped on request stays stopped.
        if !matches!(process.status, Status::Stopped | Status::Lost) {
            managed.watch_restarts.note(first, now);
            managed.again_at = None;
            return DueAction::Restart;
        }
    }
    if process.status.is_alive() {
        (managed.wanted, managed.again_at) = (false, None);
        return match file.processes.get(name) {
            Some(definition) => unhealthy_action(managed, definition, process),
            None => DueAction::Nothing,
        };
    }
    if managed.again_at.is_some_and(|at| at <= now) {
        managed.again_at = None;
        let entry = declared.panes.processes.get(&process.id).and_then(|process| process.declared);
        let restarts = entry.map_or(0, |entry| entry.restarts);
        return DueAction::Start { restarts, pending: Restarting::of(declared, managed, name) };
    }
    if !managed.wanted {
        return DueAction::Nothing;
    }
    match state.managed.may(name, file, |name| declared.declared_entry(name)) {
        May::Wait(_) => DueAction::Nothing,
        May::Start => {
            let managed = state.managed.of(name);
            (managed.wanted, managed.again_at) = (false, None);
            DueAction::Start { restarts: 0, pending: Restarting::of(declared, managed, name) }
        }
        May::Never(refusal) => {
            // Without the reason, which may quote the output of a check; `ps` shows it.
            tracing::warn!(name, "a declared process is not started");
            let managed = state.managed.of(name);
            (managed.wanted, managed.refused) = (false, Some(refusal));
            drop(state);
            declared.note_not_wanted();
            DueAction::Nothing
        }
    }
}

/// Decides what to do about a run that is unhealthy.
fn unhealthy_action(
    managed: &mut ManagedProcess,
    definition: &Definition,
    process: &Process,
) -> DueAction {
    if !managed.health.is_undecided(process.runs) {
        return DueAction::Nothing;
    }
    match next(&definition.restart, end_of(managed, process, true)) {
        Next::Rest => DueAction::Nothing,
        Next::GiveUp => {
            let name = &process.name;
            tracing::warn!(
                name,
                "an unhealthy process is no longer restarted: it was restarted too often"
            );
            managed.health.react(Reaction::LeftAlone);
            DueAction::Nothing
        }
        Next::Again { .. } => {
            managed.health.react(Reaction::Ending);
            DueAction::EndUnhealthy
        }
    }
}

/// Begins to wait until a new run is ready.
fn begin_to_watch(
    declared: &Arc<Declared>,
    definition: &Definition,
    name: &str,
    process: &Process,
) {
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if managed.awaited == process.runs {
        return;
    }
    managed.awaited = process.runs;
    (managed.problem, managed.refused) = (None, None);
    match &definition.ready {
        None => {
            managed.ready = process.runs;
            drop(state);
            declared.notify();
        }
        Some(ready) => {
            let (declared, name) = (declared.clone(), name.to_owned());
            tokio::spawn(ready::watch(declared, name, process.clone(), ready.clone()));
        }
    }
}

/// Begins to check the health of a run that is ready.
fn begin_to_check(
    declared: &Arc<Declared>,
    definition: &Definition,
    name: &str,
    process: &Process,
) {
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if managed.health.is_ending(process.runs) {
        return;
    }
    let Some(healthy) = &definition.healthy else {
        managed.health = RunHealth::default();
        return;
    };
    if managed.ready == process.runs && managed.checked != process.runs {
        managed.checked = process.runs;
        managed.health = RunHealth::of(process.runs);
        let (declared, name) = (declared.clone(), name.to_owned());
        tokio::spawn(checking::watch(declared, name, process.clone(), healthy.clone()));
    }
}

/// Handles the end of a run, once, and decides what follows.
fn note_end(declared: &Arc<Declared>, definition: &Definition, name: &str, process: &Process) {
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if managed.seen >= process.runs {
        return;
    }
    managed.seen = process.runs;
    let clean = process.exit.is_some_and(|exit| exit.code == Some(0));
    let exits = matches!(&definition.ready, Some(ready) if matches!(ready.when, ReadyWhen::Exits));
    if clean && process.status == Status::Exited && (exits || definition.ready.is_none()) {
        managed.ready = process.runs;
    }
    let is_unhealthy = managed.health.is_ending(process.runs);
    let end = end_of(managed, process, is_unhealthy);
    match next(&definition.restart, end) {
        Next::Rest => {}
        Next::GiveUp => {
            let limit = definition.restart.limit;
            tracing::warn!(
                name,
                limit,
                "a declared process is no longer restarted: it failed too often"
            );
            managed.problem = Some(format!(
                "it ended {} times in a row and is no longer restarted automatically; restart it \
                 when the cause is fixed",
                limit + 1
            ));
        }
        Next::Again { after, restarts } => {
            managed.again_at = Some(Instant::now() + after);
            drop(state);
            let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            let due = declared.panes.clock().wall_ms().saturating_add(after);
            declared.panes.processes.note(&process.id, |process| {
                let ended = process.runs;
                if let Some(declared) = &mut process.declared {
                    declared.restarts = restarts;
                    (declared.restart_at, declared.restarted_after) = (Some(due), ended);
                }
            });
        }
    }
    declared.notify();
}

/// The end of a run, or of one that is to be ended because it is unhealthy.
pub(super) fn end_of(managed: &ManagedProcess, process: &Process, is_unhealthy: bool) -> End {
    let lasted = process.ended_at.zip(process.started_at);
    let lasted = lasted.map_or(0, |(ended, started)| ended.saturating_sub(started));
    End {
        status: process.status,
        exit: process.exit,
        is_unhealthy,
        lasted: match is_unhealthy {
            true => managed.health.healthy_for(),
            false => Duration::from_millis(lasted),
        },
        restarts: process.declared.as_ref().map_or(0, |declared| declared.restarts),
    }
}

async fn start(
    declared: &Arc<Declared>,
    definition: &Definition,
    name: &str,
    process: &Process,
    restarts: u32,
) {
    let started = match declared.refresh_recipe(&process.id, definition, restarts) {
        Ok(_) => declared.panes.begin(&process.id, &StartExtra::default()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        tracing::warn!(name, %error, "cannot start a declared process");
        declared.state().managed.of(name).problem = Some(error.to_string());
    }
    declared.notify();
}

/// Stops a process if it is running, and starts it again.
async fn restart(declared: Arc<Declared>, process: Process) {
    let _restarting = declared.begin_restart(&process);
    if process.status.is_alive()
        && let Err(error) = declared.stop(&process).await
    {
        tracing::warn!(id = %process.id, %error, "cannot stop a declared process to restart it");
    }
    if let Some(ended) = declared.panes.processes.get(&process.id)
        && let Err(error) = declared.start(&ended).await
    {
        tracing::warn!(id = %process.id, %error, "cannot restart a declared process");
    }
    declared.notify();
}

/// Ends a run that is unhealthy. It is not stopped on request, so its restart policy applies.
async fn end_unhealthy(declared: Arc<Declared>, process: Process) {
    let Ok(run) = declared.panes.running(&process) else { return };
    tracing::warn!(id = %process.id, "ending an unhealthy process to restart it");
    if let Err(error) = declared.end(&run, None).await {
        tracing::warn!(id = %process.id, %error, "cannot end an unhealthy process");
    }
    declared.notify();
}
