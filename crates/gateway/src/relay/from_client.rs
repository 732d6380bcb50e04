//! Messages from clients: requests, notifications, and responses to the server's requests.

use patterm_wire::error::{INVALID_REQUEST, METHOD_NOT_FOUND};
use patterm_wire::{ErrorObject, Id, reply};

use super::era::{self, Era, Filter, Translation};
use super::handshake::{HandshakeState, Need};
use super::log_level::{LogLevel, SET_LEVEL};
use super::{ClientId, ClientRequest, ListenRequest, Output, Pending, Relay};
use crate::ambiguous::ambiguity;
use crate::error::{GatewayError, GatewayErrorKind};
use crate::raw;

impl<R> Relay<R> {
    /// Handles a client's request.
    pub(crate) fn request(&mut self, request: ClientRequest<R>) {
        let all = self.in_flight();
        if let Some(why) = ambiguity(&request.text) {
            let error = ErrorObject::new(INVALID_REQUEST, why);
            return self
                .out
                .push(Output::Answer(request.reply, reply::error(Some(&request.id), &error)));
        }
        let client = self.clients.entry(request.client).or_default();
        if client.calls.contains_key(&request.id) {
            let body = reply::error(Some(&request.id), &ErrorObject::duplicate_id());
            return self.out.push(Output::Answer(request.reply, body));
        }
        client.calls.insert(request.id.clone(), None);
        client.stateless = request.era == Era::Modern;
        if self.config.in_flight != 0 && all >= self.config.in_flight {
            let message = format!(
                "too many calls in flight: {all} of all callers, at most {}; try again when some are \
                 answered",
                self.config.in_flight
            );
            return self.refuse(
                request,
                &GatewayError::new(GatewayErrorKind::Limit, message).to_error_object(),
            );
        }
        self.proceed(request);
    }

    /// Serves a request, or queues it until the handshake it needs is done.
    pub(super) fn proceed(&mut self, request: ClientRequest<R>) {
        if self.handshake == HandshakeState::Closed {
            let error = GatewayError::new(GatewayErrorKind::Ended, "the server ended");
            return self.refuse(request, &error.to_error_object());
        }
        let need = self.need(request.era);
        if need != Need::Nothing || matches!(self.handshake, HandshakeState::Initialized { .. }) {
            self.advance(need, Some(&request));
            self.waiting.push(request);
            return;
        }
        if let Err(error) = self.check_task(&request) {
            return self.refuse(request, &error);
        }
        let translation = match request.era {
            Era::Modern if self.eras.modern == Some(true) => Translation::None,
            Era::Modern => Translation::Down,
            Era::Legacy if self.hello.initialize.is_some() => Translation::None,
            Era::Legacy => Translation::Up,
        };
        match (request.method.as_str(), translation) {
            (method, _) if request.era == Era::Modern && era::is_removed(method) => {
                let error = ErrorObject::method_not_found(method);
                self.refuse(request, &error);
            }
            ("initialize", _) => self.answer_initialize(request),
            ("server/discover", _) if request.era == Era::Modern => self.answer_discover(request),
            ("ping", Translation::Up) => self.answer(request, "{}"),
            (SET_LEVEL, Translation::Up | Translation::None) if !self.config.exclusive => {
                self.set_log_level(request, translation);
            }
            ("resources/subscribe" | "resources/unsubscribe", Translation::Up) => {
                let message = format!(
                    "{} is not available: this server has revision {}, with subscriptions/listen",
                    request.method,
                    era::MODERN
                );
                let error = ErrorObject::new(METHOD_NOT_FOUND, message);
                self.refuse(request, &error);
            }
            ("subscriptions/listen", Translation::Down) => self.listen(request),
            ("resources/unsubscribe", Translation::None) => self.unsubscribe(request),
            _ => self.send(request, translation),
        }
    }

    fn answer_initialize(&mut self, request: ClientRequest<R>) {
        let result = match (&self.hello.initialize, &self.hello.discover) {
            (Some(initialize), _) => initialize.clone(),
            (None, Some(discover)) => era::initialized(discover),
            (None, None) => "{}".into(),
        };
        let result = era::initialize_result_for(&result, &request.text);
        self.answer(request, &result);
    }

    fn answer_discover(&mut self, request: ClientRequest<R>) {
        let result = match (&self.hello.discover, &self.hello.initialize) {
            (Some(discover), _) => discover.clone(),
            (None, Some(initialize)) => era::discovered(initialize),
            (None, None) => "{}".into(),
        };
        self.answer(request, &result);
    }

