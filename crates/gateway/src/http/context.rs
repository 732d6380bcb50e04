//! The state shared by all requests: who may connect, sessions, and connections to servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, Uri};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::admission::{HostPolicy, Principal, bearer_token};
use super::audit::RequestCounts;
use super::bot_servers::BotServers;
use super::bots::permits_bot;
use super::headers::ParamHeaders;
use super::known::Revocation;
use super::response::HttpError;
use super::scope::{ReadOnlyTools, RestrictedPeer, Scope};
use super::session::Session;
use super::{HttpConfig, McpPeer};
use crate::timeout_pool::TimeoutPool;
use crate::{Caller, GatewayError, GatewayErrorKind, Notification, ServerStatus};

/// How often sessions are checked for idle ones.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The server name of patterm's own tools.
pub(super) const NATIVE: &str = "patterm";

/// The state shared by all requests.
#[derive(Clone)]
pub(super) struct HttpContext(Arc<Inner>);

struct Inner {
    config: HttpConfig,
    host_policy: HostPolicy,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    param_headers: ParamHeaders,
    read_only: Arc<ReadOnlyTools>,
    counts: RequestCounts,
    bots: Option<BotServers>,
    /// Timers for request bodies.
    body_timeouts: TimeoutPool,
    /// Connections that remember their caller.
    revocations: Mutex<Vec<Weak<Revocation>>>,
}

impl HttpContext {
    pub(super) fn new(config: HttpConfig) -> Self {
        let host_policy = HostPolicy::new(&config.hosts, &config.origins);
        let bots = config.bots.clone().map(BotServers::new);
        let (sessions, read_only, counts, param_headers) = Default::default();
        let (body_timeouts, revocations) = Default::default();
        Self(Arc::new(Inner {
            config,
            host_policy,
            sessions,
            param_headers,
            read_only,
            counts,
            bots,
            body_timeouts,
            revocations,
        }))
    }

    pub(super) fn counts(&self) -> &RequestCounts {
        &self.0.counts
    }

    pub(super) fn config(&self) -> &HttpConfig {
        &self.0.config
    }

    pub(super) fn body_timeouts(&self) -> &TimeoutPool {
        &self.0.body_timeouts
    }

    /// The servers in bots' containers.
    pub(super) fn bot_servers(&self) -> Option<&BotServers> {
        self.0.bots.as_ref()
    }

    /// Ends them.
    pub(super) async fn end_bots(&self) {
        if let Some(bots) = &self.0.bots {
            bots.end().await;
        }
    }

    /// The status of the servers that a scope includes, with those in bots' containers: the
    /// server's name, the instance's owner, and its status.
    pub(super) fn status(&self, scope: &Scope) -> Vec<(String, String, ServerStatus)> {
        let mut all = self.0.config.gateway.status();
        all.retain(|(server, ..)| scope.has_server(server));
        let bots = self.0.bots.as_ref().map(BotServers::status).unwrap_or_default();
        let bots = bots.into_iter().filter(|session| permits_bot(scope, &session.bot));
        all.extend(bots.map(|session| (session.name, session.bot, session.status)));
        all
    }

    /// Which arguments must be repeated in headers.
    pub(super) fn param_headers(&self) -> &ParamHeaders {
        &self.0.param_headers
    }

    /// Which hosts and origins are allowed.
    pub(super) fn host_policy(&self) -> &HostPolicy {
        &self.0.host_policy
    }

    /// Checks a request's host, origin and token.
    pub(super) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<Principal, HttpError> {
        self.0.host_policy.check(uri, headers)?;
        let token = bearer_token(headers);
        let admitted = token.and_then(|token| self.0.config.authenticator.authenticate(token));
        admitted.ok_or_else(|| {
            let why = match token {
                None => {
                    "a token is required: `Authorization: Bearer …`; `patterm token new` creates one"
                }
                Some(_) => "this token is unknown, revoked or expired",
            };
            HttpError::new(StatusCode::UNAUTHORIZED, why)
        })
    }

    /// Connects a client to a server.
    pub(super) fn connect(
        &self,
        server: &str,
        principal: &Principal,
        session: &str,
    ) -> Result<(Arc<dyn McpPeer>, mpsc::Receiver<Notification>), HttpError> {
        if !principal.scope.has_server(server) {
            let why = format!("this token does not permit `{server}`");
            return Err(HttpError::new(StatusCode::FORBIDDEN, why));
        }
        let connected = match server {
            NATIVE => self.0.config.native_tools.connect(principal),
            _ => {
                let caller = Caller { name: principal.name.clone(), session: session.to_owned() };
                let connected = self.0.config.gateway.connect(server, &caller);
                connected.map(|(client, messages)| (Arc::new(client) as Arc<dyn McpPeer>, messages))
            }
        };
        let (peer, notifications) = connected.map_err(|error| match error.kind {
            // The error lists all servers, which a token for some of them must not see.
            GatewayErrorKind::Unknown if principal.scope.servers.is_some() => {
                let why = self.0.config.gateway.unknown(server);
                HttpError::from(&GatewayError::new(GatewayErrorKind::Unknown, why))
            }
            _ => HttpError::from(&error),
        })?;
        let gateway = &self.0.config.gateway;
        // The visible tools of a server may change during a session.
        let is_unrestricted =
            server == NATIVE || (session.is_empty() && gateway.tools_of(server).shows_all());
        if is_unrestricted && !principal.scope.is_restricted() {
            return Ok((peer, notifications));
        }
        Ok((self.restrict(peer, server, principal), notifications))
    }

