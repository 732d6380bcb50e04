//! The containers that patterm starts, from before they are created until they are gone. A recorded
//! container that no server uses is removed.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::command::CommandRunner;
use super::containerd::Containerd;
use super::docker::Docker;
use super::info::EngineError;
use super::record::ContainerRecord;
use super::settings::{ContainerEngine, EngineEndpoint, ExecSpec, RunSpec};
use super::{ContainerIdentity, EngineApi, ExecBackend, RunBackend};
use crate::backend::local::Spawner;
use crate::backend::{Backend, BoxFuture, Channel, ServerControl, ServerExit};

/// How often leftover containers are looked for; without any, no engine is asked.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);

/// All engines, and patterm's containers in them.
#[derive(Debug, Clone)]
pub struct Containers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The folder of the wrapper, which is mounted.
    state: PathBuf,
    fifos: PathBuf,
    record: Mutex<ContainerRecord>,
    live: Mutex<HashSet<String>>,
    runner: CommandRunner,
}

impl Containers {
    /// Continues with the record that an earlier server left in `state`. `runtime` is a private
    /// folder that does not survive a reboot; `spawner` starts the engines' tools.
    pub fn new(state: &Path, runtime: &Path, spawner: Arc<dyn Spawner>) -> io::Result<Self> {
        let fifos = runtime.join("fifos");
        // Their users are gone; FIFOs that are open keep working.
        let _ = std::fs::remove_dir_all(&fifos);
        for folder in [state, &fifos] {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(Self(Arc::new(Inner {
            state: state.to_owned(),
            fifos,
            record: Mutex::new(ContainerRecord::open(state)?),
            live: Mutex::default(),
            runner: CommandRunner(spawner),
        })))
    }

    /// Servers in a running container.
    pub fn exec(&self, exec: ExecSpec) -> Arc<dyn Backend> {
        Arc::new(ExecBackend { containers: self.clone(), exec })
    }

    /// Servers in containers of their own.
    pub fn own(&self, own: RunSpec) -> Arc<dyn Backend> {
        Arc::new(RunBackend { containers: self.clone(), own })
    }

    pub(crate) fn engine_api(&self, endpoint: &EngineEndpoint) -> Arc<dyn EngineApi> {
        let (state, runner) = (self.0.state.clone(), self.0.runner.clone());
        match endpoint.engine {
            ContainerEngine::Docker | ContainerEngine::Podman => {
                Arc::new(Docker::new(endpoint, state, runner))
            }
            ContainerEngine::Containerd => {
                let fifos = endpoint.fifo_dir.clone().unwrap_or_else(|| self.0.fifos.clone());
                Arc::new(Containerd::new(endpoint, state, fifos, runner))
            }
        }
    }

    pub(super) async fn run(&self, own: RunSpec) -> Result<Channel, EngineError> {
        let engine = self.engine_api(&own.endpoint);
        let endpoint = own.endpoint.clone();
        let identity = {
            let mut record = self.record();
            let unrecorded = |e| EngineError::Failed(format!("cannot record the container: {e}"));
            let name = record.add(&endpoint).map_err(unrecorded)?;
            self.live().insert(name.clone());
            ContainerIdentity { name, owner: record.owner().to_owned() }
        };
        let name = identity.name.clone();
        match engine.run(own, identity).await {
            Ok(channel) => {
                let control = RecordedControl {
                    control: channel.control,
                    containers: self.clone(),
                    endpoint,
                    name,
                };
                Ok(Channel { control: Box::new(control), ..channel })
            }
            Err(error) => {
                self.live().remove(&name);
                self.sweep_endpoint(&endpoint).await;
                Err(error)
            }
        }
    }

    /// Removes leftover containers in all engines.
    pub async fn sweep(&self) {
        let endpoints: BTreeSet<EngineEndpoint> = {
            let (record, live) = (self.record(), self.live());
            let left = record.all().iter().filter(|containers| !live.contains(&containers.name));
            left.map(|containers| containers.endpoint.clone()).collect()
        };
        for endpoint in endpoints {
            self.sweep_endpoint(&endpoint).await;
        }
    }

    /// Removes leftovers now and then periodically, until `end` is cancelled.
    pub async fn keep_swept(self, end: CancellationToken) {
        loop {
            self.sweep().await;
            tokio::select! {
                () = tokio::time::sleep(SWEEP_PAUSE) => {}
                () = end.cancelled() => return,
            }
        }
    }

    async fn sweep_endpoint(&self, endpoint: &EngineEndpoint) {
        let owner = self.record().owner().to_owned();
        let engine = self.engine_api(endpoint);
        // An unreachable engine is asked again later.
        let Ok(there) = engine.list_owned(owner).await else { return };
        let left: Vec<String> = {
            let (record, live) = (self.record(), self.live());
            let here = record.all().iter().filter(|containers| containers.endpoint == *endpoint);
            here.map(|containers| containers.name.clone())
                .filter(|name| !live.contains(name))
                .collect()
        };
        for name in left {
            if there.contains(&name) {
                tracing::info!(name, engine = endpoint.engine.as_str(), "removing a container");
                if let Err(error) = engine.remove(name.clone()).await {
                    tracing::warn!(name, %error, "cannot remove a container");
                    continue;
                }
            }
            if let Err(error) = self.record().remove(&name) {
                tracing::warn!(name, %error, "cannot write the record of containers");
            }
        }
    }

    fn record(&self) -> MutexGuard<'_, ContainerRecord> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a server in a container of its own; afterwards the container is gone.
struct RecordedControl {
    control: Box<dyn ServerControl>,
    containers: Containers,
    endpoint: EngineEndpoint,
    name: String,
}

impl ServerControl for RecordedControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        self.control.wait()
    }

    fn end(&self) -> BoxFuture<()> {
        let end = self.control.end();
        let (containers, endpoint, name) =
            (self.containers.clone(), self.endpoint.clone(), self.name.clone());
        Box::pin(async move {
            end.await;
            containers.live().remove(&name);
            containers.sweep_endpoint(&endpoint).await;
        })
    }
}
