//! Remote servers that speak Streamable HTTP. Each line for such a server becomes a POST, and its
//! response, JSON or events, becomes lines again.

mod connection;
mod events;
mod headers;
mod request;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::duplex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Backend, BoxFuture, Channel, ServerControl, ServerExit};
use crate::error::GatewayError;
use connection::RemoteConnection;

/// Bytes buffered in each direction.
const PIPE_BYTES: usize = 256 << 10;

/// How long ending the session may take.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A remote server.
#[derive(Clone)]
pub struct Remote {
    /// Its URL: `https://…` or `http://…`.
    pub url: String,
    /// Headers of every request, tokens included.
    pub headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Remote").field("url", &self.url).field("headers", &names).finish()
    }
}

impl Backend for Remote {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let connection = RemoteConnection::new(self);
        Box::pin(async move {
            let connection = Arc::new(connection?);
            let (input, lines) = duplex(PIPE_BYTES);
            let (output, out) = duplex(PIPE_BYTES);
            let (over, ended) = watch::channel(None);
            let control = RemoteControl { connection: connection.clone(), ended };
            tokio::spawn(async move {
                let out = Arc::new(tokio::sync::Mutex::new(out));
                let how = tokio::select! {
                    () = connection.clone().serve(lines, out) => ServerExit::Other("closed its input".to_owned()),
                    () = connection.end.cancelled() => ServerExit::Other(connection.reason_for_end()),
                };
                connection.close().await;
                over.send_replace(Some(how));
            });
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(tokio::io::empty()),
                pid: None,
                control: Box::new(control),
            })
        })
    }
}

struct RemoteControl {
    connection: Arc<RemoteConnection>,
    ended: watch::Receiver<Option<ServerExit>>,
}

impl ServerControl for RemoteControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
            how.unwrap_or_else(ServerExit::unknown)
        })
    }

    fn end(&self) -> BoxFuture<()> {
        let (connection, mut ended) = (self.connection.clone(), self.ended.clone());
        Box::pin(async move {
            connection.end.cancel();
            let _ = timeout(2 * END_TIMEOUT, ended.wait_for(Option::is_some)).await;
        })
    }
}
