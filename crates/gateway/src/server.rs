//! One instance of a server. The first call starts it, once for all clients that call at the same
//! time. If it exits, the next call restarts it, with growing pauses while it keeps failing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::Backend;
use crate::memory::Memory;
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Eras, Ids, Relay, Terms};
use crate::session::{Reply, Session, Standing};
use crate::settings::Bounds;
use crate::timers::Timers;

/// The pause after the second failure in a row, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Callers with counters before the counters of disconnected callers are dropped.
const CALLERS: usize = 64;

/// A server that ran this long did not fail to start.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// What an instance runs, and how.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Everything that makes this a different server when it changes.
    pub(crate) fingerprint: String,
    /// What is known about the server from earlier runs.
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) terms: Terms,
    pub(crate) bounds: Bounds,
}

/// The state of an instance.
#[derive(Clone)]
enum Start {
    Asleep,
    Starting,
    Running(Session),
    /// It could not be started, or exited too soon. It is not started again before this time.
    Failed(Refusal, Instant),
}

/// An instance of a server, running or not.
pub(crate) struct Slot {
    plan: Plan,
    start: watch::Sender<Start>,
    past: Mutex<Past>,
    /// It was removed: it ends, and is not started again.
    retired: AtomicBool,
    /// Timers for calls.
    timers: Timers,
    /// Calls in flight per caller, over all of its connections.
    callers: Mutex<HashMap<String, Weak<AtomicUsize>>>,
}

/// Counts a call in flight for its caller until it is dropped.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What happened so far.
#[derive(Debug, Default)]
struct Past {
    eras: Eras,
    /// The probe ended the server: the next start skips it.
    died_of_probe: bool,
    /// Consecutive failures.
    failures: u32,
    starts: u64,
    last_error: Option<String>,
}

/// The status of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its state.
    pub state: &'static str,
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
            state: "asleep",
            pid: None,
            uptime: None,
            in_flight: 0,
            restarts: 0,
            noise: 0,
            last_error: None,
        }
    }
}

