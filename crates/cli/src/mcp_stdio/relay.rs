//! Between client and server: what is passed on, what is answered here, and what is repeated or failed when
//! the server dies.

use std::collections::{HashMap, VecDeque};

use patterm_host::GREETING_REFUSED;
use patterm_host::tools::{ErrorKind, ToolError};
use patterm_wire::{
    BadFrame, ErrorObject, Frame, Framing, Id, Incoming, Malformed, Message, reply,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Target;
use super::batches::{Batches, RefusedBatch};
use super::ledger::Ledger;
use super::link::{self, Connection, Link, Outgoing, ServerOrStarter};

/// A server that ends this many connections in a row without sending anything is broken.
const SILENT_CONNECTIONS: u32 = 3;

/// The client's notification that the handshake is complete.
const INITIALIZED: &str = "notifications/initialized";

/// Bytes per read from the server: more than most responses have.
const READ_BYTES: usize = 64 << 10;

pub(super) struct Relay {
    target: Target,
    pub(super) link: Link,
    ledger: Ledger,
    /// Messages of the client that are not sent yet.
    queue: VecDeque<Outgoing>,
    /// Messages for the client.
    answers: Vec<Vec<u8>>,
    /// The id of the repeated handshake, whose response the client must not see.
    replayed: Option<Id>,
    /// Errors of our own that keep their position among the server's responses: each waits for the response
    /// to a ping that was sent instead of the refused message.
    held: HashMap<Id, Vec<u8>>,
    batches: Batches,
    /// How many ids of our own were used.
    own_ids: u64,
    silent_connections: u32,
    scratch: Vec<u8>,
}

/// The parts of an error that are used here.
#[derive(Deserialize)]
struct ErrorParts {
    code: i64,
    message: String,
}

impl Relay {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            link: Link::Down,
            ledger: Ledger::default(),
            queue: VecDeque::new(),
            answers: Vec::new(),
            replayed: None,
            held: HashMap::new(),
            batches: Batches::default(),
            own_ids: 0,
            silent_connections: 0,
            scratch: vec![0; READ_BYTES],
        }
    }

    /// The messages for the client, in order.
    pub(super) fn take_answers(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.answers)
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.queue.iter().map(|message| message.line.len()).sum()
    }

    pub(super) fn has_to_send(&self) -> bool {
        matches!(&self.link, Link::Up(connection) if connection.wants_to_write(&self.queue))
    }

    /// Whether everything is sent and answered.
    pub(super) fn is_done(&self) -> bool {
        let sent = match &self.link {
            Link::Starting(_) => false,
            Link::Up(_) => !self.has_to_send(),
            Link::Down | Link::Refused(_) => self.queue.is_empty(),
        };
        sent && self.ledger.is_empty() && self.held.is_empty() && self.batches.is_empty()
    }

    /// Handles one frame from the client.
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
            // The server refuses duplicate ids.
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

    /// Sends a response of our own: at once if nothing is in flight, otherwise after the requests before it
    /// that are answered at once.
    fn answer(&mut self, body: Vec<u8>) {
        let idle = self.ledger.is_empty() && self.queue.is_empty() && self.held.is_empty();
        if idle && self.batches.is_empty() {
            self.answers.push(body);
            return;
        }
        let ping = self.ping();
        self.held.insert(ping, body);
    }

    /// Sends a ping, whose response shows that the server has read everything before it.
    fn ping(&mut self) -> Id {
        let id = self.ledger.free_id(&mut self.own_ids);
        let line = as_line(&reply::request(&id, "ping", None));
        self.queue.push_back(Outgoing::new(vec![id.clone()], line));
        id
    }

    /// Sends what is queued, and finds a server first if there is none. `last`: nothing more will come.
    pub(super) fn send(&mut self, last: bool) {
        if !self.queue.is_empty() && matches!(self.link, Link::Down) {
            self.find();
        }
        // The server may have refused this caller.
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

    /// Reads the server's messages, or its end.
    pub(super) fn read_server(&mut self) {
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
        let first = !connection.has_received;
        connection.has_received |= !bodies.is_empty();
        if !bodies.is_empty() {
            self.silent_connections = 0;
        }
        let mut refused = None;
        for (at, body) in bodies.into_iter().enumerate() {
            match connection_error(&body).filter(|_| first && at == 0) {
                Some(error) => refused = Some(error),
                None => self.receive(body),
            }
        }
        if let Some(error) = refused {
            self.connection_refused(&error);
        } else if !open {
            self.lose(ended);
        }
    }

    /// The starter of a server has printed something, or exited.
    pub(super) fn read_starter(&mut self) {
        let Link::Starting(starter) = std::mem::replace(&mut self.link, Link::Down) else { return };
        match link::started(starter).and_then(|stream| self.open(stream)) {
            Ok(()) => {}
            Err(error) => self.fail_all(&unavailable(&format!("{error:#}"))),
        }
    }

    /// Answers all open requests with an error: the deadline has passed.
    pub(super) fn give_up(&mut self) {
        self.fail_all(&unavailable("the patterm server did not answer in time"));
    }

    /// Passes on one message of the server.
    fn receive(&mut self, body: Vec<u8>) {
        let mut has_no_id = false;
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
                    let refused = self.batches.settle_first();
                    self.settle(refused);
                    return;
                }
                self.ledger.answered(&id, outcome.is_ok());
            }
            Ok(Incoming::One(Message::Response { id: None, .. })) => has_no_id = true,
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
        if has_no_id {
            self.answers.extend(self.batches.refused(body));
        } else {
            self.answers.push(body);
        }
    }

    /// Frees the ids of a refused batch, and passes the refusal on.
    fn settle(&mut self, refused: Option<RefusedBatch>) {
        if let Some(RefusedBatch { ids, body }) = refused {
            ids.iter().for_each(|id| self.ledger.forget(id));
            self.answers.push(body);
        }
    }

    /// Finds a server, or starts one.
    fn find(&mut self) {
        let outcome = match link::find(&self.target) {
            Ok(ServerOrStarter::Server(stream)) => self.open(stream),
            Ok(ServerOrStarter::Starter(starter)) => {
                self.link = Link::Starting(starter);
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            self.fail_all(&unavailable(&format!("{error:#}")));
        }
    }

    /// Opens a connection: the greeting, then the client's handshake, if it had one with the last server.
    fn open(&mut self, stream: std::os::unix::net::UnixStream) -> anyhow::Result<()> {
        let mut connection = Connection::new(stream)?;
        match self.target.identity.greeting(self.target.project_key.as_deref()) {
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
            // Unless the client's own notification has not been sent yet.
            if initialized && !self.queue.iter().any(|message| message.is_initialized) {
                connection.open_with(&reply::notification(INITIALIZED, None));
            }
            self.replayed = Some(id);
        }
        self.link = Link::Up(connection);
        Ok(())
    }

    /// The connection is closed, by us (`ended`) or by the server.
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
        let unsent = self.queue.iter().any(|message| message.is_initialized);
        for (id, body) in lost.repeat.into_iter().rev() {
            if !unsent && lost.initialized_after.as_ref() == Some(&id) {
                let line = as_line(&reply::notification(INITIALIZED, None));
                self.queue.push_front(Outgoing { ids: Vec::new(), is_initialized: true, line });
            }
            self.queue.push_front(Outgoing::new(vec![id], as_line(&body)));
        }
        self.silent_connections += 1;
        if self.silent_connections >= SILENT_CONNECTIONS {
            self.silent_connections = 0;
            self.fail_all(&unavailable("the patterm server ends every connection at once"));
        } else if !self.queue.is_empty() {
            self.find();
        } else if let Some(stream) = link::find_running(&self.target) {
            // Connect to a new server at once: the client may wait for notifications. But a server that was
            // ended on purpose is not started again before there is a request.
            let _ = self.open(stream);
        }
    }

    /// The server refused the connection.
    fn connection_refused(&mut self, error: &ErrorParts) {
        let object = ErrorObject::new(error.code, error.message.clone());
        self.link = match error.code {
            GREETING_REFUSED => Link::Refused(error.message.clone()),
            _ => Link::Down,
        };
        self.fail_all(&object);
    }

    /// Sends the responses that wait for a ping: its response will not come.
    fn release_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.queue.retain(|message| !message.ids.iter().any(|id| held.contains_key(id)));
        self.answers.extend(held.into_values());
    }

    /// Answers all queued and open requests with this error.
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

