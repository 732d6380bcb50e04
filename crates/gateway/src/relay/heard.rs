//! Output of the server.

use patterm_wire::error::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use patterm_wire::{ErrorObject, Id, Incoming, Malformed, Message, reply};

use super::era::{self, Crossing};
use super::{LineId, Output, Relay, tasks};
use crate::lines::LongLine;
use crate::raw;
use crate::refusal::{Refusal, RefusalKind};

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
    /// peers would answer each other for ever.
    pub(crate) fn hear(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match (Incoming::parse(line), std::str::from_utf8(line)) {
            (Ok(Incoming::One(message)), Ok(text)) => self.hear_message(message, text),
            (Ok(Incoming::Batch(elements)), _) => {
                for element in elements {
                    match Message::from_raw(element) {
                        Ok(message) => self.hear_message(message, element.get()),
                        Err(malformed) => self.hear_malformed(element.get().as_bytes(), &malformed),
                    }
                }
            }
            (Err(malformed), _) => self.hear_malformed(line, &malformed),
            // Messages are UTF-8.
            (Ok(_), Err(_)) => {}
        }
    }

    /// Handles a malformed message. If it stands for a response, the request fails immediately.
    fn hear_malformed(&mut self, line: &[u8], malformed: &Malformed) {
        self.noise += 1;
        let id = patterm_wire::id_in_prefix(line);
        let own = id.and_then(|id| id.as_json().parse().ok());
        let Some(own) = own else { return };
        let why = malformed.error.detail();
        let message = format!("cannot parse the server's response: {why}");
        if self.greeted(own, Err(&message)) {
            return;
        }
        if let Some(pending) = self.forget(own) {
            let error = ErrorObject::new(INTERNAL_ERROR, message);
            let body = reply::error(Some(&pending.id), &error);
            self.out.push(Output::Answer(pending.reply, body));
        }
    }

    /// Handles what is left of an oversized line: if it was a response, the request fails.
    pub(crate) fn hear_too_long(&mut self, line: &LongLine, limit: usize) {
        let Some(pending) = raw::id_at_ends(line).and_then(|own| self.forget(own)) else {
            self.noise += 1;
            return;
        };
        let message = format!("the response exceeds the limit of {limit} bytes");
        let refusal = Refusal::new(RefusalKind::Limit, message);
        self.out.push(Output::Answer(pending.reply, refusal.to_answer(&pending.id)));
    }

    fn hear_message(&mut self, message: Message<'_>, text: &str) {
        match message {
            Message::Response { id, outcome } => {
                let own = id.and_then(|id| id.as_json().parse().ok());
                let outcome = outcome.map(|raw| raw.get()).map_err(|raw| raw.get());
                match own {
                    Some(own) if self.greeted(own, outcome) => {}
                    Some(own) => self.hear_answer(own, text, outcome.is_err()),
                    None => self.noise += 1,
                }
            }
            Message::Request { id, method, .. } => self.hear_request(id, &method, text),
            Message::Notification { method, .. } => self.hear_notification(&method, text),
        }
    }

    fn hear_answer(&mut self, own: u64, text: &str, failed: bool) {
        // A response to a cancelled request, or to one of the relay's own.
        let Some(pending) = self.forget(own) else { return };
        if pending.crossing == Crossing::Up && era::wants_input(text) {
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
        self.note_task(&pending, text);
        let mut edits = Vec::new();
        edits.extend(self.own_tasks_edit(&pending, text));
        if let Some(span) = raw::id(text) {
            edits.push((span, pending.id.as_json().to_owned()));
        }
        if failed && let Some(span) = empty_message(text) {
            edits.push((span, NO_MESSAGE.to_owned()));
        }
        if pending.crossing == Crossing::Down {
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

    fn hear_request(&mut self, id: Id, method: &str, text: &str) {
        let only = self.only_line();
        match method {
            "ping" => self.write_bytes(reply::result(&id, "{}")),
            _ if self.terms.exclusive && only.is_some() => {
                let Some(line) = only else { return };
                let about = self.sole_request(line);
                if let Some(line) = self.lines.get_mut(&line) {
                    line.asked.insert(id);
                }
                self.out.push(Output::Tell { line, about, text: text.trim().to_owned() });
            }
            ROOTS => {
                let result = format!("{{\"roots\":{}}}", self.terms.roots);
                self.write_bytes(reply::result(&id, &result));
            }
            _ => {
                let message = format!(
                    "Method not found: several clients share this server, and {method} cannot be \
                     sent to any one of them"
                );
                let error = ErrorObject::new(METHOD_NOT_FOUND, message).with_data(method);
                self.write_bytes(reply::error(Some(&id), &error));
            }
        }
    }

    fn hear_notification(&mut self, method: &str, text: &str) {
        let text = text.trim();
        if let Some(span) = era::subscription(text, "params") {
            let own: Option<u64> = text[span.clone()].parse().ok();
            if own.is_some() && own == self.own_listening {
                if method.ends_with("/list_changed") {
                    self.tell_those(text, |_, _| true);
                }
                return;
            }
            let Some(pending) = own.and_then(|own| self.pending.get(&own)) else { return };
            let (line, id) = (pending.line, pending.id.clone());
            let text = raw::edited(text, vec![(span, id.as_json().to_owned())]);
            self.out.push(Output::Tell { line, about: Some(id), text });
            return;
        }
        match method {
            "notifications/progress" => self.hear_progress(text),
            _ if self.terms.shared && tasks::is_about_task(method) => {
                let owner = self.owner_of_told(text);
                self.tell_those(text, |_, line| owner.as_ref() == Some(&line.caller));
            }
            "notifications/resources/updated" => {
                let resource = raw::at_path(text, &["params", "uri"]);
                let resource = resource.and_then(|span| serde_json::from_str(&text[span]).ok());
                let Some(resource): Option<String> = resource else { return };
                let wants = |line: &super::Line| line.resources.contains(&resource);
                self.tell_those(text, |_, line| wants(line));
            }
            _ if method.ends_with("/list_changed") => {
                self.tell_those(text, |_, _| true);
                for listener in &self.listeners {
                    if listener.filter.wants(method) {
                        let text = era::to_listener(text, listener.id.as_json());
                        let about = Some(listener.id.clone());
                        self.out.push(Output::Tell { line: listener.line, about, text });
                    }
                }
            }
            // The recipient is known only if there is a single client.
            _ => {
                if let Some(line) = self.only_line() {
                    let about = self.sole_request(line);
                    self.out.push(Output::Tell { line, about, text: text.to_owned() });
                }
            }
        }
    }

    fn hear_progress(&mut self, text: &str) {
        let Some(span) = raw::at_path(text, &["params", "progressToken"]) else { return };
        let own = text[span.clone()].parse().ok();
        let Some(pending) = own.and_then(|own: u64| self.pending.get(&own)) else { return };
        let Some(token) = pending.token.clone() else { return };
        let (line, about) = (pending.line, Some(pending.id.clone()));
        let text = raw::edited(text, vec![(span, token)]);
        self.out.push(Output::Tell { line, about, text });
    }

    /// Notifies the clients for which `of` is true, in the order in which they joined.
    fn tell_those(&mut self, text: &str, of: impl Fn(LineId, &super::Line) -> bool) {
        let mut lines: Vec<LineId> = self
            .lines
            .iter()
            .filter(|(id, line)| !line.stateless && of(**id, line))
            .map(|(id, _)| *id)
            .collect();
        lines.sort_unstable();
        for line in lines {
            self.out.push(Output::Tell { line, about: None, text: text.to_owned() });
        }
    }

    /// The client, if there is only one.
    fn only_line(&self) -> Option<LineId> {
        let mut lines = self.lines.keys();
        lines.next().filter(|_| lines.next().is_none()).copied()
    }

    /// The pending request of a client, if there is only one.
    fn sole_request(&self, line: LineId) -> Option<Id> {
        let calls = &self.lines.get(&line)?.calls;
        let mut sent = calls.iter().filter(|(_, own)| own.is_some());
        sent.next().filter(|_| sent.next().is_none()).map(|(id, _)| id.clone())
    }
}

/// Edits of a text, shifted to the same text without leading white space.
fn shifted(edits: Vec<(raw::Span, String)>, text: &str) -> Vec<(raw::Span, String)> {
    let lead = text.len() - text.trim_start().len();
    edits.into_iter().map(|(s, by)| (s.start - lead..s.end - lead, by)).collect()
}
