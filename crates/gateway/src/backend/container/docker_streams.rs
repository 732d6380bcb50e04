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

use super::docker::{Docker, trouble};
use super::settings::Exec;
use super::target::{Target, Trouble};
use super::tool::{Tools, finish};
use super::{pulse, wrapper};
use crate::backend::{Channel, Later, Life};

/// Bytes buffered between the engine and the reader.
const HELD: usize = 256 << 10;

/// The wrapper ends a server within two seconds after its input was closed.
const END_PATIENCE: Duration = Duration::from_secs(4);

/// An engine may take a moment to notice an exit.
const LOOKS: usize = 20;
const LOOK: Duration = Duration::from_millis(50);

/// The output that an engine streams.
pub(super) type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// How a command ended, once it has.
pub(super) type Over = watch::Receiver<Option<String>>;

/// Starts a server in a running container, with the wrapper in front of it if it can be installed.
pub(super) async fn exec(engine: Docker, target: Target, exec: Exec) -> Result<Channel, Trouble> {
    let client = engine.client().await?;
    let wrapper = match install(&client, &engine.tools, &target.id).await {
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
    start(client, &engine.tools, &target.id, argv, env, wrapper.is_some()).await
}

/// Copies the wrapper into a container; returns its path.
async fn install(client: &Client, tools: &Tools, id: &str) -> Result<String, String> {
    let bytes = wrapper::bytes()?;
    let options = UploadToContainerOptions { path: "/".to_owned(), ..Default::default() };
    let archive = bollard::body_full(wrapper::archive().into());
    let uploaded = client.upload_to_container(id, Some(options), archive).await;
    let Err(error) = uploaded else { return Ok(format!("/{}", wrapper::file_name())) };
    // The root folder is read-only; another folder may not be.
    let script = ["/bin/sh", "-c", wrapper::INSTALL].map(str::to_owned);
    let argv = script.into_iter().chain([wrapper::file_name()]).collect();
    let shell = start(client.clone(), tools, id, argv, Vec::new(), false).await;
    let printed = finish(shell.map_err(|e| e.to_string())?, bytes).await;
    let path = printed.map_err(|why| format!("{error}; and by a shell: {why}"))?;
    wrapper::installed(&path)
}

async fn start(
    client: Client,
    tools: &Tools,
    id: &str,
    argv: Vec<String>,
    env: Vec<String>,
    is_wrapped: bool,
) -> Result<Channel, Trouble> {
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        cmd: Some(argv),
        env: Some(env),
        ..Default::default()
    };
    let made = client.create_exec(id, options).await.map_err(|e| trouble(e, id))?;
    let options = StartExecOptions { output_capacity: Some(HELD), ..Default::default() };
    let started = client.start_exec(&made.id, Some(options)).await.map_err(|e| trouble(e, id))?;
    let StartExecResults::Attached { output, input } = started else {
        return Err(Trouble::Failed("the engine returned no streams".into()));
    };
    let (asked, exec) = (client.clone(), made.id.clone());
    let over = async move { how_it_ended(&asked, &exec).await };
    let first = is_wrapped.then(Vec::new);
    let (input, output, errors, over) = streams(output, input, first, over);
    let life = ExecLife { client, exec: made.id, tools: tools.clone(), over };
    Ok(Channel { input, output, errors, pid: None, life: Box::new(life) })
}

type Streams = (Box<dyn AsyncWrite + Send + Unpin>, Box<DuplexStream>, Box<DuplexStream>, Over);

/// Splits one connection into streams; when it ends, `over` tells how.
pub(super) fn streams(
    output: Output,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    first: Option<Vec<u8>>,
    over: impl Future<Output = String> + Send + 'static,
) -> Streams {
    let (printed, prints) = duplex(HELD);
    let (said, says) = duplex(HELD);
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        sort(output, prints, says).await;
        tell.send_replace(Some(over.await));
    });
    (Box::new(pulse::input(input, first)), Box::new(printed), Box::new(said), told)
}

async fn sort(mut output: Output, mut prints: DuplexStream, mut says: DuplexStream) {
    while let Some(Ok(piece)) = output.next().await {
        // The end is awaited even if nobody reads.
        let _ = match piece {
            LogOutput::StdErr { message } => says.write_all(&message).await,
            other => prints.write_all(&other.into_bytes()).await,
        };
    }
}

async fn how_it_ended(client: &Client, exec: &str) -> String {
    for _ in 0..LOOKS {
        match client.inspect_exec(exec).await {
            Ok(found) if found.running == Some(false) => {
                let code = found.exit_code.unwrap_or_default();
                return format!("exited with code {code}");
            }
            Ok(_) => tokio::time::sleep(LOOK).await,
            Err(_) => break,
        }
    }
    "was lost with the connection to its engine".to_owned()
}

struct ExecLife {
    client: Client,
    exec: String,
    tools: Tools,
    over: Over,
}

impl Life for ExecLife {
    fn ended(&self) -> Later<String> {
        Box::pin(told(self.over.clone()))
    }

    fn end(&self) -> Later<()> {
        let (client, exec) = (self.client.clone(), self.exec.clone());
        let (tools, over) = (self.tools.clone(), self.over.clone());
        Box::pin(async move {
            if timeout(END_PATIENCE, told(over.clone())).await.is_ok() {
                return;
            }
            // These engines cannot end a command, but its process on this machine can be killed.
            let found = client.inspect_exec(&exec).await.ok();
            let pid = found.filter(|found| found.running == Some(true)).and_then(|found| found.pid);
            if let Some(pid) = pid.filter(|pid| *pid > 1) {
                let argv = ["kill", "-KILL", &pid.to_string()].map(str::to_owned);
                if let Err(why) = tools.run(argv.into()).await {
                    tracing::warn!(pid, why, "cannot end a server in a container");
                }
            }
            let _ = timeout(END_PATIENCE, told(over)).await;
        })
    }
}

/// Waits for the end.
pub(super) async fn told(mut over: Over) -> String {
    let told = over.wait_for(Option::is_some).await;
    told.ok().and_then(|told| told.clone()).unwrap_or_else(|| "ended".to_owned())
}
