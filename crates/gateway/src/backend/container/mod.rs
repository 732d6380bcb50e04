//! Servers in containers: in a running one, or in one of their own. Every engine implements the
//! same operations.

mod cgroup;
mod command;
mod containerd;
mod containers;
mod ctr;
mod docker;
mod docker_exec;
mod docker_run;
mod heartbeat;
mod info;
mod record;
mod settings;
mod wrapper;

use std::sync::Arc;

pub use containers::Containers;
pub use info::{ContainerInfo, EngineError};
pub use settings::{ContainerEngine, EngineEndpoint, ExecSpec, Mount, RunSpec};

use super::{Backend, BoxFuture, Channel};
use crate::error::GatewayError;

/// The label of containers that patterm starts; its value is secret.
pub const OWNER_LABEL: &str = "patterm.owner";

/// The operations of an engine.
pub(crate) trait EngineApi: Send + Sync + std::fmt::Debug {
    /// Looks up a container.
    fn find(&self, name: String) -> BoxFuture<Result<ContainerInfo, EngineError>>;

    /// Starts a command in a running container.
    fn exec(&self, info: ContainerInfo, exec: ExecSpec) -> BoxFuture<Result<Channel, EngineError>>;

    /// Starts a server in a new container.
    fn run(
        &self,
        own: RunSpec,
        identity: ContainerIdentity,
    ) -> BoxFuture<Result<Channel, EngineError>>;

    /// The names of all containers with our label.
    fn list_owned(&self, owner: String) -> BoxFuture<Result<Vec<String>, EngineError>>;

    /// Removes a container in any state.
    fn remove(&self, name: String) -> BoxFuture<Result<(), EngineError>>;
}

/// What identifies a container that patterm starts.
#[derive(Debug, Clone)]
pub(crate) struct ContainerIdentity {
    /// Its name.
    pub(crate) name: String,
    /// The value of its label.
    pub(crate) owner: String,
}

/// Runs a server in a running container.
#[derive(Debug)]
struct ExecBackend {
    containers: Containers,
    exec: ExecSpec,
}

impl Backend for ExecBackend {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let engine = self.containers.engine_api(&self.exec.endpoint);
        let exec = self.exec.clone();
        Box::pin(async move {
            let info = engine.find(exec.container.clone()).await?;
            Ok(open_in(engine, info, exec).await?)
        })
    }
}

/// Starts a command in a container that was looked up.
pub(crate) async fn open_in(
    engine: Arc<dyn EngineApi>,
    info: ContainerInfo,
    exec: ExecSpec,
) -> Result<Channel, EngineError> {
    if !info.is_running {
        return Err(EngineError::NotRunning(exec.container));
    }
    engine.exec(info, exec).await
}

/// Runs a server in a container of its own.
#[derive(Debug)]
struct RunBackend {
    containers: Containers,
    own: RunSpec,
}

impl Backend for RunBackend {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let (containers, own) = (self.containers.clone(), self.own.clone());
        Box::pin(async move { Ok(containers.run(own).await?) })
    }
}
