//! Types texts into processes: one worker per process with waiting texts, one text at a time, in
//! the order they were queued.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::evidence::is_left_of;
use super::gate::{self, Closed, GateInput};
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, DeliveryStage, Pending};
use super::store::Deliveries;
use super::submit::SubmitOutcome;
use crate::activity::{
    Activities, Activity, ActivityState, AgentSignals, ScreenSnapshot, asks_now,
    awaits_instructions, works_now,
};
use crate::conversations::Conversations;
use crate::presets::Preset;
use patterm_panes::Panes;
use patterm_panes::data_plane::{Keyboard, ProcessRun};
use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;

/// The shortest interval between two checks of a gate while a screen changes.
const GATE_INTERVAL: Duration = Duration::from_millis(100);

/// How long the sender of a text waits for its receipt if the gate is open. Typing takes about a
/// second; if a CLI does not react as expected, the receipt comes later and can be queried.
const SENDER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server that shuts down waits for texts that are being typed: longer than it takes to
/// paste one, to submit it, and to see that nothing happened. Erasing it may take some seconds
/// more.
const FINISH_TIMEOUT: Duration = Duration::from_secs(15);

/// How many times a text is typed if nothing of it reaches its process.
const MAX_TRIES: usize = 3;

/// How long after the server's start the prompt of an agent may take to become visible.
const RESUME_TIMEOUT: Duration = Duration::from_secs(10);

/// Types texts into processes.
#[derive(Debug)]
pub struct Deliverer {
    pub(crate) panes: Arc<Panes>,
    pub(crate) activities: Arc<Activities>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) conversations: Arc<Conversations>,
}

/// The process that a worker types into.
#[derive(Debug, Clone)]
pub struct Target {
    pub(super) deliverer: Arc<Deliverer>,
    pub(super) run: Arc<ProcessRun>,
    pub(super) signals: Arc<AgentSignals>,
    /// The preset of an agent.
    pub preset: Option<Arc<Preset>>,
}

