//! The HTTP endpoints: every shared server, and patterm's own tools, as Streamable HTTP of both
//! eras. A request is served only with a token, from an allowed origin and under one of this
//! server's host names.

mod answer;
mod authority;
mod bot_servers;
mod bots;
mod guard;
mod head_timer;
mod headers;
mod inbox;
mod marked;
mod mcp;
mod note;
#[cfg(test)]
mod remote_tests;
#[cfg(test)]
mod rights_tests;
mod scope;
mod sessions;
mod sse;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use patterm_wire::{Id, Message};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backend::Later;
use crate::{Gateway, Line, Refusal, Told};
pub use bot_servers::{BotSession, BotSessions};
pub use bots::Bots;
pub use guard::{Gatekeeper, Principal, Scope};
pub use note::{Auditor, Outcome, Record};

/// An MCP connection for one client.
pub trait Talk: Send + Sync {
    /// Sends a request and returns the whole response, under the client's id. Dropping the future
    /// cancels it.
    fn ask<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> Asked<'a>;

    /// Whether a method is the name of a tool, and calls it.
    fn has_tool(&self, _method: &str) -> bool {
        false
    }

    /// Forwards a notification, or a response to a request that was sent to the client.
    fn tell(&self, message: &Message<'_>, text: &str);
}

/// A pending response.
pub type Asked<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Vec<u8>, Refusal>> + Send + 'a>>;

impl Talk for Line {
    fn ask<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> Asked<'a> {
        Box::pin(Self::ask(self, id, method, text))
    }

    fn tell(&self, message: &Message<'_>, text: &str) {
        Self::tell(self, message, text);
    }
}

/// Patterm's own tools, which the host serves.
pub trait Own: Send + Sync {
    /// Connects a client.
    fn talk(&self, principal: &Principal)
    -> Result<(Arc<dyn Talk>, mpsc::Receiver<Told>), Refusal>;
}

/// The configuration of the endpoints.
pub struct Doors {
    /// The shared servers.
    pub gateway: Gateway,
    /// Patterm's own tools.
    pub own: Arc<dyn Own>,
    /// Who may connect.
    pub gatekeeper: Arc<dyn Gatekeeper>,
    /// The audit log.
    pub audit: Option<Arc<dyn Auditor>>,
    /// Bounds.
    pub limits: Limits,
    /// Host names besides those of loopback.
    pub hosts: Vec<String>,
    /// Allowed `Origin`s of browsers besides loopback.
    pub origins: Vec<String>,
    /// Servers in bots' containers, if configured.
    pub bots: Option<Bots>,
}

/// Limits of the endpoints.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one request.
    pub body_bytes: usize,
    /// Sessions of all clients.
    pub sessions: usize,
    /// Sessions per token, so that no token takes what others need. Another one replaces the
    /// token's least recently used session.
    pub sessions_per_token: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// How long headers may take to arrive.
    pub header_patience: std::time::Duration,
    /// How long a session may be unused before it ends.
    pub session_idle: std::time::Duration,
}

/// A hundred agents with ten servers each.
const DEFAULT_SESSIONS: usize = 1_024;

/// The default for sessions per token: an eighth of all, so that eight tokens at their limit leave
/// room for others.
#[must_use]
pub fn per_token(sessions: usize) -> usize {
    (sessions / 8).max(1)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            sessions: DEFAULT_SESSIONS,
            sessions_per_token: per_token(DEFAULT_SESSIONS),
            connections: 1_024,
            header_patience: std::time::Duration::from_secs(10),
            session_idle: std::time::Duration::from_secs(3_600),
        }
    }
}

/// Serves requests until `end` is cancelled.
pub fn serve(listener: TcpListener, doors: Doors, end: CancellationToken) -> Later<()> {
    let connections = doors.limits.connections;
    let patience = doors.limits.header_patience;
    let state = state::Shared::new(doors);
    tokio::spawn(state.clone().forget_idle_sessions(end.clone()));
    tokio::spawn(state.clone().end_revoked_sessions(end.clone()));
    let router = Router::new()
        .route("/healthz", get(state::healthz))
        .route("/servers", get(state::servers))
        .route("/metrics", get(state::metrics))
        .route("/mcp", any(mcp::own))
        .route("/servers/{name}/mcp", any(mcp::server))
        .route("/bots", any(bots::door))
        .route("/bots/", any(bots::door))
        .route("/bots/{*address}", any(bots::door))
        .with_state(state.clone());
    Box::pin(async move {
        guard::accept(listener, state.clone(), router, connections, patience, end).await;
        state.end_bots().await;
    })
}
