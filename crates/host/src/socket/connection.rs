//! One connection: bytes in, answers out, nothing kept that has no bound. A client that does not
//! read is not served either, until it does.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use patterm_wire::follow::FollowRequest;
use patterm_wire::view::ViewRequest;
use patterm_wire::{Decoder, ErrorObject, Frame, Framing, Incoming, Malformed, reply};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::calls::Calls;
use super::dispatch::Dispatch;
use super::upgrade::Upgrade as UpgradeRequest;

use crate::caller::Caller;
use crate::caller_origin::{CallerOrigin, OriginLookup, Origins, Peer};
use crate::greeting::{self, FirstLine, GREETING_REFUSED};
use crate::host::Host;
use crate::tools::{ErrorKind, Registry, ToolError};
use patterm_store::limits::{
    ENDING_GRACE, FAIR_TURN, NOTICES, OUTBOX_BYTES, READ_BYTES, SHUTDOWN_GRACE, UNREAD_PATIENCE,
};

/// How long the last answers of a connection that ends may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection and everything it holds.
pub(super) struct Connection {
    host: Arc<Host>,
    tools: Arc<Registry>,
    stream: UnixStream,
    /// The look at where the client speaks from, until its first message.
    lookup: Option<OriginLookup>,
    /// Where it speaks from.
    origin: CallerOrigin,
    decoder: Decoder,
    /// The decoder may hold a whole message that was not served yet.
    waiting: bool,
    outbox: Outbox,
    /// The first message, until it is known who calls.
    first: Option<Vec<u8>>,
    /// Made at the first message, when it is known who calls.
    dispatch: Option<Dispatch>,
    calls: Calls,
    notices: mpsc::Sender<Vec<u8>>,
    /// No more is read; when what is in flight must be done.
    ending: Option<Instant>,
    /// The server ends.
    leaving: bool,
    /// What the client wants to be from here on.
    upgrade: Option<Upgrade>,
}

/// Something else than a caller.
enum Upgrade {
    View(UpgradeRequest<ViewRequest>),
    Follow(UpgradeRequest<FollowRequest>),
}

impl Upgrade {
    fn read(body: &[u8]) -> Option<Self> {
        let view = UpgradeRequest::<ViewRequest>::read(body).map(Self::View);
        view.or_else(|| UpgradeRequest::<FollowRequest>::read(body).map(Self::Follow))
    }
}

/// Bytes on their way to the client.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// When the client last read something, or the outbox was last empty.
    moved: Option<Instant>,
}

impl Connection {
    pub(super) async fn serve(stream: UnixStream, host: Arc<Host>, tools: Arc<Registry>) {
        let (notices, mut incoming) = mpsc::channel(NOTICES);
        // At once: a process that connects and ends must not be forgotten before it is looked at.
        let lookup =
            Origins::new(host.panes.clone(), &host.project).begin_lookup(Peer::of(&stream));
        let mut connection = Self {
            decoder: Decoder::new(host.limits.message_bytes),
            waiting: false,
            outbox: Outbox::default(),
            first: None,
            dispatch: None,
            calls: Calls::default(),
            notices,
            ending: None,
            leaving: false,
            upgrade: None,
            stream,
            lookup: Some(lookup),
            origin: CallerOrigin::Nowhere,
            host,
            tools,
        };
        let mut served = connection.run(&mut incoming).await;
        let Self { upgrade, stream, origin, mut decoder, host, .. } = connection;
        match upgrade {
            Some(Upgrade::View(upgrade)) if served.is_ok() => {
                served = upgrade.serve(stream, decoder.take_rest(), host, &origin).await;
            }
            Some(Upgrade::Follow(upgrade)) if served.is_ok() => {
                served = upgrade.serve(stream, host).await
            }
            _ => {}
        }
        if let Err(error) = served {
            // A client that went away is no event.
            tracing::debug!(%error, "a connection broke");
        }
    }

