//! What a connection knows from its earlier requests, so that the next one costs little: its caller,
//! its session, and a client without a session. All of it is checked again when a token is
//! created, revoked or expires, or when the session ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use subtle::ConstantTimeEq;
use tokio::sync::mpsc;

use super::admission::Principal;
use super::context::HttpContext;
use super::listener::Route;
use super::session::Session;
use super::{McpPeer, context};
use crate::Notification;

/// Tells a connection that the token of its caller was revoked.
#[derive(Debug)]
pub(super) struct Revocation {
    name: String,
    revoked: AtomicBool,
    waker: AtomicWaker,
}

impl Revocation {
    pub(super) fn new(name: String) -> Self {
        Self { name, revoked: AtomicBool::new(false), waker: AtomicWaker::new() }
    }

    /// The token's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The token was revoked.
    pub(super) fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Ready once the token was revoked.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.waker.register(context.waker());
        match self.revoked.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// A caller that was admitted.
pub(super) struct Admitted {
    pub(super) principal: Principal,
    pub(super) revocation: Arc<Revocation>,
    /// The header that was sent.
    authorization: Vec<u8>,
    /// The state of all tokens at that time.
    generation: u64,
}

/// A client without a session, and its server.
struct Stateless {
    server: String,
    peer: Arc<dyn McpPeer>,
    /// Nothing is sent to it about the usual call.
    _notifications: mpsc::Receiver<Notification>,
}

/// What a connection knows.
#[derive(Default)]
pub(super) struct Known {
    host: Vec<u8>,
    /// The path of the last request, and the server that it names.
    target: Option<(Vec<u8>, Arc<str>)>,
    admitted: Option<Arc<Admitted>>,
    session: Option<Arc<Session>>,
    stateless: Option<Stateless>,
}

impl Known {
    /// Whether `Host` is a name of this server.
    pub(super) fn is_host(&mut self, context: &HttpContext, host: &[u8]) -> bool {
        if self.host == host {
            return !host.is_empty();
        }
        let is_known = std::str::from_utf8(host).is_ok_and(|h| context.host_policy().is_host(h));
        if is_known {
            self.host = host.to_vec();
        }
        is_known
    }

    /// The server that a path names.
    pub(super) fn server(&mut self, path: &[u8]) -> Option<Arc<str>> {
        if let Some((_, server)) = self.target.as_ref().filter(|(known, _)| known == path) {
            return Some(server.clone());
        }
        let Route::Mcp(server) = Route::of(std::str::from_utf8(path).ok()?) else { return None };
        let server = Arc::<str>::from(server);
        self.target = Some((path.to_vec(), server.clone()));
        Some(server)
    }

    /// The caller with this `Authorization`; `None` if it must be checked on the general path.
    pub(super) fn admit(
        &mut self,
        context: &HttpContext,
        authorization: &[u8],
    ) -> Option<Arc<Admitted>> {
        let authenticator = &context.config().authenticator;
        let generation = authenticator.generation()?;
        let is_current = |known: &&Arc<Admitted>| {
            let expired = known.principal.expires_at.is_some_and(|at| authenticator.is_past(at));
            let same: bool = known.authorization.ct_eq(authorization).into();
            same && known.generation == generation && !expired
        };
        if let Some(known) = self.admitted.as_ref().filter(is_current) {
            return Some(known.clone());
        }
        let (host, target) = (std::mem::take(&mut self.host), self.target.take());
        *self = Self { host, target, ..Self::default() };
        let text = std::str::from_utf8(authorization).ok()?;
        let (scheme, token) = text.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let principal = authenticator.authenticate(token.trim())?;
        let revocation = context.watch_revocation(&principal.name);
        // It may have been revoked before it was watched.
        if authenticator.generation() != Some(generation) {
            return None;
        }
        let authorization = authorization.to_vec();
        let admitted = Arc::new(Admitted { principal, revocation, authorization, generation });
        self.admitted = Some(admitted.clone());
        Some(admitted)
    }

    /// The caller's session.
    pub(super) fn session(
        &mut self,
        context: &HttpContext,
        id: &[u8],
        principal: &Principal,
        server: &str,
    ) -> Option<&Arc<Session>> {
        let fits = |s: &Arc<Session>| s.id.as_bytes() == id && s.server == server && !s.is_closed();
        if !self.session.as_ref().is_some_and(fits) {
            let id = std::str::from_utf8(id).ok()?;
            self.session = Some(context.session(id, principal, server).ok()?);
        }
        self.session.as_ref()
    }

    /// The caller's client without a session.
    pub(super) fn stateless(
        &mut self,
        context: &HttpContext,
        principal: &Principal,
        server: &str,
    ) -> Option<&Arc<dyn McpPeer>> {
        if server == context::NATIVE {
            return None;
        }
        if self.stateless.as_ref().is_none_or(|known| known.server != server) {
            let (peer, notifications) = context.connect(server, principal, "").ok()?;
            let server = server.to_owned();
            self.stateless = Some(Stateless { server, peer, _notifications: notifications });
        }
        self.stateless.as_ref().map(|known| &known.peer)
    }
}
