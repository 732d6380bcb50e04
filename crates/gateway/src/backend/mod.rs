//! Where servers run: each kind of place opens a server and gives its three streams and its end.

pub mod container;
pub mod local;
pub mod remote;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::refusal::Refusal;

/// A future that another thread may finish.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A place where a server can be started.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Starts the server.
    fn open(&self) -> Later<Result<Channel, Refusal>>;
}

/// A server that was started.
pub struct Channel {
    /// What it reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it prints: protocol.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// What it prints beside it, for people.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Its process on this machine, if it has one here.
    pub pid: Option<i32>,
    /// Its life.
    pub life: Box<dyn Life>,
}

/// The life of a server.
pub trait Life: Send + Sync {
    /// Waits for its end, and says how it ended: "exited with code 3".
    fn ended(&self) -> Later<String>;

    /// Ends it with everything it started; its input is closed already.
    fn end(&self) -> Later<()>;
}
