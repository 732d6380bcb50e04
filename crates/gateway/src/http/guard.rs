//! Who is let in: connections are counted, headers must come in time, and every request but a look
//! at the health shows a token, comes from no foreign site, and asks for this machine by its name.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Request, StatusCode, header};
use futures_util::future::Either;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::answer::Refused;
use super::head_timer::HeadTimer;
use super::mcp;
use super::state::Shared;

/// A connection that is being closed has this long to finish its answer.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Who calls, as its token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The token's name.
    pub name: String,
    /// What it may use.
    pub scope: Scope,
}

/// What a token is good for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The servers, patterm's own tools as `patterm`; `None` for all of them.
    pub servers: Option<Vec<String>>,
    /// The tools of them; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Only tools that say of themselves that they change nothing.
    pub read_only: bool,
}

impl Scope {
    /// Whether a server may be used.
    pub fn has_server(&self, name: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|server| server == name))
    }
}

/// Who knows the tokens.
pub trait Gatekeeper: Send + Sync {
    /// Whose token this is; compared without telling how much of it was right.
    fn admit(&self, token: &str) -> Option<Principal>;

    /// Whether the token of this name is good still.
    fn is_good(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// Names of tokens that are revoked from now on.
    fn revoked(&self) -> broadcast::Receiver<String> {
        broadcast::channel(1).1
    }
}

/// Takes connections, bounded in number, until told to end; then lets answers finish.
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
            // Out of descriptors: others must end before there are more.
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

/// Where a request may come from.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
}

impl Bounds {
    /// Refuses what asks for another host, or comes from a foreign site: a page in a browser can
    /// reach the loopback, and a name that it made up.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.unwrap_or_default();
        if !self.is_host(host) {
            let why = format!("`Host: {host}` is not a name of this server");
            return Err(Refused::new(StatusCode::FORBIDDEN, why));
        }
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or("?");
            if !self.is_origin(origin) {
                let why = format!("`Origin: {origin}` may not call this server");
                return Err(Refused::new(StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }

    fn is_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let local = ["localhost", "127.0.0.1", "[::1]"].contains(&name);
        local || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn is_origin(&self, origin: &str) -> bool {
        let local = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|host| self.is_host(host) && !host.contains('/'));
        local || self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }
}

/// A host without its port, an address of six bytes in its brackets.
fn without_port(host: &str) -> &str {
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    &host[..end]
}

/// The token of a request.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins() {
        let bounds = Bounds {
            hosts: vec!["box.example".into()],
            origins: vec!["https://app.example".into()],
        };
        for host in ["localhost", "127.0.0.1:8080", "[::1]:9", "box.example:1", "BOX.example"] {
            assert!(bounds.is_host(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "[::2]"] {
            assert!(!bounds.is_host(host), "{host}");
        }
        for origin in ["http://localhost:3000", "https://127.0.0.1", "https://app.example"] {
            assert!(bounds.is_origin(origin), "{origin}");
        }
        for origin in ["null", "http://evil.example", "http://localhost/x", "file://", "localhost"]
        {
            assert!(!bounds.is_origin(origin), "{origin}");
        }
    }
}
