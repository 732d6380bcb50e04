//! One instance of a server. The first call starts it, once for all clients that call at the same
//! time. If it exits, the next call restarts it, with growing pauses while it keeps failing. It
//! does not look at messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::Backend;
use crate::cache::ServerCache;
use crate::call_slot::CallSender;
use crate::error::{GatewayError, GatewayErrorKind};
use crate::observer::{ServerChange, ServerObserver};
use crate::relay::{ClientId, Eras, Ids, Relay, RelayConfig};
use crate::session::{Session, SessionMember, SessionState};
use crate::settings::ServerLimits;
use crate::timeout_pool::TimeoutPool;

/// The pause after the second failure in a row, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Callers with counters before the counters of disconnected callers are dropped.
const CALLER_COUNTERS: usize = 64;

/// A server that ran this long did not fail to start.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// What an instance runs, and how.
#[derive(Debug, Clone)]
pub(crate) struct InstanceSpec {
    pub(crate) name: String,
    /// The caller that it is for, unless all callers share it.
    pub(crate) owner: Option<String>,
    /// Learns what happens to it.
    pub(crate) observer: Option<Arc<dyn ServerObserver>>,
    /// Everything that makes this a different server when it changes.
    pub(crate) fingerprint: String,
    /// What is known about the server from earlier runs.
    pub(crate) cache: Option<Arc<dyn ServerCache>>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) config: RelayConfig,
    pub(crate) limits: ServerLimits,
}

/// The state of an instance.
#[derive(Clone)]
enum InstanceState {
    Asleep,
    Starting,
    Running(Session),
    /// It could not be started, or exited too soon. It is not started again before this time.
    Failed(GatewayError, Instant),
}

/// An instance of a server, running or not.
pub(crate) struct Instance {
    spec: InstanceSpec,
    state: watch::Sender<InstanceState>,
    history: Mutex<History>,
    /// It was removed: it ends, and is not started again.
    retired: AtomicBool,
    /// Timers for calls.
    timeouts: TimeoutPool,
    /// Calls in flight per caller, over all of its connections.
    callers: Mutex<HashMap<String, Weak<AtomicUsize>>>,
    /// Clients of the last session, for the next one.
    members: Mutex<Vec<SessionMember>>,
}

/// Counts a call in flight for its caller until it is dropped.
pub(crate) struct CallGuard(Arc<AtomicUsize>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What happened so far.
#[derive(Debug, Default)]
struct History {
    eras: Eras,
    /// The probe ended the server: the next start skips it.
    ended_by_probe: bool,
    /// Consecutive failures.
    failures: u32,
    starts: u64,
    last_error: Option<String>,
    /// What was reported last.
    reported: Option<ServerChange>,
}

/// The state of an instance, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It was not needed yet, or was stopped while idle.
    Asleep,
    /// It is being started.
    Starting,
    /// It is running.
    Running,
    /// It could not be started, or exited.
    Failed,
}

impl ServerState {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asleep => "asleep",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Failed => "failed",
        }
    }
}

/// The status of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its state.
    pub state: ServerState,
    /// The process on this machine, if there is one.
    pub pid: Option<i32>,
    /// How long it has been running.
    pub uptime: Option<Duration>,
    /// Calls in flight.
    pub in_flight: usize,
    /// How often it was restarted.
    pub restarts: u64,
    /// Lines of output that were not messages.
    pub noise: u64,
    /// Why it last exited or could not be started.
    pub last_error: Option<String>,
}

impl ServerStatus {
    /// The status of a server that was not needed yet.
    #[must_use]
    pub fn asleep() -> Self {
        Self {
            state: ServerState::Asleep,
            pid: None,
            uptime: None,
            in_flight: 0,
            restarts: 0,
            noise: 0,
            last_error: None,
        }
    }

    /// The status of a server that cannot be started.
    pub(crate) fn failed(fault: &str) -> Self {
        let last_error = Some(fault.to_owned());
        Self { state: ServerState::Failed, last_error, ..Self::asleep() }
    }
}

