//! `POST /bots/{bot}/containers/{container}/mcp`: the server inside a container, for the bot that
//! the container belongs to. One message per request, answered as JSON.

use std::sync::Arc;

use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::{ErrorObject, Id, Incoming, Message};

use super::McpPeer;
use super::admission::Principal;
use super::audit::{AuditEntry, CallOutcome};
use super::bot_servers::BotServerStatus;
use super::context::HttpContext;
use super::listener::{RequestBody, percent_decode};
use super::mcp::read_body;
use super::response::{HttpError, empty, json, not_allowed, status_of};
use super::scope::Scope;
use crate::backend::container::{Containers, EngineEndpoint, EngineError};
use crate::{GatewayError, GatewayErrorKind, ServerLimits};

/// The name of this endpoint in token scopes; `bots/NAME` is for one bot.
pub(super) const BOTS: &str = "bots";

/// The methods of this endpoint.
pub(super) const METHODS: &str = "POST, OPTIONS";

/// Which bots may use the servers in which containers.
#[derive(Debug, Clone)]
pub struct BotsConfig {
    /// The engines.
    pub containers: Containers,
    /// The engine of these containers.
    pub endpoint: EngineEndpoint,
    /// The server in each of them.
    pub command: Vec<String>,
    /// The label that names the bot a container belongs to.
    pub owner_label: String,
    /// Whether every bot may use containers without that label.
    pub allow_unlabelled: bool,
    /// Reports the status of these servers to the host.
    pub servers: BotServerStatus,
    /// Limits of each server; `instances` is the number of containers served at the same time.
    pub limits: ServerLimits,
}

/// Handles all requests below `/bots`.
pub(super) async fn serve<B: RequestBody>(context: HttpContext, request: Request<B>) -> Response {
    let mut entry = AuditEntry::start(&context, BOTS);
    serve_recorded(&context, request, &mut entry).await.unwrap_or_else(|error| {
        entry.answered(CallOutcome::Refused, error.status(), 0);
        error.into_response()
    })
}

async fn serve_recorded<B: RequestBody>(
    context: &HttpContext,
    request: Request<B>,
    entry: &mut AuditEntry,
) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let principal = context.admit(&parts.uri, &parts.headers)?;
    entry.set_caller(&principal.name);
    let (bot, container) = address(parts.uri.path())?;
    entry.set_server(format!("{BOTS}/{bot}/{container}"));
    check_bot(&principal, &bot)?;
    if parts.method != Method::POST {
        entry.answered(CallOutcome::Refused, StatusCode::METHOD_NOT_ALLOWED, 0);
        return Ok(not_allowed(METHODS));
    }
    let body = read_body(context, body, &parts.headers).await?;
    let bad = |id, error| HttpError::with_error(StatusCode::BAD_REQUEST, id, error);
    let message = match Incoming::parse(&body) {
        Ok(Incoming::One(message)) => message,
        Ok(Incoming::Batch(_)) => {
            let error = ErrorObject::new(
                INVALID_REQUEST,
                "batches are not supported; send one message per request",
            );
            return Err(bad(None, error));
        }
        Err(malformed) => return Err(bad(malformed.id, malformed.error)),
    };
    let servers = context.bot_servers().ok_or_else(|| {
        HttpError::new(StatusCode::NOT_FOUND, "the configuration has no `[bots]` section")
    })?;
    let server = servers.resolve(&bot, &container, false).await.map_err(HttpError::from)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    if let Message::Request { method, .. } | Message::Notification { method, .. } = &message {
        entry.set_message(method, &text);
    }
    let Message::Request { id, method, .. } = &message else {
        // The handshake was done for all clients; what one says about itself does not apply to
        // others.
        entry.answered(CallOutcome::Ok, StatusCode::ACCEPTED, 0);
        return Ok(empty(StatusCode::ACCEPTED));
    };
    let client = servers.connect(&server, &principal.name);
    let client = client.map_err(|error| HttpError::from(&error))?;
    let mut peer: Arc<dyn McpPeer> = Arc::new(client);
    if principal.scope.is_restricted() {
        peer = context.restrict(peer, &server, &principal);
    }
    let error = match peer.request(id, method, text).await {
        Ok(answer) => {
            entry.answered(CallOutcome::of(&answer), StatusCode::OK, answer.len());
            return Ok(json(StatusCode::OK, answer));
        }
        Err(error) => error,
    };
    if matches!(error.kind, GatewayErrorKind::Unavailable | GatewayErrorKind::Ended) {
        // The cause may be the container or its engine.
        servers.resolve(&bot, &container, true).await.map_err(|denied| denied.with(id, &error))?;
    }
    entry.answered(CallOutcome::of_error(&error), status_of(&error), 0);
    Ok(json(status_of(&error), error.to_response(id)))
}

