//! Servers that listen on a Unix socket.

use std::path::PathBuf;

use tokio::net::UnixStream;

use super::{Backend, BoxFuture, Channel, ServerControl, ServerExit};
use crate::error::{GatewayError, GatewayErrorKind};

/// A server that listens on a Unix socket.
#[derive(Debug, Clone)]
pub struct UnixSocket {
    /// The path of the socket.
    pub path: PathBuf,
}

impl Backend for UnixSocket {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let path = self.path.clone();
        Box::pin(async move {
            let stream = UnixStream::connect(&path).await.map_err(|error| {
                let message = format!("cannot connect to {}: {error}", path.display());
                GatewayError::new(GatewayErrorKind::Unavailable, message)
            })?;
            let (output, input) = stream.into_split();
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(tokio::io::empty()),
                pid: None,
                control: Box::new(Connection),
            })
        })
    }
}

/// The server runs on its own: closing the connection is all there is to do.
struct Connection;

impl ServerControl for Connection {
    fn wait(&self) -> BoxFuture<ServerExit> {
        Box::pin(async { ServerExit::Other("closed the connection".into()) })
    }

    fn end(&self) -> BoxFuture<()> {
        Box::pin(async {})
    }
}
