//! One session with a server, as a value: messages from clients and lines from the server go in,
//! and what must be written to either comes out. It does no I/O and reads no clock.

mod asked;
mod era;
mod heard;
mod ids;
mod stage;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use patterm_wire::error::INTERNAL_ERROR;
use patterm_wire::{ErrorObject, Id, reply};

use crate::raw;
use crate::refusal::Refusal;
use era::Crossing;
pub(crate) use era::{Era, MODERN, REVISIONS};
pub(crate) use ids::Ids;
pub(crate) use stage::{Eras, Hello};
use stage::{Probe, Stage};
use tasks::Tasks;

/// Identifies a client of a session.
pub(crate) type LineId = u64;

/// The configuration of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// It has a single client, which may get requests from the server and whose capabilities are
    /// declared.
    pub(crate) exclusive: bool,
    /// Several callers may use it, who must not see each other's tasks.
    pub(crate) shared: bool,
    /// The answer to `roots/list`, as JSON.
    pub(crate) roots: String,
    /// Limit of requests in flight, queued ones included; 0 for none.
    pub(crate) in_flight: usize,
}

/// A client's request.
#[derive(Debug)]
pub(crate) struct Ask<R> {
    pub(crate) line: LineId,
    pub(crate) id: Id,
    pub(crate) method: String,
    /// The whole message, as received.
    pub(crate) text: String,
    pub(crate) era: Era,
    /// Where the response goes.
    pub(crate) reply: R,
}

/// What the session must do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output<R> {
    /// Write this line to the server.
    Write(String),
    /// Write this line, and report when it is written: the handshake is not complete before.
    WriteInitialized(String),
    /// Answer a client's request.
    Answer(R, Vec<u8>),
    /// Return a request that the server never saw; another server may handle it.
    GiveBack(R, String),
    /// Send a client a message about this request of its own.
    Tell { line: LineId, about: Option<Id>, text: String },
}

/// A request that the server has not answered.
#[derive(Debug)]
struct Pending<R> {
    line: LineId,
    id: Id,
    method: String,
    crossing: Crossing,
    /// The client's progress token, as received.
    token: Option<String>,
    reply: R,
}

/// A stateless client that listens to a server without `subscriptions/listen`.
#[derive(Debug)]
struct Listener<R> {
    line: LineId,
    id: Id,
    filter: era::Filter,
    reply: R,
}

/// What is known about a client.
#[derive(Debug, Default)]
struct Line {
    /// Who it belongs to: an agent or a token.
    caller: String,
    /// It is stateless: it gets the notifications it listens to, and those about its requests.
    stateless: bool,
    /// Requests from the server that this client has not answered.
    asked: HashSet<Id>,
    /// Resources it is subscribed to.
    resources: BTreeSet<String>,
    /// The log level it set, as JSON.
    log_level: Option<String>,
    /// Its unanswered requests by its ids, with the relay's ids if they were sent.
    calls: HashMap<Id, Option<u64>>,
}

/// The session.
#[derive(Debug)]
pub(crate) struct Relay<R> {
    terms: Terms,
    stage: Stage,
    eras: Eras,
    hello: Hello,
    probe: Probe,
    ids: Ids,
    pending: HashMap<u64, Pending<R>>,
    waiting: Vec<Ask<R>>,
    listeners: Vec<Listener<R>>,
    /// The id under which the session itself listens to a stateless server, on behalf of older
    /// clients.
    own_listening: Option<u64>,
    lines: HashMap<LineId, Line>,
    tasks: Tasks,
    out: Vec<Output<R>>,
    /// Lines that were not messages.
    noise: u64,
}

impl<R> Relay<R> {
    /// A session with a server that was just started; `eras` is known from earlier sessions.
    pub(crate) fn new(terms: Terms, eras: Eras, ids: Ids) -> Self {
        Self {
            terms,
            stage: Stage::Silent,
            eras,
            hello: Hello::default(),
            probe: Probe::default(),
            ids,
            pending: HashMap::new(),
            waiting: Vec::new(),
            listeners: Vec::new(),
            own_listening: None,
            lines: HashMap::new(),
            tasks: Tasks::default(),
            out: Vec::new(),
            noise: 0,
        }
    }

    /// Moves the pending outputs to `to`.
    pub(crate) fn move_output(&mut self, to: &mut Vec<Output<R>>) {
        to.append(&mut self.out);
    }

