//! The session with a running server: moves bytes between its streams and the relay. A session
//! outlives its clients.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::{Id, Message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::backend::{Channel, Life};
use crate::lines::Lines;
use crate::queue::{Batch, Queue};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Ask, Era, Eras, LineId, Output, Relay};

/// A server that does not know `server/discover` answers the probe immediately or never. This is
/// shorter than the wait for a list of tools, so that the first list is complete.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// How long the handshake may take: some servers download packages first.
const GREETING_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes queued for a server; requests beyond that are refused.
const QUEUE_BYTES: usize = 16 << 20;

/// A server that reads nothing for this long while bytes are queued is considered hung.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// The last lines of standard error that are quoted when a server exits.
const LAST_WORDS: usize = 10;

/// Characters of each of those lines.
const LAST_WORD_BYTES: usize = 2 << 10;

/// The longest line of standard error that is logged as one.
const ERROR_LINE_BYTES: usize = 1 << 20;

/// Bytes at the start of an oversized line that are searched for its id.
const HEAD_BYTES: usize = 1 << 10;

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// How long a server may take to exit after it closes its output.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A message for a client other than a response.
#[derive(Debug)]
pub struct Told {
    /// The client's own id of the request it belongs to, if known.
    pub about: Option<Id>,
    /// The message, whole.
    pub text: String,
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Running,
    /// It ended. `on_purpose` if patterm ended it, `by_probe` if the probe may have ended the
    /// server.
    Over {
        refusal: Refusal,
        asked: bool,
        of_probe: bool,
    },
}

/// A session.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    name: String,
    relay: Mutex<State>,
    queue: Queue,
    life: Box<dyn Life>,
    pid: Option<i32>,
    standing: watch::Sender<Standing>,
    last_words: Mutex<VecDeque<String>>,
    /// When it was last used, in milliseconds since `began`.
    used: AtomicU64,
    ending: AtomicBool,
    /// Signalled when a call was answered.
    answered: Notify,
    /// Signalled when a handshake request was answered.
    greeted: Notify,
    began: Instant,
}

/// Receives the response, or the request itself if no server saw it.
pub(crate) type Reply = oneshot::Sender<Result<Vec<u8>, String>>;

struct State {
    relay: Relay<Reply>,
    tellers: HashMap<LineId, mpsc::Sender<Told>>,
    /// A reused buffer, empty between calls.
    outputs: Vec<Output<Reply>>,
}

impl Session {
    /// Takes over a server that was started.
    pub(crate) fn start(
        name: &str,
        channel: Channel,
        message_limit: usize,
        relay: Relay<Reply>,
    ) -> Self {
        let Channel { input, output, errors, pid, life } = channel;
        let session = Self(Arc::new(Inner {
            name: name.to_owned(),
            relay: Mutex::new(State { relay, tellers: HashMap::new(), outputs: Vec::new() }),
            queue: Queue::default(),
            life,
            pid,
            standing: watch::Sender::new(Standing::Running),
            last_words: Mutex::default(),
            used: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            answered: Notify::new(),
            greeted: Notify::new(),
            began: Instant::now(),
        }));
        let heard = tokio::spawn(session.clone().listen_to_errors(errors));
        tokio::spawn(session.clone().write_all(input));
        tokio::spawn(session.clone().listen(output, message_limit, heard));
        session
    }

