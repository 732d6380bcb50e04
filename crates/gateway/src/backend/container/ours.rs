//! The containers that patterm starts, from before they are created until they are gone. A recorded
//! container that no server uses is removed.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::containerd::Containerd;
use super::docker::Docker;
use super::record::Record;
use super::settings::{Engine, Exec, Own, Place};
use super::target::Trouble;
use super::tool::Tools;
use super::{InOwn, InRunning, Named, Reach};
use crate::backend::local::Spawner;
use crate::backend::{Backend, Channel, Later, Life};

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
    record: Mutex<Record>,
    live: Mutex<HashSet<String>>,
    tools: Tools,
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
            record: Mutex::new(Record::open(state)?),
            live: Mutex::default(),
            tools: Tools(spawner),
        })))
    }

    /// Servers in a running container.
    pub fn exec(&self, exec: Exec) -> Arc<dyn Backend> {
        Arc::new(InRunning { containers: self.clone(), exec })
    }

    /// Servers in containers of their own.
    pub fn own(&self, own: Own) -> Arc<dyn Backend> {
        Arc::new(InOwn { containers: self.clone(), own })
    }

    pub(crate) fn reach(&self, place: &Place) -> Arc<dyn Reach> {
        let (state, tools) = (self.0.state.clone(), self.0.tools.clone());
        match place.engine {
            Engine::Docker | Engine::Podman => Arc::new(Docker::new(place, state, tools)),
            Engine::Containerd => {
                let fifos = place.fifo_dir.clone().unwrap_or_else(|| self.0.fifos.clone());
                Arc::new(Containerd::new(place, state, fifos, tools))
            }
        }
    }

    pub(super) async fn run(&self, own: Own) -> Result<Channel, Trouble> {
        let engine = self.reach(&own.place);
        let place = own.place.clone();
        let named = {
            let mut record = self.record();
            let unrecorded = |e| Trouble::Failed(format!("cannot record the container: {e}"));
            let name = record.add(&place).map_err(unrecorded)?;
            self.live().insert(name.clone());
            Named { name, owner: record.owner().to_owned() }
        };
        let name = named.name.clone();
        match engine.run(own, named).await {
            Ok(channel) => {
                let life = OwnLife { life: channel.life, containers: self.clone(), place, name };
                Ok(Channel { life: Box::new(life), ..channel })
            }
            Err(trouble) => {
                self.live().remove(&name);
                self.sweep_place(&place).await;
                Err(trouble)
            }
        }
    }

    /// Removes leftover containers in all engines.
    pub async fn sweep(&self) {
        let places: BTreeSet<Place> = {
            let (record, live) = (self.record(), self.live());
            let left = record.all().iter().filter(|ours| !live.contains(&ours.name));
            left.map(|ours| ours.place.clone()).collect()
        };
        for place in places {
            self.sweep_place(&place).await;
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

    async fn sweep_place(&self, place: &Place) {
        let owner = self.record().owner().to_owned();
        let engine = self.reach(place);
        // An unreachable engine is asked again later.
        let Ok(there) = engine.ours(owner).await else { return };
        let left: Vec<String> = {
            let (record, live) = (self.record(), self.live());
            let here = record.all().iter().filter(|ours| ours.place == *place);
            here.map(|ours| ours.name.clone()).filter(|name| !live.contains(name)).collect()
        };
        for name in left {
            if there.contains(&name) {
                tracing::info!(name, engine = place.engine.word(), "removing a container");
                if let Err(trouble) = engine.remove(name.clone()).await {
                    tracing::warn!(name, %trouble, "cannot remove a container");
                    continue;
                }
            }
            if let Err(error) = self.record().remove(&name) {
                tracing::warn!(name, %error, "cannot write the record of containers");
            }
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a server in a container of its own; afterwards the container is gone.
struct OwnLife {
    life: Box<dyn Life>,
    containers: Containers,
    place: Place,
    name: String,
}

impl Life for OwnLife {
    fn ended(&self) -> Later<String> {
        self.life.ended()
    }

    fn end(&self) -> Later<()> {
        let end = self.life.end();
        let (containers, place, name) =
            (self.containers.clone(), self.place.clone(), self.name.clone());
        Box::pin(async move {
            end.await;
            containers.live().remove(&name);
            containers.sweep_place(&place).await;
        })
    }
}
