//! One connection: bytes in, responses out, every buffer limited. A client that does not read
//! is not served until it does.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use patterm_wire::follow::FollowRequest;
use patterm_wire::logs::LogsRequest;
use patterm_wire::recording::RecordingRequest;
use patterm_wire::view::ViewRequest;
use patterm_wire::{Decoder, ErrorObject, Frame, Framing, Incoming, Malformed, reply};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::calls::Calls;
use super::dispatch::Dispatch;
use super::upgrade::Upgrade as UpgradeRequest;

use crate::caller::Caller;
use crate::caller_origin::{CallerOrigin, OriginLookup};
use crate::greeting::{self, FirstLine, GREETING_REFUSED};
use crate::host::Host;
use crate::tools::{ErrorKind, Registry, ToolError};
use patterm_store::limits::{
    ENDING_GRACE, FAIR_TURN, NOTICES, OUTBOX_BYTES, READ_BYTES, SHUTDOWN_GRACE, UNREAD_PATIENCE,
};

/// How long a client may take to read the last responses of a connection that ends.
const LAST_READ_PATIENCE: Duration = Duration::from_secs(1);

/// A connection and its state.
pub(super) struct Connection {
    host: Arc<Host>,
    tools: Arc<Registry>,
    stream: UnixStream,
    /// The lookup of the client's origin, until its first message.
    lookup: Option<OriginLookup>,
    /// The client's origin.
    origin: CallerOrigin,
    decoder: Decoder,
    /// Whether the decoder may hold a complete message that was not handled yet.
    waiting: bool,
    outbox: Outbox,
    /// The first message, until the caller is known.
    first: Option<Vec<u8>>,
    /// Created with the first message, once the caller is known.
    dispatch: Option<Dispatch>,
    calls: Calls,
    notices: mpsc::Sender<Vec<u8>>,
    /// Set when nothing more is read: the deadline of the calls in flight.
    ending: Option<Instant>,
    /// Whether the server is shutting down.
    leaving: bool,
    /// What the connection becomes instead of a caller's.
    upgrade: Option<Upgrade>,
}

/// Another kind of connection.
enum Upgrade {
    View(UpgradeRequest<ViewRequest>),
    Follow(UpgradeRequest<FollowRequest>),
    Logs(UpgradeRequest<LogsRequest>),
    Recording(UpgradeRequest<RecordingRequest>),
}

impl Upgrade {
    fn read(body: &[u8]) -> Option<Self> {
        let view = UpgradeRequest::<ViewRequest>::read(body).map(Self::View);
        let follow = || UpgradeRequest::<FollowRequest>::read(body).map(Self::Follow);
        let logs = || UpgradeRequest::<LogsRequest>::read(body).map(Self::Logs);
        let recording = || UpgradeRequest::<RecordingRequest>::read(body).map(Self::Recording);
        view.or_else(follow).or_else(logs).or_else(recording)
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
    pub(super) async fn serve(
        stream: UnixStream,
        lookup: OriginLookup,
        host: Arc<Host>,
        tools: Arc<Registry>,
    ) {
        let (notices, mut incoming) = mpsc::channel(NOTICES);
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
            Some(Upgrade::Logs(upgrade)) if served.is_ok() => {
                served = upgrade.serve(stream, host).await
            }
            Some(Upgrade::Recording(upgrade)) if served.is_ok() => {
                served = upgrade.serve(stream, host).await
            }
            _ => {}
        }
        if let Err(error) = served {
            // A client that disconnects is not an error.
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
                    // Progress goes before the response that it belongs to.
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

    /// Handles messages that were read, until there are none left, other connections are
    /// due, or the client has enough to read.
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

    /// Handles a last line without a line feed, at the end of the stream.
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

    /// Handles the first message, which may be a greeting.
    async fn begin(&mut self, body: &[u8]) {
        let first = greeting::read(body, &self.host);
        if let Some(lookup) = self.lookup.take() {
            self.origin = lookup.origin().await;
        }
        match (&first, &self.origin) {
            // A token proves the identity, unless the caller is in another agent's pane.
            (FirstLine::From(Caller::Process(id)), CallerOrigin::Agents(other)) if other != id => {
                return self.refuse(&greeting::wrong_token(id, other));
            }
            (FirstLine::From(Caller::Process(_)) | FirstLine::Refused(_), _) => {}
            (_, CallerOrigin::Nowhere) => {
                let message = "cannot determine where this connection comes from: its process ended \
                               before it was identified, or runs in an unknown pane; connect again";
                return self.refuse(&ErrorObject::new(GREETING_REFUSED, message));
            }
            _ => {}
        }
        let caller = match first {
            FirstLine::From(caller) => {
                let is_proven = matches!(caller, Caller::Process(_));
                let caller = if is_proven { caller } else { self.located(caller) };
                self.decoder.forget_framing();
                self.dispatch = Some(self.dispatch_for(caller));
                return;
            }
            FirstLine::Refused(error) => return self.refuse(&error),
            FirstLine::Message => match Upgrade::read(body) {
                None => self.located(Caller::External),
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

    /// Sends an error and ends the connection.
    fn refuse(&mut self, error: &ErrorObject) {
        tracing::warn!(error = error.message, "a connection was refused");
        self.write(&reply::error(None, error));
        self.ending = Some(Instant::now() + LAST_READ_PATIENCE);
    }

    /// The identity of a caller without a token, according to its origin.
    fn located(&self, says: Caller) -> Caller {
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

    /// Stops reading; calls in flight have `grace` to finish, and waiting ones are notified.
    fn end(&mut self, grace: Duration) {
        // Never extend the deadline of a client that closed its side earlier.
        let deadline = Instant::now() + grace;
        self.ending = Some(self.ending.map_or(deadline, |before| before.min(deadline)));
        if let Some(dispatch) = &self.dispatch {
            dispatch.end();
        }
    }

    /// Answers every unfinished call with an error.
    fn give_up(&mut self) {
        let error = ToolError::new(
            ErrorKind::Unavailable,
            "the connection ended before the call finished; it may or may not have been carried out",
        )
        .because_of(self.host.end())
        .into_rpc();
        for id in self.calls.give_up() {
            self.write(&reply::error(Some(&id), &error));
        }
        self.ending = Some(Instant::now() + LAST_READ_PATIENCE);
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

    /// Sends as much as the client accepts now.
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
        // One large response must not keep its memory for the rest of the connection.
        if self.bytes.capacity() > OUTBOX_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.sent = 0;
        self.moved = None;
        Ok(())
    }

    /// Drops sent bytes of an outbox that never becomes empty. Not after every write,
    /// because the rest is moved.
    fn drop_sent(&mut self) {
        if self.sent >= OUTBOX_BYTES.min(self.bytes.len() / 2) {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// The result of handling a frame.
enum Served {
    Answer(Vec<u8>),
    Nothing,
    /// The first message of the connection, which may identify the caller.
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

/// Sends an error to a client that is not admitted.
pub(super) async fn turn_away(stream: UnixStream, error: ErrorObject) {
    let mut line = Vec::new();
    Framing::Newline.encode(&reply::error(None, &error), &mut line);
    if stream.writable().await.is_ok() {
        let _ = stream.try_write(&line);
    }
}
