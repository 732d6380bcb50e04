//! How the host learns that servers start, end and fail.

use std::fmt::Debug;

/// What happened to an instance of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerChange {
    /// It runs.
    Started,
    /// It ended because patterm ended it: while idle, for a restart, or with patterm.
    Stopped,
    /// It could not be started, or ended by itself; with the reason.
    Failed(String),
}

/// Learns what happens to servers. It is called on the gateway's thread.
pub trait ServerObserver: Send + Sync + Debug {
    /// Something happened to an instance. `owner` is the caller that it is for, unless all callers share it. The same
    /// change of an instance is not reported twice in a row.
    fn changed(&self, server: &str, owner: Option<&str>, change: ServerChange);
}