    /// A stateless client listens to a server that sends every notification anyway.
    fn listen(&mut self, request: ClientRequest<R>) {
        let filter = Filter::of(&request.text).unwrap_or_default();
        let params = format!("{{\"notifications\":{}}}", filter.to_json());
        let acknowledgement =
            reply::notification("notifications/subscriptions/acknowledged", Some(&params));
        let text =
            era::to_listener(&String::from_utf8_lossy(&acknowledgement), request.id.as_json());
        self.out.push(Output::Notify {
            client: request.client,
            request_id: Some(request.id.clone()),
            text,
        });
        self.listeners.push(ListenRequest {
            client: request.client,
            id: request.id,
            filter,
            reply: request.reply,
        });
    }

    /// Other clients may still be subscribed.
    fn unsubscribe(&mut self, request: ClientRequest<R>) {
        let resource = resource_of(&request.text);
        if let (Some(resource), Some(client)) = (&resource, self.clients.get_mut(&request.client)) {
            client.resources.remove(resource);
        }
        let is_subscribed = |resource: &String| {
            self.clients.values().any(|client| client.resources.contains(resource))
        };
        match resource.as_ref().is_some_and(is_subscribed) {
            true => self.answer(request, "{}"),
            false => self.send(request, Translation::None),
        }
    }

    /// Sends a request to the server under an id of the relay's own.
    pub(super) fn send(&mut self, request: ClientRequest<R>, translation: Translation) {
        if translation == Translation::Down {
            self.note_stateless_level(&request);
        }
        let upstream = self.next_upstream_id();
        let mut edits = Vec::new();
        if let Some(span) = raw::id(&request.text) {
            edits.push((span, upstream.0.to_string()));
        }
        let mut token = None;
        // Clients choose their tokens freely; two of them may choose the same.
        if let Some(span) = raw::at_path(&request.text, &["params", "_meta", "progressToken"]) {
            token = Some(request.text[span.clone()].to_owned());
            edits.push((span, upstream.0.to_string()));
        }
        let client = self.clients.entry(request.client).or_default();
        client.calls.insert(request.id.clone(), Some(upstream));
        if translation == Translation::Up {
            let meta = era::stateless_meta(client.log_level.map(LogLevel::as_json));
            edits.extend(era::meta_edit(&request.text, &meta));
        }
        if request.method == "resources/subscribe" {
            client.resources.extend(resource_of(&request.text));
        }
        self.out.push(Output::Write(raw::edited(&request.text, edits)));
        let ClientRequest { client, id, method, reply, .. } = request;
        let method = method.into();
        self.pending.insert(upstream, Pending { client, id, method, translation, token, reply });
    }

    /// Handles a client's notification.
    pub(crate) fn notify(&mut self, client: ClientId, method: &str, text: &str) {
        match method {
            // The session sent its own, for all clients.
            "notifications/initialized" => {}
            "notifications/cancelled" => {
                let id = raw::at_path(text, &["params", "requestId"]);
                if let Some(id) = id.and_then(|span| Id::from_json(&text[span])) {
                    let why = raw::at_path(text, &["params", "reason"]);
                    let why = why.and_then(|span| serde_json::from_str(&text[span]).ok());
                    let why = why.unwrap_or_else(|| "the client cancelled it".to_owned());
                    self.cancel_on_request(client, &id, &why);
                }
            }
            // What one client says about itself does not apply to the others. Only MCP
            // notifications pass: some servers execute a request that has no id.
            _ if self.config.exclusive && method.starts_with("notifications/") => {
                self.pass_on(text);
            }
            _ => {}
        }
    }

    /// Forwards a client's response to a request of the server.
    pub(crate) fn respond(&mut self, client: ClientId, id: &Id, text: &str) {
        let was_requested =
            self.clients.get_mut(&client).is_some_and(|client| client.server_requests.remove(id));
        if was_requested {
            self.pass_on(text);
        }
    }

    /// Writes a message that expects no response, unless it is ambiguous.
    fn pass_on(&mut self, text: &str) {
        if ambiguity(text).is_none() {
            self.out.push(Output::Write(text.to_owned()));
        }
    }

    /// Unsubscribes from a resource unless another client is subscribed.
    pub(super) fn unsubscribe_unused(&mut self, resource: &str) {
        if self.clients.values().any(|client| client.resources.contains(resource)) {
            return;
        }
        let upstream = self.next_upstream_id();
        let params = format!("{{\"uri\":{}}}", raw::quoted(resource));
        let id = upstream.to_id();
        self.write_bytes(reply::request(&id, "resources/unsubscribe", Some(&params)));
    }
}

fn resource_of(text: &str) -> Option<String> {
    let span = raw::at_path(text, &["params", "uri"])?;
    serde_json::from_str(&text[span]).ok()
}