    /// The state, and its changes.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.0.standing.subscribe()
    }

    pub(crate) fn is_running(&self) -> bool {
        *self.0.standing.borrow() == Standing::Running
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
    pub(crate) async fn until_greeted(&self) {
        self.0.greeted.notified().await;
    }

    /// The version that the server reports and whether it was probed, once the handshake is done.
    pub(crate) fn learned(&self) -> Option<(Option<String>, bool)> {
        let state = self.lock();
        let relay = &state.relay;
        relay.is_greeted().then(|| (relay.version(), relay.was_probed()))
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// How long it has been unused; zero while a call is in flight.
    pub(crate) fn idle(&self) -> Duration {
        if self.in_flight() > 0 {
            return Duration::ZERO;
        }
        let used = Duration::from_millis(self.0.used.load(Ordering::Relaxed));
        self.0.began.elapsed().saturating_sub(used)
    }

    /// Adds a client. `notifier` receives messages for it other than responses.
    pub(crate) fn join(&self, line: LineId, caller: &str, teller: mpsc::Sender<Told>) {
        let mut state = self.lock();
        state.tellers.insert(line, teller);
        state.relay.join(line, caller);
    }

    /// Removes a client.
    pub(crate) fn leave(&self, line: LineId) {
        self.with(|relay| relay.leave(line));
        self.lock().tellers.remove(&line);
    }

    /// Sends a client's request. The receiver gets the response under the client's id, or the
    /// request itself if the server ended before it saw it.
    pub(crate) fn ask(
        &self,
        line: LineId,
        id: Id,
        method: &str,
        text: String,
    ) -> Result<oneshot::Receiver<Result<Vec<u8>, String>>, Refusal> {
        self.note_use();
        if self.0.queue.bytes() + text.len() > QUEUE_BYTES {
            let message = format!(
                "`{}` does not read its input: {} bytes are queued already",
                self.0.name,
                self.0.queue.bytes()
            );
            return Err(Refusal::new(RefusalKind::Limit, message));
        }
        let (reply, answer) = oneshot::channel();
        let era = Era::of(&text);
        let ask = Ask { line, id, method: method.to_owned(), text, era, reply };
        self.with(|relay| relay.ask(ask));
        Ok(answer)
    }

    /// Forwards a client's notification, or its response to a request of the server.
    pub(crate) fn tell(&self, line: LineId, message: &Message<'_>, text: &str) {
        self.note_use();
        self.with(|relay| match message {
            Message::Notification { method, .. } => relay.tell(line, method, text),
            Message::Response { id: Some(id), .. } => relay.respond(line, id, text),
            _ => {}
        });
    }

    /// Cancels a client's request.
    pub(crate) fn cancel(&self, line: LineId, id: &Id, why: &str) {
        self.with(|relay| relay.cancel(line, id, why));
    }

    /// Ends it on purpose.
    pub(crate) async fn end(&self, why: &str) {
        self.0.ending.store(true, Ordering::Release);
        self.over(Refusal::new(RefusalKind::Ended, why));
        self.0.life.end().await;
    }

    fn note_use(&self) {
        let now = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.used.store(now, Ordering::Relaxed);
    }

    /// Runs `work` on the relay and carries out what follows from it, under one lock.
    fn with(&self, work: impl FnOnce(&mut Relay<Reply>)) {
        let mut state = self.lock();
        let before = state.relay.greeting();
        work(&mut state.relay);
        let after = state.relay.greeting();
        if before != after {
            if before.is_some() {
                self.0.greeted.notify_one();
            }
            if let Some(asked) = after {
                self.watch_greeting(asked);
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
                    let _ = to.send(Ok(body));
                    self.0.answered.notify_waiters();
                }
                Output::GiveBack(to, text) => drop(to.send(Err(text))),
                Output::Tell { line, about, text } => {
                    let teller = state.tellers.get(&line);
                    if teller.is_some_and(|to| to.try_send(Told { about, text }).is_err()) {
                        tracing::debug!(
                            server = self.0.name,
                            line,
                            "dropped a notification: the client does not read"
                        );
                    }
                }
            }
        }
        state.outputs = outputs;
    }

    fn after(&self, patience: Duration, work: impl FnOnce(&Self) + Send + 'static) {
        let session = self.clone();
        tokio::spawn(async move {
            let mut standing = session.standing();
            let over = standing.wait_for(|standing| *standing != Standing::Running);
            if timeout(patience, over).await.is_err() {
                work(&session);
            }
        });
    }

    /// Limits the time for a handshake request.
    fn watch_greeting(&self, (own, is_probe): (u64, bool)) {
        match is_probe {
            true => self.after(PROBE_PATIENCE, move |session| session.probe_is_over(own)),
            false => self.after(GREETING_PATIENCE, move |session| session.greeting_is_late(own)),
        }
    }

    fn probe_is_over(&self, own: u64) {
        self.with(|relay| relay.probe_is_over(own));
    }

    fn greeting_is_late(&self, own: u64) {
        let mut of_no_use = false;
        self.with(|relay| of_no_use = relay.greeting_is_late(own));
        if of_no_use {
            let session = self.clone();
            let how = format!("did not finish the handshake within {GREETING_PATIENCE:?}");
            tokio::spawn(async move { session.ended(&how).await });
        }
    }

    async fn write_all(self, mut input: Box<dyn AsyncWrite + Send + Unpin>) {
        let mut batch = Batch::default();
        while self.0.queue.take(&mut batch).await {
            let mut rest = batch.bytes.as_slice();
            while !rest.is_empty() {
                match timeout(WRITE_PATIENCE, input.write(rest)).await {
                    Ok(Ok(written)) if written > 0 => rest = &rest[written..],
                    // What its output says explains the end.
                    Ok(_) => return self.0.queue.close(),
                    Err(_) => {
                        let why = format!("read nothing for {WRITE_PATIENCE:?}");
                        return self.ended(&why).await;
                    }
                }
            }
            self.0.queue.written();
            if batch.is_told {
                self.with(|relay| relay.initialized_written(true));
            }
            batch.clear();
        }
        // Dropping the input tells most servers to exit.
    }

    async fn listen(
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
                Ok(read) => lines.take(&bytes[..read], |line| self.with(|relay| relay.hear(line))),
            }
            for long in lines.take_long() {
                tracing::warn!(
                    server = self.0.name,
                    limit,
                    "the server printed a line over the limit"
                );
                self.with(|relay| relay.hear_too_long(&long, limit));
            }
        }
        let last = lines.rest();
        self.with(|relay| relay.hear(&last));
        let ended = timeout(END_PATIENCE, self.0.life.ended()).await;
        let how = ended.unwrap_or_else(|_| "closed its output".to_owned());
        // Its last words are worth a short wait, even if another process holds its standard error.
        let _ = timeout(END_PATIENCE, errors).await;
        self.ended(&how).await;
    }

    /// The server ended by itself.
    async fn ended(&self, how: &str) {
        let message = format!("`{}` {how}{}", self.0.name, self.last_words());
        if !self.0.ending.load(Ordering::Acquire) {
            tracing::warn!(server = self.0.name, how, "a shared server exited");
        }
        self.over(Refusal::new(RefusalKind::Ended, message));
        self.0.life.end().await;
    }

    /// Ends the session, once, and informs all clients.
    fn over(&self, refusal: Refusal) {
        let asked = self.0.ending.load(Ordering::Acquire);
        let of_probe = !asked && self.lock().relay.dies_of_probe();
        let first = self.0.standing.send_if_modified(|standing| {
            let running = *standing == Standing::Running;
            if running {
                *standing = Standing::Over { refusal: refusal.clone(), asked, of_probe };
            }
            running
        });
        if first {
            self.with(|relay| relay.close(&refusal, of_probe));
            self.0.queue.close();
            // Clients see the end of their notifications.
            self.lock().tellers.clear();
        }
    }

    async fn listen_to_errors(self, mut errors: Box<dyn AsyncRead + Send + Unpin>) {
        let mut lines = Lines::new(ERROR_LINE_BYTES, ERROR_LINE_BYTES);
        let mut bytes = vec![0; READ_BYTES];
        while let Ok(read) = errors.read(&mut bytes).await {
            if read == 0 {
                break;
            }
            lines.take(&bytes[..read], |line| self.note_error(line));
            for long in lines.take_long() {
                self.note_error(&long.head);
            }
        }
        let last = lines.rest();
        if !last.is_empty() {
            self.note_error(&last);
        }
    }

    fn note_error(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        tracing::warn!(server = self.0.name, "{line}");
        let mut words = self.0.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == LAST_WORDS {
            words.pop_front();
        }
        words.push_back(line.chars().take(LAST_WORD_BYTES).collect());
    }

    /// The last lines of standard error, as the end of a sentence.
    fn last_words(&self) -> String {
        let words = self.0.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        match words.is_empty() {
            true => String::new(),
            false => {
                let lines: Vec<&str> = words.iter().map(String::as_str).collect();
                format!("; its last output: {}", lines.join(" / "))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
