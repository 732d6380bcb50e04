//! Where servers run: each backend starts a server and returns its streams and a handle to end it.
//! Backends move bytes; they do not know which client a message belongs to.

pub mod container;
/// The example in CONTRIBUTING.md.
#[cfg(test)]
#[path = "../../../../docs/examples/unix_socket.rs"]
pub mod contributing_example;
pub mod local;
pub mod remote;
pub mod unusable;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::GatewayError;

/// A boxed future that can move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts a server in one kind of place.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Starts the server.
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>>;

    /// Why no attempt to start the server can succeed, if that is known in advance.
    fn fault(&self) -> Option<&str> {
        None
    }
}

/// A server that was started.
pub struct Channel {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output: protocol.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error, for people.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Its process on this machine, if it has one here.
    pub pid: Option<i32>,
    /// Waits for its end, and ends it.
    pub control: Box<dyn ServerControl>,
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerExit {
    /// It exited with this code.
    Code(i64),
    /// A signal ended it.
    Signal(i32),
    /// Otherwise, as the predicate of a sentence: "closed its input".
    Other(String),
}

impl ServerExit {
    /// Nothing is known about it.
    pub(crate) fn unknown() -> Self {
        Self::Other("ended".to_owned())
    }
}

impl std::fmt::Display for ServerExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Other(how) => f.write_str(how),
        }
    }
}

/// Waits for the end of a server, or ends it.
pub trait ServerControl: Send + Sync {
    /// Waits until it has ended.
    fn wait(&self) -> BoxFuture<ServerExit>;

    /// Ends it with everything it started; its input is closed already.
    fn end(&self) -> BoxFuture<()>;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn the_example_backend_moves_bytes_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let backend = contributing_example::UnixSocket { path: path.clone() };
        let refused = backend.open().await.err().unwrap().to_string();
        assert!(refused.contains("cannot connect to "), "{refused}");
        let listener = UnixListener::bind(path).unwrap();
        let echo = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut line = [0; 5];
            stream.read_exact(&mut line).await.unwrap();
            stream.write_all(&line).await.unwrap();
        };
        let (opened, ()) = tokio::join!(
            async {
                let mut channel = backend.open().await.unwrap();
                channel.input.write_all(b"ping\n").await.unwrap();
                let mut text = String::new();
                channel.output.read_to_string(&mut text).await.unwrap();
                let exit = channel.control.wait().await;
                channel.control.end().await;
                (text, exit.to_string())
            },
            echo
        );
        assert_eq!(opened, ("ping\n".to_owned(), "closed the connection".to_owned()));
    }
}
