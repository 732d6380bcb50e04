//! `POST /bots/{bot}/containers/{container}/mcp`: the server inside a container, for the bot that
//! the container belongs to. One message per request, answered as JSON.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::{ErrorObject, Id, Incoming, Message};

use super::Talk;
use super::answer::{Refused, empty, json};
use super::bot_servers::BotSessions;
use super::guard::{Principal, Scope};
use super::mcp::read;
use super::note::{Note, Outcome};
use super::state::{Shared, status_of};
use crate::backend::container::{Containers, Place, Trouble};
use crate::{Bounds, Refusal, RefusalKind};

/// The name of this endpoint in token scopes; `bots/NAME` is for one bot.
pub(super) const DOOR: &str = "bots";

/// Which bots may use the servers in which containers.
#[derive(Debug, Clone)]
pub struct Bots {
    /// The engines.
    pub containers: Containers,
    /// The engine of these containers.
    pub place: Place,
    /// The server in each of them.
    pub command: Vec<String>,
    /// The label that names the bot a container belongs to.
    pub owner_label: String,
    /// Whether every bot may use containers without that label.
    pub allow_unlabelled: bool,
    /// Reports the status of these servers to the host.
    pub sessions: BotSessions,
    /// Limits of each server; `sessions` is the number of containers served at the same time.
    pub bounds: Bounds,
}

/// Handles all requests below `/bots`.
pub(super) async fn door(State(shared): State<Shared>, request: Request<Body>) -> Response {
    let mut note = Note::begin(&shared, DOOR);
    serve(&shared, request, &mut note).await.unwrap_or_else(|refused| {
        note.answered(Outcome::Refused, refused.status(), 0);
        refused.into_response()
    })
}

async fn serve(
    shared: &Shared,
    request: Request<Body>,
    note: &mut Note,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let principal = shared.admit(&parts.uri, &parts.headers)?;
    note.by(&principal.name);
    let (bot, container) = address(parts.uri.path())?;
    note.at(format!("{DOOR}/{bot}/{container}"));
    admit(&principal, &bot)?;
    if parts.method != Method::POST {
        note.answered(Outcome::Refused, StatusCode::METHOD_NOT_ALLOWED, 0);
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let bounded = read(shared, body, &parts.headers).await?;
    let bad = |id, error| Refused::with_error(StatusCode::BAD_REQUEST, id, error);
    let message = match Incoming::parse(&bounded) {
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
    let servers = shared.bot_servers().ok_or_else(|| {
        Refused::new(StatusCode::NOT_FOUND, "the configuration has no `[bots]` section")
    })?;
    let server = servers.of(&bot, &container, false).await.map_err(refused)?;
    let text = String::from_utf8_lossy(&bounded).into_owned();
    if let Message::Request { method, .. } | Message::Notification { method, .. } = &message {
        note.asks(method, &text);
    }
    let Message::Request { id, method, .. } = &message else {
        // The handshake was done for all clients; what one says about itself does not apply to
        // others.
        note.answered(Outcome::Ok, StatusCode::ACCEPTED, 0);
        return Ok(empty(StatusCode::ACCEPTED));
    };
    let line = servers.line(&server, &principal.name);
    let line = line.map_err(|refusal| super::state::refused(&refusal))?;
    let mut talk: Arc<dyn Talk> = Arc::new(line);
    if principal.scope.is_narrow() {
        talk = shared.scoped(talk, &server, &principal);
    }
    let refusal = match talk.ask(id, method, text).await {
        Ok(answer) => {
            note.answered(Outcome::of(&answer), StatusCode::OK, answer.len());
            return Ok(json(StatusCode::OK, answer));
        }
        Err(refusal) => refusal,
    };
    if matches!(refusal.kind, RefusalKind::Unavailable | RefusalKind::Ended) {
        // The cause may be the container or its engine.
        servers.of(&bot, &container, true).await.map_err(|denied| denied.with(id, &refusal))?;
    }
    note.answered(Outcome::of_refusal(&refusal), status_of(&refusal), 0);
    Ok(json(status_of(&refusal), refusal.to_answer(id)))
}

fn refused(denied: Denied) -> Refused {
    Refused::new(denied.status(), denied.to_string())
}

/// A token for some servers must permit this endpoint, or this bot.
fn admit(principal: &Principal, bot: &str) -> Result<(), Refused> {
    if is_for(&principal.scope, bot) {
        return Ok(());
    }
    Err(Refused::new(StatusCode::FORBIDDEN, format!("this token does not permit the bot `{bot}`")))
}

/// Whether a scope includes a bot.
pub(super) fn is_for(scope: &Scope, bot: &str) -> bool {
    scope.has_server(DOOR) || scope.has_server(&format!("{DOOR}/{bot}"))
}

/// Why a container is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    /// It belongs to another bot, or to none.
    #[error(
        "the container `{container}` does not belong to `{bot}` according to its label {label}"
    )]
    Foreign { bot: String, container: String, label: String },
    /// Its label is not trusted: it comes from the image, or the image is gone.
    #[error(
        "the container `{container}` is not admitted as one without the label {label}: it has that \
         label, but the label was not set for the container itself"
    )]
    Claiming { container: String, label: String },
    /// The engine reported an error.
    #[error("{0}")]
    Engine(#[from] Trouble),
    /// A limit is reached.
    #[error("{0}")]
    Limit(String),
}

