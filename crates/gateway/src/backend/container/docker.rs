//! Docker and Podman, through the API that both support: finds, lists and removes containers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use bollard::errors::Error;
use bollard::query_parameters::{
    ListContainersOptions, RemoveContainerOptions, StopContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker as Client};

use super::settings::{Exec, Own, Place};
use super::target::{Target, Trouble, is_name, set_by_creator};
use super::tool::Tools;
use super::{Named, OWNER_LABEL, Reach, docker_own, docker_streams};
use crate::backend::{Channel, Later};

/// How long an engine may take to answer. Downloading an image takes longer, but reports progress.
const PATIENCE: u64 = 30;

/// How long a container may take to stop, in seconds: the wrapper needs two.
const STOP_SECONDS: i32 = 3;

/// A Docker or Podman engine.
#[derive(Debug, Clone)]
pub(super) struct Docker {
    place: Place,
    /// The folder of the wrapper, which is mounted.
    pub(super) state: PathBuf,
    pub(super) tools: Tools,
}

impl Docker {
    pub(super) fn new(place: &Place, state: PathBuf, tools: Tools) -> Self {
        Self { place: place.clone(), state, tools }
    }

    /// Connects, in a version of the API that the engine supports.
    pub(super) async fn client(&self) -> Result<Client, Trouble> {
        let socket = self.place.socket();
        let down = |error: Error| {
            let engine = self.place.engine.word();
            Trouble::Down(format!("{engine} cannot be reached at {}: {error}", socket.display()))
        };
        let path = socket.to_string_lossy();
        let client = Client::connect_with_unix(&path, PATIENCE, API_DEFAULT_VERSION);
        client.map_err(down)?.negotiate_version().await.map_err(down)
    }

    async fn look_up(&self, name: &str) -> Result<Target, Trouble> {
        if !is_name(name) {
            return Err(Trouble::Missing(name.to_owned()));
        }
        let client = self.client().await?;
        let found = client.inspect_container(name, None).await.map_err(|e| trouble(e, name))?;
        let image = found.image.unwrap_or_default();
        let labels: BTreeMap<_, _> =
            found.config.and_then(|config| config.labels).unwrap_or_default().into_iter().collect();
        let named: BTreeSet<_> = labels.keys().cloned().collect();
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
        Ok(Target {
            id: found.id.unwrap_or_default(),
            is_running: found
                .state
                .is_some_and(|state| state.running == Some(true) && state.paused != Some(true)),
            labels,
            named,
        })
    }

    async fn list(&self, owner: &str) -> Result<Vec<String>, Trouble> {
        let client = self.client().await?;
        let label = format!("{OWNER_LABEL}={owner}");
        let filters = Some(HashMap::from([("label".to_owned(), vec![label])]));
        let options = ListContainersOptions { all: true, filters, ..Default::default() };
        let all = client.list_containers(Some(options)).await.map_err(|e| trouble(e, owner))?;
        let names = all.into_iter().filter_map(|container| container.names?.into_iter().next());
        Ok(names.map(|name| name.trim_start_matches('/').to_owned()).collect())
    }
}

/// Stops a container, by force if necessary, and removes it.
pub(super) async fn remove(client: &Client, name: &str) -> Result<(), Trouble> {
    let stop = StopContainerOptions { t: Some(STOP_SECONDS), ..Default::default() };
    let _ = client.stop_container(name, Some(stop)).await;
    let force = RemoveContainerOptions { force: true, v: true, ..Default::default() };
    match client.remove_container(name, Some(force)).await {
        // It also removes itself.
        Ok(()) | Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
        Err(error) => Err(trouble(error, name)),
    }
}

/// The meaning of an engine's error.
pub(super) fn trouble(error: Error, name: &str) -> Trouble {
    match error {
        Error::DockerResponseServerError { status_code: 404, message } => {
            match message.contains("image") {
                true => Trouble::Failed(message),
                false => Trouble::Missing(name.to_owned()),
            }
        }
        // Paused, or just stopped.
        Error::DockerResponseServerError { status_code: 409, .. } => {
            Trouble::Stopped(name.to_owned())
        }
        Error::DockerResponseServerError { message, .. } => Trouble::Failed(message),
        error => Trouble::Down(format!("the engine does not respond: {error}")),
    }
}

impl Reach for Docker {
    fn find(&self, name: String) -> Later<Result<Target, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.look_up(&name).await })
    }

    fn exec(&self, target: Target, exec: Exec) -> Later<Result<Channel, Trouble>> {
        Box::pin(docker_streams::exec(self.clone(), target, exec))
    }

    fn run(&self, own: Own, named: Named) -> Later<Result<Channel, Trouble>> {
        Box::pin(docker_own::run(self.clone(), own, named))
    }

    fn ours(&self, owner: String) -> Later<Result<Vec<String>, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.list(&owner).await })
    }

    fn remove(&self, name: String) -> Later<Result<(), Trouble>> {
        let engine = self.clone();
        Box::pin(async move { remove(&engine.client().await?, &name).await })
    }
}