    async fn run(&mut self, notices: &mut mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
        let shutdown = self.host.shutdown.clone();
        let mut scratch = vec![0; READ_BYTES];
        loop {
            if let Some(first) = self.first.take() {
                self.begin(&first).await;
                if self.upgrade.is_some() {
                    return Ok(());
                }
            }
            self.outbox.flush(&self.stream)?;
            let room = self.outbox.len() < OUTBOX_BYTES;
            if room && self.waiting && self.ending.is_none() {
                self.serve_waiting();
                tokio::task::consume_budget().await;
                continue;
            }
            if self.ending.is_some() && self.calls.is_empty() && self.outbox.len() == 0 {
                return Ok(());
            }
            let deadline = self.deadline();
            tokio::select! {
                biased;
                ready = self.stream.writable(), if self.outbox.len() > 0 => ready?,
                Some(body) = notices.recv(), if room => self.write(&body),
                Some(body) = self.calls.next(), if room && !self.calls.is_empty() => {
                    // Progress stands before the answer it leads to.
                    while let Ok(notice) = notices.try_recv() {
                        self.write(&notice);
                    }
                    self.write(&body);
                }
                ready = self.stream.readable(), if room && self.ending.is_none() => {
                    ready?;
                    self.read(&mut scratch)?;
                }
                () = shutdown.cancelled(), if !self.leaving => {
                    self.leaving = true;
                    self.end(SHUTDOWN_GRACE);
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    if self.calls.is_empty() || self.ending.is_none() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.give_up();
                }
            }
        }
    }

    /// When this connection has waited long enough.
    fn deadline(&self) -> Option<Instant> {
        let unread = self.outbox.moved.map(|moved| moved + UNREAD_PATIENCE);
        self.ending.into_iter().chain(unread).min()
    }

    fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        match self.stream.try_read(scratch) {
            Ok(0) => {
                self.serve_last();
                self.end(ENDING_GRACE);
            }
            Ok(bytes) => {
                self.decoder.feed(&scratch[..bytes]);
                self.waiting = true;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Serves messages that were read, until there are none, it is others' turn, or the client
    /// has enough to read.
    fn serve_waiting(&mut self) {
        for _ in 0..FAIR_TURN {
            let enough = self.outbox.len() >= OUTBOX_BYTES;
            if self.ending.is_some() || self.first.is_some() || enough {
                return;
            }
            let Some(frame) = self.decoder.next_frame() else {
                self.waiting = false;
                return;
            };
            let served = serve_frame(frame, self.dispatch.as_ref(), &mut self.calls);
            self.take(served);
        }
    }

    /// Serves what the stream's end left: a last line without a line feed.
    fn serve_last(&mut self) {
        let Some(frame) = self.decoder.finish() else { return };
        let served = serve_frame(frame, self.dispatch.as_ref(), &mut self.calls);
        self.take(served);
    }

    fn take(&mut self, served: Served) {
        match served {
            Served::Answer(body) => self.write(&body),
            Served::Nothing => {}
            Served::First(body) => self.first = Some(body),
        }
    }

    /// Serves the first message, which may be a greeting.
    async fn begin(&mut self, body: &[u8]) {
        let first = greeting::read(body, &self.host);
        if let Some(lookup) = self.lookup.take() {
            self.origin = lookup.origin().await;
        }
        match (&first, &self.origin) {
            // A token says who it is. Nothing but the pane of another agent says otherwise.
            (FirstLine::From(Caller::Process(id)), CallerOrigin::Agents(other)) if other != id => {
                return self.refuse(&greeting::not_theirs(id, other));
            }
            (FirstLine::From(Caller::Process(_)) | FirstLine::Refused(_), _) => {}
            (_, CallerOrigin::Nowhere) => {
                let message = "it cannot be told where this connection comes from: its process \
                               ended before it was served, or runs in a pane that is not known; \
                               connect again";
                return self.refuse(&ErrorObject::new(GREETING_REFUSED, message));
            }
            _ => {}
        }
        let caller = match first {
            FirstLine::From(caller) => {
                let is_proven = matches!(caller, Caller::Process(_));
                let caller = if is_proven { caller } else { self.placed(caller) };
                self.decoder.forget_framing();
                self.dispatch = Some(self.dispatch_for(caller));
                return;
            }
            FirstLine::Refused(error) => return self.refuse(&error),
            FirstLine::Message => match Upgrade::read(body) {
                None => self.placed(Caller::External),
                upgrade => {
                    self.upgrade = upgrade;
                    return;
                }
            },
        };
        let dispatch = self.dispatch_for(caller);
        let served = serve_body(body, &dispatch, &mut self.calls);
        self.dispatch = Some(dispatch);
        if let Some(body) = served {
            self.write(&body);
        }
    }

    /// Says why nothing is served here, and ends.
    fn refuse(&mut self, error: &ErrorObject) {
        tracing::warn!(error = error.message, "a connection was refused");
        self.write(&reply::error(None, error));
        self.ending = Some(Instant::now() + LAST_WORDS);
    }

    /// Who a caller without a token is, whatever it claims.
    fn placed(&self, says: Caller) -> Caller {
        self.origin.caller(says).unwrap_or(Caller::Elsewhere)
    }

    fn dispatch_for(&self, caller: Caller) -> Dispatch {
        Dispatch::new(
            self.host.clone(),
            self.tools.clone(),
            caller,
            self.origin.clone(),
            self.notices.clone(),
        )
    }

    /// Reads no more; what is in flight has `grace` to finish, and what only waits is told so.
    fn end(&mut self, grace: Duration) {
        // A client that ended its side long ago has waited long enough already.
        let deadline = Instant::now() + grace;
        self.ending = Some(self.ending.map_or(deadline, |before| before.min(deadline)));
        if let Some(dispatch) = &self.dispatch {
            dispatch.end();
        }
    }

    /// Answers every call that did not end in time with an error.
    fn give_up(&mut self) {
        let error = ToolError::new(
            ErrorKind::Unavailable,
            "the connection ended before the call did; it may or may not have been carried out",
        )
        .into_rpc();
        for id in self.calls.give_up() {
            self.write(&reply::error(Some(&id), &error));
        }
        self.ending = Some(Instant::now() + LAST_WORDS);
    }

    fn write(&mut self, body: &[u8]) {
        let framing = self.decoder.framing().unwrap_or(Framing::Newline);
        self.outbox.push(framing, body);
    }
}

impl Outbox {
    fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    fn push(&mut self, framing: Framing, body: &[u8]) {
        framing.encode(body, &mut self.bytes);
    }

    /// Sends what the client takes now.
    fn flush(&mut self, stream: &UnixStream) -> io::Result<()> {
        while self.len() > 0 {
            match stream.try_write(&self.bytes[self.sent..]) {
                Ok(bytes) => {
                    self.sent += bytes;
                    self.moved = None;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.moved.get_or_insert_with(Instant::now);
                    self.drop_sent();
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        // One large answer does not keep its memory for the life of the connection.
        if self.bytes.capacity() > OUTBOX_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.sent = 0;
        self.moved = None;
        Ok(())
    }

    /// A client that always has more to read never empties the outbox: what it read must go
    /// before that. Not at every write, since the rest is moved.
    fn drop_sent(&mut self) {
        if self.sent >= OUTBOX_BYTES.min(self.bytes.len() / 2) {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// What became of a frame.
enum Served {
    Answer(Vec<u8>),
    Nothing,
    /// The first message of the connection: it may say who calls.
    First(Vec<u8>),
}

fn serve_frame(frame: Frame<'_>, dispatch: Option<&Dispatch>, calls: &mut Calls) -> Served {
    let answer = match (frame, dispatch) {
        (Frame::Body(body), Some(dispatch)) => serve_body(body, dispatch, calls),
        (Frame::Body(body), None) => return Served::First(body.to_vec()),
        (Frame::Bad(bad), _) => Some(refusal(bad.into())),
    };
    answer.map_or(Served::Nothing, Served::Answer)
}

fn serve_body(body: &[u8], dispatch: &Dispatch, calls: &mut Calls) -> Option<Vec<u8>> {
    match Incoming::parse(body) {
        Ok(Incoming::One(message)) => dispatch.message(message, calls),
        Ok(Incoming::Batch(batch)) => dispatch.batch(&batch, calls),
        Err(malformed) => Some(refusal(malformed)),
    }
}

fn refusal(Malformed { id, error }: Malformed) -> Vec<u8> {
    reply::error(id.as_ref(), &error)
}

/// What a client is told that may not be served at all.
pub(super) async fn turn_away(stream: UnixStream, error: ErrorObject) {
    let mut line = Vec::new();
    Framing::Newline.encode(&reply::error(None, &error), &mut line);
    if stream.writable().await.is_ok() {
        let _ = stream.try_write(&line);
    }
}
