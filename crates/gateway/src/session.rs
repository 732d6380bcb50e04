//! The session with a running server: moves bytes between its streams and the relay, which decides
//! what they mean. A session outlives its clients.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::{Id, Message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::backend::{Channel, ServerControl};
use crate::call_slot::{CallReceiver, CallSender, call_slot};
use crate::error::{GatewayError, GatewayErrorKind};
use crate::lines::Lines;
use crate::queue::{Batch, Queue};
use crate::relay::{ClientId, ClientRequest, Era, Eras, Member, Output, Relay, UpstreamId};

/// A server that does not know `server/discover` answers the probe immediately or never. This is
/// shorter than the wait for a list of tools, so that the first list is complete.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the handshake may take: some servers download packages first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes queued for a server; requests beyond that are refused.
const QUEUE_BYTES: usize = 16 << 20;

/// A server that reads nothing for this long while bytes are queued is considered hung.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The last lines of standard error that are quoted when a server exits.
const LAST_ERROR_LINES: usize = 10;

/// Characters of each of those lines.
const LAST_ERROR_CHARS: usize = 2 << 10;

/// The longest line of standard error that is logged as one.
const ERROR_LINE_BYTES: usize = 1 << 20;

/// Bytes at the start of an oversized line that are searched for its id.
const HEAD_BYTES: usize = 1 << 10;

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// How long a server may take to exit after it closes its output.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A message for a client other than a response.
#[derive(Debug)]
pub struct Notification {
    /// The client's own id of the request it belongs to, if known.
    pub request_id: Option<Id>,
    /// The message, whole.
    pub text: String,
}

/// A usual call of a tool. Only this crate can begin one.
pub struct UsualRequest<'a> {
    pub(crate) id: &'a Id,
    pub(crate) era: Era,
    pub(crate) text: &'a [u8],
    /// The positions of its id and its progress token in its text.
    pub(crate) id_span: Range<usize>,
    pub(crate) token_span: Option<Range<usize>>,
    pub(crate) started: std::time::Instant,
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionState {
    Running,
    /// It ended. `on_purpose` if patterm ended it, `by_probe` if the probe may have ended the
    /// server.
    Ended {
        error: GatewayError,
        on_purpose: bool,
        by_probe: bool,
    },
}

/// A session.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    name: String,
    relay: Mutex<RelayState>,
    queue: Queue,
    control: Box<dyn ServerControl>,
    pid: Option<i32>,
    state: watch::Sender<SessionState>,
    last_errors: Mutex<VecDeque<String>>,
    /// When it was last used, in milliseconds since `began`.
    last_used_ms: AtomicU64,
    is_ending: AtomicBool,
    /// Signalled when a call was answered.
    answered: Notify,
    /// Signalled when a handshake request was answered.
    handshake_done: Notify,
    began: Instant,
}

/// A client, and where its notifications go.
pub(crate) type SessionMember = (Member, mpsc::Sender<Notification>);

struct RelayState {
    relay: Relay<CallSender>,
    notifiers: HashMap<ClientId, mpsc::Sender<Notification>>,
    /// A reused buffer, empty between calls.
    outputs: Vec<Output<CallSender>>,
}

impl Session {
    /// Takes over a server that was started.
    pub(crate) fn start(
        name: &str,
        channel: Channel,
        message_limit: usize,
        relay: Relay<CallSender>,
    ) -> Self {
        let Channel { input, output, errors, pid, control } = channel;
        let session = Self(Arc::new(Inner {
            name: name.to_owned(),
            relay: Mutex::new(RelayState { relay, notifiers: HashMap::new(), outputs: Vec::new() }),
            queue: Queue::default(),
            control,
            pid,
            state: watch::Sender::new(SessionState::Running),
            last_errors: Mutex::default(),
            last_used_ms: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            answered: Notify::new(),
            handshake_done: Notify::new(),
            began: Instant::now(),
        }));
        let errors = tokio::spawn(session.clone().read_errors(errors));
        tokio::spawn(session.clone().write_input(input));
        tokio::spawn(session.clone().read_output(output, message_limit, errors));
        session
    }

    /// The state, and its changes.
    pub(crate) fn state(&self) -> watch::Receiver<SessionState> {
        self.0.state.subscribe()
    }

    pub(crate) fn is_running(&self) -> bool {
        *self.0.state.borrow() == SessionState::Running
    }

