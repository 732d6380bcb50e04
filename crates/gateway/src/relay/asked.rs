//! Requests and notifications from clients.

use patterm_wire::error::{INVALID_REQUEST, METHOD_NOT_FOUND};
use patterm_wire::{ErrorObject, Id, reply};

use super::era::{self, Crossing, Era, Filter};
use super::stage::{Need, Stage};
use super::{Ask, LineId, Listener, Output, Pending, Relay};
use crate::ambiguous::ambiguity;
use crate::raw;
use crate::refusal::{Refusal, RefusalKind};

impl<R> Relay<R> {
    /// Handles a client's request.
    pub(crate) fn ask(&mut self, ask: Ask<R>) {
        let all = self.in_flight();
        if let Some(why) = ambiguity(&ask.text) {
            let error = ErrorObject::new(INVALID_REQUEST, why);
            return self.out.push(Output::Answer(ask.reply, reply::error(Some(&ask.id), &error)));
        }
        let line = self.lines.entry(ask.line).or_default();
        if line.calls.contains_key(&ask.id) {
            let body = reply::error(Some(&ask.id), &ErrorObject::duplicate_id());
            return self.out.push(Output::Answer(ask.reply, body));
        }
        line.calls.insert(ask.id.clone(), None);
        line.stateless = ask.era == Era::Modern;
        if self.terms.in_flight != 0 && all >= self.terms.in_flight {
            let message = format!(
                "too many calls in flight: {all} of all callers, at most {}; try again when some are \
                 answered",
                self.terms.in_flight
            );
            return self.refuse(ask, &Refusal::new(RefusalKind::Limit, message).to_error());
        }
        self.proceed(ask);
    }

    /// Serves a request, or queues it until the handshake it needs is done.
    pub(super) fn proceed(&mut self, ask: Ask<R>) {
        if self.stage == Stage::Closed {
            let refusal = Refusal::new(RefusalKind::Ended, "the server ended");
            return self.refuse(ask, &refusal.to_error());
        }
        let need = self.need(ask.era);
        if need != Need::Nothing || matches!(self.stage, Stage::Initialized { .. }) {
            self.advance(need, Some(&ask));
            self.waiting.push(ask);
            return;
        }
        if let Err(error) = self.check_task(&ask) {
            return self.refuse(ask, &error);
        }
        let crossing = match ask.era {
            Era::Modern if self.eras.modern == Some(true) => Crossing::None,
            Era::Modern => Crossing::Down,
            Era::Legacy if self.hello.initialize.is_some() => Crossing::None,
            Era::Legacy => Crossing::Up,
        };
        match (ask.method.as_str(), crossing) {
            (method, _) if ask.era == Era::Modern && era::is_gone(method) => {
                let error = ErrorObject::method_not_found(method);
                self.refuse(ask, &error);
            }
            ("initialize", _) => self.answer_initialize(ask),
            ("server/discover", _) if ask.era == Era::Modern => self.answer_discover(ask),
            ("ping", Crossing::Up) => self.answer(ask, "{}"),
            ("logging/setLevel", Crossing::Up) => self.keep_log_level(ask),
            ("resources/subscribe" | "resources/unsubscribe", Crossing::Up) => {
                let message = format!(
                    "{} is not available: this server has revision {}, with subscriptions/listen",
                    ask.method,
                    era::MODERN
                );
                let error = ErrorObject::new(METHOD_NOT_FOUND, message);
                self.refuse(ask, &error);
            }
            ("subscriptions/listen", Crossing::Down) => self.listen(ask),
            ("resources/unsubscribe", Crossing::None) => self.unsubscribe(ask),
            _ => self.send(ask, crossing),
        }
    }

    fn answer_initialize(&mut self, ask: Ask<R>) {
        let own = match (&self.hello.initialize, &self.hello.discover) {
            (Some(initialize), _) => initialize.clone(),
            (None, Some(discover)) => era::initialized(discover),
            (None, None) => "{}".into(),
        };
        let result = era::hello_for(&own, &ask.text);
        self.answer(ask, &result);
    }

    fn answer_discover(&mut self, ask: Ask<R>) {
        let result = match (&self.hello.discover, &self.hello.initialize) {
            (Some(discover), _) => discover.clone(),
            (None, Some(initialize)) => era::discovered(initialize),
            (None, None) => "{}".into(),
        };
        self.answer(ask, &result);
    }

