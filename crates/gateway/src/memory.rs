//! What is known of shared servers from earlier lives of theirs, and of patterm's own server: how they
//! are greeted, and which tools they had.

use serde::{Deserialize, Serialize};

/// What is known of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Whether it answers `server/discover`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modern: Option<bool>,
    /// Whether it answers `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy: Option<bool>,
    /// The version that it says it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The tools that it had when it was last asked, as it described them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// Where it is kept. A server is known by its name and by everything that makes it another one.
pub trait Memory: Send + Sync + std::fmt::Debug {
    /// What is known of a server.
    fn recall(&self, server: &str, fingerprint: &str) -> Option<Remembered>;

    /// Changes what is known of a server; whoever calls does not wait for a disk.
    fn remember(&self, server: &str, fingerprint: &str, change: &mut dyn FnMut(&mut Remembered));

    /// Forgets all servers but these.
    fn keep_only(&self, servers: &[&str]);
}