/// The error instead of a response that cannot be read.
fn unreadable(bad: BadFrame) -> Option<Vec<u8>> {
    match bad {
        BadFrame::TooLong { limit, id: Some(id) } => {
            let why = format!("the server's response is longer than {limit} bytes");
            Some(reply::error(Some(&id), &unavailable(&why)))
        }
        BadFrame::TooLong { .. } | BadFrame::BadHeaders(_) | BadFrame::CutOff => None,
    }
}

/// The error, if it is about the connection and not about a request.
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
         carried out: check before you repeat it",
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

    /// A relay for the server at this socket only.
    fn relay_to(socket: &Path) -> Relay {
        Relay::new(Target {
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

    /// The methods of everything the server has received so far.
    fn methods(stream: &UnixStream) -> Vec<String> {
        stream.set_nonblocking(true).unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let method = |line: String| {
            let message: Value = serde_json::from_str(&line).unwrap();
            message["method"].as_str().unwrap().to_owned()
        };
        lines.map(method).collect()
    }

    /// The client's notification came while there was no server: the next one gets it once.
    #[test]
    fn an_unsent_initialized_notification_is_not_sent_twice() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let mut relay = relay_to(&socket);

        let listener = UnixListener::bind(&socket).unwrap();
        take(&mut relay, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}));
        relay.send(false);
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize"]);
        writeln!(server, "{}", json!({"jsonrpc": "2.0", "id": 1, "result": {}})).unwrap();
        relay.read_server();
        assert_eq!(relay.take_answers().len(), 1);
        drop((server, listener));
        std::fs::remove_file(&socket).unwrap();
        relay.read_server();
        assert!(matches!(relay.link, Link::Down));

        take(&mut relay, &json!({"jsonrpc": "2.0", "method": INITIALIZED}));
        take(&mut relay, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        let listener = UnixListener::bind(&socket).unwrap();
        relay.send(false);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize", INITIALIZED, "tools/list"]);
        drop(server);

        // The next server gets everything again.
        relay.read_server();
        relay.send(false);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(methods(&server), ["initialize", INITIALIZED, "tools/list"]);
        assert_eq!(relay.take_answers(), Vec::<Vec<u8>>::new());
    }
}
