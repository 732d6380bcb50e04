//! A command in a Docker or Podman container: one connection carries its three streams.

use std::pin::Pin;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::UploadToContainerOptions;
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::timeout;

use super::command::{CommandRunner, finish};
use super::docker::{Docker, engine_error};
use super::info::{ContainerInfo, EngineError};
use super::settings::ExecSpec;
use super::{heartbeat, wrapper};
use crate::backend::{BoxFuture, Channel, ServerControl, ServerExit};

/// Bytes buffered between the engine and the reader.
const BUFFER_BYTES: usize = 256 << 10;

/// The wrapper ends a server within two seconds after its input was closed.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// An engine may take a moment to notice an exit.
const CHECKS: usize = 20;
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The output that an engine streams.
pub(super) type EngineOutput = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// The end of a server whose engine no longer tells more.
pub(super) const LOST: &str = "was lost with the connection to its engine";

/// How a command ended, once it has.
pub(super) type ExitReceiver = watch::Receiver<Option<ServerExit>>;

/// Starts a server in a running container, with the wrapper in front of it if it can be installed.
pub(super) async fn exec(
    engine: Docker,
    info: ContainerInfo,
    exec: ExecSpec,
) -> Result<Channel, EngineError> {
    let client = engine.client().await?;
    let wrapper = match install(&client, &engine.runner, &info.id).await {
        Ok(wrapper) => Some(wrapper),
        Err(why) => {
            let container = &exec.container;
            tracing::warn!(container, why, "running a server without the wrapper");
            None
        }
    };
    let argv = match &wrapper {
        Some(wrapper) => wrapper::in_front(wrapper, 0, &exec.command),
        None => exec.command.clone(),
    };
    let env = exec.env.iter().map(|(key, value)| format!("{key}={value}")).collect();
    start(client, &engine.runner, &info.id, argv, env, wrapper.is_some()).await
}

/// Copies the wrapper into a container; returns its path.
async fn install(client: &Client, runner: &CommandRunner, id: &str) -> Result<String, String> {
    let bytes = wrapper::bytes()?;
    let options = UploadToContainerOptions { path: "/".to_owned(), ..Default::default() };
    let archive = bollard::body_full(wrapper::archive().into());
    let uploaded = client.upload_to_container(id, Some(options), archive).await;
    let Err(error) = uploaded else { return Ok(format!("/{}", wrapper::file_name())) };
    // The root folder is read-only; another folder may not be.
    let script = ["/bin/sh", "-c", wrapper::INSTALL].map(str::to_owned);
    let argv = script.into_iter().chain([wrapper::file_name()]).collect();
    let shell = start(client.clone(), runner, id, argv, Vec::new(), false).await;
    let output_reader = finish(shell.map_err(|e| e.to_string())?, bytes).await;
    let path = output_reader.map_err(|why| format!("{error}; and by a shell: {why}"))?;
    wrapper::installed(&path)
}

async fn start(
    client: Client,
    runner: &CommandRunner,
    id: &str,
    argv: Vec<String>,
    env: Vec<String>,
    is_wrapped: bool,
) -> Result<Channel, EngineError> {
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        cmd: Some(argv),
        env: Some(env),
        ..Default::default()
    };
    let created = client.create_exec(id, options).await.map_err(|e| engine_error(e, id))?;
    let options = StartExecOptions { output_capacity: Some(BUFFER_BYTES), ..Default::default() };
    let started =
        client.start_exec(&created.id, Some(options)).await.map_err(|e| engine_error(e, id))?;
    let StartExecResults::Attached { output, input } = started else {
        return Err(EngineError::Failed("the engine returned no streams".into()));
    };
    let (inspector, exec) = (client.clone(), created.id.clone());
    let over = async move { exit_status(&inspector, &exec).await };
    let first = is_wrapped.then(Vec::new);
    let (input, output, errors, over) = streams(output, input, first, over);
    let control = ExecControl { client, exec: created.id, runner: runner.clone(), over };
    Ok(Channel { input, output, errors, pid: None, control: Box::new(control) })
}

type Streams =
    (Box<dyn AsyncWrite + Send + Unpin>, Box<DuplexStream>, Box<DuplexStream>, ExitReceiver);

/// Splits one connection into streams; when it ends, `over` tells how.
pub(super) fn streams(
    output: EngineOutput,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    first: Option<Vec<u8>>,
    over: impl Future<Output = ServerExit> + Send + 'static,
) -> Streams {
    let (output_reader, output_writer) = duplex(BUFFER_BYTES);
    let (errors, error_writer) = duplex(BUFFER_BYTES);
    let (sender, exit) = watch::channel(None);
    tokio::spawn(async move {
        sort(output, output_writer, error_writer).await;
        sender.send_replace(Some(over.await));
    });
    (Box::new(heartbeat::input(input, first)), Box::new(output_reader), Box::new(errors), exit)
}

async fn sort(
    mut output: EngineOutput,
    mut output_writer: DuplexStream,
    mut error_writer: DuplexStream,
) {
    while let Some(Ok(piece)) = output.next().await {
        // The end is awaited even if nobody reads.
        let _ = match piece {
            LogOutput::StdErr { message } => error_writer.write_all(&message).await,
            other => output_writer.write_all(&other.into_bytes()).await,
        };
    }
}

async fn exit_status(client: &Client, exec: &str) -> ServerExit {
    for _ in 0..CHECKS {
        match client.inspect_exec(exec).await {
            Ok(found) if found.running == Some(false) => {
                let code = found.exit_code.unwrap_or_default();
                return ServerExit::Code(code);
            }
            Ok(_) => tokio::time::sleep(CHECK_INTERVAL).await,
            Err(_) => break,
        }
    }
    ServerExit::Other(LOST.to_owned())
}

struct ExecControl {
    client: Client,
    exec: String,
    runner: CommandRunner,
    over: ExitReceiver,
}

impl ServerControl for ExecControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        Box::pin(exit_of(self.over.clone()))
    }

    fn end(&self) -> BoxFuture<()> {
        let (client, exec) = (self.client.clone(), self.exec.clone());
        let (runner, over) = (self.runner.clone(), self.over.clone());
        Box::pin(async move {
            if timeout(END_TIMEOUT, exit_of(over.clone())).await.is_ok() {
                return;
            }
            // These engines cannot end a command, but its process on this machine can be killed.
            let found = client.inspect_exec(&exec).await.ok();
            let pid = found.filter(|found| found.running == Some(true)).and_then(|found| found.pid);
            if let Some(pid) = pid.filter(|pid| *pid > 1) {
                let argv = ["kill", "-KILL", &pid.to_string()].map(str::to_owned);
                if let Err(why) = runner.run(argv.into()).await {
                    tracing::warn!(pid, why, "cannot end a server in a container");
                }
            }
            let _ = timeout(END_TIMEOUT, exit_of(over)).await;
        })
    }
}

/// Waits for the end.
pub(super) async fn exit_of(mut over: ExitReceiver) -> ServerExit {
    let exit_of = over.wait_for(Option::is_some).await;
    exit_of.ok().and_then(|exit_of| exit_of.clone()).unwrap_or_else(ServerExit::unknown)
}