    fn keep_log_level(&mut self, ask: Ask<R>) {
        let level = raw::at_path(&ask.text, &["params", "level"]);
        let level = level.map(|span| ask.text[span].to_owned());
        if let Some(line) = self.lines.get_mut(&ask.line) {
            line.log_level = level;
        }
        self.answer(ask, "{}");
    }

    /// A stateless client listens to a server that sends every notification anyway.
    fn listen(&mut self, ask: Ask<R>) {
        let filter = Filter::of(&ask.text).unwrap_or_default();
        let params = format!("{{\"notifications\":{}}}", filter.to_json());
        let said = reply::notification("notifications/subscriptions/acknowledged", Some(&params));
        let text = era::to_listener(&String::from_utf8_lossy(&said), ask.id.as_json());
        self.out.push(Output::Tell { line: ask.line, about: Some(ask.id.clone()), text });
        self.listeners.push(Listener { line: ask.line, id: ask.id, filter, reply: ask.reply });
    }

    /// Other clients may still be subscribed.
    fn unsubscribe(&mut self, ask: Ask<R>) {
        let resource = resource_of(&ask.text);
        if let (Some(resource), Some(line)) = (&resource, self.lines.get_mut(&ask.line)) {
            line.resources.remove(resource);
        }
        let wanted =
            |resource: &String| self.lines.values().any(|l| l.resources.contains(resource));
        match resource.as_ref().is_some_and(wanted) {
            true => self.answer(ask, "{}"),
            false => self.send(ask, Crossing::None),
        }
    }

    /// Sends a request to the server under an id of the relay's own.
    fn send(&mut self, ask: Ask<R>, crossing: Crossing) {
        let own = self.own_id();
        let mut edits = Vec::new();
        if let Some(span) = raw::id(&ask.text) {
            edits.push((span, own.to_string()));
        }
        let mut token = None;
        // Clients choose their tokens freely; two of them may choose the same.
        if let Some(span) = raw::at_path(&ask.text, &["params", "_meta", "progressToken"]) {
            token = Some(ask.text[span.clone()].to_owned());
            edits.push((span, own.to_string()));
        }
        let line = self.lines.entry(ask.line).or_default();
        line.calls.insert(ask.id.clone(), Some(own));
        if crossing == Crossing::Up {
            let meta = era::stateless_meta(line.log_level.as_deref());
            edits.extend(era::meta_edit(&ask.text, &meta));
        }
        if ask.method == "resources/subscribe" {
            line.resources.extend(resource_of(&ask.text));
        }
        self.out.push(Output::Write(raw::edited(&ask.text, edits)));
        let Ask { line, id, method, reply, .. } = ask;
        self.pending.insert(own, Pending { line, id, method, crossing, token, reply });
    }

    /// Handles a client's notification.
    pub(crate) fn tell(&mut self, line: LineId, method: &str, text: &str) {
        match method {
            // The session sent its own, for all clients.
            "notifications/initialized" => {}
            "notifications/cancelled" => {
                let id = raw::at_path(text, &["params", "requestId"]);
                if let Some(id) = id.and_then(|span| Id::from_json(&text[span])) {
                    let why = raw::at_path(text, &["params", "reason"]);
                    let why = why.and_then(|span| serde_json::from_str(&text[span]).ok());
                    let why = why.unwrap_or_else(|| "the client cancelled it".to_owned());
                    self.cancel(line, &id, &why);
                }
            }
            // What one client says about itself does not apply to the others. Only MCP
            // notifications pass: some servers execute a request that has no id.
            _ if self.terms.exclusive && method.starts_with("notifications/") => {
                self.pass_on(text);
            }
            _ => {}
        }
    }

    /// Forwards a client's response to a request of the server.
    pub(crate) fn respond(&mut self, line: LineId, id: &Id, text: &str) {
        let asked = self.lines.get_mut(&line).is_some_and(|line| line.asked.remove(id));
        if asked {
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
    pub(super) fn give_up(&mut self, resource: &str) {
        if self.lines.values().any(|line| line.resources.contains(resource)) {
            return;
        }
        let own = self.own_id();
        let params = format!("{{\"uri\":{}}}", raw::quoted(resource));
        let id = Id::from_number(own);
        self.write_bytes(reply::request(&id, "resources/unsubscribe", Some(&params)));
    }
}

fn resource_of(text: &str) -> Option<String> {
    let span = raw::at_path(text, &["params", "uri"])?;
    serde_json::from_str(&text[span]).ok()
}