impl Deliverer {
    /// Types waiting texts, for as long as the server runs.
    pub async fn run(self: Arc<Self>) {
        let busy: Arc<Mutex<HashSet<ProcessId>>> = Arc::default();
        let mut verified = HashSet::new();
        for begun in self.deliveries.begun() {
            let deliverer = self.clone();
            let busy = busy.clone();
            busy.lock().unwrap_or_else(PoisonError::into_inner).insert(begun.to.clone());
            tokio::spawn(async move {
                deliverer.resume(&begun).await;
                deliverer.deliver_to(begun.to, busy).await;
            });
        }
        let mut changes = self.deliveries.changes();
        loop {
            for id in self.deliveries.waiting() {
                if busy.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone()) {
                    tokio::spawn(self.clone().deliver_to(id, busy.clone()));
                }
            }
            for given in self.deliveries.first_prompts_given() {
                if verified.insert(given.id) {
                    tokio::spawn(super::first_prompt::verify(self.clone(), given));
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The receipt of a text: at once if it is done or waits at the gate, behind another text or for a
    /// person; otherwise once it has been typed.
    pub async fn receipt(&self, id: u64) -> Receipt {
        let mut changes = self.deliveries.changes();
        let gone = || Receipt::new(ReceiptState::Stalled, "the message is no longer on record");
        let settled = async {
            loop {
                let Some(delivery) = self.deliveries.get(id) else { return gone() };
                if !delivery.is_in_motion() {
                    return delivery.receipt;
                }
                if changes.changed().await.is_err() {
                    return delivery.receipt;
                }
            }
        };
        match timeout(SENDER_TIMEOUT, settled).await {
            Ok(receipt) => receipt,
            Err(_) => self.deliveries.get(id).map_or_else(gone, |delivery| delivery.receipt),
        }
    }

    /// Waits, for a bounded time, until no text is being typed: the next server could not tell what
    /// happened to it.
    pub async fn finish(&self) {
        let mut changes = self.deliveries.changes();
        let finished =
            async { while self.deliveries.is_submitting() && changes.changed().await.is_ok() {} };
        let _ = timeout(FINISH_TIMEOUT, finished).await;
    }

    async fn deliver_to(self: Arc<Self>, id: ProcessId, busy: Arc<Mutex<HashSet<ProcessId>>>) {
        self.rebuilt(&id).await;
        loop {
            let mut changes = self.deliveries.changes();
            while let Some(delivery) = self.deliveries.next_for(&id) {
                self.deliver(&delivery).await;
            }
            if self.follow_up(&id) {
                tokio::select! {
                    () = self.wait_for_change(&id, None) => {}
                    changed = changes.changed() => drop(changed),
                }
                continue;
            }
            let mut busy = busy.lock().unwrap_or_else(PoisonError::into_inner);
            if self.deliveries.next_for(&id).is_none() {
                busy.remove(&id);
                return;
            }
        }
    }

    /// Finishes a text that an earlier server began, if the prompt still contains exactly that text:
    /// then only Enter is missing. Otherwise the result is known only if it is visible.
    async fn resume(self: &Arc<Self>, begun: &Delivery) {
        self.rebuilt(&begun.to).await;
        let mut deadline = Instant::now() + RESUME_TIMEOUT;
        let mut left = None;
        let ending = loop {
            let target = self.target(&begun.to);
            let seen = target.as_ref().map(|target| target.snapshot());
            if let (Some(target), Some(snapshot)) = (&target, &seen) {
                if let Some(why) = target.blocked(snapshot) {
                    // A person may take any time to answer.
                    deadline = Instant::now() + RESUME_TIMEOUT;
                    let why = format!("it is waiting for a person ({why})");
                    self.deliveries.explain(begun.id, Pending::Person, &why);
                } else if snapshot.composer.is_some()
                    && self.activities.get(&begun.to).activity.state != ActivityState::Unknown
                {
                    if let Some(evidence) = target.late_acceptance(begun, snapshot) {
                        break Some(Receipt::new(ReceiptState::Delivered, evidence).into());
                    }
                    let in_prompt = snapshot.composer.clone();
                    left = in_prompt.filter(|in_prompt| is_left_of(&begun.text, in_prompt));
                    break target.submit_what_is_left(begun, snapshot).await;
                }
            }
            if Instant::now() >= deadline {
                break None;
            }
            tokio::time::sleep(GATE_INTERVAL).await;
        };
        let unknown = || Receipt::new(ReceiptState::Stalled, super::store::HALF_WRITTEN).into();
        let mut ending = ending.unwrap_or_else(unknown);
        ending.left = left;
        self.deliveries.finish(begun.id, ending);
        // It may be idle and print nothing more.
        self.activities.signals(&begun.to).notify();
    }

    /// Waits for the gate and types one text.
    async fn deliver(self: &Arc<Self>, delivery: &Delivery) {
        let mut tries = 0;
        loop {
            // The process was closed, or the sender withdrew it.
            if self
                .deliveries
                .get(delivery.id)
                .is_none_or(|known| known.stage != DeliveryStage::Waiting)
            {
                return;
            }
            self.follow_up(&delivery.to);
            let closed = match self.target(&delivery.to) {
                Some(target) => match target.open() {
                    Ok(keyboard) => match target.begin(delivery) {
                        Ok(Some(begun)) => {
                            tries += 1;
                            let outcome = target.submit(&begun, keyboard).await;
                            let is_over = self.conclude(&begun, outcome, tries);
                            target.signals.notify();
                            if is_over {
                                return;
                            }
                            continue;
                        }
                        Ok(None) => return,
                        // Nothing is typed before it is recorded on disk.
                        Err(error) => {
                            Closed::new(format!("it cannot be recorded on disk: {error}"))
                        }
                    },
                    Err(closed) => closed,
                },
                None => Closed::new("the process is not running"),
            };
            self.deliveries.explain(delivery.id, Pending::Gate, &closed.why);
            self.wait_for_change(&delivery.to, closed.again).await;
        }
    }

    /// Records how an attempt ended; `false` if the text is to be tried again.
    fn conclude(&self, begun: &Delivery, outcome: SubmitOutcome, tries: usize) -> bool {
        match outcome {
            SubmitOutcome::Over(ending) => {
                self.deliveries.finish(begun.id, ending);
                true
            }
            SubmitOutcome::Again(why) if tries < MAX_TRIES => {
                self.deliveries.put_back(begun.id, &why);
                false
            }
            SubmitOutcome::Again(why) => {
                let why = format!("tried {tries} times; last result: {why}");
                self.deliveries.finish(begun.id, Receipt::new(ReceiptState::Stalled, why));
                true
            }
        }
    }

    /// The process, if it is running.
    pub fn target(self: &Arc<Self>, id: &ProcessId) -> Option<Target> {
        let run = self.panes.run_of(id).filter(|run| !run.watch().borrow().is_over())?;
        let signals = self.activities.signals(id);
        // Without its observer there is no evidence of its state.
        let preset = signals.preset();
        let process = self.panes.processes.get(id)?;
        (process.agent.is_none() || preset.is_some()).then(|| Target {
            deliverer: self.clone(),
            run,
            signals,
            preset,
        })
    }

    /// Waits until the screen of a process that an earlier server left is complete. It is rebuilt next.
    async fn rebuilt(&self, id: &ProcessId) {
        if let Some(run) = self.panes.run_of(id) {
            self.panes.data_plane.completed(&run).await;
        }
    }

    async fn wait_for_change(&self, id: &ProcessId, again: Option<Duration>) {
        let mut status = self.activities.watch(id);
        let mut changes = self.deliveries.changes();
        let run = self.panes.run_of(id).filter(|run| !run.watch().borrow().is_over());
        let printed = async {
            match &run {
                Some(run) => drop(run.watch().changed().await),
                // It is started again, or closed.
                None => drop(changes.changed().await),
            }
        };
        tokio::time::sleep(GATE_INTERVAL).await;
        tokio::select! {
            changed = status.changed() => drop(changed),
            () = printed => {}
            () = tokio::time::sleep(again.unwrap_or(RECHECK_INTERVAL)) => {}
        }
    }
}

/// A change that happened before the wait began is noticed after this time.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Target {
    pub(super) fn snapshot(&self) -> ScreenSnapshot {
        let mut snapshot = ScreenSnapshot::of(&self.run.screen(), self.preset.as_deref());
        if snapshot.at_start && !self.run.typing().holds_letters() {
            snapshot.composer = snapshot.composer.map(|_| String::new());
        }
        snapshot
    }

    /// Records that a text is about to be typed.
    fn begin(&self, delivery: &Delivery) -> Result<Option<Delivery>, StateError> {
        let is_shown = self.already_shows_message(&delivery.text);
        self.deliverer.deliveries.begin(delivery.id, is_shown)
    }

    /// The keyboard, if a text may be typed. Other input after the second check waits until the
    /// keyboard is released.
    fn open(&self) -> Result<Keyboard, Closed> {
        self.gate()?;
        let keyboard = self.deliverer.panes.data_plane.reserve(&self.run);
        let in_use = || Closed::for_now("something else is typing into it", GATE_INTERVAL);
        let keyboard = keyboard.ok_or_else(in_use)?;
        self.gate()?;
        Ok(keyboard)
    }

    fn gate(&self) -> Result<(), Closed> {
        // A CLI that is asked to exit cancels its turn, looks idle and would lose the text.
        if self.run.is_stopping() {
            return Err(Closed::new("it is being stopped"));
        }
        let now = Instant::now();
        let snapshot = self.snapshot();
        let mut status = self.deliverer.activities.get(&self.run.id);
        // A dialog that asks what to do at a limit counts as a dialog.
        if let Some(asks) = self.asks(&snapshot) {
            status.activity = asks;
        }
        let shows_its_prompt = self.preset.as_ref().is_some_and(|preset| preset.composer.is_some());
        let is_ready = shows_its_prompt || self.signals.rests();
        if is_ready && awaits_instructions(&status.activity) {
            // The first instructions would wait for themselves.
            status.activity.state = ActivityState::Idle;
        }
        let typing = self.run.typing();
        let input = GateInput {
            snapshot: &snapshot,
            status: &status,
            ready: self.signals.prompt_seen().map(|seen| now - seen),
            typed: typing.typed.map(|typed| now - typed),
            written: typing.written.map(|written| now - written),
            draft: typing.draft,
            blanks: typing.holds_blanks(),
            own: self.left_in_prompt(&snapshot).map(|(own, _)| own.id),
            in_turn: self.preset.as_ref().is_some_and(|preset| works_now(preset, &snapshot)),
        };
        match &self.preset {
            // A CLI that is about to begin its first turn may redraw everything, and lose text that
            // is typed at that moment.
            Some(_) if self.deliverer.deliveries.first_prompt_is_given(&self.run.id) => {
                Err(Closed::new("it has not accepted its first instructions yet"))
            }
            Some(preset) => gate::agent(preset, input),
            None => gate::program(input),
        }
    }

    /// Why it is waiting for a person now, if it is, judged by its current screen and not only by the
    /// last observation.
    pub(super) fn blocked(&self, snapshot: &ScreenSnapshot) -> Option<String> {
        let status = self.deliverer.activities.get(&self.run.id);
        let observed =
            Some(status.activity).filter(|activity| activity.state == ActivityState::Blocked);
        self.preset.as_ref()?;
        self.asks(snapshot).or(observed).map(|activity| activity.reason)
    }

    /// The dialog on its screen, if there is one.
    pub(super) fn asks(&self, snapshot: &ScreenSnapshot) -> Option<Activity> {
        asks_now(self.preset.as_ref()?, snapshot)
    }
}