impl Instance {
    pub(crate) fn new(spec: InstanceSpec) -> Arc<Self> {
        let (state, history) = (watch::Sender::new(InstanceState::Asleep), Mutex::default());
        let (retired, timeouts) = (AtomicBool::new(false), TimeoutPool::default());
        let (callers, members) = Default::default();
        Arc::new(Self { spec, state, history, retired, timeouts, callers, members })
    }

    /// Takes over the clients of an instance that is being replaced.
    pub(crate) fn succeed(&self, old: &Self) {
        let members = match &*old.state.borrow() {
            InstanceState::Running(session) => session.members(),
            _ => old.members().clone(),
        };
        *self.members() = members;
    }

    /// Removes a client.
    pub(crate) fn leave(&self, client: ClientId) {
        let mut members = self.members();
        members.retain(|(member, _)| member.client != client);
        if let InstanceState::Running(session) = &*self.state.borrow() {
            session.leave(client);
        }
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.spec.limits
    }

    pub(crate) fn timeouts(&self) -> &TimeoutPool {
        &self.timeouts
    }

    /// The session, if it is running.
    pub(crate) fn running(&self) -> Option<Session> {
        match &*self.state.borrow() {
            InstanceState::Running(session) if session.is_running() => Some(session.clone()),
            _ => None,
        }
    }