    /// A connection restricted to what a token permits.
    pub(super) fn restrict(
        &self,
        peer: Arc<dyn McpPeer>,
        server: &str,
        principal: &Principal,
    ) -> Arc<dyn McpPeer> {
        Arc::new(RestrictedPeer {
            peer,
            gateway: self.0.config.gateway.clone(),
            server: server.to_owned(),
            scope: principal.scope.clone(),
            read_only: self.0.read_only.clone(),
            key: format!("{server} {}", principal.name),
        })
    }

    /// Adds a session. A token at its limit loses its least recently used session.
    pub(super) fn add_session(&self, session: Arc<Session>) -> Result<(), HttpError> {
        let limits = &self.0.config.limits;
        let mut sessions = self.sessions();
        let own = || sessions.values().filter(|other| other.principal == session.principal);
        let mut least_used = None;
        if own().count() >= limits.sessions_per_token {
            let unused = own().filter(|other| !other.is_busy());
            least_used = unused.max_by_key(|other| other.idle()).cloned();
            if least_used.is_none() {
                let why = format!(
                    "this token has {} sessions with calls in flight, which is the limit \
                     (sessions_per_token); end one, or wait for a response",
                    limits.sessions_per_token
                );
                return Err(HttpError::new(StatusCode::TOO_MANY_REQUESTS, why));
            }
        }
        if sessions.len() - usize::from(least_used.is_some()) >= limits.sessions {
            let why = format!("the limit of {} sessions is reached", limits.sessions);
            return Err(HttpError::new(StatusCode::TOO_MANY_REQUESTS, why));
        }
        sessions.insert(session.id.clone(), session);
        drop(sessions);
        if let Some(least_used) = least_used {
            self.end_session(&least_used);
        }
        Ok(())
    }

    /// A session by its id, if this token began it.
    pub(super) fn session(
        &self,
        id: &str,
        principal: &Principal,
        server: &str,
    ) -> Result<Arc<Session>, HttpError> {
        let found = self.sessions().get(id).cloned();
        let found = found.filter(|s| s.principal == principal.name && s.server == server);
        let session = found.ok_or_else(|| {
            HttpError::new(StatusCode::NOT_FOUND, "no such session; initialize again")
        })?;
        session.touch();
        Ok(session)
    }

    pub(super) fn end_session(&self, session: &Session) {
        self.sessions().remove(&session.id);
        session.close();
        let caller = Caller { name: session.principal.clone(), session: session.id.clone() };
        self.0.config.gateway.end_session(&caller);
    }

    pub(super) async fn end_idle_sessions(self, end: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(IDLE_CHECK_INTERVAL) => {}
                () = end.cancelled() => return,
            }
            let limit = self.0.config.limits.idle_timeout;
            let all: Vec<_> = self.sessions().values().cloned().collect();
            let is_valid =
                |session: &Session| self.0.config.authenticator.is_valid(&session.principal);
            for session in all.iter().filter(|s| s.idle() >= limit || !is_valid(s)) {
                self.end_session(session);
            }
        }
    }

    /// Ends the sessions of tokens as they are revoked.
    pub(super) async fn end_revoked_sessions(self, end: CancellationToken) {
        let mut revocations = self.0.config.authenticator.revocations();
        loop {
            let name = tokio::select! {
                name = revocations.recv() => name,
                () = end.cancelled() => return,
            };
            let is_revoked = |principal: &str| match &name {
                Ok(name) => principal == name,
                Err(_) => !self.0.config.authenticator.is_valid(principal),
            };
            let all: Vec<_> = self.sessions().values().cloned().collect();
            for session in all.iter().filter(|session| is_revoked(&session.principal)) {
                self.end_session(session);
            }
            let watched: Vec<_> = self.revocations().iter().filter_map(Weak::upgrade).collect();
            watched.iter().filter(|r| is_revoked(r.name())).for_each(|r| r.revoke());
            if name == Err(RecvError::Closed) {
                return;
            }
        }
    }

    /// Tells when a token is revoked, from now on.
    pub(super) fn watch_revocation(&self, name: &str) -> Arc<Revocation> {
        let revocation = Arc::new(Revocation::new(name.to_owned()));
        let mut all = self.revocations();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&revocation));
        revocation
    }

    fn revocations(&self) -> MutexGuard<'_, Vec<Weak<Revocation>>> {
        self.0.revocations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a token is revoked.
    pub(super) async fn until_revoked(&self, name: &str) {
        let mut revocations = self.0.config.authenticator.revocations();
        while self.0.config.authenticator.is_valid(name) {
            match revocations.recv().await {
                Ok(gone) if gone == name => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    /// The number of sessions, of one token or of all.
    pub(super) fn count_sessions(&self, of: Option<&str>) -> usize {
        let counts = |session: &&Arc<Session>| of.is_none_or(|name| session.principal == name);
        self.sessions().values().filter(counts).count()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
