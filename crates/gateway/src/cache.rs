//! What is known about shared servers from earlier runs of them and of patterm's server: how their
//! handshake works, and their tools. The host stores it.

use serde::{Deserialize, Serialize};

/// What is known about one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedServer {
    /// Whether it answers `server/discover`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modern: Option<bool>,
    /// Whether it answers `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy: Option<bool>,
    /// The version that it reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its tools as it last described them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// Stores what is known about servers. An entry is valid for a name and a fingerprint.
pub trait ServerCache: Send + Sync + std::fmt::Debug {
    /// What is known about a server.
    fn load(&self, server: &str, fingerprint: &str) -> Option<CachedServer>;

    /// Changes what is known about a server, without waiting for the disk.
    fn update(&self, server: &str, fingerprint: &str, change: &mut dyn FnMut(&mut CachedServer));

    /// Drops all other servers.
    fn retain(&self, servers: &[&str]);
}
