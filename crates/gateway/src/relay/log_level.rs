//! Log messages. A server has one level for all of its clients, so it is told the most verbose of
//! theirs, and each client gets the messages of its own level. A message says nothing about the
//! call it belongs to: it goes to the caller whose calls are in flight, and to nobody if those are
//! calls of several callers.

use patterm_wire::{ErrorObject, reply};

use super::era::Translation;
use super::{ClientId, ClientRequest, ClientState, Output, Relay};
use crate::raw;

/// The request that sets a level.
pub(super) const SET_LEVEL: &str = "logging/setLevel";

/// The levels, most verbose first, as JSON.
const LEVELS: [&str; 8] = [
    "\"debug\"",
    "\"info\"",
    "\"notice\"",
    "\"warning\"",
    "\"error\"",
    "\"critical\"",
    "\"alert\"",
    "\"emergency\"",
];

/// A log level. A smaller one is more verbose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(usize);

/// The level of a client that set none, while others make the server more verbose.
const DEFAULT: LogLevel = LogLevel(1);

impl LogLevel {
    fn parse(json: &str) -> Option<Self> {
        LEVELS.iter().position(|level| *level == json).map(Self)
    }

    pub(super) fn as_json(self) -> &'static str {
        LEVELS.get(self.0).copied().unwrap_or_default()
    }

    /// The level in a request's parameters, or in a message's.
    fn of(text: &str) -> Option<Self> {
        Self::parse(&text[raw::at_path(text, &["params", "level"])?])
    }

    /// The level that a stateless request asks for.
    fn of_stateless(text: &str) -> Option<Self> {
        let path = ["params", "_meta", "io.modelcontextprotocol/logLevel"];
        Self::parse(&text[raw::at_path(text, &path)?])
    }
}

impl<R> Relay<R> {
    /// A client sets its level.
    pub(super) fn set_log_level(
        &mut self,
        mut request: ClientRequest<R>,
        translation: Translation,
    ) {
        let Some(level) = LogLevel::of(&request.text) else {
            if translation == Translation::None {
                return self.send(request, translation);
            }
            let why = format!("`level` must be one of {}", LEVELS.join(", "));
            return self.refuse(request, &ErrorObject::invalid_params(why));
        };
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.log_level = Some(level);
        }
        let wanted = self.most_verbose();
        // A stateless server is told with every request.
        if translation == Translation::Up || self.server_level == wanted {
            return self.answer(request, "{}");
        }
        self.server_level = wanted;
        let span = raw::at_path(&request.text, &["params", "level"]);
        if let (Some(span), Some(wanted)) = (span, wanted) {
            request.text = raw::edited(&request.text, vec![(span, wanted.as_json().to_owned())]);
        }
        self.send(request, translation);
    }

    /// The server refused a level.
    pub(super) fn log_level_refused(&mut self, client: ClientId) {
        self.server_level = None;
        if let Some(client) = self.clients.get_mut(&client) {
            client.log_level = None;
        }
    }

    /// A stateless client may ask for log messages about one request.
    pub(super) fn note_stateless_level(&mut self, request: &ClientRequest<R>) {
        let Some(level) = LogLevel::of_stateless(&request.text) else { return };
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.log_level = Some(level);
        }
        // Not undone after the request: others do not see the additional messages.
        if self.server_level.is_none_or(|known| level < known) {
            self.update_server_level();
        }
    }

    /// Tells the server the level that its clients need now.
    pub(super) fn update_server_level(&mut self) {
        let wanted = self.most_verbose();
        let Some(level) = wanted.filter(|_| wanted != self.server_level) else { return };
        self.server_level = wanted;
        let id = self.next_upstream_id().to_id();
        let params = format!("{{\"level\":{}}}", level.as_json());
        self.write_bytes(reply::request(&id, SET_LEVEL, Some(&params)));
    }

    fn most_verbose(&self) -> Option<LogLevel> {
        self.clients.values().filter_map(|client| client.log_level).min()
    }

    /// The server logs something.
    pub(super) fn receive_log(&mut self, text: &str) {
        let level = LogLevel::of(text);
        let server_level = self.server_level;
        let wants = |client: &ClientState| match (client.log_level, level) {
            // It has to ask for them.
            (None, _) if client.stateless => false,
            (None, Some(level)) if server_level.is_some() => level >= DEFAULT,
            (Some(wanted), Some(level)) => level >= wanted,
            (_, None) | (None, Some(_)) => true,
        };
        let busy = |client: &ClientState| client.calls.values().any(Option::is_some);
        let any_busy = self.clients.values().any(busy);
        let concerned = || self.clients.iter().filter(|(_, client)| !any_busy || busy(client));
        let mut callers = concerned().map(|(_, client)| &client.caller);
        let caller = callers.next();
        if !callers.all(|other| Some(other) == caller) {
            return;
        }
        let mut to: Vec<ClientId> =
            concerned().filter(|(_, client)| wants(client)).map(|(id, _)| *id).collect();
        to.sort_unstable();
        for client in to {
            let request_id = self.sole_request(client);
            self.out.push(Output::Notify { client, request_id, text: text.to_owned() });
        }
    }
}
