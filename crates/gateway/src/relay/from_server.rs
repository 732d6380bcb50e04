//! Lines from the server: responses, requests and notifications, and anything that is not a
//! message.

use patterm_wire::error::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use patterm_wire::{ErrorObject, Id, Incoming, Malformed, Message, reply};

use super::era::{self, Translation};
use super::log_level::SET_LEVEL;
use super::{ClientId, Output, Relay, UpstreamId, tasks};
use crate::error::{GatewayError, GatewayErrorKind};
use crate::lines::LongLine;
use crate::raw;

/// Answered on behalf of all clients.
const ROOTS: &str = "roots/list";

/// Replaces an empty error message.
const NO_MESSAGE: &str = "\"internal error\"";

/// The position of an empty error message: clients would show nothing at all.
fn empty_message(text: &str) -> Option<raw::Span> {
    let span = raw::at_path(text, &["error", "message"])?;
    let message: String = serde_json::from_str(&text[span.clone()]).ok()?;
    message.trim().is_empty().then_some(span)
}

impl<R> Relay<R> {
    /// Handles one line. Anything that is not a message is counted and never answered: two such
    /// peers would answer each other forever.
    pub(crate) fn receive_line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() || self.receive_usual(line).is_some() {
            return;
        }
        match (Incoming::parse(line), std::str::from_utf8(line)) {
            (Ok(Incoming::One(message)), Ok(text)) => self.receive_message(message, text),
            (Ok(Incoming::Batch(elements)), _) => {
                for element in elements {
                    match Message::from_raw(element) {
                        Ok(message) => self.receive_message(message, element.get()),
                        Err(malformed) => {
                            self.receive_malformed(element.get().as_bytes(), &malformed)
                        }
                    }
                }
            }
            (Err(malformed), _) => self.receive_malformed(line, &malformed),
            // Messages are UTF-8.
            (Ok(_), Err(_)) => {}
        }
    }

    /// Handles a malformed message. If it stands for a response, the request fails immediately.
    fn receive_malformed(&mut self, line: &[u8], malformed: &Malformed) {
        self.noise += 1;
        let id = patterm_wire::id_in_prefix(line);
        let upstream = id.as_ref().and_then(UpstreamId::of);
        let Some(upstream) = upstream else { return };
        let why = malformed.error.detail();
        let message = format!("cannot parse the server's response: {why}");
        if self.receive_handshake(upstream, Err(&message)) {
            return;
        }
        if let Some(pending) = self.forget(upstream) {
            let error = ErrorObject::new(INTERNAL_ERROR, message);
            let body = reply::error(Some(&pending.id), &error);
            self.out.push(Output::Answer(pending.reply, body));
        }
    }

    /// Handles what is left of an oversized line: if it was a response, the request fails.
    pub(crate) fn receive_oversized(&mut self, line: &LongLine, limit: usize) {
        let Some(pending) = raw::id_at_ends(line).and_then(|id| self.forget(UpstreamId(id))) else {
            self.noise += 1;
            return;
        };
        let message = format!("the response exceeds the limit of {limit} bytes");
        let error = GatewayError::new(GatewayErrorKind::Limit, message);
        self.out.push(Output::Answer(pending.reply, error.to_response(&pending.id)));
    }

    fn receive_message(&mut self, message: Message<'_>, text: &str) {
        match message {
            Message::Response { id, outcome } => {
                let upstream = id.as_ref().and_then(UpstreamId::of);
                let outcome = outcome.map(|raw| raw.get()).map_err(|raw| raw.get());
                match upstream {
                    Some(upstream) if self.receive_handshake(upstream, outcome) => {}
                    Some(upstream) => self.receive_response(upstream, text, outcome.is_err()),
                    None => self.noise += 1,
                }
            }
            Message::Request { id, method, .. } => self.receive_request(id, &method, text),
            Message::Notification { method, .. } => self.receive_notification(&method, text),
        }
    }

    fn receive_response(&mut self, upstream: UpstreamId, text: &str, failed: bool) {
        // A response to a cancelled request, or to one of the relay's own.
        let Some(pending) = self.forget(upstream) else { return };
        if pending.translation == Translation::Up && era::requests_input(text) {
            let message = format!(
                "the server requests input before it answers {}, which clients of revision {} do \
                 not support",
                pending.method,
                era::LEGACY
            );
            let error = ErrorObject::new(INTERNAL_ERROR, message);
            let body = reply::error(Some(&pending.id), &error);
            return self.out.push(Output::Answer(pending.reply, body));
        }
        if failed && pending.method == SET_LEVEL {
            self.log_level_refused(pending.client);
        }
        self.note_task(&pending, text);
        let mut edits = Vec::new();
        edits.extend(self.own_tasks_edit(&pending, text));
        if let Some(span) = raw::id(text) {
            edits.push((span, pending.id.as_json().to_owned()));
        }
        if failed && let Some(span) = empty_message(text) {
            edits.push((span, NO_MESSAGE.to_owned()));
        }
        if pending.translation == Translation::Down {
            edits.extend(era::stateless_result_edit(text, &pending.method));
        }
        if pending.method == "subscriptions/listen"
            && let Some(span) = era::subscription(text, "result")
        {
            edits.push((span, pending.id.as_json().to_owned()));
        }
        let body = raw::edited(text.trim(), shifted(edits, text)).into_bytes();
        self.out.push(Output::Answer(pending.reply, body));
    }

    fn receive_request(&mut self, id: Id, method: &str, text: &str) {
        // A stateless client, or one without a session, could never answer.
        let can_respond = |id: &ClientId| {
            self.clients.get(id).is_some_and(|client| client.can_respond && !client.stateless)
        };
        let only = self.only_client().filter(can_respond);
        match method {
            "ping" => self.write_bytes(reply::result(&id, "{}")),
            _ if self.config.exclusive && only.is_some() => {
                let Some(client) = only else { return };
                let request_id = self.sole_request(client);
                if let Some(client) = self.clients.get_mut(&client) {
                    client.server_requests.insert(id);
                }
                self.out.push(Output::Notify { client, request_id, text: text.trim().to_owned() });
            }
            ROOTS => {
                let result = format!("{{\"roots\":{}}}", self.config.roots);
                self.write_bytes(reply::result(&id, &result));
            }
            _ => {
                let message = format!(
                    "Method not found: {method} cannot be sent to a client, because several share \
                     this server, or its client cannot answer requests"
                );
                let error = ErrorObject::new(METHOD_NOT_FOUND, message).with_data(method);
                self.write_bytes(reply::error(Some(&id), &error));
            }
        }
    }

    fn receive_notification(&mut self, method: &str, text: &str) {
        let text = text.trim();
        if let Some(span) = era::subscription(text, "params") {
            let upstream = UpstreamId::parse(&text[span.clone()]);
            if upstream.is_some() && upstream == self.own_subscription {
                if method.ends_with("/list_changed") {
                    self.notify_matching(text, |_, _| true);
                }
                return;
            }
            let Some(pending) = upstream.and_then(|upstream| self.pending.get(&upstream)) else {
                return;
            };
            let (client, id) = (pending.client, pending.id.clone());
            let text = raw::edited(text, vec![(span, id.as_json().to_owned())]);
            self.out.push(Output::Notify { client, request_id: Some(id), text });
            return;
        }
        match method {
            "notifications/progress" => self.receive_progress(text),
            "notifications/message" => self.receive_log(text),
            _ if self.config.shared && tasks::is_about_task(method) => {
                let owner = self.task_owner(text);
                self.notify_matching(text, |_, client| owner.as_ref() == Some(&client.caller));
            }
            "notifications/resources/updated" => {
                let resource = raw::at_path(text, &["params", "uri"]);
                let resource = resource.and_then(|span| serde_json::from_str(&text[span]).ok());
                let Some(resource): Option<String> = resource else { return };
                let wants = |client: &super::ClientState| client.resources.contains(&resource);
                self.notify_matching(text, |_, client| wants(client));
            }
            _ if method.ends_with("/list_changed") => {
                self.notify_matching(text, |_, _| true);
                for listener in &self.listeners {
                    if listener.filter.wants(method) {
                        let text = era::to_listener(text, listener.id.as_json());
                        let request_id = Some(listener.id.clone());
                        self.out.push(Output::Notify { client: listener.client, request_id, text });
                    }
                }
            }
            // The recipient is known only if there is a single client.
            _ => {
                if let Some(client) = self.only_client() {
                    let request_id = self.sole_request(client);
                    self.out.push(Output::Notify { client, request_id, text: text.to_owned() });
                }
            }
        }
    }

    fn receive_progress(&mut self, text: &str) {
        let Some(span) = raw::at_path(text, &["params", "progressToken"]) else { return };
        let upstream = UpstreamId::parse(&text[span.clone()]);
        let Some(pending) = upstream.and_then(|upstream| self.pending.get(&upstream)) else {
            return;
        };
        let Some(token) = pending.token.clone() else { return };
        let (client, request_id) = (pending.client, Some(pending.id.clone()));
        let text = raw::edited(text, vec![(span, token)]);
        self.out.push(Output::Notify { client, request_id, text });
    }

    /// Notifies the clients for which `of` is true, in the order in which they joined.
    fn notify_matching(&mut self, text: &str, of: impl Fn(ClientId, &super::ClientState) -> bool) {
        let mut clients: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(id, client)| !client.stateless && of(**id, client))
            .map(|(id, _)| *id)
            .collect();
        clients.sort_unstable();
        for client in clients {
            self.out.push(Output::Notify { client, request_id: None, text: text.to_owned() });
        }
    }

    /// The client, if there is only one.
    fn only_client(&self) -> Option<ClientId> {
        let mut clients = self.clients.keys();
        clients.next().filter(|_| clients.next().is_none()).copied()
    }

    /// The pending request of a client, if there is only one.
    pub(super) fn sole_request(&self, client: ClientId) -> Option<Id> {
        let calls = &self.clients.get(&client)?.calls;
        let mut sent = calls.iter().filter(|(_, upstream)| upstream.is_some());
        sent.next().filter(|_| sent.next().is_none()).map(|(id, _)| id.clone())
    }
}

/// Edits of a text, shifted to the same text without leading white space.
fn shifted(edits: Vec<(raw::Span, String)>, text: &str) -> Vec<(raw::Span, String)> {
    let lead = text.len() - text.trim_start().len();
    edits.into_iter().map(|(s, by)| (s.start - lead..s.end - lead, by)).collect()
}
