//! How the shared MCP servers of a project stand, for people who look.

use serde::{Deserialize, Serialize};

/// The request; its parameters are a [`ServersRequest`], its answer is an [`ServersResult`].
pub const METHOD: &str = "patterm/servers";

/// What is to be done; nothing, to look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersRequest {
    /// A server that is to end; the next call starts it anew. Only people may ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
}

/// How they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersResult {
    /// Each running copy of each server, and each server that does not run.
    pub servers: Vec<ServerInfo>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Whose it is, where it is not shared by all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `asleep`, `starting`, `running` or `failed`.
    pub state: String,
    /// What runs, and where.
    pub place: String,
    /// Its process on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// How long it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_seconds: Option<u64>,
    /// Calls that are not answered.
    pub in_flight: usize,
    /// How often it was started after its first start.
    pub restarts: u64,
    /// Lines on its output that were no protocol.
    pub noise: u64,
    /// How many tools it has, once it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why it last ended or could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
