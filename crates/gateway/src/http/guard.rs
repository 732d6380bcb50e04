//! Accepts connections: limits their number and the time for headers, and reads the token of a
//! request.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Request, header};
use futures_util::future::Either;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::head_timer::HeadTimer;
use super::mcp;
use super::state::Shared;

/// How long a connection that is being closed may take to finish its response.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A caller, identified by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The token's name.
    pub name: String,
    /// What it may use.
    pub scope: Scope,
}

/// What a token permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The servers, `patterm` for patterm's own tools; `None` for all.
    pub servers: Option<Vec<String>>,
    /// The tools of those servers; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Only tools that are marked as read-only.
    pub read_only: bool,
}

impl Scope {
    /// Whether it includes a server.
    pub fn has_server(&self, name: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|server| server == name))
    }
}

/// Knows the tokens.
pub trait Gatekeeper: Send + Sync {
    /// The owner of a token; compared in constant time.
    fn admit(&self, token: &str) -> Option<Principal>;

    /// Whether the token of this name is still valid.
    fn is_good(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The names of tokens that are revoked from now on.
    fn revoked(&self) -> broadcast::Receiver<String> {
        broadcast::channel(1).1
    }
}

/// Accepts connections, limited in number, until `end` is cancelled; then lets responses finish.
pub(super) async fn accept(
    listener: TcpListener,
    shared: Shared,
    router: Router,
    connections: usize,
    patience: Duration,
    end: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(connections));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors: other connections must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (shared, routes) = (shared.clone(), TowerToHyperService::new(router.clone()));
        let service = service_fn(move |request: Request<Incoming>| {
            match mcp::named(request.uri().path()).map(str::to_owned) {
                Some(server) => Either::Left(mcp::direct(shared.clone(), server, request)),
                None => Either::Right(routes.call(request)),
            }
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(HeadTimer::default()).header_read_timeout(patience);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let end = end.clone();
        tokio::spawn(async move {
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                biased;
                _ = connection.as_mut() => {}
                () = end.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = tokio::time::timeout(END_PATIENCE, connection).await;
                }
            }
            drop(permit);
        });
    }
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(END_PATIENCE, room.acquire_many(all.saturating_sub(1))).await;
}

/// The token of a request; none if there are two.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let value = all.next().filter(|_| all.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
