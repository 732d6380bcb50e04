//! Starts shared servers on this machine through the keeper, like all other programs.

use std::os::fd::OwnedFd;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use patterm_gateway::backend::BoxFuture;
use patterm_gateway::backend::local::{Spawned, Spawner};
use patterm_keeper::{Program, SpawnError, SpawnFault};

use patterm_panes::Panes;

/// Starts programs through the keeper.
#[derive(Debug)]
pub(super) struct KeeperSpawner {
    panes: Weak<Panes>,
    started: AtomicU64,
    /// The name of the shared server, part of the names of panes.
    server: String,
}

impl KeeperSpawner {
    pub(super) fn new(panes: Weak<Panes>, server: &str) -> Self {
        Self { panes, started: AtomicU64::new(0), server: server.to_owned() }
    }
}

impl Spawner for KeeperSpawner {
    fn spawn(
        &self,
        program: Program,
        streams: [OwnedFd; 3],
    ) -> BoxFuture<Result<Spawned, SpawnError>> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("shared {} {number} {:p}", self.server, self);
        let panes = self.panes.upgrade();
        Box::pin(async move {
            let Some(panes) = panes else {
                let message = "patterm's server is shutting down".into();
                return Err(SpawnError { fault: SpawnFault::System, message });
            };
            let pane = panes.keeper.spawn(name.clone(), program, Some(streams)).await?;
            Ok(Spawned { name, pane })
        })
    }

    fn forget(&self, name: String) -> BoxFuture<()> {
        let panes = self.panes.upgrade();
        Box::pin(async move {
            if let Some(panes) = panes {
                panes.let_go(name).await;
            }
        })
    }
}
