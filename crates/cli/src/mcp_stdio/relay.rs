//! Between client and server: what is passed on, what is answered here, and what is made good
//! when the server dies.

use std::collections::{HashMap, VecDeque};

use patterm_host::GREETING_REFUSED;
use patterm_host::tools::{ErrorKind, ToolError};
use patterm_wire::{
    BadFrame, ErrorObject, Frame, Framing, Id, Incoming, Malformed, Message, reply,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Wanted;
use super::batches::{Batches, Refused};
use super::ledger::Ledger;
use super::link::{self, Connection, Found, Link, Outgoing};

/// A server that ends this many connections in a row without a word is broken.
const MUTE_CONNECTIONS: u32 = 3;

/// What a client says when the handshake is done.
const INITIALIZED: &str = "notifications/initialized";

/// The bytes of a read from the server; larger than most answers.
const READ_BYTES: usize = 64 << 10;

pub(super) struct Relay {
    wanted: Wanted,
    pub(super) link: Link,
    ledger: Ledger,
    /// Messages of the client that the server does not have yet.
    queue: VecDeque<Outgoing>,
    /// Bodies for the client.
    answers: Vec<Vec<u8>>,
    /// The id of the handshake that is repeated for the client, who must not see its answer.
    replayed: Option<Id>,
    /// Refusals of our own that keep their place among the server's answers: each waits for the
    /// answer to a ping that was sent in the place of what is refused.
    held: HashMap<Id, Vec<u8>>,
    batches: Batches,
    /// How many ids of our own were given out.
    own_ids: u64,
    mute_connections: u32,
    scratch: Vec<u8>,
}

/// The part of an error object that decides what it means.
#[derive(Deserialize)]
struct ErrorParts {
    code: i64,
    message: String,
}

impl Relay {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            link: Link::Down,
            ledger: Ledger::default(),
            queue: VecDeque::new(),
            answers: Vec::new(),
            replayed: None,
            held: HashMap::new(),
            batches: Batches::default(),
            own_ids: 0,
            mute_connections: 0,
            scratch: vec![0; READ_BYTES],
        }
    }

    /// What the client is to be told, in order.
    pub(super) fn take_answers(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.answers)
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.queue.iter().map(|message| message.line.len()).sum()
    }

    pub(super) fn has_to_send(&self) -> bool {
        matches!(&self.link, Link::Up(connection) if connection.wants_to_write(&self.queue))
    }

    /// Whether the server has everything the client said, and everything that was asked is
    /// answered.
    pub(super) fn is_done(&self) -> bool {
        let sent = match &self.link {
            Link::Starting(_) => false,
            Link::Up(_) => !self.has_to_send(),
            Link::Down | Link::Refused(_) => self.queue.is_empty(),
        };
        sent && self.ledger.is_empty() && self.held.is_empty() && self.batches.is_empty()
    }

    /// Takes one frame of the client.
    pub(super) fn take(&mut self, frame: Frame<'_>) {
        let body = match frame {
            Frame::Body(body) => body,
            Frame::Bad(bad) => return self.answer(refusal(bad.into())),
        };
        match Incoming::parse(body) {
            Ok(Incoming::One(message)) => self.pass_on(&message, body),
            Ok(Incoming::Batch(elements)) => self.pass_on_batch(&elements, body),
            Err(malformed) => self.answer(refusal(malformed)),
        }
    }

    fn pass_on(&mut self, message: &Message<'_>, body: &[u8]) {
        let (id, is_initialized) = match message {
            Message::Request { id, .. } => (Some(id), false),
            Message::Notification { method, .. } => (None, method == INITIALIZED),
            Message::Response { .. } => (None, false),
        };
        if self.ledger.asked(message, body) {
            let ids = id.into_iter().cloned().collect();
            self.queue.push_back(Outgoing { ids, is_initialized, line: as_line(body) });
        } else {
            self.answer(reply::error(id, &ErrorObject::duplicate_id()));
        }
    }

    fn pass_on_batch(&mut self, elements: &[&RawValue], body: &[u8]) {
        let mut ids = Vec::new();
        for element in elements {
            // An id that stands twice is the server's to refuse.
            if let Ok(Message::Request { id, .. }) = Message::from_raw(element)
                && self.ledger.asked_in_batch(&id)
            {
                ids.push(id);
            }
        }
        self.queue.push_back(Outgoing::new(ids.clone(), as_line(body)));
        let ping = self.ping();
        self.batches.sent(ids, ping);
    }

    /// An answer of our own, at once if nothing else is asked, else after what was asked before
    /// and is answered at once.
    fn answer(&mut self, body: Vec<u8>) {
        let idle = self.ledger.is_empty() && self.queue.is_empty() && self.held.is_empty();
        if idle && self.batches.is_empty() {
            self.answers.push(body);
            return;
        }
        let ping = self.ping();
        self.held.insert(ping, body);
    }

    /// Asks the server for a sign that it took everything up to here.
    fn ping(&mut self) -> Id {
        let id = self.ledger.free_id(&mut self.own_ids);
        let line = as_line(&reply::request(&id, "ping", None));
        self.queue.push_back(Outgoing::new(vec![id.clone()], line));
        id
    }

    /// Sends what is queued, finding a server first where there is none. `last`: nothing more
    /// will come.
    pub(super) fn send(&mut self, last: bool) {
        if !self.queue.is_empty() && matches!(self.link, Link::Down) {
            self.find();
        }
        // What was found may be of no use to this caller.
        if let Link::Refused(why) = &self.link {
            let error = ErrorObject::new(GREETING_REFUSED, why.clone());
            self.fail_all(&error);
        }
        let Link::Up(connection) = &mut self.link else { return };
        connection.write(&mut self.queue, |id| self.ledger.sent(id));
        if last && !connection.wants_to_write(&self.queue) {
            connection.end();
        }
    }

    /// Hears the server: its messages, and its end.
    pub(super) fn hear_server(&mut self) {
        let Link::Up(connection) = &mut self.link else { return };
        let open = connection.read(&mut self.scratch).unwrap_or(false);
        let mut bodies = Vec::new();
        while let Some(frame) = connection.decoder.next_frame() {
            match frame {
                Frame::Body(body) => bodies.push(body.to_vec()),
                Frame::Bad(bad) => bodies.extend(unreadable(bad)),
            }
        }
        let ended = connection.is_ended();
        let first = !connection.heard;
        connection.heard |= !bodies.is_empty();
        if !bodies.is_empty() {
            self.mute_connections = 0;
        }
        let mut refusal_heard = None;
        for (at, body) in bodies.into_iter().enumerate() {
            match connection_error(&body).filter(|_| first && at == 0) {
                Some(error) => refusal_heard = Some(error),
                None => self.hear(body),
            }
        }
        if let Some(error) = refusal_heard {
            self.turned_away(&error);
        } else if !open {
            self.lose(ended);
        }
    }

    /// Hears the starter of a server: its output has come or ended.
    pub(super) fn hear_starter(&mut self) {
        let Link::Starting(starter) = std::mem::replace(&mut self.link, Link::Down) else { return };
        match link::started(starter).and_then(|stream| self.open(stream)) {
            Ok(()) => {}
            Err(error) => self.fail_all(&unavailable(&format!("{error:#}"))),
        }
    }

    /// Answers everything that is unanswered with an error: the time is over.
    pub(super) fn give_up(&mut self) {
        self.fail_all(&unavailable("the patterm server did not answer in time"));
    }

    /// Passes on one message of the server.
    fn hear(&mut self, body: Vec<u8>) {
        let mut about_no_request = false;
        match Incoming::parse(&body) {
            Ok(Incoming::One(Message::Response { id: Some(id), outcome })) => {
                if self.replayed.as_ref() == Some(&id) {
                    self.replayed = None;
                    return;
                }
                if let Some(held) = self.held.remove(&id) {
                    self.answers.push(held);
                    return;
                }
                if self.batches.has(&id) {
                    let refused = self.batches.decide();
                    self.settle(refused);
                    return;
                }
                self.ledger.answered(&id, outcome.is_ok());
            }
            Ok(Incoming::One(Message::Response { id: None, .. })) => about_no_request = true,
            Ok(Incoming::Batch(elements)) => {
                for element in elements {
                    if let Ok(Message::Response { id: Some(id), outcome }) =
                        Message::from_raw(element)
                    {
                        self.ledger.answered(&id, outcome.is_ok());
                    }
                }
            }
            Ok(Incoming::One(_)) | Err(_) => {}
        }
        if about_no_request {
            self.answers.extend(self.batches.refused(body));
        } else {
            self.answers.push(body);
        }
    }

    /// Frees the ids of a batch that was refused, and says so.
    fn settle(&mut self, refused: Option<Refused>) {
        if let Some(Refused { ids, body }) = refused {
            ids.iter().for_each(|id| self.ledger.forget(id));
            self.answers.push(body);
        }
    }

    /// Looks for a server, and starts one where there is none.
    fn find(&mut self) {
        let outcome = match link::find(&self.wanted) {
            Ok(Found::Server(stream)) => self.open(stream),
            Ok(Found::Starter(starter)) => {
                self.link = Link::Starting(starter);
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            self.fail_all(&unavailable(&format!("{error:#}")));
        }
    }

    /// Begins a connection: who calls, then what the client had agreed on with the last server.
    fn open(&mut self, stream: std::os::unix::net::UnixStream) -> anyhow::Result<()> {
        let mut connection = Connection::new(stream)?;
        match self.wanted.identity.greeting(self.wanted.project_key.as_deref()) {
            Ok(greeting) => greeting.into_iter().for_each(|g| connection.open_with(g.as_bytes())),
            Err(why) => {
                self.link = Link::Refused(why);
                return Ok(());
            }
        }
        self.replayed = None;
        if let Some((params, initialized)) = self.ledger.handshake() {
            let id = self.ledger.free_id(&mut self.own_ids);
            connection.open_with(&reply::request(&id, "initialize", Some(params)));
            // Unless the client's own word has not been sent yet.
            if initialized && !self.queue.iter().any(|message| message.is_initialized) {
                connection.open_with(&reply::notification(INITIALIZED, None));
            }
            self.replayed = Some(id);
        }
        self.link = Link::Up(connection);
        Ok(())
    }

    /// The server is gone, by our own word (`ended`) or by itself.
    fn lose(&mut self, ended: bool) {
        self.link = Link::Down;
        if ended {
            self.fail_all(&lost_in_flight());
            return;
        }
        self.release_held();
        let queue = &self.queue;
        let is_queued = |ping: &Id| queue.iter().any(|message| message.ids.contains(ping));
        let refused = self.batches.lost(is_queued);
        self.settle(refused);
        let lost = self.ledger.lost();
        for id in lost.failed {
            self.answers.push(reply::error(Some(&id), &lost_in_flight()));
        }
        let unsaid = self.queue.iter().any(|message| message.is_initialized);
        for (id, body) in lost.repeat.into_iter().rev() {
            if !unsaid && lost.initialized_after.as_ref() == Some(&id) {
                let line = as_line(&reply::notification(INITIALIZED, None));
                self.queue.push_front(Outgoing { ids: Vec::new(), is_initialized: true, line });
            }
            self.queue.push_front(Outgoing::new(vec![id], as_line(&body)));
        }
        self.mute_connections += 1;
        if self.mute_connections >= MUTE_CONNECTIONS {
            self.mute_connections = 0;
            self.fail_all(&unavailable("the patterm server ends every connection at once"));
        } else if !self.queue.is_empty() {
            self.find();
        } else if let Some(stream) = link::find_running(&self.wanted) {
            // A new server is greeted at once: the client may listen for notices. But one that a
            // person ended is not started again as long as nobody asks it anything.
            let _ = self.open(stream);
        }
    }

    /// The server would not have this connection at all.
    fn turned_away(&mut self, error: &ErrorParts) {
        let object = ErrorObject::new(error.code, error.message.clone());
        self.link = match error.code {
            GREETING_REFUSED => Link::Refused(error.message.clone()),
            _ => Link::Down,
        };
        self.fail_all(&object);
    }

    /// Says what waited for its turn: the turn will not come.
    fn release_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.queue.retain(|message| !message.ids.iter().any(|id| held.contains_key(id)));
        self.answers.extend(held.into_values());
    }

    /// Answers every request that is queued or in flight with this error.
    fn fail_all(&mut self, error: &ErrorObject) {
        self.queue.clear();
        self.release_held();
        let refused = self.batches.lost(|_| false);
        self.settle(refused);
        for id in self.ledger.give_up() {
            self.answers.push(reply::error(Some(&id), error));
        }
    }
}

