//! Who puts texts in: one worker for each process with something waiting, one text at a time, in
//! the order they were queued.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::evidence::is_left_of;
use super::gate::{self, Before, Shut};
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

/// A gate is not tried more often than this while a screen changes.
const GATE_PAUSE: Duration = Duration::from_millis(100);

/// How long the sender of a text waits for its receipt where the gate is open. Putting in takes about a
/// second; where a CLI does not show what is expected of it, the receipt comes later and can be asked for.
const SENDER_PATIENCE: Duration = Duration::from_secs(5);

/// How long the end of a server waits for texts that are being typed in: longer than it takes to paste one,
/// to enter it, and to see that nothing came of it. Erasing it may take some seconds more.
const FINISH_PATIENCE: Duration = Duration::from_secs(15);

/// How often a text is typed in anew of which nothing came to its process.
const TRIES: usize = 3;

/// How long after a server's start the prompt of an agent may take to be seen.
const RESUME_PATIENCE: Duration = Duration::from_secs(10);

/// Types texts into processes.
#[derive(Debug)]
pub struct Deliverer {
    pub(crate) panes: Arc<Panes>,
    pub(crate) activities: Arc<Activities>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) conversations: Arc<Conversations>,
}

/// A process as a worker sees it.
#[derive(Debug, Clone)]
pub struct Target {
    pub(super) deliverer: Arc<Deliverer>,
    pub(super) run: Arc<ProcessRun>,
    pub(super) signals: Arc<AgentSignals>,
    /// The preset of an agent.
    pub preset: Option<Arc<Preset>>,
}

impl Deliverer {
    /// Puts in what waits, for as long as the server runs.
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

    /// The receipt of a text: at once where it waits at the gate, behind another or for a person, or is
    /// done; else when it was typed in.
    pub async fn receipt(&self, id: u64) -> Receipt {
        let mut changes = self.deliveries.changes();
        let gone = || Receipt::new(ReceiptState::Stalled, "nothing is known of it any more");
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
        match timeout(SENDER_PATIENCE, settled).await {
            Ok(receipt) => receipt,
            Err(_) => self.deliveries.get(id).map_or_else(gone, |delivery| delivery.receipt),
        }
    }

    /// Waits, for a bounded time, until nothing is half typed in: the next server could not tell what
    /// became of it.
    pub async fn finish(&self) {
        let mut changes = self.deliveries.changes();
        let finished =
            async { while self.deliveries.is_submitting() && changes.changed().await.is_ok() {} };
        let _ = timeout(FINISH_PATIENCE, finished).await;
    }

    async fn deliver_to(self: Arc<Self>, id: ProcessId, busy: Arc<Mutex<HashSet<ProcessId>>>) {
        loop {
            let mut changes = self.deliveries.changes();
            while let Some(delivery) = self.deliveries.next_for(&id) {
                self.deliver(&delivery).await;
            }
            if self.look_after(&id) {
                tokio::select! {
                    () = self.until_something_changes(&id, None) => {}
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

    /// Finishes what an earlier server had begun, if the prompt still holds exactly that text: then
    /// only Enter is missing. Otherwise what became of it is known only where it is seen.
    async fn resume(self: &Arc<Self>, begun: &Delivery) {
        let mut deadline = Instant::now() + RESUME_PATIENCE;
        let mut left = None;
        let ending = loop {
            let target = self.target(&begun.to);
            let seen = target.as_ref().map(|target| target.snapshot());
            if let (Some(target), Some(snapshot)) = (&target, &seen) {
                if let Some(why) = target.blocked(snapshot) {
                    // However long a person takes to answer.
                    deadline = Instant::now() + RESUME_PATIENCE;
                    let why = format!("it waits for a person ({why})");
                    self.deliveries.explain(begun.id, Pending::Person, &why);
                } else if snapshot.composer.is_some()
                    && self.activities.get(&begun.to).activity.state != ActivityState::Unknown
                {
                    if let Some(evidence) = target.was_taken(begun, snapshot) {
                        break Some(Receipt::new(ReceiptState::Delivered, evidence).into());
                    }
                    let stands = snapshot.composer.clone();
                    left = stands.filter(|stands| is_left_of(&begun.text, stands));
                    break target.enter_what_stands(begun, snapshot).await;
                }
            }
            if Instant::now() >= deadline {
                break None;
            }
            tokio::time::sleep(GATE_PAUSE).await;
        };
        let unknown = || Receipt::new(ReceiptState::Stalled, super::store::HALF_WRITTEN).into();
        let mut ending = ending.unwrap_or_else(unknown);
        ending.left = left;
        self.deliveries.finish(begun.id, ending);
        // It may rest and print nothing more.
        self.activities.signals(&begun.to).notify();
    }

    /// Waits for the gate and puts one text in.
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
            self.look_after(&delivery.to);
            let shut = match self.target(&delivery.to) {
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
                        // Nothing is typed that is not written down first.
                        Err(error) => Shut::new(format!("it cannot be written down: {error}")),
                    },
                    Err(shut) => shut,
                },
                None => Shut::new("the process does not run"),
            };
            self.deliveries.explain(delivery.id, Pending::Gate, &shut.why);
            self.until_something_changes(&delivery.to, shut.again).await;
        }
    }

