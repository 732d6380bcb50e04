//! The containers of shared servers, and the endpoint for the containers of bots.

use std::sync::Arc;
use std::time::Duration;

use patterm_gateway::ServerLimits;
use patterm_gateway::backend::container::{ContainerEngine, Containers, EngineEndpoint};
use patterm_gateway::http::BotsConfig;
use patterm_project::project_file::{BotsDefinition, EngineDefinition, EngineName, ProjectFile};

use super::Shared;
use super::spawner::KeeperSpawner;

/// The state folder with the records of containers that patterm started.
const CONTAINERS: &str = "containers";

/// There may be many bots, and most of them are inactive most of the time.
const BOT_IDLE: Duration = Duration::from_secs(600);

impl Shared {
    /// The containers that patterm started. The first call starts removing leftovers.
    pub(super) fn containers(&self) -> Result<&Containers, String> {
        if self.containers.get().is_none() {
            let spawner =
                Arc::new(KeeperSpawner::new(Arc::downgrade(&self.parts.panes), "containers"));
            let containers =
                Containers::new(&self.parts.state.file(CONTAINERS), &self.parts.pipes, spawner);
            let containers =
                containers.map_err(|e| format!("cannot keep records of containers: {e}"))?;
            let sweeping = containers.clone().keep_swept(self.end.clone());
            if self.containers.set(containers).is_ok() {
                self.runtime.spawn(sweeping);
            }
        }
        self.containers.get().ok_or_else(|| "containers are not available".into())
    }

    /// Removes what an earlier server left in containers.
    pub(crate) fn sweep_containers(&self) {
        if self.parts.state.file(CONTAINERS).exists()
            && let Err(error) = self.containers()
        {
            tracing::error!(error, "cannot remove leftover containers");
        }
    }

    /// The configuration of the endpoint for bots' containers.
    pub(crate) fn bots(&self) -> Option<BotsConfig> {
        let definition = self.bots_definition()?;
        let containers = match self.containers() {
            Ok(containers) => containers.clone(),
            Err(error) => {
                tracing::error!(error, "the endpoint for bots' containers is not available");
                return None;
            }
        };
        let mut endpoint = endpoint(&definition.engine);
        endpoint.fifo_dir = definition.fifo_dir;
        Some(BotsConfig {
            containers,
            endpoint,
            command: definition.command,
            owner_label: definition.owner_label,
            allow_unlabelled: definition.allow_unlabelled,
            servers: self.bot_sessions.clone(),
            limits: ServerLimits { idle_timeout: Some(BOT_IDLE), ..ServerLimits::default() },
        })
    }

    /// `[bots]` of the project file, or else of the user's settings.
    pub(crate) fn bots_definition(&self) -> Option<BotsDefinition> {
        let own = self.parts.declared.effect().and_then(|file| file.bots.clone());
        own.or_else(|| ProjectFile::of_the_user(self.parts.settings.as_deref()?).ok()?.bots)
    }
}

/// How to reach an engine.
pub(super) fn endpoint(definition: &EngineDefinition) -> EngineEndpoint {
    let engine = match definition.name {
        EngineName::Docker => ContainerEngine::Docker,
        EngineName::Podman => ContainerEngine::Podman,
        EngineName::Containerd => ContainerEngine::Containerd,
    };
    EngineEndpoint {
        socket: definition.socket.clone(),
        namespace: definition.namespace.clone(),
        ..EngineEndpoint::default_of(engine)
    }
}