impl Denied {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Foreign { .. } | Self::Claiming { .. } => StatusCode::FORBIDDEN,
            Self::Engine(Trouble::Missing(_)) => StatusCode::NOT_FOUND,
            Self::Engine(Trouble::Stopped(_)) => StatusCode::CONFLICT,
            Self::Engine(Trouble::Down(_) | Trouble::Failed(_)) => StatusCode::BAD_GATEWAY,
            Self::Limit(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The reason for a failed call.
    fn with(self, id: &Id, refusal: &Refusal) -> Refused {
        let mut error = refusal.to_error();
        error.message = format!("{self}; {}", refusal.message);
        Refused::with_error(self.status(), Some(id.clone()), error)
    }
}

/// The bot and the container of a path.
fn address(path: &str) -> Result<(String, String), Refused> {
    let bad = |why: &str| Refused::new(StatusCode::BAD_REQUEST, why);
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (bot, container) = match parts.as_slice() {
        ["bots", bot, "containers", container, "mcp"] => (*bot, *container),
        // Some clients remove an empty segment.
        ["bots"] | ["bots", ""] | ["bots", "containers", _, "mcp"] => ("", ""),
        _ => {
            let why = "the address is /bots/{bot}/containers/{container}/mcp";
            return Err(Refused::new(StatusCode::NOT_FOUND, why));
        }
    };
    let name = |part: &str| decoded(part).filter(|name| !name.chars().any(char::is_control));
    let bot = name(bot).filter(|bot| !bot.trim().is_empty());
    let bot = bot.ok_or_else(|| bad("the bot is missing: /bots/{bot}/containers/…"))?;
    let container = name(container).filter(|container| !container.trim().is_empty());
    let container = container.ok_or_else(|| bad("the container is missing"))?;
    Ok((bot, container))
}

/// Percent-decodes a segment of a path.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let hex = std::str::from_utf8(&digits).ok().filter(|hex| !hex.starts_with('+'));
                u8::from_str_radix(hex?, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<(&str, &str), StatusCode>) {
        let found = address(path).map_err(|refused| refused.into_response().status());
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
        };
        assert!(admit(&token(&["bots"]), "a").is_ok());
        assert!(admit(&token(&["bots/a"]), "a").is_ok());
        assert!(admit(&token(&["bots/a"]), "b").is_err());
        assert!(admit(&token(&["search"]), "a").is_err());
    }
}
