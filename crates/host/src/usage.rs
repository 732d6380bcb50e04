//! Measures all processes at once, for the TUI's dashboard. Nothing is measured unless somebody asks.

use patterm_wire::usage::{ProcessUsage, UsageRequest, UsageResult};

use crate::host::Host;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::Process;
use patterm_panes::tree::ListeningSockets;
use patterm_project::declared::DeclaredStatus;

/// Characters of a last line: more than the widest terminal shows next to the other columns.
const LAST_LINE_CHARS: usize = 300;

/// Measures all processes. It reads `/proc` for each process below a pane, so it must not run on the thread that
/// serves all connections.
pub(crate) fn measure(host: &Host, request: UsageRequest) -> UsageResult {
    let sockets = request.ports.then(ListeningSockets::read);
    let at_ms = host.panes.clock().now().up_ms;
    let processes = host.panes.processes.all();
    let processes = processes.iter().map(|process| one(host, process, sockets.as_ref())).collect();
    UsageResult { at_ms, processes }
}

fn one(host: &Host, process: &Process, sockets: Option<&ListeningSockets>) -> ProcessUsage {
    let run = host.panes.run_of(&process.id);
    let init = run.as_ref().filter(|_| process.status.is_alive()).and_then(|run| run.init());
    let usage = run.as_ref().zip(init).map(|(run, init)| run.usage(init));
    let health = host.declared.status(process).filter(|_| process.status.is_alive());
    ProcessUsage {
        id: process.id.to_string(),
        cpu_ms: usage.as_ref().map(|usage| (usage.cpu_seconds * 1000.0) as u64),
        memory_bytes: usage.map(|usage| usage.memory_bytes),
        started_at: process.started_at,
        ended_at: process.ended_at,
        health: health.map(|status| health_word(&status).to_owned()),
        ports: sockets
            .map(|sockets| init.map(|init| sockets.of(init)).into_iter().flatten().collect()),
        last_line: run.map(|run| last_line(&run)).unwrap_or_default(),
    }
}

/// The health where it is checked and known, otherwise whether the process is ready.
fn health_word(status: &DeclaredStatus) -> &'static str {
    match (status.health, status.ready) {
        (Some(health), _) => health.name(),
        (None, true) => "ready",
        (None, false) => "not ready",
    }
}

/// The last line on the screen of a run that is not empty. Nothing waits for a screen that is still to be rebuilt: the
/// dashboard asks again in a moment.
fn last_line(run: &ProcessRun) -> String {
    if !run.is_rebuilt() {
        return String::new();
    }
    let screen = run.screen();
    let rows = (0..screen.size().rows).rev().map(|row| screen.row(row));
    let line = rows.map(|row| row.trim().to_owned()).find(|row| !row.is_empty());
    line.unwrap_or_default().chars().take(LAST_LINE_CHARS).collect()
}
