//! One session with a server, as a value: what callers send and what the server prints goes in,
//! what must be written to either comes out. Nothing here waits, writes or reads a clock.

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

/// A caller's line to a session.
pub(crate) type LineId = u64;

/// What a session is told once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// It has one caller only, who may be asked by the server and whose capabilities are declared.
    pub(crate) exclusive: bool,
    /// Several callers may use it, who are to hear nothing of each other's tasks.
    pub(crate) shared: bool,
    /// What `roots/list` is answered with, as JSON.
    pub(crate) roots: String,
    /// Calls that may be in flight, waiting ones among them; 0 for no bound.
    pub(crate) in_flight: usize,
}

/// A request of a caller's.
#[derive(Debug)]
pub(crate) struct Ask<R> {
    pub(crate) line: LineId,
    pub(crate) id: Id,
    pub(crate) method: String,
    /// The whole message, as it came.
    pub(crate) text: String,
    pub(crate) era: Era,
    /// To whom the answer goes.
    pub(crate) reply: R,
}

/// What must be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output<R> {
    /// Write this line to the server.
    Write(String),
    /// Write this one, and tell how that went: the handshake is not done before.
    WriteInitialized(String),
    /// Answer a caller.
    Answer(R, Vec<u8>),
    /// Give a caller its request back: the server never saw it, and another may.
    GiveBack(R, String),
    /// Tell a caller something, if it can be told: about this request of his.
    Tell { line: LineId, about: Option<Id>, text: String },
}

/// A request that the server has not answered.
#[derive(Debug)]
struct Pending<R> {
    line: LineId,
    id: Id,
    method: String,
    crossing: Crossing,
    /// The caller's progress token, as it stood.
    token: Option<String>,
    reply: R,
}

/// A caller of the stateless era who listens to a server that has no such thing.
#[derive(Debug)]
struct Listener<R> {
    line: LineId,
    id: Id,
    filter: era::Filter,
    reply: R,
}

/// What is known of a caller's line.
#[derive(Debug, Default)]
struct Line {
    /// Whose it is: an agent's, or a token's.
    caller: String,
    /// It is of the stateless era: it hears what it listens to, and what belongs to its requests.
    stateless: bool,
    /// Requests of the server's that this caller was asked.
    asked: HashSet<Id>,
    /// Resources it subscribed to.
    resources: BTreeSet<String>,
    /// The log level it asked for, as JSON.
    log_level: Option<String>,
    /// Its requests that are not answered, by its ids, with ours where they were sent.
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
    /// Under which id the session itself listens to a stateless server, for callers who cannot.
    own_listening: Option<u64>,
    lines: HashMap<LineId, Line>,
    tasks: Tasks,
    out: Vec<Output<R>>,
    /// Lines that were no message.
    noise: u64,
}

impl<R> Relay<R> {
    /// A session whose server was just started; `eras` is what is known from an earlier one.
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

    /// Moves what must be done now to where it is done.
    pub(crate) fn move_output(&mut self, to: &mut Vec<Output<R>>) {
        to.append(&mut self.out);
    }

    /// Calls that are not answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.pending.len() + self.waiting.len()
    }

    /// Lines of the server's that were no message.
    pub(crate) fn noise(&self) -> u64 {
        self.noise
    }

    /// What is known of the server's eras.
    pub(crate) fn eras(&self) -> Eras {
        self.eras
    }

    /// A caller came.
    pub(crate) fn join(&mut self, line: LineId, caller: &str) {
        caller.clone_into(&mut self.lines.entry(line).or_default().caller);
    }

    /// A caller is gone: its calls are cancelled, what it subscribed to is given up.
    pub(crate) fn leave(&mut self, line: LineId) {
        let Some(gone) = self.lines.remove(&line) else { return };
        self.waiting.retain(|ask| ask.line != line);
        self.listeners.retain(|listener| listener.line != line);
        let mut sent: Vec<u64> = gone.calls.into_values().flatten().collect();
        sent.sort_unstable();
        for own in sent {
            self.abandon(own, "the caller is gone");
        }
        for resource in gone.resources {
            self.give_up(&resource);
        }
        for id in gone.asked {
            let error = ErrorObject::new(INTERNAL_ERROR, "the caller that was asked is gone");
            self.write_bytes(reply::error(Some(&id), &error));
        }
    }

    /// A caller does not want an answer any more, by its own id.
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

    /// The session is over: whoever waits hears why. Where the server died of the probe, who waited
    /// for the handshake may ask another one.
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

    /// Forgets a request that was sent, and tells the server.
    fn abandon(&mut self, own: u64, why: &str) {
        let Some(pending) = self.forget(own) else { return };
        // The one request that must not be cancelled.
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

    /// Refuses one.
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
        // Made by us from text.
        self.out.push(Output::Write(String::from_utf8_lossy(&line).into_owned()));
    }

    fn own_id(&mut self) -> u64 {
        let (pending, listening) = (&self.pending, self.own_listening);
        let greeting = self.greeting().map(|(own, _)| own);
        self.ids.next(|id| pending.contains_key(&id) || [listening, greeting].contains(&Some(id)))
    }
}
