//! Where servers run: each backend starts a server and returns its streams and a handle to end it.

pub mod container;
pub mod local;
pub mod remote;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::refusal::Refusal;

/// A boxed future that can move between threads.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts a server in one kind of place.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Starts the server.
    fn open(&self) -> Later<Result<Channel, Refusal>>;
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
    pub life: Box<dyn Life>,
}

/// Waits for the end of a server, or ends it.
pub trait Life: Send + Sync {
    /// Waits until it has ended.
    fn ended(&self) -> Later<String>;

    /// Ends it with everything it started; its input is closed already.
    fn end(&self) -> Later<()>;
}
