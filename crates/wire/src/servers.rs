//! The shared MCP servers of a project and their status.

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// `patterm servers`: lists the shared servers, or restarts one, which only a person may do.
#[derive(Debug)]
pub enum Servers {}

impl Method for Servers {
    const NAME: &'static str = "patterm/servers";
    type Params = ServersRequest;
    type Result = ServersResult;
}

/// What to do besides listing the servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersRequest {
    /// A server to end; the next call starts it again. Only a person may do this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
}

/// The shared servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersResult<S = ServerInfo> {
    /// Each running instance of each server, and each server that is not running.
    pub servers: Vec<S>,
}

/// A shared server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// The process it belongs to, if it is not shared by all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `asleep`, `starting`, `running` or `failed`.
    pub state: String,
    /// What it runs, and where.
    pub place: String,
    /// Its process on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// How long it has been running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_seconds: Option<u64>,
    /// Calls in flight.
    pub in_flight: usize,
    /// How often it was restarted.
    pub restarts: u64,
    /// Lines of its output that were not protocol messages.
    pub noise: u64,
    /// How many tools it has, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why it last ended or could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
