//! Shared servers on this machine are the keeper's to start, as everything that runs.

use std::os::fd::OwnedFd;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use patterm_gateway::backend::BoxFuture;
use patterm_gateway::backend::local::{Spawned, Spawner};
use patterm_keeper::{Program, SpawnError, SpawnFault};

use crate::host::Host;

/// Starts programs for a host.
#[derive(Debug)]
pub(super) struct HostSpawner {
    host: Weak<Host>,
    started: AtomicU64,
    /// The server it is for, for people who look at panes.
    server: String,
}

impl HostSpawner {
    pub(super) fn new(host: Weak<Host>, server: &str) -> Self {
        Self { host, started: AtomicU64::new(0), server: server.to_owned() }
    }
}

impl Spawner for HostSpawner {
    fn spawn(
        &self,
        program: Program,
        streams: [OwnedFd; 3],
    ) -> BoxFuture<Result<Spawned, SpawnError>> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("shared {} {number} {:p}", self.server, self);
        let host = self.host.upgrade();
        Box::pin(async move {
            let Some(host) = host else {
                let message = "the server ends".into();
                return Err(SpawnError { fault: SpawnFault::System, message });
            };
            let pane = host.keeping.spawn(name.clone(), program, Some(streams)).await?;
            Ok(Spawned { name, pane })
        })
    }

    fn forget(&self, name: String) -> BoxFuture<()> {
        let host = self.host.upgrade();
        Box::pin(async move {
            if let Some(host) = host {
                host.let_go(name).await;
            }
        })
    }
}