    /// The running session; starts one if there is none. Callers that arrive during a start wait
    /// for that start, which continues even if all of them leave.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Session, GatewayError> {
        if let InstanceState::Running(session) = &*self.state.borrow()
            && session.is_running()
        {
            return Ok(session.clone());
        }
        let mut state = self.state.subscribe();
        let mut waited = false;
        loop {
            if self.is_retired() {
                return Err(GatewayError::new(
                    GatewayErrorKind::Unavailable,
                    "the server was removed",
                ));
            }
            let mut starts_now = false;
            self.state.send_if_modified(|state| {
                starts_now = match state {
                    InstanceState::Asleep => true,
                    InstanceState::Failed(_, until) => !waited && Instant::now() >= *until,
                    InstanceState::Starting | InstanceState::Running(_) => false,
                };
                if starts_now {
                    *state = InstanceState::Starting;
                }
                starts_now
            });
            if starts_now {
                tokio::spawn(self.clone().start_session());
            }
            let now = state.borrow_and_update().clone();
            match now {
                InstanceState::Running(session) if session.is_running() => return Ok(session),
                // Callers that waited for a failed start get its error; the next call tries again.
                InstanceState::Failed(error, _) => return Err(error),
                // A session that ended is followed by another state immediately.
                InstanceState::Running(_) | InstanceState::Starting | InstanceState::Asleep => {}
            }
            if state.changed().await.is_err() {
                return Err(GatewayError::new(
                    GatewayErrorKind::Unavailable,
                    "the server was removed",
                ));
            }
            waited = true;
        }
    }

    async fn start_session(self: Arc<Self>) {
        let ids = match random_ids() {
            Ok(ids) => ids,
            Err(error) => return self.fail(error),
        };
        let opened = self.spec.backend.open().await;
        let channel = match opened {
            Ok(channel) => channel,
            Err(error) => return self.fail(error),
        };
        let InstanceSpec { name, limits, .. } = &self.spec;
        let session = Session::start(name, channel, limits.message_bytes, self.relay(ids));
        {
            // Under the lock, so that no client can leave in between and be forgotten.
            let mut members = self.members();
            session.adopt(std::mem::take(&mut members));
            self.state.send_replace(InstanceState::Running(session.clone()));
        }
        self.report(ServerChange::Started);
        if self.is_retired() {
            session.end("the server was removed").await;
        }
        self.supervise(session).await;
    }

    /// Follows a session until it ends, and ends it when it has been idle for too long.
    async fn supervise(self: Arc<Self>, session: Session) {
        let mut state = session.state();
        let ended = loop {
            let idle_left =
                self.spec.limits.idle_timeout.map(|idle| idle.saturating_sub(session.idle()));
            tokio::select! {
                ended = until_ended(&mut state) => break ended,
                () = session.until_handshake() => self.store_handshake(&session),
                () = sleep_for(idle_left) => {
                    if self.spec.limits.idle_timeout.is_some_and(|idle| session.idle() >= idle) {
                        session.end("it was stopped while idle; the next call starts it again").await;
                    }
                }
            }
        };
        self.history().eras = session.eras();
        self.store_handshake(&session);
        {
            let mut members = self.members();
            *members = session.members();
        }
        match ended {
            // Requests that waited for the handshake are repeated on the next session, which skips
            // the probe.
            Some(SessionState::Ended { by_probe: true, error, .. }) => {
                let name = &self.spec.name;
                tracing::info!(
                    server = name,
                    why = error.message,
                    "the server ended during the probe; it is restarted without one"
                );
                self.history().ended_by_probe = true;
                self.state.send_replace(InstanceState::Asleep);
            }
            Some(SessionState::Ended { on_purpose: true, .. }) | None => {
                self.report(ServerChange::Stopped);
                self.state.send_replace(InstanceState::Asleep);
            }
            Some(SessionState::Ended { error, .. }) => {
                if session.uptime() >= STABLE_AFTER {
                    self.history().failures = 0;
                }
                self.fail(error);
            }
            Some(SessionState::Running) => {}
        }
    }

    /// The relay of the next session, with what is known from earlier ones.
    fn relay(&self, ids: Ids) -> Relay<CallSender> {
        let mut history = self.history();
        if history.starts == 0 {
            history.eras = self.cached_eras();
        }
        history.starts += 1;
        let mut relay = Relay::new(self.spec.config.clone(), history.eras, ids);
        if std::mem::take(&mut history.ended_by_probe) {
            relay.skip_probe();
        }
        relay
    }

    fn cached_eras(&self) -> Eras {
        let InstanceSpec { name, fingerprint, cache, .. } = &self.spec;
        let known = cache.as_ref().and_then(|cache| cache.load(name, fingerprint));
        known
            .map_or_else(Eras::default, |known| Eras { modern: known.modern, legacy: known.legacy })
    }

    /// Stores how the server did its handshake. If the server reports a different version,
    /// assumptions that were not verified in this session are dropped.
    fn store_handshake(&self, session: &Session) {
        let InstanceSpec { name, fingerprint, cache, .. } = &self.spec;
        let (Some(cache), Some((version, probed))) = (cache, session.handshake_outcome()) else {
            return;
        };
        let eras = session.eras();
        cache.update(name, fingerprint, &mut |known| {
            let is_other = known.version.is_some() && known.version != version;
            match probed {
                true => known.modern = eras.modern,
                false if is_other => known.modern = None,
                false => {}
            }
            known.legacy = eras.legacy;
            known.version.clone_from(&version);
        });
    }

    fn fail(&self, error: GatewayError) {
        self.report(ServerChange::Failed(error.message.clone()));
        let mut history = self.history();
        history.last_error = Some(error.message.clone());
        let pause = FIRST_PAUSE.saturating_mul(1 << history.failures.min(16)).min(LONGEST_PAUSE);
        // A single failure may be bad luck: the next call retries immediately. So does one that costs nothing.
        let retries_at_once = history.failures == 0 || self.spec.backend.fault().is_some();
        let pause = if retries_at_once { Duration::ZERO } else { pause };
        history.failures += 1;
        drop(history);
        let message = match pause.is_zero() {
            true => error.message,
            false => format!("{}; it is not restarted for {pause:?}", error.message),
        };
        let error = GatewayError::new(GatewayErrorKind::Unavailable, message);
        self.state.send_replace(InstanceState::Failed(error, Instant::now() + pause));
    }

    /// Reports a change to the host, unless it is the same as before: every call may find out again that a server
    /// cannot be started.
    fn report(&self, change: ServerChange) {
        let InstanceSpec { name, owner, observer: Some(observer), .. } = &self.spec else { return };
        let before = self.history().reported.replace(change.clone());
        if before.as_ref() != Some(&change) {
            observer.changed(name, owner.as_deref(), change);
        }
    }

    /// Ends the session for good.
    pub(crate) async fn end(&self, why: &str) {
        self.mark_retired();
        let running = match &*self.state.borrow() {
            InstanceState::Running(session) => Some(session.clone()),
            _ => None,
        };
        if let Some(session) = running {
            session.end(why).await;
            // The task that follows the session may have no turn any more.
            if session.is_ended_on_purpose() {
                self.report(ServerChange::Stopped);
            }
        }
    }

    /// Ends the session once its calls are answered, or after the call timeout.
    pub(crate) async fn retire(&self) {
        self.mark_retired();
        let session = match &*self.state.borrow() {
            InstanceState::Running(session) => session.clone(),
            _ => return,
        };
        let _ = tokio::time::timeout(self.spec.limits.call_timeout, session.until_unused()).await;
        session.end("the server was removed").await;
    }

    /// The counter of a caller's calls in flight.
    pub(crate) fn counter_of(&self, caller: &str) -> Arc<AtomicUsize> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get(caller).and_then(Weak::upgrade) {
            return count;
        }
        if callers.len() >= CALLER_COUNTERS {
            callers.retain(|_, count| count.strong_count() > 0);
        }
        let count = Arc::new(AtomicUsize::new(0));
        callers.insert(caller.to_owned(), Arc::downgrade(&count));
        count
    }

    /// Counts a call, unless its caller has reached the limit.
    pub(crate) fn count(&self, of: &Arc<AtomicUsize>) -> Result<CallGuard, GatewayError> {
        let most = self.spec.limits.in_flight_per_caller;
        let before = of.fetch_add(1, Ordering::AcqRel);
        let counted = CallGuard(of.clone());
        if most != 0 && before >= most {
            let message = format!(
                "too many calls in flight: {before} of this caller, at most {most}; try again when \
                 some are answered"
            );
            return Err(GatewayError::new(GatewayErrorKind::Limit, message));
        }
        Ok(counted)
    }

    /// Marks it as removed; its clients look up another instance.
    pub(crate) fn mark_retired(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn is_asleep(&self) -> bool {
        match &*self.state.borrow() {
            InstanceState::Asleep | InstanceState::Failed(..) => true,
            InstanceState::Starting => false,
            InstanceState::Running(session) => !session.is_running(),
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = self.state.borrow().clone();
        let (state, session) = match &state {
            InstanceState::Running(session) if session.is_running() => {
                (ServerState::Running, Some(session))
            }
            InstanceState::Asleep | InstanceState::Running(_) => (ServerState::Asleep, None),
            InstanceState::Starting => (ServerState::Starting, None),
            InstanceState::Failed(..) => (ServerState::Failed, None),
        };
        let history = self.history();
        ServerStatus {
            state,
            pid: session.and_then(Session::pid),
            uptime: session.map(Session::uptime),
            in_flight: session.map_or(0, Session::in_flight),
            restarts: history.starts.saturating_sub(1),
            noise: session.map_or(0, Session::noise),
            last_error: history.last_error.clone(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<SessionMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids for the requests of one session.
fn random_ids() -> Result<Ids, GatewayError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|e| {
        let message = format!("cannot generate request ids: {e}");
        GatewayError::new(GatewayErrorKind::Unavailable, message)
    })?;
    Ok(Ids::of_secret(secret))
}

/// Waits until a session has ended.
async fn until_ended(state: &mut watch::Receiver<SessionState>) -> Option<SessionState> {
    let ended = state.wait_for(|state| *state != SessionState::Running).await;
    ended.map(|state| state.clone()).ok()
}

async fn sleep_for(idle_left: Option<Duration>) {
    match idle_left {
        // Slightly longer, so that the idle time has passed when it is checked.
        Some(idle_left) => tokio::time::sleep(idle_left + Duration::from_millis(10)).await,
        None => std::future::pending().await,
    }
}
