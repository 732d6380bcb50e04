//! The address and access rules of the endpoint, from flags and settings.

use std::net::SocketAddr;

use patterm_gateway::http::{EndpointLimits, per_token};
use patterm_wire::requests::HttpFlags;

use patterm_project::project_file::{BotsDefinition, HttpDefinition};

/// The endpoint according to `[http]` in the project file or the user's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// The address to listen on; without it, the endpoint is closed.
    pub listen: Option<SocketAddr>,
    /// Whether an address other than loopback is allowed.
    pub allow_remote: bool,
    /// Additional host names under which clients may reach it.
    pub hosts: Vec<String>,
    /// Additional origins whose pages may call it.
    pub origins: Vec<String>,
    /// Whether the audit log includes the arguments of calls.
    pub audit_arguments: bool,
    /// Its limits.
    pub limits: HttpLimits,
    /// Containers for bots that use it.
    pub bots: Option<BotsDefinition>,
}

/// Limits of the endpoint; absent ones have their default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of one request.
    pub body_bytes: Option<usize>,
    /// Sessions of all clients together.
    pub sessions: Option<usize>,
    /// Sessions of one token.
    pub sessions_per_token: Option<usize>,
    /// Simultaneous connections.
    pub connections: Option<usize>,
}

impl HttpLimits {
    pub(super) fn in_effect(self) -> EndpointLimits {
        let default = EndpointLimits::default();
        let sessions = self.sessions.unwrap_or(default.sessions);
        EndpointLimits {
            body_bytes: self.body_bytes.unwrap_or(default.body_bytes),
            sessions,
            sessions_per_token: self.sessions_per_token.unwrap_or_else(|| per_token(sessions)),
            connections: self.connections.unwrap_or(default.connections),
            ..default
        }
    }
}

impl From<&HttpDefinition> for HttpSettings {
    fn from(written: &HttpDefinition) -> Self {
        let HttpDefinition { sessions, sessions_per_token, connections, body_bytes, .. } = *written;
        Self {
            listen: written.listen,
            allow_remote: written.allow_remote,
            hosts: written.hosts.clone(),
            origins: written.origins.clone(),
            audit_arguments: written.audit_arguments,
            limits: HttpLimits { body_bytes, sessions, sessions_per_token, connections },
            bots: None,
        }
    }
}

impl HttpSettings {
    /// The settings, overridden by flags.
    pub(super) fn with(&self, flags: Option<&HttpFlags>) -> Self {
        let mut settings = self.clone();
        if let Some(flags) = flags {
            settings.listen = Some(flags.listen);
            settings.allow_remote = flags.allow_remote;
            settings.hosts.extend(flags.hosts.iter().cloned());
            settings.origins.extend(flags.origins.iter().cloned());
        }
        settings
    }

    /// The host names that are valid at an address, including the address itself.
    pub(super) fn hosts_at(&self, address: SocketAddr) -> Vec<String> {
        let mut hosts = self.hosts.clone();
        if !address.ip().is_unspecified() {
            hosts.push(match address {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            });
        }
        hosts
    }
}
