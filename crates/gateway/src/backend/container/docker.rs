//! Docker and Podman, through the API that both support: finds, lists and removes containers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{
    ListContainersOptions, RemoveContainerOptions, StopContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker as Client};

use super::command::CommandRunner;
use super::info::{ContainerInfo, EngineError, is_name, set_by_creator};
use super::settings::{EngineEndpoint, ExecSpec, RunSpec};
use super::{ContainerIdentity, EngineApi, OWNER_LABEL, docker_exec, docker_run};
use crate::backend::{BoxFuture, Channel};

/// How long an engine may take to answer. Downloading an image takes longer, but reports progress.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a container may take to stop, in seconds: the wrapper needs two.
const STOP_SECONDS: i32 = 3;

/// A Docker or Podman engine.
#[derive(Debug, Clone)]
pub(super) struct Docker {
    endpoint: EngineEndpoint,
    /// The folder of the wrapper, which is mounted.
    pub(super) state: PathBuf,
    pub(super) runner: CommandRunner,
}

impl Docker {
    pub(super) fn new(endpoint: &EngineEndpoint, state: PathBuf, runner: CommandRunner) -> Self {
        Self { endpoint: endpoint.clone(), state, runner }
    }

    /// Connects, in a version of the API that the engine supports.
    pub(super) async fn client(&self) -> Result<Client, EngineError> {
        let socket = self.endpoint.socket();
        let down = |error: Error| {
            let engine = self.endpoint.engine.as_str();
            EngineError::Unreachable(format!(
                "{engine} cannot be reached at {}: {error}",
                socket.display()
            ))
        };
        let path = socket.to_string_lossy();
        let client = Client::connect_with_unix(&path, TIMEOUT.as_secs(), API_DEFAULT_VERSION);
        client.map_err(down)?.negotiate_version().await.map_err(down)
    }

    async fn look_up(&self, name: &str) -> Result<ContainerInfo, EngineError> {
        if !is_name(name) {
            return Err(EngineError::NotFound(name.to_owned()));
        }
        let client = self.client().await?;
        let found =
            client.inspect_container(name, None).await.map_err(|e| engine_error(e, name))?;
        let image = found.image.unwrap_or_default();
        let labels: BTreeMap<_, _> =
            found.config.and_then(|config| config.labels).unwrap_or_default().into_iter().collect();
        let label_names: BTreeSet<_> = labels.keys().cloned().collect();
        // Without the image it is unknown who set these labels.
        let labels = match client.inspect_image(&image).await {
            Ok(image) => {
                let carried = image.config.and_then(|config| config.labels).unwrap_or_default();
                set_by_creator(labels, &carried.into_iter().collect())
            }
            Err(error) => {
                tracing::warn!(name, image, %error, "ignoring a container's labels: its image cannot be read");
                BTreeMap::new()
            }
        };
        Ok(ContainerInfo {
            id: found.id.unwrap_or_default(),
            is_running: found
                .state
                .is_some_and(|state| state.running == Some(true) && state.paused != Some(true)),
            labels,
            label_names,
        })
    }

    async fn list(&self, owner: &str) -> Result<Vec<String>, EngineError> {
        let client = self.client().await?;
        let label = format!("{OWNER_LABEL}={owner}");
        let filters = Some(HashMap::from([("label".to_owned(), vec![label])]));
        let options = ListContainersOptions { all: true, filters, ..Default::default() };
        let all =
            client.list_containers(Some(options)).await.map_err(|e| engine_error(e, owner))?;
        let names = all.into_iter().filter_map(|container| container.names?.into_iter().next());
        Ok(names.map(|name| name.trim_start_matches('/').to_owned()).collect())
    }
}

/// Stops a container, by force if necessary, and removes it.
pub(super) async fn remove(client: &Client, name: &str) -> Result<(), EngineError> {
    let stop = StopContainerOptions { t: Some(STOP_SECONDS), ..Default::default() };
    let _ = client.stop_container(name, Some(stop)).await;
    let force = RemoveContainerOptions { force: true, v: true, ..Default::default() };
    match client.remove_container(name, Some(force)).await {
        // It also removes itself.
        Ok(()) | Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
        Err(error) => Err(engine_error(error, name)),
    }
}

/// The meaning of an engine's error.
pub(super) fn engine_error(error: Error, name: &str) -> EngineError {
    match error {
        Error::DockerResponseServerError { status_code: 404, message } => {
            match message.contains("image") {
                true => EngineError::Failed(message),
                false => EngineError::NotFound(name.to_owned()),
            }
        }
        // Paused, or just stopped.
        Error::DockerResponseServerError { status_code: 409, .. } => {
            EngineError::NotRunning(name.to_owned())
        }
        Error::DockerResponseServerError { message, .. } => EngineError::Failed(message),
        error => EngineError::Unreachable(format!("the engine does not respond: {error}")),
    }
}

impl EngineApi for Docker {
    fn find(&self, name: String) -> BoxFuture<Result<ContainerInfo, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.look_up(&name).await })
    }

    fn exec(&self, info: ContainerInfo, exec: ExecSpec) -> BoxFuture<Result<Channel, EngineError>> {
        Box::pin(docker_exec::exec(self.clone(), info, exec))
    }

    fn run(
        &self,
        own: RunSpec,
        identity: ContainerIdentity,
    ) -> BoxFuture<Result<Channel, EngineError>> {
        Box::pin(docker_run::run(self.clone(), own, identity))
    }

    fn list_owned(&self, owner: String) -> BoxFuture<Result<Vec<String>, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.list(&owner).await })
    }

    fn remove(&self, name: String) -> BoxFuture<Result<(), EngineError>> {
        let engine = self.clone();
        Box::pin(async move { remove(&engine.client().await?, &name).await })
    }
}