impl From<ContainerDenied> for HttpError {
    fn from(denied: ContainerDenied) -> Self {
        Self::new(denied.status(), denied.to_string())
    }
}

/// A token for some servers must permit this endpoint, or this bot.
fn check_bot(principal: &Principal, bot: &str) -> Result<(), HttpError> {
    if permits_bot(&principal.scope, bot) {
        return Ok(());
    }
    Err(HttpError::new(
        StatusCode::FORBIDDEN,
        format!("this token does not permit the bot `{bot}`"),
    ))
}

/// Whether a scope includes a bot.
pub(super) fn permits_bot(scope: &Scope, bot: &str) -> bool {
    scope.has_server(BOTS) || scope.has_server(&format!("{BOTS}/{bot}"))
}

/// Why a container is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerDenied {
    /// It belongs to another bot, or to none.
    #[error(
        "the container `{container}` does not belong to `{bot}` according to its label {label}"
    )]
    NotOwned { bot: String, container: String, label: String },
    /// Its label is not trusted: it comes from the image, or the image is gone.
    #[error(
        "the container `{container}` is not admitted as one without the label {label}: it has that \
         label, but the label was not set for the container itself"
    )]
    UntrustedLabel { container: String, label: String },
    /// The engine reported an error.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// A limit is reached.
    #[error("{0}")]
    Limit(String),
}

impl ContainerDenied {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotOwned { .. } | Self::UntrustedLabel { .. } => StatusCode::FORBIDDEN,
            Self::Engine(EngineError::NotFound(_)) => StatusCode::NOT_FOUND,
            Self::Engine(EngineError::NotRunning(_)) => StatusCode::CONFLICT,
            Self::Engine(EngineError::Unreachable(_) | EngineError::Failed(_)) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Limit(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The reason for a failed call.
    fn with(self, id: &Id, error: &GatewayError) -> HttpError {
        let mut error = error.to_error_object();
        error.message = format!("{self}; {}", error.message);
        HttpError::with_error(self.status(), Some(id.clone()), error)
    }
}

/// The bot and the container of a path.
fn address(path: &str) -> Result<(String, String), HttpError> {
    let bad = |why: &str| HttpError::new(StatusCode::BAD_REQUEST, why);
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (bot, container) = match parts.as_slice() {
        ["bots", bot, "containers", container, "mcp"] => (*bot, *container),
        // Some clients remove an empty segment.
        ["bots"] | ["bots", ""] | ["bots", "containers", _, "mcp"] => ("", ""),
        _ => {
            let why = "the address is /bots/{bot}/containers/{container}/mcp";
            return Err(HttpError::new(StatusCode::NOT_FOUND, why));
        }
    };
    let name = |part: &str| percent_decode(part).filter(|name| !name.chars().any(char::is_control));
    let bot = name(bot).filter(|bot| !bot.trim().is_empty());
    let bot = bot.ok_or_else(|| bad("the bot is missing: /bots/{bot}/containers/…"))?;
    let container = name(container).filter(|container| !container.trim().is_empty());
    let container = container.ok_or_else(|| bad("the container is missing"))?;
    Ok((bot, container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<(&str, &str), StatusCode>) {
        let found = address(path).map_err(|error| error.into_response().status());
        let expected = expected.map(|(bot, container)| (bot.to_owned(), container.to_owned()));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_are_parsed_strictly() {
        check("/bots/a/containers/b/mcp", Ok(("a", "b")));
        check("/bots/a%2Fb/containers/c/mcp", Ok(("a/b", "c")));
        check("/bots/%C3%A4/containers/c/mcp", Ok(("ä", "c")));
        let missing = Err(StatusCode::BAD_REQUEST);
        for bot in ["", "%20", "%20%09", "%C2%A0", "%00", "a%0Ab", "%", "%zz", "%+1", "%FF"] {
            check(&format!("/bots/{bot}/containers/c/mcp"), missing);
        }
        check("/bots/", missing);
        check("/bots/containers/c/mcp", missing);
        check("/bots/a/containers//mcp", missing);
        for path in ["/bots/a", "/bots/a/containers/b", "/bots/a/containers/b/c/mcp"] {
            check(path, Err(StatusCode::NOT_FOUND));
        }
    }

    #[test]
    fn a_token_may_permit_a_single_bot() {
        let token = |servers: &[&str]| Principal {
            name: "t".into(),
            scope: Scope {
                servers: Some(servers.iter().map(ToString::to_string).collect()),
                ..Default::default()
            },
            expires_at: None,
        };
        assert!(check_bot(&token(&["bots"]), "a").is_ok());
        assert!(check_bot(&token(&["bots/a"]), "a").is_ok());
        assert!(check_bot(&token(&["bots/a"]), "b").is_err());
        assert!(check_bot(&token(&["search"]), "a").is_err());
    }
}
