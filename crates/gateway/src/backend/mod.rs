//! Where servers run: each backend starts a server and returns its streams and a handle to end it.
//! Backends move bytes; they do not know which client a message belongs to.

pub mod container;
pub mod local;
pub mod remote;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::GatewayError;

/// A boxed future that can move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts a server in one kind of place.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Starts the server.
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>>;
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
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
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
