//! The HTTP endpoints: every shared server, and patterm's own tools, as Streamable HTTP of both
//! eras. A request is served only with a token, from an allowed origin and under one of this
//! server's host names. How tokens are stored, what patterm's own tools do and where the audit log
//! is written is the host's part, behind traits.

mod admission;
mod audit;
mod batch;
mod bot_servers;
mod bots;
mod context;
mod cors;
mod events;
pub(crate) mod head;
mod headers;
mod known;
mod lane;
#[cfg(test)]
mod lane_tests;
mod listener;
mod mcp;
mod monitor;
#[cfg(test)]
mod protocol_tests;
#[cfg(test)]
mod remote_tests;
mod response;
#[cfg(test)]
mod rights_tests;
mod scope;
mod session;
mod sse;
#[cfg(test)]
mod tests;
pub(crate) mod tool_call;
mod usual;

use std::sync::Arc;
use std::time::Duration;

use patterm_wire::{Id, Message};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backend::BoxFuture;
use crate::gateway::UsualCall;
use crate::session::UsualRequest;
use crate::{ClientHandle, Gateway, GatewayError, Notification};
pub use admission::{Authenticator, Principal};
pub use audit::{AuditLog, AuditRecord, CallOutcome};
pub use bot_servers::{BotServerInfo, BotServerStatus};
pub use bots::BotsConfig;
use context::HttpContext;
pub use scope::Scope;

/// An MCP connection for one client.
pub trait McpPeer: Send + Sync {
    /// Sends a request and returns the whole response, under the client's id. Dropping the future
    /// cancels it.
    fn request<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> PendingResponse<'a>;

    /// Whether a method is the name of a tool, and calls it.
    fn has_tool(&self, _method: &str) -> bool {
        false
    }

    /// Forwards a notification, or a response to a request that was sent to the client.
    fn notify(&self, message: &Message<'_>, text: &str);

    /// Begins a usual call of a tool without waiting, if that is possible now.
    #[doc(hidden)]
    fn begin_usual(&self, _call: &UsualRequest<'_>) -> Option<UsualCall> {
        None
    }
}

/// A pending response.
pub type PendingResponse<'a> =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<u8>, GatewayError>> + Send + 'a>>;

impl McpPeer for ClientHandle {
    fn request<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> PendingResponse<'a> {
        Box::pin(Self::request(self, id, method, text))
    }

    fn notify(&self, message: &Message<'_>, text: &str) {
        Self::notify(self, message, text);
    }

    fn begin_usual(&self, call: &UsualRequest<'_>) -> Option<UsualCall> {
        Self::begin_usual(self, call)
    }
}

/// Patterm's own tools, which the host serves.
pub trait NativeTools: Send + Sync {
    /// Connects a client.
    fn connect(
        &self,
        principal: &Principal,
    ) -> Result<(Arc<dyn McpPeer>, mpsc::Receiver<Notification>), GatewayError>;

    /// The project's events from this number on, or from now on; `None` if there are none.
    fn events(&self, since: Option<u64>) -> Option<Box<dyn EventFeed>> {
        let _ = since;
        None
    }
}

/// Events in the order of their numbers.
pub trait EventFeed: Send {
    /// Waits for the next events: their numbers and JSON texts; `None` at the end. May be dropped and called again.
    fn next(&mut self) -> PendingEvents<'_>;
}

/// The next events.
pub type PendingEvents<'a> =
    std::pin::Pin<Box<dyn Future<Output = Option<Vec<(u64, String)>>> + Send + 'a>>;

/// The configuration of the endpoints.
pub struct HttpConfig {
    /// The shared servers.
    pub gateway: Gateway,
    /// Patterm's own tools.
    pub native_tools: Arc<dyn NativeTools>,
    /// Who may connect.
    pub authenticator: Arc<dyn Authenticator>,
    /// The audit log.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// Limits.
    pub limits: EndpointLimits,
    /// Host names besides those of loopback.
    pub hosts: Vec<String>,
    /// Allowed `Origin`s of browsers besides loopback.
    pub origins: Vec<String>,
    /// Servers in bots' containers, if configured.
    pub bots: Option<BotsConfig>,
}

/// Limits of the endpoints.
#[derive(Debug, Clone, Copy)]
pub struct EndpointLimits {
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
    pub header_timeout: Duration,
    /// How long a session may be unused before it ends.
    pub idle_timeout: Duration,
}

/// A hundred agents with ten servers each.
const DEFAULT_SESSIONS: usize = 1_024;

/// The default for sessions per token: an eighth of all, so that eight tokens at their limit leave
/// room for others.
#[must_use]
pub fn per_token(sessions: usize) -> usize {
    (sessions / 8).max(1)
}

impl Default for EndpointLimits {
    fn default() -> Self {
        Self {
            body_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            sessions: DEFAULT_SESSIONS,
            sessions_per_token: per_token(DEFAULT_SESSIONS),
            connections: 1_024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(3_600),
        }
    }
}

/// Serves requests until `end` is cancelled.
pub fn serve(listener: TcpListener, config: HttpConfig, end: CancellationToken) -> BoxFuture<()> {
    let context = HttpContext::new(config);
    tokio::spawn(context.clone().end_idle_sessions(end.clone()));
    tokio::spawn(context.clone().end_revoked_sessions(end.clone()));
    Box::pin(async move {
        listener::accept(listener, context.clone(), end).await;
        context.end_bots().await;
    })
}