/// What the client is told instead of an answer that cannot be taken in.
fn unreadable(bad: BadFrame) -> Option<Vec<u8>> {
    match bad {
        BadFrame::TooLong { limit, id: Some(id) } => {
            let why = format!("the server's answer is longer than {limit} bytes");
            Some(reply::error(Some(&id), &unavailable(&why)))
        }
        BadFrame::TooLong { .. } | BadFrame::BadHeaders(_) | BadFrame::CutOff => None,
    }
}

/// An error that is about the connection and no request, if this is one.
fn connection_error(body: &[u8]) -> Option<ErrorParts> {
    let Ok(Incoming::One(Message::Response { id: None, outcome: Err(error) })) =
        Incoming::parse(body)
    else {
        return None;
    };
    let error: ErrorParts = serde_json::from_str(error.get()).ok()?;
    [GREETING_REFUSED, ErrorKind::Limit.code()].contains(&error.code).then_some(error)
}

fn lost_in_flight() -> ErrorObject {
    unavailable(
        "the patterm server restarted while this call was in flight; it may or may not have been \
         carried out: look before you repeat it",
    )
}

fn unavailable(message: &str) -> ErrorObject {
    ToolError::new(ErrorKind::Unavailable, message).into_rpc()
}

fn refusal(Malformed { id, error }: Malformed) -> Vec<u8> {
    reply::error(id.as_ref(), &error)
}

