//! Where the endpoint is and who may connect, as flags and settings say it.

use std::net::SocketAddr;

use patterm_gateway::http::{EndpointLimits, per_token};
use patterm_wire::requests::HttpFlags;

use patterm_project::project_file::{BotsDefinition, HttpDefinition};

/// The endpoint as `[http]` of the project file or of the user's settings wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// Where to listen; nowhere unless this is set.
    pub listen: Option<SocketAddr>,
    /// Another address than the loopback's is meant.
    pub allow_remote: bool,
    /// Names under which clients may ask for it beside the loopback's.
    pub hosts: Vec<String>,
    /// Sites whose pages may call it beside the loopback's.
    pub origins: Vec<String>,
    /// The audit log has the arguments of calls, too.
    pub audit_arguments: bool,
    /// Its bounds.
    pub limits: HttpLimits,
    /// Containers of bots behind it.
    pub bots: Option<BotsDefinition>,
}

/// Bounds of the endpoint; what is absent is as it is by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of one request.
    pub body_bytes: Option<usize>,
    /// Sessions of all clients together.
    pub sessions: Option<usize>,
    /// Sessions of one token.
    pub sessions_per_token: Option<usize>,
    /// Connections at the same time.
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
    /// The settings with what flags say instead.
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

    /// The names under which it may be asked for at an address: the address itself is one.
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
