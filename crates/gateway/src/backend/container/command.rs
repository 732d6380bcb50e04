//! Runs engines' command-line tools until they exit and returns their output.

use std::sync::Arc;
use std::time::Duration;

use patterm_keeper::{Environment, Program, Size};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::backend::local::{Local, Spawner};
use crate::backend::{Backend, Channel, ServerExit};

/// The most output that is read: the description of a container takes a few thousand bytes.
const OUTPUT_BYTES: u64 = 8 << 20;

/// How long a tool may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs tools.
#[derive(Debug, Clone)]
pub(super) struct CommandRunner(pub(super) Arc<dyn Spawner>);

impl CommandRunner {
    /// A tool as a server's channel.
    pub(super) async fn open(&self, argv: Vec<String>) -> Result<Channel, String> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin:/usr/sbin:/sbin".into());
        let program = Program {
            argv,
            env: Environment::from([("PATH", path)]),
            working_dir: "/".into(),
            size: Size::DEFAULT,
        };
        let local = Local { program, spawner: self.0.clone() };
        local.open().await.map_err(|refusal| refusal.message)
    }

    /// Runs a tool; returns its output, or its error message.
    pub(super) async fn run(&self, argv: Vec<String>) -> Result<Vec<u8>, String> {
        let channel = self.open(argv).await?;
        finish(channel, &[]).await
    }
}

/// Writes a program's input and waits for its end.
pub(super) async fn finish(channel: Channel, text: &[u8]) -> Result<Vec<u8>, String> {
    let Channel { mut input, output, errors, control, .. } = channel;
    let exchange = async {
        let write = async {
            let _ = input.write_all(text).await;
            let _ = input.shutdown().await;
            drop(input);
            // The program ends the exchange.
            std::future::pending::<()>().await;
        };
        // A program may exit before it has read everything.
        let (printed, complaints) = tokio::select! {
            all = async { tokio::join!(all(output), all(errors)) } => all,
            () = write => Default::default(),
        };
        (printed, complaints, control.wait().await)
    };
    let exchanged = timeout(TIMEOUT, exchange).await;
    control.end().await;
    let (printed, complaints, exit) =
        exchanged.map_err(|_| format!("it did not exit within {TIMEOUT:?}"))?;
    if exit == ServerExit::Code(0) {
        return Ok(printed);
    }
    let complaints = String::from_utf8_lossy(&complaints);
    let last = complaints.lines().rfind(|line| !line.trim().is_empty());
    Err(last.map_or_else(|| exit.to_string(), |line| line.trim().to_owned()))
}

async fn all(from: Box<dyn AsyncRead + Send + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = from.take(OUTPUT_BYTES).read_to_end(&mut bytes).await;
    bytes
}
