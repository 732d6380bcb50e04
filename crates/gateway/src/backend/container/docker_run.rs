//! Servers in containers of their own, in Docker and Podman.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::container::AttachContainerResults;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType};
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, CreateImageOptions, WaitContainerOptions,
};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::docker::{Docker, engine_error, remove};
use super::docker_exec::{ExitReceiver, LOST, exit_of, streams};
use super::info::EngineError;
use super::settings::RunSpec;
use super::{ContainerIdentity, OWNER_LABEL, wrapper};
use crate::backend::{BoxFuture, Channel, ServerControl, ServerExit};

/// The wrapper ends a server within two seconds after its input was closed.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// The timeout of waiting for a container's end: none in practice.
const WAIT_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Creates a container, attaches to its streams, and starts it.
pub(super) async fn run(
    engine: Docker,
    own: RunSpec,
    identity: ContainerIdentity,
) -> Result<Channel, EngineError> {
    let client = engine.client().await?;
    let command = command(&client, &own).await?;
    let wrapper = match wrapper::bytes() {
        Ok(_) => Some(wrapper::on_disk(&engine.state).map_err(|e| {
            EngineError::Failed(format!("cannot write the wrapper to the state folder: {e}"))
        })?),
        Err(why) => {
            tracing::warn!(name = identity.name, why, "running a server without the wrapper");
            None
        }
    };
    let is_wrapped = wrapper.is_some();
    let body =
        body(&own, &identity, command, wrapper.map(|file| file.to_string_lossy().into_owned()));
    let name = identity.name.as_str();
    let options = CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
    client.create_container(Some(options), body).await.map_err(|e| engine_error(e, name))?;
    let options = AttachContainerOptions {
        stdin: true,
        stdout: true,
        stderr: true,
        stream: true,
        ..Default::default()
    };
    let attached = client.attach_container(name, Some(options)).await;
    let AttachContainerResults { output, input } = attached.map_err(|e| engine_error(e, name))?;
    let mut patient = client.clone();
    patient.set_timeout(WAIT_TIMEOUT);
    // The container is removed when it exits, so waiting must begin before it starts.
    let waited = name.to_owned();
    let over = tokio::spawn(async move { wait(&patient, &waited).await });
    client.start_container(name, None).await.map_err(|e| engine_error(e, name))?;
    let over = async move { over.await.unwrap_or_else(|_| ServerExit::unknown()) };
    let (input, output, errors, over) = streams(output, input, is_wrapped.then(Vec::new), over);
    let pid = client.inspect_container(name, None).await.ok();
    let pid = pid.and_then(|found| found.state?.pid).and_then(|pid| i32::try_from(pid).ok());
    let control = RunControl { client, name: identity.name, over };
    Ok(Channel {
        input,
        output,
        errors,
        pid: pid.filter(|pid| *pid > 0),
        control: Box::new(control),
    })
}

/// The command: as configured, or the image's default. A missing image is downloaded.
async fn command(client: &Client, own: &RunSpec) -> Result<Vec<String>, EngineError> {
    let missing =
        |error: &Error| matches!(error, Error::DockerResponseServerError { status_code: 404, .. });
    let image = match client.inspect_image(&own.image).await {
        Err(error) if missing(&error) => {
            fetch(client, &own.image).await?;
            client.inspect_image(&own.image).await
        }
        found => found,
    };
    let image = image.map_err(|e| engine_error(e, &own.image))?;
    if !own.command.is_empty() {
        return Ok(own.command.clone());
    }
    let config = image.config.unwrap_or_default();
    let words = config.entrypoint.into_iter().chain(config.cmd).flatten();
    let command: Vec<String> = words.collect();
    match command.is_empty() {
        true => Err(EngineError::Failed(format!(
            "the image `{}` has no default command; set `command`",
            own.image
        ))),
        false => Ok(command),
    }
}

async fn fetch(client: &Client, image: &str) -> Result<(), EngineError> {
    tracing::info!(image, "downloading an image");
    let tagged = image.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    let from = if tagged { image.to_owned() } else { format!("{image}:latest") };
    let options = CreateImageOptions { from_image: Some(from), ..Default::default() };
    let mut steps = client.create_image(Some(options), None, None);
    while let Some(step) = steps.next().await {
        step.map_err(|e| EngineError::Failed(format!("cannot download the image `{image}`: {e}")))?;
    }
    Ok(())
}

