//! Lets pages of allowed origins use the endpoints from a browser. A browser asks before such a
//! request (`OPTIONS`, without the token), and hides responses that do not name the page's origin.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::context::HttpContext;
use super::response::empty;

/// Headers that a page may send; those of arguments begin with [`PARAM`].
const REQUEST_HEADERS: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
const PARAM: &str = "mcp-param-";

/// Headers of responses that a page may read.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");

/// Seconds for which a browser may remember the answer: a revoked origin is refused soon.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

const YES: HeaderValue = HeaderValue::from_static("true");
const PRIVATE_REQUEST: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const PRIVATE_ALLOWED: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Answers `OPTIONS` for a path with these methods.
pub(super) fn preflight<B>(
    context: &HttpContext,
    request: &Request<B>,
    methods: &'static str,
) -> Response {
    let headers = request.headers();
    if let Err(error) = context.host_policy().check(request.uri(), headers) {
        return error.into_response();
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    let answer = response.headers_mut();
    answer.insert(header::ALLOW, HeaderValue::from_static(methods));
    // The check has refused foreign origins.
    let Some(origin) = headers.get(header::ORIGIN) else { return response };
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    if let Some(names) = allowed_headers(headers) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if headers.get(&PRIVATE_REQUEST) == Some(&YES) {
        answer.insert(PRIVATE_ALLOWED, YES);
    }
    name_origin(answer, origin.clone());
    response
}

/// Lets the page that sent a request read its response, if its origin is allowed.
pub(super) fn expose(context: &HttpContext, origin: HeaderValue, response: &mut Response) {
    if !origin.to_str().is_ok_and(|origin| context.host_policy().is_origin(origin)) {
        return;
    }
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    name_origin(answer, origin);
}

fn name_origin(answer: &mut HeaderMap, origin: HeaderValue) {
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.append(header::VARY, HeaderValue::from_static("origin"));
}

/// Those of the requested headers that a page may send.
fn allowed_headers(headers: &HeaderMap) -> Option<HeaderValue> {
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS)?.to_str().ok()?;
    let requested = requested.split(',').map(|name| name.trim().to_ascii_lowercase());
    let may = |name: &String| REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with(PARAM);
    HeaderValue::from_str(&requested.filter(may).collect::<Vec<_>>().join(", ")).ok()
}