    /// Unanswered requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.pending.len() + self.waiting.len()
    }

    /// Lines from the server that were not messages.
    pub(crate) fn noise(&self) -> u64 {
        self.noise
    }

    /// What is known about the server's eras.
    pub(crate) fn eras(&self) -> Eras {
        self.eras
    }

    /// Adds a client.
    pub(crate) fn join(&mut self, line: LineId, caller: &str) {
        caller.clone_into(&mut self.lines.entry(line).or_default().caller);
    }

    /// Removes a client: cancels its requests and drops its subscriptions.
    pub(crate) fn leave(&mut self, line: LineId) {
        let Some(gone) = self.lines.remove(&line) else { return };
        self.waiting.retain(|ask| ask.line != line);
        self.listeners.retain(|listener| listener.line != line);
        let mut sent: Vec<u64> = gone.calls.into_values().flatten().collect();
        sent.sort_unstable();
        for own in sent {
            self.abandon(own, "the client disconnected");
        }
        for resource in gone.resources {
            self.give_up(&resource);
        }
        for id in gone.asked {
            let error = ErrorObject::new(INTERNAL_ERROR, "the client disconnected");
            self.write_bytes(reply::error(Some(&id), &error));
        }
    }

    /// Cancels a request, by the client's id.
    pub(crate) fn cancel(&mut self, line: LineId, id: &Id, why: &str) {
        let called = self.lines.get_mut(&line).and_then(|line| line.calls.remove(id));
        match called {
            Some(Some(own)) => self.abandon(own, why),
            Some(None) => {
                self.waiting.retain(|ask| !(ask.line == line && ask.id == *id));
                self.listeners.retain(|listener| !(listener.line == line && listener.id == *id));
            }
            None => {}
        }
    }

    /// Ends the session: all requests fail with this error. If the probe ended the server, requests
    /// that waited for the handshake are returned for another attempt.
    pub(crate) fn close(&mut self, refusal: &Refusal, of_probe: bool) {
        let error = refusal.to_error();
        if of_probe {
            for ask in std::mem::take(&mut self.waiting) {
                self.out.push(Output::GiveBack(ask.reply, ask.text));
            }
        }
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(own, _)| *own);
        let pending = pending.into_iter().map(|(_, p)| (p.id, p.reply));
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|a| (a.id, a.reply));
        let listening = std::mem::take(&mut self.listeners).into_iter().map(|l| (l.id, l.reply));
        for (id, to) in pending.chain(waiting).chain(listening).collect::<Vec<_>>() {
            self.out.push(Output::Answer(to, reply::error(Some(&id), &error)));
        }
        for line in self.lines.values_mut() {
            line.calls.clear();
        }
        self.stage = Stage::Closed;
    }

    /// Drops a request that was sent, and cancels it on the server.
    fn abandon(&mut self, own: u64, why: &str) {
        let Some(pending) = self.forget(own) else { return };
        // The only request that must not be cancelled.
        if pending.method == "initialize" {
            return;
        }
        let params = format!("{{\"requestId\":{own},\"reason\":{}}}", raw::quoted(why));
        self.write_bytes(reply::notification("notifications/cancelled", Some(&params)));
    }

    fn forget(&mut self, own: u64) -> Option<Pending<R>> {
        let pending = self.pending.remove(&own)?;
        self.end_call(pending.line, &pending.id);
        Some(pending)
    }

    /// Answers a request that was not sent.
    fn answer(&mut self, ask: Ask<R>, result: &str) {
        self.end_call(ask.line, &ask.id);
        self.out.push(Output::Answer(ask.reply, reply::result(&ask.id, result)));
    }

    /// Fails a request that was not sent.
    fn refuse(&mut self, ask: Ask<R>, error: &ErrorObject) {
        self.end_call(ask.line, &ask.id);
        self.out.push(Output::Answer(ask.reply, reply::error(Some(&ask.id), error)));
    }

    fn end_call(&mut self, line: LineId, id: &Id) {
        if let Some(line) = self.lines.get_mut(&line) {
            line.calls.remove(id);
        }
    }

    fn write_bytes(&mut self, line: Vec<u8>) {
        // Built by us from text.
        self.out.push(Output::Write(String::from_utf8_lossy(&line).into_owned()));
    }

    fn own_id(&mut self) -> u64 {
        let (pending, listening) = (&self.pending, self.own_listening);
        let greeting = self.greeting().map(|(own, _)| own);
        self.ids.next(|id| pending.contains_key(&id) || [listening, greeting].contains(&Some(id)))
    }
}
