//! The task of one hook: it follows the log, waits until an event is due, and passes it on. It handles one event at a
//! time, so a slow command or a host that is down only makes events of this hook wait.

use std::sync::Arc;
use std::time::Duration;

use patterm_events::{About, EventLog, MOST_EVENTS};
use patterm_project::project_file::{HookAction, HookDefinition};
use patterm_store::clock::Clock;
use patterm_wire::events::{Actor, EventQuery, EventRecord, Fact};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::action::{HookContext, perform};
use crate::failure::HookFailure;
use crate::hook::{ActiveHook, HookId};
use crate::limiter::Limiter;
use crate::message::HookMessage;
use crate::progress::{HookProgress, ProgressTable};
use crate::queue::Queue;
use crate::retry::Tries;

/// How long new events are collected before they are read: a flood of them costs a few reads per second.
const READ_PAUSE: Duration = Duration::from_millis(50);

/// The pause after the log could not be read.
const ERROR_PAUSE: Duration = Duration::from_secs(5);

/// What all hooks of a project share.
#[derive(Debug)]
pub(crate) struct HookServices {
    pub(crate) events: EventLog,
    pub(crate) clock: Clock,
    pub(crate) progress: Arc<ProgressTable>,
    pub(crate) context: Box<dyn HookContext>,
    /// The name of the project.
    pub(crate) project: String,
}

impl HookServices {
    /// The event as a hook passes it on.
    pub(crate) fn message(&self, hook: &HookDefinition, event: EventRecord) -> HookMessage {
        let name = match &event.process_id {
            Some(id) => self.context.process_name(id).unwrap_or_else(|| id.clone()),
            None => self.project.clone(),
        };
        HookMessage::new(hook, event, name, self.project.clone())
    }
}

/// The task of a hook.
#[derive(Debug)]
pub(crate) struct Worker {
    services: Arc<HookServices>,
    hook: Arc<ActiveHook>,
    id: HookId,
    fingerprint: String,
    /// The types of events that it reads.
    types: Vec<String>,
    queue: Queue,
    limiter: Limiter,
    /// The number of the next event to read.
    next: u64,
    /// Events were dropped since none waited.
    is_dropping: bool,
    last: watch::Receiver<u64>,
}

impl Worker {
    /// A hook that continues where it was. It must be in the table of progress.
    pub(crate) fn new(services: Arc<HookServices>, hook: Arc<ActiveHook>) -> Self {
        let id = hook.id();
        let queue = Queue::new(&hook.definition.on, hook.definition.after);
        Self {
            fingerprint: hook.fingerprint(),
            types: queue.types(),
            limiter: Limiter::new(hook.definition.at_most),
            next: services.progress.of(&id).next,
            is_dropping: false,
            last: services.events.last(),
            services,
            hook,
            id,
            queue,
        }
    }

    /// Follows the log until that is closed.
    pub(crate) async fn run(mut self) {
        loop {
            self.last.borrow_and_update();
            self.read().await;
            if let Some(event) = self.queue.pop(Instant::now()) {
                self.note_position(Some(event.seq));
                self.handle(event).await;
                self.note_position(None);
                continue;
            }
            self.note_position(None);
            self.is_dropping = false;
            let due = self.queue.next_due();
            let changed = tokio::select! {
                changed = self.last.changed() => changed,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => continue,
            };
            if changed.is_err() {
                return;
            }
            let pause = Instant::now() + READ_PAUSE;
            sleep_until(due.map_or(pause, |due| due.min(pause))).await;
        }
    }

    /// Reads the log to its end. Only what may have to wait is kept.
    async fn read(&mut self) {
        while self.next <= *self.last.borrow() {
            let query = EventQuery {
                since: Some(self.next),
                types: self.types.clone(),
                process_id: None,
                limit: Some(MOST_EVENTS),
            };
            let events = self.services.events.clone();
            let page = tokio::task::spawn_blocking(move || events.read(&query)).await;
            let page = match page {
                Ok(Ok(page)) => page,
                failed => {
                    tracing::error!(?failed, "a hook cannot read events");
                    sleep(ERROR_PAUSE).await;
                    continue;
                }
            };
            let (wall_ms, now) = (self.services.clock.wall_ms(), Instant::now());
            for event in page.events {
                self.queue.take(event, wall_ms, now);
            }
            self.next = page.next;
            self.note_dropped(page.dropped);
        }
    }

