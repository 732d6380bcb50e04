//! One session with a server, as a value: messages from clients and lines from the server go in,
//! and what must be written to either comes out. It does no I/O and reads no clock.

mod era;
mod from_client;
mod from_server;
mod handshake;
mod ids;
mod log_level;
#[cfg(test)]
mod member_tests;
mod members;
mod tasks;
#[cfg(test)]
mod tests;
mod usual;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use patterm_wire::error::INTERNAL_ERROR;
use patterm_wire::{ErrorObject, Id, reply};

use crate::error::{GatewayError, GatewayErrorKind};
use crate::raw;
use era::Translation;
pub(crate) use era::{Era, MODERN, REVISIONS};
pub(crate) use handshake::{Eras, ServerHello};
use handshake::{HandshakeState, Probe};
pub(crate) use ids::Ids;
use log_level::LogLevel;
pub(crate) use members::Member;
use tasks::Tasks;

/// Identifies a client of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// The id of a request on the connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UpstreamId(pub(crate) u64);

impl UpstreamId {
    /// The id in a message from the server, if it can be one of ours.
    fn of(id: &Id) -> Option<Self> {
        Self::parse(id.as_json())
    }

    fn parse(json: &str) -> Option<Self> {
        json.parse().ok().map(Self)
    }

    fn to_id(self) -> Id {
        Id::from_number(self.0)
    }
}

/// Hashes numbers that no client chooses, and ids that a client chooses for its own few calls, so it needs no
/// secret.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct OwnIdHasher(u64);

impl Hasher for OwnIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Spreads consecutive numbers over all bits (Fibonacci hashing).
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// For maps with such keys.
pub(crate) type OwnIds = BuildHasherDefault<OwnIdHasher>;

/// The configuration of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelayConfig {
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
pub(crate) struct ClientRequest<R> {
    pub(crate) client: ClientId,
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
    Return(R, String),
    /// Send a client a message about this request of its own.
    Notify { client: ClientId, request_id: Option<Id>, text: String },
}

/// A request that the server has not answered.
#[derive(Debug)]
struct Pending<R> {
    client: ClientId,
    id: Id,
    method: Cow<'static, str>,
    translation: Translation,
    /// The client's progress token, as received.
    token: Option<String>,
    reply: R,
}

/// A stateless client that listens to a server without `subscriptions/listen`.
#[derive(Debug)]
struct ListenRequest<R> {
    client: ClientId,
    id: Id,
    filter: era::Filter,
    reply: R,
}

/// What is known about a client.
#[derive(Debug, Default)]
struct ClientState {
    /// Who it belongs to: an agent or a token.
    caller: String,
    /// It is stateless: it gets the notifications it listens to, and those about its requests.
    stateless: bool,
    /// It can answer requests from the server.
    can_respond: bool,
    /// Requests from the server that this client has not answered.
    server_requests: HashSet<Id>,
    /// Resources it is subscribed to.
    resources: BTreeSet<String>,
    /// The log level it set.
    log_level: Option<LogLevel>,
    /// Its unanswered requests by its ids, with the relay's ids if they were sent.
    calls: HashMap<Id, Option<UpstreamId>, OwnIds>,
}

/// The session.
#[derive(Debug)]
pub(crate) struct Relay<R> {
    config: RelayConfig,
    handshake: HandshakeState,
    eras: Eras,
    hello: ServerHello,
    probe: Probe,
    ids: Ids,
    pending: HashMap<UpstreamId, Pending<R>, OwnIds>,
    waiting: Vec<ClientRequest<R>>,
    listeners: Vec<ListenRequest<R>>,
    /// The id under which the session itself listens to a stateless server, on behalf of older
    /// clients.
    own_subscription: Option<UpstreamId>,
    /// The log level that the server was told.
    server_level: Option<LogLevel>,
    clients: HashMap<ClientId, ClientState, OwnIds>,
    tasks: Tasks,
    out: Vec<Output<R>>,
    /// Lines that were not messages.
    noise: u64,
}