impl Slot {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        let (start, past) = (watch::Sender::new(Start::Asleep), Mutex::default());
        let (retired, timers) = (AtomicBool::new(false), Timers::default());
        Arc::new(Self { plan, start, past, retired, timers, callers: Mutex::default() })
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.plan.bounds
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// The running session; starts one if there is none. Callers that arrive during a start wait
    /// for that start, which continues even if all of them leave.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Session, Refusal> {
        if let Start::Running(session) = &*self.start.borrow()
            && session.is_running()
        {
            return Ok(session.clone());
        }
        let mut start = self.start.subscribe();
        let mut waited = false;
        loop {
            if self.is_retired() {
                return Err(Refusal::new(RefusalKind::Unavailable, "the server was removed"));
            }
            let mut begins = false;
            self.start.send_if_modified(|start| {
                begins = match start {
                    Start::Asleep => true,
                    Start::Failed(_, until) => !waited && Instant::now() >= *until,
                    Start::Starting | Start::Running(_) => false,
                };
                if begins {
                    *start = Start::Starting;
                }
                begins
            });
            if begins {
                tokio::spawn(self.clone().begin());
            }
            let now = start.borrow_and_update().clone();
            match now {
                Start::Running(session) if session.is_running() => return Ok(session),
                // Callers that waited for a failed start get its error; the next call tries again.
                Start::Failed(refusal, _) => return Err(refusal),
                // A session that ended is followed by another state immediately.
                Start::Running(_) | Start::Starting | Start::Asleep => {}
            }
            if start.changed().await.is_err() {
                return Err(Refusal::new(RefusalKind::Unavailable, "the server was removed"));
            }
            waited = true;
        }
    }

    async fn begin(self: Arc<Self>) {
        let ids = match random_ids() {
            Ok(ids) => ids,
            Err(refusal) => return self.fail(refusal),
        };
        let opened = self.plan.backend.open().await;
        let channel = match opened {
            Ok(channel) => channel,
            Err(refusal) => return self.fail(refusal),
        };
        let Plan { name, bounds, .. } = &self.plan;
        let session = Session::start(name, channel, bounds.message_bytes, self.relay(ids));
        self.start.send_replace(Start::Running(session.clone()));
        if self.is_retired() {
            session.end("the server was removed").await;
        }
        self.watch_over(session).await;
    }

    /// Follows a session until it ends, and ends it when it has been idle for too long.
    async fn watch_over(self: Arc<Self>, session: Session) {
        let mut standing = session.standing();
        let ended = loop {
            let nap = self.plan.bounds.idle.map(|idle| idle.saturating_sub(session.idle()));
            tokio::select! {
                ended = over(&mut standing) => break ended,
                () = session.until_greeted() => self.remember(&session),
                () = nap_for(nap) => {
                    if self.plan.bounds.idle.is_some_and(|idle| session.idle() >= idle) {
                        session.end("it was stopped while idle; the next call starts it again").await;
                    }
                }
            }
        };
        self.past().eras = session.eras();
        self.remember(&session);
        match ended {
            // Requests that waited for the handshake are repeated on the next session, which skips
            // the probe.
            Some(Standing::Over { of_probe: true, refusal, .. }) => {
                let name = &self.plan.name;
                tracing::info!(
                    server = name,
                    why = refusal.message,
                    "the server ended during the probe; it is restarted without one"
                );
                self.past().died_of_probe = true;
                self.start.send_replace(Start::Asleep);
            }
            Some(Standing::Over { asked: true, .. }) | None => {
                self.start.send_replace(Start::Asleep);
            }
            Some(Standing::Over { refusal, .. }) => {
                if session.uptime() >= GOOD_LIFE {
                    self.past().failures = 0;
                }
                self.fail(refusal);
            }
            Some(Standing::Running) => {}
        }
    }

    /// The relay of the next session, with what is known from earlier ones.
    fn relay(&self, ids: Ids) -> Relay<Reply> {
        let mut past = self.past();
        if past.starts == 0 {
            past.eras = self.recalled_eras();
        }
        past.starts += 1;
        let mut relay = Relay::new(self.plan.terms.clone(), past.eras, ids);
        if std::mem::take(&mut past.died_of_probe) {
            relay.forbid_probe();
        }
        relay
    }

    fn recalled_eras(&self) -> Eras {
        let Plan { name, fingerprint, memory, .. } = &self.plan;
        let known = memory.as_ref().and_then(|memory| memory.recall(name, fingerprint));
        known
            .map_or_else(Eras::default, |known| Eras { modern: known.modern, legacy: known.legacy })
    }

    /// Stores how the server did its handshake. If the server reports a different version,
    /// assumptions that were not verified in this session are dropped.
    fn remember(&self, session: &Session) {
        let Plan { name, fingerprint, memory, .. } = &self.plan;
        let (Some(memory), Some((version, probed))) = (memory, session.learned()) else { return };
        let eras = session.eras();
        memory.remember(name, fingerprint, &mut |known| {
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

    fn fail(&self, refusal: Refusal) {
        let mut past = self.past();
        past.last_error = Some(refusal.message.clone());
        let pause = FIRST_PAUSE.saturating_mul(1 << past.failures.min(16)).min(LONGEST_PAUSE);
        // A single failure may be bad luck: the next call retries immediately.
        let pause = if past.failures == 0 { Duration::ZERO } else { pause };
        past.failures += 1;
        drop(past);
        let message = match pause.is_zero() {
            true => refusal.message,
            false => format!("{}; it is not restarted for {pause:?}", refusal.message),
        };
        let refusal = Refusal::new(RefusalKind::Unavailable, message);
        self.start.send_replace(Start::Failed(refusal, Instant::now() + pause));
    }

    /// Ends the session for good.
    pub(crate) async fn end(&self, why: &str) {
        self.let_go();
        let running = match &*self.start.borrow() {
            Start::Running(session) => Some(session.clone()),
            _ => None,
        };
        if let Some(session) = running {
            session.end(why).await;
        }
    }

    /// Ends the session once its calls are answered, or after the call timeout.
    pub(crate) async fn retire(&self) {
        self.let_go();
        let session = match &*self.start.borrow() {
            Start::Running(session) => session.clone(),
            _ => return,
        };
        let _ = tokio::time::timeout(self.plan.bounds.call, session.until_unused()).await;
        session.end("the server was removed").await;
    }

    /// The counter of a caller's calls in flight.
    pub(crate) fn count_of(&self, caller: &str) -> Arc<AtomicUsize> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get(caller).and_then(Weak::upgrade) {
            return count;
        }
        if callers.len() >= CALLERS {
            callers.retain(|_, count| count.strong_count() > 0);
        }
        let count = Arc::new(AtomicUsize::new(0));
        callers.insert(caller.to_owned(), Arc::downgrade(&count));
        count
    }

    /// Counts a call, unless its caller has reached the limit.
    pub(crate) fn count(&self, of: &Arc<AtomicUsize>) -> Result<Counted, Refusal> {
        let most = self.plan.bounds.in_flight_of_one;
        let before = of.fetch_add(1, Ordering::AcqRel);
        let counted = Counted(of.clone());
        if most != 0 && before >= most {
            let message = format!(
                "too many calls in flight: {before} of this caller, at most {most}; try again when \
                 some are answered"
            );
            return Err(Refusal::new(RefusalKind::Limit, message));
        }
        Ok(counted)
    }

    /// Marks it as removed; its clients look up another instance.
    pub(crate) fn let_go(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn is_asleep(&self) -> bool {
        match &*self.start.borrow() {
            Start::Asleep | Start::Failed(..) => true,
            Start::Starting => false,
            Start::Running(session) => !session.is_running(),
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let start = self.start.borrow().clone();
        let (state, session) = match &start {
            Start::Running(session) if session.is_running() => ("running", Some(session)),
            Start::Asleep | Start::Running(_) => ("asleep", None),
            Start::Starting => ("starting", None),
            Start::Failed(..) => ("failed", None),
        };
        let past = self.past();
        ServerStatus {
            state,
            pid: session.and_then(Session::pid),
            uptime: session.map(Session::uptime),
            in_flight: session.map_or(0, Session::in_flight),
            restarts: past.starts.saturating_sub(1),
            noise: session.map_or(0, Session::noise),
            last_error: past.last_error.clone(),
        }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids for the requests of one session.
fn random_ids() -> Result<Ids, Refusal> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|e| {
        let message = format!("cannot generate request ids: {e}");
        Refusal::new(RefusalKind::Unavailable, message)
    })?;
    Ok(Ids::of_secret(secret))
}

/// Waits until a session has ended.
async fn over(standing: &mut watch::Receiver<Standing>) -> Option<Standing> {
    let ended = standing.wait_for(|standing| *standing != Standing::Running).await;
    ended.map(|standing| standing.clone()).ok()
}

async fn nap_for(nap: Option<Duration>) {
    match nap {
        // Slightly longer, so that the idle time has passed when it is checked.
        Some(nap) => tokio::time::sleep(nap + Duration::from_millis(10)).await,
        None => std::future::pending().await,
    }
}