/// The container's settings: closed unless something else is requested.
fn body(
    own: &RunSpec,
    identity: &ContainerIdentity,
    command: Vec<String>,
    wrapper: Option<String>,
) -> ContainerCreateBody {
    let bind = |source: String, target: String, read_only: bool| Mount {
        typ: Some(MountType::BIND),
        source: Some(source),
        target: Some(target),
        read_only: Some(read_only),
        ..Default::default()
    };
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut mounts: Vec<Mount> =
        own.mounts.iter().map(|m| bind(text(&m.source), text(&m.target), !m.writable)).collect();
    let argv = match &wrapper {
        Some(file) => {
            mounts.push(bind(file.clone(), wrapper::MOUNTED.to_owned(), true));
            wrapper::in_front(wrapper::MOUNTED, 0, &command)
        }
        None => command,
    };
    let host = HostConfig {
        network_mode: (!own.network).then(|| "none".to_owned()),
        readonly_rootfs: Some(true),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        cap_drop: Some(vec!["ALL".to_owned()]),
        memory: i64::try_from(own.memory_bytes).ok(),
        // No swap in addition.
        memory_swap: i64::try_from(own.memory_bytes).ok(),
        pids_limit: Some(own.processes.into()),
        tmpfs: Some(HashMap::from([("/tmp".to_owned(), "rw,nosuid,nodev,size=64m".to_owned())])),
        // Where the wrapper is not the first process, something else must reap.
        init: wrapper.is_none().then_some(true),
        auto_remove: Some(true),
        mounts: Some(mounts),
        // The output is protocol and does not belong in the engine's logs.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..Default::default()
    };
    ContainerCreateBody {
        image: Some(own.image.clone()),
        entrypoint: Some(argv),
        cmd: Some(Vec::new()),
        env: Some(own.env.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(HashMap::from([(OWNER_LABEL.to_owned(), identity.owner.clone())])),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // Its input ends with our connection.
        stdin_once: Some(true),
        tty: Some(false),
        host_config: Some(host),
        ..Default::default()
    }
}

async fn wait(client: &Client, name: &str) -> ServerExit {
    let options = WaitContainerOptions { condition: "next-exit".to_owned() };
    let mut ends = Box::pin(client.wait_container(name, Some(options)));
    match ends.next().await {
        Some(Ok(end)) => ServerExit::Code(end.status_code),
        Some(Err(Error::DockerContainerWaitError { code, .. })) => ServerExit::Code(code),
        _ => ServerExit::Other(LOST.to_owned()),
    }
}

struct RunControl {
    client: Client,
    name: String,
    over: ExitReceiver,
}

impl ServerControl for RunControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        Box::pin(exit_of(self.over.clone()))
    }

    fn end(&self) -> BoxFuture<()> {
        let (client, name, over) = (self.client.clone(), self.name.clone(), self.over.clone());
        Box::pin(async move {
            // Closing its input was the first step; the engine does the rest.
            let _ = timeout(END_TIMEOUT, exit_of(over)).await;
            let _ = remove(&client, &name).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{ContainerEngine, EngineEndpoint};
    use super::*;

    #[test]
    fn containers_are_locked_down_by_default() {
        let mut own = RunSpec::with_defaults(
            EngineEndpoint::default_of(ContainerEngine::Docker),
            "mcp/fetch:1",
        );
        let identity = ContainerIdentity { name: "patterm-1".into(), owner: "0f".into() };
        let command = vec!["/app/mcp".to_owned()];
        let made = body(&own, &identity, command.clone(), Some("/state/w".into()));
        let host = made.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
        assert_eq!(host.security_opt.unwrap(), ["no-new-privileges"]);
        assert_eq!((host.memory, host.pids_limit), (Some(1 << 30), Some(256)));
        assert_eq!(made.labels.unwrap()["patterm.owner"], "0f");
        assert_eq!(
            made.entrypoint.unwrap(),
            ["/.patterm-wrapper", "--heartbeat", "--", "/app/mcp"]
        );
        own.network = true;
        let made = body(&own, &identity, command, None);
        let host = made.host_config.unwrap();
        assert_eq!((host.network_mode, host.init), (None, Some(true)));
        assert_eq!(made.entrypoint.unwrap(), ["/app/mcp"]);
    }
}