    /// Counts events that were dropped, and reports the first of them.
    fn note_dropped(&mut self, unread: u64) {
        let dropped = unread + self.queue.take_dropped();
        if dropped == 0 {
            return;
        }
        self.update(|progress| progress.dropped += dropped);
        if !std::mem::replace(&mut self.is_dropping, true) {
            let reason = "events waited too long for it, and the oldest of them are dropped";
            self.report(reason.to_owned());
        }
    }

    /// Notes where the next server would continue: at the event that is being handled, or the first that waits.
    fn note_position(&mut self, handling: Option<u64>) {
        self.note_dropped(0);
        let next = handling.or(self.queue.first()).unwrap_or(self.next);
        let waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        self.update(|progress| (progress.next, progress.waiting) = (next, waiting));
    }

    async fn handle(&mut self, event: EventRecord) {
        let process = event.process_id.as_deref();
        let is_viewed = self.hook.definition.unless_viewed
            && process.is_some_and(|id| self.services.context.is_viewed(id));
        if is_viewed || !self.limiter.allows(process, Instant::now()) {
            self.update(|progress| progress.suppressed += 1);
            return;
        }
        let seq = event.seq;
        let message = self.services.message(&self.hook.definition, event);
        match &self.hook.definition.action {
            HookAction::Run(_) => self.run_command(seq, &message).await,
            HookAction::Post(_) => self.post(seq, &message).await,
        }
    }

    /// Runs the command. If the server dies meanwhile, the next one does not run it again: half of what it does may
    /// have happened.
    async fn run_command(&self, seq: u64, message: &HookMessage) {
        self.update(|progress| (progress.next, progress.is_running) = (seq + 1, true));
        self.save().await;
        let outcome = self.perform(message).await;
        self.update(|progress| progress.is_running = false);
        self.note_outcome(seq, outcome);
        self.save().await;
    }

    /// Sends the request, again and again if that may help. If the server dies meanwhile, the next one continues.
    async fn post(&self, seq: u64, message: &HookMessage) {
        let mut tries = Tries::default();
        let outcome = loop {
            let failure = match self.perform(message).await {
                Ok(()) => break Ok(()),
                Err(failure) => failure,
            };
            let Some(pause) = tries.pause().filter(|_| failure.may_pass) else {
                break Err(failure);
            };
            self.note_failing(&failure.reason);
            sleep(pause).await;
        };
        self.note_outcome(seq, outcome);
        self.save().await;
    }

    async fn perform(&self, message: &HookMessage) -> Result<(), HookFailure> {
        perform(&*self.services.context, &self.hook.definition, message).await
    }

    fn note_outcome(&self, seq: u64, outcome: Result<(), HookFailure>) {
        let now = self.services.clock.wall_ms();
        match outcome {
            Ok(()) => self.update(|progress| {
                progress.next = seq + 1;
                progress.failing = false;
                progress.fired += 1;
                progress.last_fired = Some(now);
            }),
            Err(failure) => {
                self.update(|progress| {
                    progress.next = seq + 1;
                    progress.failures += 1;
                });
                self.note_failing(&failure.reason);
            }
        }
    }

    /// Notes a failure, and reports it if the hook worked before.
    fn note_failing(&self, reason: &str) {
        let progress = &self.services.progress;
        let was_failing = progress.update(&self.id, &self.fingerprint, |progress| {
            progress.last_error = Some(reason.to_owned());
            std::mem::replace(&mut progress.failing, true)
        });
        if was_failing == Some(false) {
            self.report(reason.to_owned());
        }
    }

    fn report(&self, reason: String) {
        let hook = self.id.name.clone();
        tracing::warn!(hook, reason, "a hook failed");
        let fact = Fact::HookFailed { hook, reason };
        self.services.events.record_by(Actor::System, About::project(), fact);
    }

    fn update(&self, change: impl FnOnce(&mut HookProgress)) {
        self.services.progress.update(&self.id, &self.fingerprint, change);
    }

    /// Stores that an event was handled before the next one is.
    async fn save(&self) {
        let progress = self.services.progress.clone();
        let _ = tokio::task::spawn_blocking(move || progress.save()).await;
    }
}
