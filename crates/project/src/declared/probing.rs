//! One try of a probe.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::http_probe::{self, HttpAnswer};
use crate::project_file::{Probe, ProbeUrl};
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::Process;
use patterm_panes::{Panes, tree};

/// Tries a probe once; fails with the reason. Returns the address of this machine that answered, if one did.
pub(super) async fn attempt(
    panes: &Panes,
    run: &Arc<ProcessRun>,
    process: &Process,
    probe: &Probe,
    patience: Duration,
) -> Result<Option<SocketAddr>, String> {
    match probe {
        Probe::Http { url, status } => http(url, *status, patience).await,
        Probe::Command(argv) => {
            let outcome = panes.run_beside(process, argv, patience).await;
            outcome.map(|()| None).map_err(|error| format!("its check {error}"))
        }
        Probe::Port(port) => listens(run, *port).await.map(|()| None),
    }
}

async fn http(
    url: &ProbeUrl,
    wanted: Option<u16>,
    patience: Duration,
) -> Result<Option<SocketAddr>, String> {
    let text = &url.text;
    let HttpAnswer { status, address } = match timeout(patience, http_probe::request(url)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => return Err(format!("{text} {why}")),
        Err(_) => {
            return Err(format!("{text} did not answer within {} s", patience.as_secs_f64()));
        }
    };
    let is_wanted = match wanted {
        Some(wanted) => status.as_u16() == wanted,
        None => status.is_success() || status.is_redirection(),
    };
    match is_wanted {
        true => Ok(address),
        false => Err(format!("{text} answered with status {}", status.as_u16())),
    }
}

/// Whether a process of a run listens on a port. The kernel sends no events for it.
async fn listens(run: &Arc<ProcessRun>, port: u16) -> Result<(), String> {
    let polled = run.clone();
    let poll = tokio::task::spawn_blocking(move || {
        polled.status().is_some_and(|status| tree::listening(status.init).contains(&port))
    });
    match poll.await.unwrap_or(false) {
        true => Ok(()),
        false => Err(format!("it does not listen on port {port}")),
    }
}
