//! A server by its name: started by the first call that needs it, once for all who come at the same
//! time; started again when it ended, with growing pauses while it keeps ending.

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

/// The pause after a first failure, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Callers whose calls are counted before those that are gone are forgotten.
const CALLERS: usize = 64;

/// A server that lived this long was no failure.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// What is started, and how.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// All that makes it another server when it changes.
    pub(crate) fingerprint: String,
    /// What is known of it from earlier lives.
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) terms: Terms,
    pub(crate) bounds: Bounds,
}

/// How far a start is.
#[derive(Clone)]
enum Start {
    Asleep,
    Starting,
    Running(Session),
    /// It could not be started, or ended too soon; not again before this.
    Failed(Refusal, Instant),
}

/// One running copy of a server, or the place of one.
pub(crate) struct Slot {
    plan: Plan,
    start: watch::Sender<Start>,
    past: Mutex<Past>,
    /// Nobody finds it any more: it ends, and is not started again.
    retired: AtomicBool,
    /// Of calls.
    timers: Timers,
    /// How many calls each caller has in flight, by whichever of its lines.
    callers: Mutex<HashMap<String, Weak<AtomicUsize>>>,
}

/// A call that counts for its caller as long as it is in flight.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What happened before.
#[derive(Debug, Default)]
struct Past {
    eras: Eras,
    /// The probe ended it: the next one is not probed.
    died_of_probe: bool,
    /// Failures in a row.
    failures: u32,
    starts: u64,
    last_error: Option<String>,
}

/// How a server stands, for those who look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// `asleep`, `starting`, `running` or `failed`.
    pub state: &'static str,
    /// Its process on this machine.
    pub pid: Option<i32>,
    /// How long it runs.
    pub uptime: Option<Duration>,
    /// Calls that are not answered.
    pub in_flight: usize,
    /// How often it was started after its first start.
    pub restarts: u64,
    /// Lines on its output that were no protocol.
    pub noise: u64,
    /// Why it last ended or could not be started.
    pub last_error: Option<String>,
}

impl ServerStatus {
    /// Of one that nobody needed yet.
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

    /// The session, started if there is none. Who comes while it is being started waits for the same
    /// start, which goes on though all of them leave.
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
                return Err(Refusal::new(RefusalKind::Unavailable, "it was taken away"));
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
                // Whoever waited for a start that failed hears why; the next one tries again.
                Start::Failed(refusal, _) => return Err(refusal),
                // One that ended is followed by another state at once.
                Start::Running(_) | Start::Starting | Start::Asleep => {}
            }
            if start.changed().await.is_err() {
                return Err(Refusal::new(RefusalKind::Unavailable, "it was taken away"));
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
            session.end("it is not wanted any more").await;
        }
        self.watch_over(session).await;
    }

    /// Follows a session to its end, and puts it to sleep if nobody needs it.
    async fn watch_over(self: Arc<Self>, session: Session) {
        let mut standing = session.standing();
        let ended = loop {
            let nap = self.plan.bounds.idle.map(|idle| idle.saturating_sub(session.idle()));
            tokio::select! {
                ended = over(&mut standing) => break ended,
                () = session.until_greeted() => self.remember(&session),
                () = nap_for(nap) => {
                    if self.plan.bounds.idle.is_some_and(|idle| session.idle() >= idle) {
                        session.end("it was put to sleep; the next call wakes it").await;
                    }
                }
            }
        };
        self.past().eras = session.eras();
        self.remember(&session);
        match ended {
            // Whoever waited for the handshake has another one started, which is not probed.
            Some(Standing::Over { of_probe: true, refusal, .. }) => {
                let name = &self.plan.name;
                tracing::info!(
                    server = name,
                    why = refusal.message,
                    "started again without a probe"
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

    /// For the next session, by what is known from earlier ones.
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

    /// Keeps how a server is greeted, for its later lives. What was only assumed of one that says it
    /// has another version now is asked again next time.
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
        // One end may be bad luck: the next call tries at once.
        let pause = if past.failures == 0 { Duration::ZERO } else { pause };
        past.failures += 1;
        drop(past);
        let message = match pause.is_zero() {
            true => refusal.message,
            false => format!("{}; it is not started again for {pause:?}", refusal.message),
        };
        let refusal = Refusal::new(RefusalKind::Unavailable, message);
        self.start.send_replace(Start::Failed(refusal, Instant::now() + pause));
    }

    /// Ends what runs, for good.
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

    /// Ends it once its calls are answered, or have had the time that calls may take.
    pub(crate) async fn retire(&self) {
        self.let_go();
        let session = match &*self.start.borrow() {
            Start::Running(session) => session.clone(),
            _ => return,
        };
        let _ = tokio::time::timeout(self.plan.bounds.call, session.until_unused()).await;
        session.end("it is not wanted any more").await;
    }

    /// Where the calls of a caller are counted.
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

    /// Counts a call, unless its caller has as many in flight as it may.
    pub(crate) fn count(&self, of: &Arc<AtomicUsize>) -> Result<Counted, Refusal> {
        let most = self.plan.bounds.in_flight_of_one;
        let before = of.fetch_add(1, Ordering::AcqRel);
        let counted = Counted(of.clone());
        if most != 0 && before >= most {
            let message = format!(
                "too many calls are in flight: {before} of this caller, at most {most}; try again \
                 when some are answered"
            );
            return Err(Refusal::new(RefusalKind::Limit, message));
        }
        Ok(counted)
    }

    /// It is found no more; who has it looks for another.
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
        let message = format!("the system gives no random bytes for request ids: {e}");
        Refusal::new(RefusalKind::Unavailable, message)
    })?;
    Ok(Ids::of_secret(secret))
}

/// Waits until a session is over.
async fn over(standing: &mut watch::Receiver<Standing>) -> Option<Standing> {
    let ended = standing.wait_for(|standing| *standing != Standing::Running).await;
    ended.map(|standing| standing.clone()).ok()
}

async fn nap_for(nap: Option<Duration>) {
    match nap {
        // A moment more, so that it is over when it is looked at.
        Some(nap) => tokio::time::sleep(nap + Duration::from_millis(10)).await,
        None => std::future::pending().await,
    }
}
