//! Servers in containers: in a running one, or in one of their own. Every engine implements the
//! same operations.

mod bound;
mod containerd;
mod ctr;
mod docker;
mod docker_own;
mod docker_streams;
mod ours;
mod pulse;
mod record;
mod settings;
mod target;
mod tool;
mod wrapper;

use std::sync::Arc;

pub use ours::Containers;
pub use settings::{Engine, Exec, Mount, Own, Place};
pub use target::{Target, Trouble};

use super::{Backend, Channel, Later};
use crate::refusal::Refusal;

/// The label of containers that patterm starts; its value is secret.
pub const OWNER_LABEL: &str = "patterm.owner";

/// The operations of an engine.
pub(crate) trait Reach: Send + Sync + std::fmt::Debug {
    /// Looks up a container.
    fn find(&self, name: String) -> Later<Result<Target, Trouble>>;

    /// Starts a command in a running container.
    fn exec(&self, target: Target, exec: Exec) -> Later<Result<Channel, Trouble>>;

    /// Starts a server in a new container.
    fn run(&self, own: Own, named: Named) -> Later<Result<Channel, Trouble>>;

    /// The names of all containers with our label.
    fn ours(&self, owner: String) -> Later<Result<Vec<String>, Trouble>>;

    /// Removes a container in any state.
    fn remove(&self, name: String) -> Later<Result<(), Trouble>>;
}

/// What identifies a container that patterm starts.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: String,
    /// The value of its label.
    pub(crate) owner: String,
}

/// Runs a server in a running container.
#[derive(Debug)]
struct InRunning {
    containers: Containers,
    exec: Exec,
}

impl Backend for InRunning {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let engine = self.containers.reach(&self.exec.place);
        let exec = self.exec.clone();
        Box::pin(async move {
            let target = engine.find(exec.container.clone()).await?;
            Ok(open_in(engine, target, exec).await?)
        })
    }
}

/// Starts a command in a container that was looked up.
pub(crate) async fn open_in(
    engine: Arc<dyn Reach>,
    target: Target,
    exec: Exec,
) -> Result<Channel, Trouble> {
    if !target.is_running {
        return Err(Trouble::Stopped(exec.container));
    }
    engine.exec(target, exec).await
}

/// Runs a server in a container of its own.
#[derive(Debug)]
struct InOwn {
    containers: Containers,
    own: Own,
}

impl Backend for InOwn {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let (containers, own) = (self.containers.clone(), self.own.clone());
        Box::pin(async move { Ok(containers.run(own).await?) })
    }
}