fn as_line(body: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    Framing::Newline.encode(body, &mut line);
    line
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::identity::Identity;

    /// A relay that knows no server but the one at this socket.
    fn relay_to(socket: &Path) -> Relay {
        Relay::new(Wanted {
            socket: Some(socket.to_owned()),
            project_key: None,
            identity: Identity::None,
            project: None,
            message_bytes: 1 << 20,
        })
    }

    fn take(relay: &mut Relay, message: &Value) {
        relay.take(Frame::Body(message.to_string().as_bytes()));
    }

    /// The methods of everything the server has been told so far.
    fn methods(stream: &UnixStream) -> Vec<String> {
        stream.set_nonblocking(true).unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let method = |line: String| {
            let message: Value = serde_json::from_str(&line).unwrap();
            message["method"].as_str().unwrap().to_owned()
        };
        lines.map(method).collect()
    }

    /// The client's word came while no server was to be found: the next one hears it once.
    #[test]
    fn what_the_client_could_not_say_yet_is_not_said_for_it_too() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let mut relay = relay_to(&socket);

        let listener = UnixListener::bind(&socket).unwrap();
        take(&mut relay, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}));
        relay.send(false);
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize"]);
        writeln!(server, "{}", json!({"jsonrpc": "2.0", "id": 1, "result": {}})).unwrap();
        relay.hear_server();
        assert_eq!(relay.take_answers().len(), 1);
        drop((server, listener));
        std::fs::remove_file(&socket).unwrap();
        relay.hear_server();
        assert!(matches!(relay.link, Link::Down));

        take(&mut relay, &json!({"jsonrpc": "2.0", "method": INITIALIZED}));
        take(&mut relay, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        let listener = UnixListener::bind(&socket).unwrap();
        relay.send(false);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize", INITIALIZED, "tools/list"]);
        drop(server);

        // The next one is told everything again.
        relay.hear_server();
        relay.send(false);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize", INITIALIZED, "tools/list"]);
        assert_eq!(relay.take_answers(), Vec::<Vec<u8>>::new());
    }
}