    /// Notes how putting in ended; `false` if it is to be tried again.
    fn conclude(&self, begun: &Delivery, outcome: SubmitOutcome, tries: usize) -> bool {
        match outcome {
            SubmitOutcome::Over(ending) => {
                self.deliveries.finish(begun.id, ending);
                true
            }
            SubmitOutcome::Again(why) if tries < TRIES => {
                self.deliveries.put_back(begun.id, &why);
                false
            }
            SubmitOutcome::Again(why) => {
                let why = format!("tried {tries} times; the last time: {why}");
                self.deliveries.finish(begun.id, Receipt::new(ReceiptState::Stalled, why));
                true
            }
        }
    }

    /// The process, if it runs.
    pub fn target(self: &Arc<Self>, id: &ProcessId) -> Option<Target> {
        let run = self.panes.run_of(id).filter(|run| !run.watch().borrow().is_over())?;
        let signals = self.activities.signals(id);
        // Without its observer nobody knows what it shows.
        let preset = signals.preset();
        let process = self.panes.processes.get(id)?;
        (process.agent.is_none() || preset.is_some()).then(|| Target {
            deliverer: self.clone(),
            run,
            signals,
            preset,
        })
    }

    async fn until_something_changes(&self, id: &ProcessId, again: Option<Duration>) {
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
        tokio::time::sleep(GATE_PAUSE).await;
        tokio::select! {
            changed = status.changed() => drop(changed),
            () = printed => {}
            () = tokio::time::sleep(again.unwrap_or(LOOK_ANYWAY)) => {}
        }
    }
}

/// What changed before anybody waited for it is seen by then.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

impl Target {
    pub(super) fn snapshot(&self) -> ScreenSnapshot {
        let mut snapshot = ScreenSnapshot::of(&self.run.screen(), self.preset.as_deref());
        if snapshot.at_start && !self.run.typing().holds_letters() {
            snapshot.composer = snapshot.composer.map(|_| String::new());
        }
        snapshot
    }

    /// Notes that a text is about to be typed in.
    fn begin(&self, delivery: &Delivery) -> Result<Option<Delivery>, StateError> {
        let is_said = self.says_already(&delivery.text);
        self.deliverer.deliveries.begin(delivery.id, is_said)
    }

    /// The keyboard, if a text may be typed in. What is typed after the second look waits until it is
    /// given back.
    fn open(&self) -> Result<Keyboard, Shut> {
        self.gate()?;
        let keyboard = self.deliverer.panes.data_plane.reserve(&self.run);
        let taken = || Shut::for_now("another writer has its keyboard", GATE_PAUSE);
        let keyboard = keyboard.ok_or_else(taken)?;
        self.gate()?;
        Ok(keyboard)
    }

    fn gate(&self) -> Result<(), Shut> {
        let now = Instant::now();
        let snapshot = self.snapshot();
        let mut status = self.deliverer.activities.get(&self.run.id);
        // A dialog that asks what to do at a limit is one.
        if let Some(asks) = self.asks(&snapshot) {
            status.activity = asks;
        }
        let shows_its_prompt = self.preset.as_ref().is_some_and(|preset| preset.composer.is_some());
        let is_ready = shows_its_prompt || self.signals.rests();
        if is_ready && awaits_instructions(&status.activity) {
            // They would wait for themselves.
            status.activity.state = ActivityState::Idle;
        }
        let typing = self.run.typing();
        let before = Before {
            snapshot: &snapshot,
            status: &status,
            ready: self.signals.prompt_seen().map(|seen| now - seen),
            typed: typing.typed.map(|typed| now - typed),
            written: typing.written.map(|written| now - written),
            draft: typing.draft,
            blanks: typing.holds_blanks(),
            own: self.left_standing(&snapshot).map(|(own, _)| own.id),
            in_turn: self.preset.as_ref().is_some_and(|preset| works_now(preset, &snapshot)),
        };
        match &self.preset {
            // A CLI that is about to take its first turn may change all it shows, and lose what is
            // typed in meanwhile.
            Some(_) if self.deliverer.deliveries.first_prompt_is_given(&self.run.id) => {
                Err(Shut::new("its first instructions are not taken yet"))
            }
            Some(preset) => gate::agent(preset, before),
            None => gate::program(before),
        }
    }

    /// Whether it waits for a person now, by its screen as it is and not as it was last observed.
    pub(super) fn blocked(&self, snapshot: &ScreenSnapshot) -> Option<String> {
        let status = self.deliverer.activities.get(&self.run.id);
        let observed =
            Some(status.activity).filter(|activity| activity.state == ActivityState::Blocked);
        self.preset.as_ref()?;
        self.asks(snapshot).or(observed).map(|activity| activity.reason)
    }

    /// What its screen asks a person.
    pub(super) fn asks(&self, snapshot: &ScreenSnapshot) -> Option<Activity> {
        asks_now(self.preset.as_ref()?, snapshot)
    }
}