    pub(crate) fn is_ended_on_purpose(&self) -> bool {
        matches!(*self.0.state.borrow(), SessionState::Ended { on_purpose: true, .. })
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits until no call is in flight.
    pub(crate) async fn until_unused(&self) {
        while self.is_running() && self.in_flight() > 0 {
            self.0.answered.notified().await;
        }
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.0.pid
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.lock().relay.in_flight()
    }

    pub(crate) fn noise(&self) -> u64 {
        self.lock().relay.noise()
    }

    pub(crate) fn eras(&self) -> Eras {
        self.lock().relay.eras()
    }

    /// Waits until a handshake request was answered.
    pub(crate) async fn until_handshake(&self) {
        self.0.handshake_done.notified().await;
    }

    /// The version that the server reports and whether it was probed, once the handshake is done.
    pub(crate) fn handshake_outcome(&self) -> Option<(Option<String>, bool)> {
        let state = self.lock();
        let relay = &state.relay;
        relay.is_handshake_done().then(|| (relay.version(), relay.was_probed()))
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// How long it has been unused; zero while a call is in flight or a client is subscribed.
    pub(crate) fn idle(&self) -> Duration {
        let state = self.lock();
        if state.relay.in_flight() > 0 || state.relay.has_subscribers() {
            return Duration::ZERO;
        }
        drop(state);
        let last_used_ms = Duration::from_millis(self.0.last_used_ms.load(Ordering::Relaxed));
        self.0.began.elapsed().saturating_sub(last_used_ms)
    }

    /// Adds a client. `notifier` receives messages for it other than responses.
    pub(crate) fn join(
        &self,
        client: ClientId,
        caller: &str,
        can_respond: bool,
        notifier: mpsc::Sender<Notification>,
    ) {
        let mut state = self.lock();
        state.notifiers.insert(client, notifier);
        state.relay.join(client, caller, can_respond);
    }

    /// Takes over the clients of an earlier session, before any request.
    pub(crate) fn adopt(&self, members: Vec<SessionMember>) {
        let mut state = self.lock();
        for (member, notifier) in members {
            state.notifiers.insert(member.client, notifier);
            state.relay.adopt([member]);
        }
    }

    /// Its clients, for the next session.
    pub(crate) fn members(&self) -> Vec<SessionMember> {
        let state = self.lock();
        let notifier = |member: &Member| state.notifiers.get(&member.client).cloned();
        let members = state.relay.members().into_iter();
        members.filter_map(|member| notifier(&member).map(|to| (member, to))).collect()
    }

    /// Removes a client.
    pub(crate) fn leave(&self, client: ClientId) {
        self.with(|relay| relay.leave(client));
        self.lock().notifiers.remove(&client);
    }

    /// Sends a client's request. The receiver gets the response under the client's id, or the
    /// request itself if the server ended before it saw it.
    pub(crate) fn request(
        &self,
        client: ClientId,
        id: Id,
        method: &str,
        text: String,
    ) -> Result<CallReceiver, GatewayError> {
        self.touch();
        if self.0.queue.bytes() + text.len() > QUEUE_BYTES {
            let message = format!(
                "`{}` does not read its input: {} bytes are queued already",
                self.0.name,
                self.0.queue.bytes()
            );
            return Err(GatewayError::new(GatewayErrorKind::Limit, message));
        }
        let (reply, answer) = call_slot(false);
        let era = Era::of(&text);
        let request = ClientRequest { client, id, method: method.to_owned(), text, era, reply };
        self.with(|relay| relay.request(request));
        Ok(answer)
    }

    /// Sends a usual call of a tool, unless something about it is unusual now.
    pub(crate) fn begin_usual(
        &self,
        client: ClientId,
        call: &UsualRequest<'_>,
    ) -> Option<CallReceiver> {
        let UsualRequest { id, era, text, id_span, token_span, started } = call;
        let token = match token_span {
            Some(span) => Some(std::str::from_utf8(text.get(span.clone())?).ok()?),
            None => None,
        };
        self.touch_at((*started).into());
        let (reply, answer) = call_slot(true);
        let mut state = self.lock();
        let upstream = state.relay.begin_usual(client, id, *era, token, reply)?;
        let number = upstream.0.to_string();
        let mut spans = [Some(id_span), token_span.as_ref()];
        spans.sort_unstable_by_key(|span| span.map(|span| span.start));
        let (mut parts, mut count, mut from) = ([&[] as &[u8]; 5], 0, 0);
        for span in spans.into_iter().flatten() {
            parts[count] = &text[from..span.start];
            parts[count + 1] = number.as_bytes();
            (count, from) = (count + 2, span.end);
        }
        parts[count] = &text[from..];
        if !self.0.queue.push_parts(&parts[..=count], QUEUE_BYTES) {
            // The general path says why.
            state.relay.take_back(upstream);
            return None;
        }
        Some(answer)
    }

    /// Forwards a client's notification, or its response to a request of the server.
    pub(crate) fn notify(&self, client: ClientId, message: &Message<'_>, text: &str) {
        self.touch();
        self.with(|relay| match message {
            Message::Notification { method, .. } => relay.notify(client, method, text),
            Message::Response { id: Some(id), .. } => relay.respond(client, id, text),
            _ => {}
        });
    }

    /// Cancels a client's request.
    pub(crate) fn cancel(&self, client: ClientId, id: &Id, why: &str) {
        self.with(|relay| relay.cancel(client, id, why));
    }

    /// Ends it on purpose.
    pub(crate) async fn end(&self, why: &str) {
        self.0.is_ending.store(true, Ordering::Release);
        self.finish(GatewayError::new(GatewayErrorKind::Ended, why));
        self.0.control.end().await;
    }

    fn touch(&self) {
        self.touch_at(Instant::now());
    }

    fn touch_at(&self, now: Instant) {
        let used = now.saturating_duration_since(self.0.began);
        let used = u64::try_from(used.as_millis()).unwrap_or(u64::MAX);
        self.0.last_used_ms.store(used, Ordering::Relaxed);
    }

    /// Runs `work` on the relay and carries out what follows from it, under one lock.
    fn with(&self, work: impl FnOnce(&mut Relay<CallSender>)) {
        let mut state = self.lock();
        let before = state.relay.pending_handshake();
        work(&mut state.relay);
        let after = state.relay.pending_handshake();
        if before != after {
            if before.is_some() {
                self.0.handshake_done.notify_one();
            }
            if let Some(request) = after {
                self.limit_handshake(request);
            }
        }
        let mut outputs = std::mem::take(&mut state.outputs);
        state.relay.move_output(&mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Write(line) => self.0.queue.push(&line, false),
                Output::WriteInitialized(line) => self.0.queue.push(&line, true),
                // If the receiver is gone, its client has just left.
                Output::Answer(to, body) => {
                    to.respond(Ok(body));
                    if state.relay.in_flight() == 0 {
                        self.0.answered.notify_waiters();
                    }
                }
                Output::Return(to, text) => to.respond(Err(text)),
                Output::Notify { client, request_id, mut text } => {
                    let call = request_id.as_ref().and_then(|id| state.relay.reply_to(client, id));
                    if let Some(call) = call {
                        match call.notify(text) {
                            Ok(()) => continue,
                            Err(returned) => text = returned,
                        }
                    }
                    let notifier = state.notifiers.get(&client);
                    if notifier
                        .is_some_and(|to| to.try_send(Notification { request_id, text }).is_err())
                    {
                        tracing::debug!(
                            server = self.0.name,
                            client = client.0,
                            "dropped a notification: the client does not read"
                        );
                    }
                }
            }
        }
        state.outputs = outputs;
    }

    fn after(&self, limit: Duration, work: impl FnOnce(&Self) + Send + 'static) {
        let session = self.clone();
        tokio::spawn(async move {
            let mut state = session.state();
            let ended = state.wait_for(|state| *state != SessionState::Running);
            if timeout(limit, ended).await.is_err() {
                work(&session);
            }
        });
    }

    /// Limits the time for a handshake request.
    fn limit_handshake(&self, (upstream, is_probe): (UpstreamId, bool)) {
        match is_probe {
            true => self.after(PROBE_TIMEOUT, move |session| session.probe_timed_out(upstream)),
            false => {
                self.after(HANDSHAKE_TIMEOUT, move |session| session.initialize_timed_out(upstream))
            }
        }
    }

    fn probe_timed_out(&self, upstream: UpstreamId) {
        self.with(|relay| relay.probe_timed_out(upstream));
    }

    fn initialize_timed_out(&self, upstream: UpstreamId) {
        let mut is_unusable = false;
        self.with(|relay| is_unusable = relay.initialize_timed_out(upstream));
        if is_unusable {
            let session = self.clone();
            let how = format!("did not finish the handshake within {HANDSHAKE_TIMEOUT:?}");
            tokio::spawn(async move { session.ended(&how).await });
        }
    }

    async fn write_input(self, mut input: Box<dyn AsyncWrite + Send + Unpin>) {
        let mut batch = Batch::default();
        while self.0.queue.take(&mut batch).await {
            let mut rest = batch.bytes.as_slice();
            while !rest.is_empty() {
                match timeout(WRITE_TIMEOUT, input.write(rest)).await {
                    Ok(Ok(written)) if written > 0 => rest = &rest[written..],
                    // What its output says explains the end.
                    Ok(_) => return self.0.queue.close(),
                    Err(_) => {
                        let why = format!("read nothing for {WRITE_TIMEOUT:?}");
                        return self.ended(&why).await;
                    }
                }
            }
            self.0.queue.written();
            if batch.reports_write {
                self.with(|relay| relay.initialized_written(true));
            }
            batch.clear();
        }
        // Dropping the input tells most servers to exit.
    }

    async fn read_output(
        self,
        mut output: Box<dyn AsyncRead + Send + Unpin>,
        limit: usize,
        errors: tokio::task::JoinHandle<()>,
    ) {
        let mut lines = Lines::new(limit, HEAD_BYTES);
        let mut bytes = vec![0; READ_BYTES];
        loop {
            match output.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    lines.take(&bytes[..read], |line| self.with(|relay| relay.receive_line(line)))
                }
            }
            for long in lines.take_long() {
                tracing::warn!(
                    server = self.0.name,
                    limit,
                    "the server printed a line over the limit"
                );
                self.with(|relay| relay.receive_oversized(&long, limit));
            }
        }
        let last = lines.rest();
        self.with(|relay| relay.receive_line(&last));
        let ended = timeout(END_TIMEOUT, self.0.control.wait()).await;
        let how = ended.map_or_else(|_| "closed its output".to_owned(), |exit| exit.to_string());
        // Its last words are worth a short wait, even if another process holds its standard error.
        let _ = timeout(END_TIMEOUT, errors).await;
        self.ended(&how).await;
    }

    /// The server ended by itself.
    async fn ended(&self, how: &str) {
        let message = format!("`{}` {how}{}", self.0.name, self.last_errors());
        if !self.0.is_ending.load(Ordering::Acquire) {
            tracing::warn!(server = self.0.name, how, "a shared server exited");
        }
        self.finish(GatewayError::new(GatewayErrorKind::Ended, message));
        self.0.control.end().await;
    }

    /// Ends the session, once, and informs all clients.
    fn finish(&self, error: GatewayError) {
        let on_purpose = self.0.is_ending.load(Ordering::Acquire);
        let by_probe = !on_purpose && self.lock().relay.may_end_by_probe();
        let first = self.0.state.send_if_modified(|state| {
            let running = *state == SessionState::Running;
            if running {
                *state = SessionState::Ended { error: error.clone(), on_purpose, by_probe };
            }
            running
        });
        if first {
            self.with(|relay| relay.close(&error, by_probe));
            self.0.queue.close();
        }
    }

    async fn read_errors(self, mut errors: Box<dyn AsyncRead + Send + Unpin>) {
        let mut lines = Lines::new(ERROR_LINE_BYTES, ERROR_LINE_BYTES);
        let mut bytes = vec![0; READ_BYTES];
        while let Ok(read) = errors.read(&mut bytes).await {
            if read == 0 {
                break;
            }
            lines.take(&bytes[..read], |line| self.log_error(line));
            for long in lines.take_long() {
                self.log_error(&long.head);
            }
        }
        let last = lines.rest();
        if !last.is_empty() {
            self.log_error(&last);
        }
    }

    fn log_error(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        tracing::warn!(server = self.0.name, "{line}");
        let mut lines = self.0.last_errors.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_ERROR_LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(LAST_ERROR_CHARS).collect());
    }

    /// The last lines of standard error, as the end of a sentence.
    fn last_errors(&self) -> String {
        let lines = self.0.last_errors.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.is_empty() {
            true => String::new(),
            false => {
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                format!("; its last output: {}", lines.join(" / "))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RelayState> {
        self.0.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