impl<R> Relay<R> {
    /// A session with a server that was just started; `eras` is known from earlier sessions.
    pub(crate) fn new(config: RelayConfig, eras: Eras, ids: Ids) -> Self {
        Self {
            config,
            handshake: HandshakeState::Silent,
            eras,
            hello: ServerHello::default(),
            probe: Probe::default(),
            ids,
            pending: HashMap::default(),
            waiting: Vec::new(),
            listeners: Vec::new(),
            own_subscription: None,
            server_level: None,
            clients: HashMap::default(),
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

    /// Adds a client. `can_respond` if it can answer requests from the server.
    pub(crate) fn join(&mut self, client: ClientId, caller: &str, can_respond: bool) {
        let client = self.clients.entry(client).or_default();
        caller.clone_into(&mut client.caller);
        client.can_respond = can_respond;
    }

    /// Removes a client: cancels its requests and drops its subscriptions.
    pub(crate) fn leave(&mut self, client: ClientId) {
        let Some(gone) = self.clients.remove(&client) else { return };
        self.waiting.retain(|request| request.client != client);
        self.listeners.retain(|listener| listener.client != client);
        let mut sent: Vec<UpstreamId> = gone.calls.into_values().flatten().collect();
        sent.sort_unstable();
        for upstream in sent {
            self.abandon(upstream, "the client disconnected");
        }
        for resource in gone.resources {
            self.unsubscribe_unused(&resource);
        }
        if gone.log_level.is_some() && !gone.stateless && self.handshake == HandshakeState::Ready {
            self.update_server_level();
        }
        for id in gone.server_requests {
            let error = ErrorObject::new(INTERNAL_ERROR, "the client disconnected");
            self.write_bytes(reply::error(Some(&id), &error));
        }
    }

    /// A client cancels its own request, by its id. It is answered nevertheless: a client over HTTP
    /// waits for a response.
    fn cancel_on_request(&mut self, client: ClientId, id: &Id, why: &str) {
        let error =
            GatewayError::new(GatewayErrorKind::Cancelled, "the client cancelled this request");
        let called = self.clients.get_mut(&client).and_then(|client| client.calls.remove(id));
        let reply = match called {
            Some(Some(upstream)) => self.abandon(upstream, why),
            Some(None) => {
                let is_waiting = |r: &mut ClientRequest<R>| r.client == client && r.id == *id;
                let is_listening = |l: &mut ListenRequest<R>| l.client == client && l.id == *id;
                let waiting = self.waiting.extract_if(.., is_waiting).next().map(|r| r.reply);
                waiting
                    .or_else(|| self.listeners.extract_if(.., is_listening).next().map(|l| l.reply))
            }
            None => None,
        };
        if let Some(reply) = reply {
            self.out.push(Output::Answer(reply, error.to_response(id)));
        }
    }

    /// Cancels a request whose client is gone, by the client's id.
    pub(crate) fn cancel(&mut self, client: ClientId, id: &Id, why: &str) {
        let called = self.clients.get_mut(&client).and_then(|client| client.calls.remove(id));
        match called {
            Some(Some(upstream)) => drop(self.abandon(upstream, why)),
            Some(None) => {
                self.waiting.retain(|request| !(request.client == client && request.id == *id));
                self.listeners
                    .retain(|listener| !(listener.client == client && listener.id == *id));
            }
            None => {}
        }
    }

    /// Ends the session: all requests fail with this error. If the probe ended the server, requests
    /// that waited for the handshake are returned for another attempt.
    pub(crate) fn close(&mut self, error: &GatewayError, by_probe: bool) {
        let error = error.to_error_object();
        if by_probe {
            for request in std::mem::take(&mut self.waiting) {
                self.out.push(Output::Return(request.reply, request.text));
            }
        }
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(upstream, _)| *upstream);
        let pending = pending.into_iter().map(|(_, p)| (p.id, p.reply));
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|a| (a.id, a.reply));
        let listening = std::mem::take(&mut self.listeners).into_iter().map(|l| (l.id, l.reply));
        for (id, to) in pending.chain(waiting).chain(listening).collect::<Vec<_>>() {
            self.out.push(Output::Answer(to, reply::error(Some(&id), &error)));
        }
        for client in self.clients.values_mut() {
            client.calls.clear();
        }
        self.handshake = HandshakeState::Closed;
    }

    /// Drops a request that was sent, and cancels it on the server. Returns where its response was
    /// to go.
    fn abandon(&mut self, upstream: UpstreamId, why: &str) -> Option<R> {
        let pending = self.forget(upstream)?;
        // The only request that must not be cancelled.
        if pending.method != "initialize" {
            let params =
                format!("{{\"requestId\":{},\"reason\":{}}}", upstream.0, raw::quoted(why));
            self.write_bytes(reply::notification("notifications/cancelled", Some(&params)));
        }
        Some(pending.reply)
    }

    /// Where the response to a request goes that was sent.
    pub(crate) fn reply_to(&self, client: ClientId, id: &Id) -> Option<&R> {
        let upstream = (*self.clients.get(&client)?.calls.get(id)?)?;
        self.pending.get(&upstream).map(|pending| &pending.reply)
    }

    fn forget(&mut self, upstream: UpstreamId) -> Option<Pending<R>> {
        let pending = self.pending.remove(&upstream)?;
        self.end_call(pending.client, &pending.id);
        Some(pending)
    }

    /// Answers a request that was not sent.
    fn answer(&mut self, request: ClientRequest<R>, result: &str) {
        self.end_call(request.client, &request.id);
        self.out.push(Output::Answer(request.reply, reply::result(&request.id, result)));
    }

    /// Fails a request that was not sent.
    fn refuse(&mut self, request: ClientRequest<R>, error: &ErrorObject) {
        self.end_call(request.client, &request.id);
        self.out.push(Output::Answer(request.reply, reply::error(Some(&request.id), error)));
    }

    fn end_call(&mut self, client: ClientId, id: &Id) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.calls.remove(id);
        }
    }

    fn write_bytes(&mut self, line: Vec<u8>) {
        // Built by us from text.
        self.out.push(Output::Write(String::from_utf8_lossy(&line).into_owned()));
    }

    fn next_upstream_id(&mut self) -> UpstreamId {
        let (pending, listening) = (&self.pending, self.own_subscription);
        let pending_handshake = self.pending_handshake().map(|(upstream, _)| upstream);
        self.ids.next(|id| {
            pending.contains_key(&id) || [listening, pending_handshake].contains(&Some(id))
        })
    }
}
