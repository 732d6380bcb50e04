//! The state shared by all requests, and the endpoints for monitoring.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::{Refused, json};
use super::authority::Bounds;
use super::bot_servers::BotServers;
use super::bots::is_for;
use super::guard::{Principal, Scope, token};
use super::marked::Marked;
use super::note::Counts;
use super::scope::{ReadOnly, Scoped};
use super::sessions::Session;
use super::{Doors, Talk};
use crate::timers::Timers;
use crate::{Caller, Refusal, RefusalKind, ServerStatus, Told};

/// How often sessions are checked for idle ones.
const LOOK_PAUSE: Duration = Duration::from_secs(60);

/// The server name of patterm's own tools.
pub(super) const OWN: &str = "patterm";

/// The state shared by all requests.
#[derive(Clone)]
pub(super) struct Shared(Arc<Inner>);

struct Inner {
    doors: Doors,
    bounds: Bounds,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    marked: Marked,
    read_only: Arc<ReadOnly>,
    counts: Counts,
    bots: Option<BotServers>,
    /// Timers for request bodies.
    body_timers: Timers,
}

impl Shared {
    pub(super) fn new(doors: Doors) -> Self {
        let bounds = Bounds::new(&doors.hosts, &doors.origins);
        let bots = doors.bots.clone().map(BotServers::new);
        let (sessions, read_only, counts, marked, body_timers) = Default::default();
        Self(Arc::new(Inner {
            doors,
            bounds,
            sessions,
            marked,
            read_only,
            counts,
            bots,
            body_timers,
        }))
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    pub(super) fn doors(&self) -> &Doors {
        &self.0.doors
    }

    pub(super) fn body_timers(&self) -> &Timers {
        &self.0.body_timers
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
    fn status(&self, scope: &Scope) -> Vec<(String, String, ServerStatus)> {
        let mut all = self.0.doors.gateway.status();
        all.retain(|(server, ..)| scope.has_server(server));
        let bots = self.0.bots.as_ref().map(BotServers::status).unwrap_or_default();
        let bots = bots.into_iter().filter(|session| is_for(scope, &session.bot));
        all.extend(bots.map(|session| (session.name, session.bot, session.status)));
        all
    }

    /// Which arguments must be repeated in headers.
    pub(super) fn marked(&self) -> &Marked {
        &self.0.marked
    }

    /// Checks a request's host, origin and token.
    pub(super) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<Principal, Refused> {
        self.0.bounds.check(uri, headers)?;
        let token = token(headers);
        let admitted = token.and_then(|token| self.0.doors.gatekeeper.admit(token));
        admitted.ok_or_else(|| {
            let why = match token {
                None => {
                    "a token is required: `Authorization: Bearer …`; `patterm token new` creates one"
                }
                Some(_) => "this token is unknown, revoked or expired",
            };
            Refused::new(StatusCode::UNAUTHORIZED, why)
        })
    }

    /// Connects a client to a server.
    pub(super) fn talk(
        &self,
        server: &str,
        principal: &Principal,
        session: &str,
    ) -> Result<(Arc<dyn Talk>, mpsc::Receiver<Told>), Refused> {
        if !principal.scope.has_server(server) {
            let why = format!("this token does not permit `{server}`");
            return Err(Refused::new(StatusCode::FORBIDDEN, why));
        }
        let begun = match server {
            OWN => self.0.doors.own.talk(principal),
            _ => {
                let caller = Caller { caller: principal.name.clone(), session: session.to_owned() };
                let line = self.0.doors.gateway.line(server, &caller);
                line.map(|(line, told)| (Arc::new(line) as Arc<dyn Talk>, told))
            }
        };
        let (talk, told) = begun.map_err(|refusal| match refusal.kind {
            // The error lists all servers, which a token for some of them must not see.
            RefusalKind::Unknown if principal.scope.servers.is_some() => {
                let why = format!("no server `{server}`");
                refused(&Refusal::new(RefusalKind::Unknown, why))
            }
            _ => refused(&refusal),
        })?;
        let gateway = &self.0.doors.gateway;
        // The visible tools of a server may change during a session.
        let is_whole =
            server == OWN || (session.is_empty() && gateway.tools_of(server).shows_all());
        if is_whole && !principal.scope.is_narrow() {
            return Ok((talk, told));
        }
        Ok((self.scoped(talk, server, principal), told))
    }

    /// A connection restricted to what a token permits.
    pub(super) fn scoped(
        &self,
        talk: Arc<dyn Talk>,
        server: &str,
        principal: &Principal,
    ) -> Arc<dyn Talk> {
        Arc::new(Scoped {
            talk,
            gateway: self.0.doors.gateway.clone(),
            server: server.to_owned(),
            scope: principal.scope.clone(),
            read_only: self.0.read_only.clone(),
            key: format!("{server} {}", principal.name),
        })
    }

    /// Adds a session. A token at its limit loses its least recently used session.
    pub(super) fn keep(&self, session: Arc<Session>) -> Result<(), Refused> {
        let limits = &self.0.doors.limits;
        let mut sessions = self.sessions();
        let own = || sessions.values().filter(|other| other.principal == session.principal);
        let mut idlest = None;
        if own().count() >= limits.sessions_per_token {
            let unused = own().filter(|other| !other.is_busy());
            idlest = unused.max_by_key(|other| other.idle()).cloned();
            if idlest.is_none() {
                let why = format!(
                    "this token has {} sessions with calls in flight, which is the limit \
                     (sessions_per_token); end one, or wait for a response",
                    limits.sessions_per_token
                );
                return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, why));
            }
        }
        if sessions.len() - usize::from(idlest.is_some()) >= limits.sessions {
            let why = format!("the limit of {} sessions is reached", limits.sessions);
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, why));
        }
        sessions.insert(session.id.clone(), session);
        drop(sessions);
        if let Some(idlest) = idlest {
            self.end_session(&idlest);
        }
        Ok(())
    }

    /// A session by its id, if this token began it.
    pub(super) fn session(
        &self,
        id: &str,
        principal: &Principal,
        server: &str,
    ) -> Result<Arc<Session>, Refused> {
        let found = self.sessions().get(id).cloned();
        let found = found.filter(|s| s.principal == principal.name && s.server == server);
        let session = found.ok_or_else(|| {
            Refused::new(StatusCode::NOT_FOUND, "no such session; initialize again")
        })?;
        session.note_use();
        Ok(session)
    }

    pub(super) fn end_session(&self, session: &Session) {
        self.sessions().remove(&session.id);
        session.close();
        let caller = Caller { caller: session.principal.clone(), session: session.id.clone() };
        self.0.doors.gateway.end_session(&caller);
    }

    pub(super) async fn forget_idle_sessions(self, end: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_PAUSE) => {}
                () = end.cancelled() => return,
            }
            let patience = self.0.doors.limits.session_idle;
            let all: Vec<_> = self.sessions().values().cloned().collect();
            let good = |session: &Session| self.0.doors.gatekeeper.is_good(&session.principal);
            for session in all.iter().filter(|s| s.idle() >= patience || !good(s)) {
                self.end_session(session);
            }
        }
    }

    /// Ends the sessions of tokens as they are revoked.
    pub(super) async fn end_revoked_sessions(self, end: CancellationToken) {
        let mut revoked = self.0.doors.gatekeeper.revoked();
        loop {
            let name = tokio::select! {
                name = revoked.recv() => name,
                () = end.cancelled() => return,
            };
            let is_gone = |session: &Session| match &name {
                Ok(name) => session.principal == *name,
                Err(_) => !self.0.doors.gatekeeper.is_good(&session.principal),
            };
            let all: Vec<_> = self.sessions().values().cloned().collect();
            for session in all.iter().filter(|session| is_gone(session)) {
                self.end_session(session);
            }
            if name == Err(RecvError::Closed) {
                return;
            }
        }
    }

    /// Waits until a token is revoked.
    pub(super) async fn until_revoked(&self, name: &str) {
        let mut revoked = self.0.doors.gatekeeper.revoked();
        while self.0.doors.gatekeeper.is_good(name) {
            match revoked.recv().await {
                Ok(gone) if gone == name => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error as a response: the status reports what the client did wrong, JSON-RPC what happened to
/// the server, where a model sees it.
pub(super) fn refused(refusal: &Refusal) -> Refused {
    Refused::with_error(status_of(refusal), None, refusal.to_error())
}

pub(super) fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal.kind {
        RefusalKind::Limit => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Unknown => StatusCode::NOT_FOUND,
        RefusalKind::Unavailable | RefusalKind::Ended | RefusalKind::Timeout => StatusCode::OK,
    }
}

/// `GET /healthz`: the only endpoint without a token. It reveals only that a server is running.
pub(super) async fn healthz() -> Response {
    json(StatusCode::OK, "{\"status\":\"ok\"}")
}

/// `GET /servers`.
pub(super) async fn servers(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let scope = match shared.admit(&uri, &headers) {
        Ok(principal) => principal.scope,
        Err(refused) => return refused.into_response(),
    };
    let all: Vec<_> = shared
        .status(&scope)
        .into_iter()
        .map(|(name, owner, status)| {
            json!({
                "name": name,
                "owner": Some(owner).filter(|owner| !owner.is_empty()),
                "state": status.state,
                "pid": status.pid,
                "uptime_seconds": status.uptime.map(|uptime| uptime.as_secs()),
                "in_flight": status.in_flight,
                "restarts": status.restarts,
                "last_error": status.last_error,
            })
        })
        .collect();
    json(StatusCode::OK, json!({ "servers": all }).to_string())
}

/// `GET /metrics` in Prometheus format: the servers that the token permits. Totals of the whole
/// endpoint are only for tokens that permit all servers.
pub(super) async fn metrics(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let principal = match shared.admit(&uri, &headers) {
        Ok(principal) => principal,
        Err(refused) => return refused.into_response(),
    };
    let scope = &principal.scope;
    let all = shared.status(scope);
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, of: &dyn Fn(&ServerStatus) -> u64| {
        let _ = writeln!(text, "# TYPE patterm_server_{name} {kind}");
        let mut sums: Vec<(&str, u64)> = Vec::new();
        for (server, _, status) in &all {
            match sums.iter_mut().find(|(known, _)| known == server) {
                Some((_, sum)) => *sum += of(status),
                None => sums.push((server, of(status))),
            }
        }
        for (server, sum) in sums {
            // Bots' names come from requests.
            let server = server.replace('\\', r"\\").replace('"', r#"\""#);
            let _ = writeln!(text, "patterm_server_{name}{{server=\"{server}\"}} {sum}");
        }
    };
    family("running", "gauge", &|status| u64::from(status.state == "running"));
    family("in_flight", "gauge", &|status| u64::try_from(status.in_flight).unwrap_or(u64::MAX));
    family("restarts_total", "counter", &|status| status.restarts);
    family("noise_total", "counter", &|status| status.noise);
    let whole = scope.servers.is_none();
    let counts = |session: &&Arc<Session>| whole || session.principal == principal.name;
    let sessions = shared.sessions().values().filter(counts).count();
    let _ = writeln!(text, "# TYPE patterm_http_sessions gauge\npatterm_http_sessions {sessions}");
    if whole {
        shared.counts().write(&mut text);
    }
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
