//! Who puts texts in: one worker for each process with something waiting, one text at a time, in
//! the order they were handed in.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::evidence::is_left_of;
use super::gate::{self, Before, Shut};
use super::put_in::Outcome;
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, Stage};
use crate::activity::{Facts, Glimpse, State, Verdict, asks_now, awaits_instructions, works_now};
use crate::host::Host;
use crate::plane::{Keyboard, Live};
use crate::presets::Preset;
use crate::process::ProcessId;
use patterm_store::state::StateError;

/// A gate is not tried more often than this while a screen changes.
const GATE_PAUSE: Duration = Duration::from_millis(100);

/// How long the sender of a text waits for its receipt where the gate is open. Putting in takes about a
/// second; where a CLI does not show what is expected of it, the receipt comes later and can be asked for.
const SENDER_PATIENCE: Duration = Duration::from_secs(5);

/// How long the end of a server waits for texts that are being put in: longer than it takes to paste one,
/// to enter it, and to see that nothing came of it. Erasing it may take some seconds more.
const FINISH_PATIENCE: Duration = Duration::from_secs(15);

/// How often a text is put in anew of which nothing came to its process.
const TRIES: usize = 3;

/// How long after a server's start the prompt of an agent may take to be seen.
const TAKE_UP_PATIENCE: Duration = Duration::from_secs(10);

/// A process as a worker sees it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(super) host: Arc<Host>,
    pub(super) live: Arc<Live>,
    pub(super) facts: Arc<Facts>,
    pub(crate) preset: Option<Arc<Preset>>,
}

