//! The endpoints for monitoring: health, the servers' status, and metrics.

use std::fmt::Write;

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::context::HttpContext;
use super::response::json;
use crate::{ServerState, ServerStatus};

/// `GET /healthz`: the only endpoint without a token. It reveals only that a server is running.
pub(super) fn healthz() -> Response {
    json(StatusCode::OK, "{\"status\":\"ok\"}")
}

/// `GET /servers`.
pub(super) fn servers(context: &HttpContext, uri: &Uri, headers: &HeaderMap) -> Response {
    let scope = match context.admit(uri, headers) {
        Ok(principal) => principal.scope,
        Err(error) => return error.into_response(),
    };
    let all: Vec<_> = context
        .status(&scope)
        .into_iter()
        .map(|(name, owner, status)| {
            json!({
                "name": name,
                "owner": Some(owner).filter(|owner| !owner.is_empty()),
                "state": status.state.as_str(),
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
pub(super) fn metrics(context: &HttpContext, uri: &Uri, headers: &HeaderMap) -> Response {
    let principal = match context.admit(uri, headers) {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    let scope = &principal.scope;
    let all = context.status(scope);
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
    family("running", "gauge", &|status| u64::from(status.state == ServerState::Running));
    family("in_flight", "gauge", &|status| u64::try_from(status.in_flight).unwrap_or(u64::MAX));
    family("restarts_total", "counter", &|status| status.restarts);
    family("noise_total", "counter", &|status| status.noise);
    let whole = scope.servers.is_none();
    let sessions = context.count_sessions(Some(principal.name.as_str()).filter(|_| !whole));
    let _ = writeln!(text, "# TYPE patterm_http_sessions gauge\npatterm_http_sessions {sessions}");
    if whole {
        context.counts().write(&mut text);
    }
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