impl Host {
    /// Puts in what waits, for as long as the server runs.
    pub(crate) async fn deliver_all(self: Arc<Self>) {
        let busy: Arc<Mutex<HashSet<ProcessId>>> = Arc::default();
        let mut verified = HashSet::new();
        for begun in self.deliveries.begun() {
            let host = self.clone();
            let busy = busy.clone();
            busy.lock().unwrap_or_else(PoisonError::into_inner).insert(begun.to.clone());
            tokio::spawn(async move {
                host.take_up(&begun).await;
                host.deliver_to(begun.to, busy).await;
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
    /// done; else when it was put in.
    pub(crate) async fn receipt(&self, id: u64) -> Receipt {
        let mut changes = self.deliveries.changes();
        let gone = || Receipt::new(ReceiptState::Stalled, "nothing is known of it any more");
        let settled = async {
            loop {
                let Some(delivery) = self.deliveries.get(id) else { return gone() };
                let first_look = delivery.receipt.evidence == super::store::HANDED_IN;
                if !delivery.is_put_in() && !first_look {
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

    /// Waits, for a bounded time, until nothing is half put in: the next server could not tell what
    /// became of it.
    pub(crate) async fn finish_deliveries(&self) {
        let mut changes = self.deliveries.changes();
        let finished =
            async { while self.deliveries.is_putting_in() && changes.changed().await.is_ok() {} };
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
    async fn take_up(self: &Arc<Self>, begun: &Delivery) {
        let mut deadline = Instant::now() + TAKE_UP_PATIENCE;
        let mut left = None;
        let ending = loop {
            let target = self.target(&begun.to);
            let seen = target.as_ref().map(|target| target.glimpse());
            if let (Some(target), Some(glimpse)) = (&target, &seen) {
                if let Some(why) = target.blocked(glimpse) {
                    // However long a person takes to answer.
                    deadline = Instant::now() + TAKE_UP_PATIENCE;
                    self.deliveries.explain(begun.id, &format!("it waits for a person ({why})"));
                } else if glimpse.composer.is_some()
                    && self.activities.get(&begun.to).verdict.state != State::Unknown
                {
                    if let Some(evidence) = target.was_taken(begun, glimpse) {
                        break Some(Receipt::new(ReceiptState::Delivered, evidence).into());
                    }
                    let stands = glimpse.composer.clone();
                    left = stands.filter(|stands| is_left_of(&begun.text, stands));
                    break target.enter_what_stands(begun, glimpse).await;
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
        self.activities.facts(&begun.to).ring();
    }

    /// Waits for the gate and puts one text in.
    async fn deliver(self: &Arc<Self>, delivery: &Delivery) {
        let mut tries = 0;
        loop {
            // The process was closed, or the sender withdrew it.
            if self.deliveries.get(delivery.id).is_none_or(|known| known.stage != Stage::Waiting) {
                return;
            }
            self.look_after(&delivery.to);
            let shut = match self.target(&delivery.to) {
                Some(target) => match target.open() {
                    Ok(keyboard) => match target.begin(delivery) {
                        Ok(Some(begun)) => {
                            tries += 1;
                            let outcome = target.put_in(&begun, keyboard).await;
                            let is_over = self.conclude(&begun, outcome, tries);
                            target.facts.ring();
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
            self.deliveries.explain(delivery.id, &shut.why);
            self.until_something_changes(&delivery.to, shut.again).await;
        }
    }

    /// Notes how putting in ended; `false` if it is to be tried again.
    fn conclude(&self, begun: &Delivery, outcome: Outcome, tries: usize) -> bool {
        match outcome {
            Outcome::Over(ending) => {
                self.deliveries.finish(begun.id, ending);
                true
            }
            Outcome::Again(why) if tries < TRIES => {
                self.deliveries.put_back(begun.id, &why);
                false
            }
            Outcome::Again(why) => {
                let why = format!("tried {tries} times; the last time: {why}");
                self.deliveries.finish(begun.id, Receipt::new(ReceiptState::Stalled, why));
                true
            }
        }
    }

    /// The process, if it runs.
    pub(crate) fn target(self: &Arc<Self>, id: &ProcessId) -> Option<Target> {
        let live = self.live(id).filter(|live| !live.watch().borrow().is_over())?;
        let facts = self.activities.facts(id);
        // Without its observer nobody knows what it shows.
        let preset = facts.preset();
        let process = self.processes.get(id)?;
        (process.agent.is_none() || preset.is_some()).then(|| Target {
            host: self.clone(),
            live,
            facts,
            preset,
        })
    }

    async fn until_something_changes(&self, id: &ProcessId, again: Option<Duration>) {
        let mut standing = self.activities.watch(id);
        let mut changes = self.deliveries.changes();
        let live = self.live(id).filter(|live| !live.watch().borrow().is_over());
        let printed = async {
            match &live {
                Some(live) => drop(live.watch().changed().await),
                // It is started again, or closed.
                None => drop(changes.changed().await),
            }
        };
        tokio::time::sleep(GATE_PAUSE).await;
        tokio::select! {
            changed = standing.changed() => drop(changed),
            () = printed => {}
            () = tokio::time::sleep(again.unwrap_or(LOOK_ANYWAY)) => {}
        }
    }
}

/// What changed before anybody waited for it is seen by then.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

impl Target {
    pub(super) fn glimpse(&self) -> Glimpse {
        let mut glimpse = Glimpse::of(&self.live.screen(), self.preset.as_deref());
        if glimpse.at_start && !self.live.hand().holds_letters() {
            glimpse.composer = glimpse.composer.map(|_| String::new());
        }
        glimpse
    }

    /// Notes that a text is about to be put in.
    fn begin(&self, delivery: &Delivery) -> Result<Option<Delivery>, StateError> {
        let is_said = self.says_already(&delivery.text);
        self.host.deliveries.begin(delivery.id, is_said)
    }

    /// The keyboard, if a text may be put in. What is typed after the second look waits until it is
    /// given back.
    fn open(&self) -> Result<Keyboard, Shut> {
        self.gate()?;
        let keyboard = self.host.plane.reserve(&self.live);
        let taken = || Shut::for_now("another writer has its keyboard", GATE_PAUSE);
        let keyboard = keyboard.ok_or_else(taken)?;
        self.gate()?;
        Ok(keyboard)
    }

    fn gate(&self) -> Result<(), Shut> {
        let now = Instant::now();
        let glimpse = self.glimpse();
        let mut standing = self.host.activities.get(&self.live.id);
        // A dialog that asks what to do at a limit is one.
        if let Some(asks) = self.asks(&glimpse) {
            standing.verdict = asks;
        }
        let shows_its_prompt = self.preset.as_ref().is_some_and(|preset| preset.composer.is_some());
        let is_ready = shows_its_prompt || self.facts.rests();
        if is_ready && awaits_instructions(&standing.verdict) {
            // They would wait for themselves.
            standing.verdict.state = State::Idle;
        }
        let hand = self.live.hand();
        let before = Before {
            glimpse: &glimpse,
            standing: &standing,
            ready: self.facts.prompt_seen().map(|seen| now - seen),
            typed: hand.typed.map(|typed| now - typed),
            written: hand.written.map(|written| now - written),
            draft: hand.draft,
            blanks: hand.holds_blanks(),
            own: self.left_standing(&glimpse).map(|(own, _)| own.id),
            in_turn: self.preset.as_ref().is_some_and(|preset| works_now(preset, &glimpse)),
        };
        match &self.preset {
            // A CLI that is about to take its first turn may change all it shows, and lose what is
            // put in meanwhile.
            Some(_) if self.host.deliveries.first_prompt_is_given(&self.live.id) => {
                Err(Shut::new("its first instructions are not taken yet"))
            }
            Some(preset) => gate::agent(preset, before),
            None => gate::program(before),
        }
    }

    /// Whether it waits for a person now, by its screen as it is and not as it was last observed.
    pub(super) fn blocked(&self, glimpse: &Glimpse) -> Option<String> {
        let standing = self.host.activities.get(&self.live.id);
        let observed = Some(standing.verdict).filter(|verdict| verdict.state == State::Blocked);
        self.preset.as_ref()?;
        self.asks(glimpse).or(observed).map(|verdict| verdict.reason)
    }

    /// What its screen asks a person.
    pub(super) fn asks(&self, glimpse: &Glimpse) -> Option<Verdict> {
        asks_now(self.preset.as_ref()?, glimpse)
    }
}
