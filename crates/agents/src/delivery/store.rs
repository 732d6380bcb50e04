//! All deliveries of a project: waiting, begun, and the last ones that are done.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::DeliveryError;
use super::evidence::contains_text;
use super::receipt::{Receipt, ReceiptState};
use super::record::{
    Delivery, DeliveryStage, Ending, NewDelivery, Pending, SUBMITTING, Source, excerpt,
};
use super::recorder::DeliveryRecorder;
use super::texts::Texts;
use patterm_events::EventLog;
use patterm_panes::process::ProcessId;
use patterm_store::clock::Clock;
use patterm_store::state::{self, StateDir, StateError};
use patterm_store::sync::lock;

const FILE: &str = "deliveries.json";
const VERSION: u32 = 1;

/// The evidence of a receipt before a worker has tried the text.
const ENQUEUED: &str = "it was queued";

/// The evidence for a text that a server was typing when it stopped.
pub(super) const HALF_WRITTEN: &str = "the server stopped while typing it; it may or may not have \
    arrived";

/// The evidence for a text that was in a CLI's own queue when the CLI ended.
const QUEUE_ENDED: &str = "its CLI accepted it during a turn and ended before that turn was over; send it \
    again if the conversation does not contain it";

/// The evidence for a text that a CLI put back into its prompt.
const GIVEN_BACK: &str = "its CLI accepted it during a turn, which was interrupted, and put it back into its \
    prompt without submitting it";

/// How many texts may wait for one process: more than an agent will ever read in a row.
const MAX_WAITING: usize = 100;

/// How many finished deliveries are kept.
const MAX_DONE: usize = 200;

/// How many stalled texts are kept for comparison with later evidence: more than stall at once, and
/// few enough to be written with every change.
const MAX_WATCHED: usize = 16;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Table {
    last: u64,
    deliveries: Vec<Delivery>,
}

/// The texts ahead of a waiting one.
struct Queue<'a> {
    length: usize,
    /// Why the first of them is not delivered yet.
    first: &'a str,
}

impl Queue<'_> {
    fn describe(&self) -> String {
        match self.length {
            1 => format!("queued behind another text: {}", self.first),
            more => {
                format!("queued behind {more} other texts; the first: {}", self.first)
            }
        }
    }
}

/// The deliveries of a project. Changes are on disk before they are visible.
#[derive(Debug)]
pub struct Deliveries {
    file: PathBuf,
    /// The whole texts.
    texts: Texts,
    table: Mutex<Table>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    clock: Clock,
    /// Locked while the table is.
    recorder: Mutex<DeliveryRecorder>,
}

impl Deliveries {
    /// Loads what earlier servers left. It can no longer be seen whether a first prompt that they had
    /// passed was accepted; for other texts, the prompt may still show it.
    pub fn load(state: &StateDir, clock: Clock) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let mut table: Table = state::read(&file, VERSION)?.unwrap_or_default();
        let given = |d: &&mut Delivery| d.stage == DeliveryStage::Begun && is_first(d);
        for delivery in table.deliveries.iter_mut().filter(given) {
            end(delivery, Receipt::new(ReceiptState::Stalled, HALF_WRITTEN));
        }
        for delivery in table.deliveries.iter_mut().filter(|d| d.stage == DeliveryStage::Begun) {
            delivery.pending = Pending::Typing;
        }
        let texts = Texts::within(state);
        texts.retain(table.deliveries.iter().map(|delivery| delivery.id));
        let (table, changes) = (Mutex::new(table), watch::Sender::new(0));
        Ok(Self { file, texts, table, changes, clock, recorder: Mutex::default() })
    }

    /// Records what happens to all texts as events, and what an earlier server did not record.
    #[must_use]
    pub(crate) fn with_events(self, events: EventLog) -> Self {
        let mut recorder = DeliveryRecorder::new(events);
        recorder.compare(&self.table().deliveries, true);
        Self { recorder: Mutex::new(recorder), ..self }
    }

    /// Queues a text and returns its number; it is on disk by then.
    pub fn enqueue(&self, new: NewDelivery) -> Result<u64, DeliveryError> {
        let mut table = self.table();
        let same = |known: &&Delivery| new.key.is_some() && known.key == new.key;
        if let Some(known) = table.deliveries.iter().find(same) {
            return Ok(known.id);
        }
        let open = |known: &&Delivery| known.to == new.to && known.stage != DeliveryStage::Done;
        if table.deliveries.iter().filter(open).count() >= MAX_WAITING {
            return Err(DeliveryError::Full { waiting: MAX_WAITING, to: new.to });
        }
        let mut next = table.clone();
        next.last += 1;
        let id = next.last;
        self.texts.keep(id, &new.text);
        next.deliveries.push(Delivery {
            id,
            to: new.to,
            source: new.source,
            key: new.key,
            excerpt: excerpt(&new.text),
            bytes: new.text.len(),
            text: new.text,
            left: None,
            begun_at: None,
            shown_before: None,
            unread: false,
            called: false,
            at: self.clock.wall_ms(),
            stage: DeliveryStage::Waiting,
            pending: Pending::Worker,
            receipt: Receipt::new(ReceiptState::Queued, ENQUEUED),
        });
        state::write(&self.file, VERSION, &next)?;
        *table = next;
        self.record(&table);
        drop(table);
        self.notify();
        Ok(id)
    }

    /// The oldest delivery that is waiting for a process.
    pub(crate) fn next_for(&self, id: &ProcessId) -> Option<Delivery> {
        let waits = |known: &&Delivery| known.to == *id && known.stage == DeliveryStage::Waiting;
        self.table().deliveries.iter().find(waits).cloned()
    }

    /// The processes for which a text is waiting, watched or possibly unread.
    pub fn waiting(&self) -> Vec<ProcessId> {
        let table = self.table();
        let is_open = |known: &&Delivery| {
            known.stage == DeliveryStage::Waiting || known.is_watched() || known.unread
        };
        table.deliveries.iter().filter(is_open).map(|known| known.to.clone()).collect()
    }

    /// Stalled texts for a process that may still turn out to have been accepted, oldest first.
    pub fn watched(&self, id: &ProcessId) -> Vec<Delivery> {
        let watched = |known: &&Delivery| known.to == *id && known.is_watched();
        self.table().deliveries.iter().filter(watched).cloned().collect()
    }

    /// Whether the same text is known more than once: then a screen that shows it is not evidence for
    /// either of them.
    pub(crate) fn is_repeated(&self, one: &Delivery) -> bool {
        let same = |known: &&Delivery| {
            (&known.to, &known.excerpt, known.bytes) == (&one.to, &one.excerpt, one.bytes)
        };
        self.table().deliveries.iter().filter(same).nth(1).is_some()
    }

    /// Records that a stalled text was accepted after all.
    pub(crate) fn correct(&self, id: u64, evidence: &str) {
        let mut table = self.table();
        let watched = |known: &&mut Delivery| known.id == id && known.is_watched();
        let Some(delivery) = table.deliveries.iter_mut().find(watched) else { return };
        let evidence = format!("{evidence}; it was recorded as stalled before");
        end(delivery, Receipt::new(ReceiptState::Delivered, evidence));
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Whether attention is to be requested for a text: `true` only once.
    pub(crate) fn first_call(&self, id: u64) -> bool {
        let mut table = self.table();
        let is_it = |known: &&mut Delivery| known.id == id;
        let found = table.deliveries.iter_mut().find(is_it);
        found.is_some_and(|known| !std::mem::replace(&mut known.called, true))
    }

    /// Stops watching the stalled texts for a process.
    pub(crate) fn unwatch(&self, id: &ProcessId) {
        let mut table = self.table();
        let mut changed = false;
        for known in table.deliveries.iter_mut().filter(|d| d.to == *id && d.is_watched()) {
            known.text.clear();
            known.left = None;
            changed = true;
        }
        if changed {
            self.note(&table);
        }
    }

    /// Returns a begun text to the queue; nothing of it is in its process.
    pub fn put_back(&self, id: u64, why: &str) {
        let mut table = self.table();
        let begun = |known: &&mut Delivery| known.id == id && known.stage == DeliveryStage::Begun;
        let Some(delivery) = table.deliveries.iter_mut().find(begun) else { return };
        delivery.stage = DeliveryStage::Waiting;
        delivery.pending = Pending::Gate;
        delivery.receipt = Receipt::new(ReceiptState::Queued, why);
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Texts that were begun and are not done. Right after the start, an earlier server began them.
    pub fn begun(&self) -> Vec<Delivery> {
        let begun = |known: &&Delivery| !is_first(known) && known.stage == DeliveryStage::Begun;
        self.table().deliveries.iter().filter(begun).cloned().collect()
    }

    /// First prompts that were passed as arguments and not verified yet.
    pub(crate) fn first_prompts_given(&self) -> Vec<Delivery> {
        let given = |known: &&Delivery| is_first(known) && known.stage == DeliveryStage::Begun;
        self.table().deliveries.iter().filter(given).cloned().collect()
    }

    /// The first prompt that was passed to a process as an argument, if there is no evidence that the
    /// process accepted it.
    pub(crate) fn first_prompt_not_accepted(&self, id: &ProcessId) -> Option<Delivery> {
        let table = self.table();
        let mut all = table.deliveries.iter().rev();
        let last = all.find(|known| known.to == *id && is_first(known))?;
        let is_open = last.stage == DeliveryStage::Begun || last.is_watched();
        is_open.then(|| last.clone())
    }

    /// Whether a process was passed such a first prompt.
    pub(crate) fn first_prompt_is_given(&self, id: &ProcessId) -> bool {
        self.first_prompts_given().iter().any(|given| given.to == *id)
    }

    /// Whether a text is being typed. One that waits for a person may also wait for the next
    /// server.
    pub(crate) fn is_submitting(&self) -> bool {
        self.begun().iter().any(Delivery::is_being_typed)
    }

    /// Whether a process has not accepted its first prompt yet.
    pub(crate) fn first_prompt_is_open(&self, id: &ProcessId) -> bool {
        let open = |d: &Delivery| d.to == *id && is_first(d) && d.stage != DeliveryStage::Done;
        self.table().deliveries.iter().any(open)
    }

    /// Whether a text for a process is waiting or being typed.
    pub fn has_open(&self, id: &ProcessId) -> bool {
        self.table().deliveries.iter().any(|d| d.to == *id && d.stage != DeliveryStage::Done)
    }

    /// How many texts for a process are waiting or being typed, and why the first is not delivered
    /// yet.
    pub fn queue_of(&self, id: &ProcessId) -> Option<(usize, String)> {
        let table = self.table();
        let mut open =
            table.deliveries.iter().filter(|d| d.to == *id && d.stage != DeliveryStage::Done);
        let first = open.next()?;
        Some((1 + open.count(), first.receipt.evidence.clone()))
    }

    /// One delivery.
    pub fn get(&self, id: u64) -> Option<Delivery> {
        let table = self.table();
        let mut delivery = table.deliveries.iter().find(|known| known.id == id)?.clone();
        if delivery.stage != DeliveryStage::Done {
            let open =
                |known: &&Delivery| known.to == delivery.to && known.stage != DeliveryStage::Done;
            let mut before =
                table.deliveries.iter().filter(open).take_while(|known| known.id != id);
            if let Some(first) = before.next() {
                let queue = Queue { length: 1 + before.count(), first: &first.receipt.evidence };
                delivery.receipt.evidence = queue.describe();
                delivery.pending = Pending::Gate;
            }
        }
        Some(delivery)
    }

    /// The whole text of one of them, if it is still kept.
    pub fn whole_text(&self, delivery: &Delivery) -> Option<String> {
        let open = Some(delivery.text.clone()).filter(|text| !text.is_empty());
        open.or_else(|| self.texts.read(delivery.id))
    }

    /// All deliveries, oldest first. One that is not next in line for its process waits for whatever
    /// the next one waits for.
    pub fn all(&self) -> Vec<Delivery> {
        let table = self.table();
        let mut all = table.deliveries.clone();
        let mut queues: HashMap<&ProcessId, Queue<'_>> = HashMap::new();
        for (known, delivery) in table.deliveries.iter().zip(&mut all) {
            if known.stage == DeliveryStage::Done {
                continue;
            }
            match queues.get_mut(&known.to) {
                Some(queue) => {
                    delivery.receipt.evidence = queue.describe();
                    queue.length += 1;
                }
                None => {
                    queues.insert(&known.to, Queue { length: 1, first: &known.receipt.evidence });
                }
            }
        }
        all
    }

    /// Records why a delivery is waiting; this is not worth a write to disk.
    pub fn explain(&self, id: u64, pending: Pending, evidence: &str) {
        let mut table = self.table();
        let open = |d: &&mut Delivery| d.id == id && d.stage != DeliveryStage::Done;
        let Some(delivery) = table.deliveries.iter_mut().find(open) else { return };
        if delivery.receipt.evidence != evidence || delivery.pending != pending {
            delivery.pending = pending;
            delivery.receipt = Receipt::new(ReceiptState::Queued, evidence);
            self.record(&table);
            drop(table);
            self.notify();
        }
    }

    /// Records that writing begins, and whether the conversation already contains the same text.
    /// Returns the text to write; `None` if it is no longer waiting. If recording fails, nothing
    /// may be written. For a text that was put back, the first beginning counts.
    pub fn begin(&self, id: u64, is_shown: bool) -> Result<Option<Delivery>, StateError> {
        self.change_waiting(id, state::write_reserved, |delivery| {
            delivery.stage = DeliveryStage::Begun;
            delivery.pending = Pending::Typing;
            delivery.begun_at.get_or_insert_with(Instant::now);
            delivery.shown_before.get_or_insert(is_shown);
            delivery.receipt.evidence = SUBMITTING.into();
        })
    }

    /// Withdraws a text that is still waiting; `None` if it is not.
    pub fn withdraw(&self, id: u64) -> Result<Option<Delivery>, StateError> {
        let why = "its sender withdrew it before it was typed";
        let withdrawn = |d: &mut Delivery| end(d, Receipt::new(ReceiptState::Stalled, why));
        self.change_waiting(id, state::write_reserved, withdrawn)
    }

    /// Replaces the text of a delivery that is still waiting; `None` if it is not.
    pub fn replace(&self, id: u64, text: String) -> Result<Option<Delivery>, StateError> {
        let replaced = self.change_waiting(id, state::write, |delivery| {
            delivery.excerpt = excerpt(&text);
            delivery.bytes = text.len();
            delivery.text = text;
        })?;
        if let Some(delivery) = &replaced {
            self.texts.keep(id, &delivery.text);
        }
        Ok(replaced)
    }

    /// Changes a waiting delivery, on disk first.
    fn change_waiting(
        &self,
        id: u64,
        write: fn(&Path, u32, &Table) -> Result<(), StateError>,
        change: impl FnOnce(&mut Delivery),
    ) -> Result<Option<Delivery>, StateError> {
        let mut table = self.table();
        let mut next = table.clone();
        let waits = |d: &&mut Delivery| d.id == id && d.stage == DeliveryStage::Waiting;
        let Some(delivery) = next.deliveries.iter_mut().find(waits) else { return Ok(None) };
        change(delivery);
        let changed = delivery.clone();
        write(&self.file, VERSION, &next)?;
        *table = next;
        self.record(&table);
        drop(table);
        self.notify();
        Ok(Some(changed))
    }

    /// Records how a delivery ended.
    pub fn finish(&self, id: u64, ending: impl Into<Ending>) {
        let Ending { receipt, left, unread } = ending.into();
        let is_it = |known: &&mut Delivery| known.id == id && known.stage != DeliveryStage::Done;
        if let Some(delivery) = self.table().deliveries.iter_mut().find(is_it) {
            delivery.left = left;
            delivery.unread = unread;
        }
        self.finish_where(|delivery| delivery.id == id, &receipt);
    }

    /// Whether a process has texts that may be in its CLI's own queue.
    pub(crate) fn has_unread(&self, id: &ProcessId) -> bool {
        self.table().deliveries.iter().any(|known| known.to == *id && known.unread)
    }

    /// Handles that an agent is idle: its CLI has read its queue, or has put it back into its
    /// prompt, which contains `in_prompt`.
    pub(crate) fn settle_unread(&self, id: &ProcessId, in_prompt: Option<&str>) {
        self.change_unread(id, |known| {
            let gives_back = |in_prompt: &&str| contains_text(in_prompt, known.known_text());
            match in_prompt.filter(gives_back) {
                Some(in_prompt) => {
                    known.receipt = Receipt::new(ReceiptState::Stalled, GIVEN_BACK);
                    known.left = Some(in_prompt.to_owned());
                }
                None => known.text.clear(),
            }
        });
    }

    /// Handles the end of a run, which ends its CLI's own queue.
    pub(crate) fn lose_unread(&self, id: &ProcessId) {
        self.change_unread(id, |known| {
            known.receipt = Receipt::new(ReceiptState::Stalled, QUEUE_ENDED);
            known.text.clear();
        });
    }

    fn change_unread(&self, id: &ProcessId, change: impl Fn(&mut Delivery)) {
        let mut table = self.table();
        let mut changed = false;
        for known in table.deliveries.iter_mut().filter(|known| known.to == *id && known.unread) {
            known.unread = false;
            change(known);
            changed = true;
        }
        if changed {
            self.note(&table);
            drop(table);
            self.notify();
        }
    }

    /// Marks a delivery as repeated by another one: it is no longer watched.
    pub(crate) fn supersede(&self, id: u64, why: &str) {
        let mut table = self.table();
        let Some(delivery) = table.deliveries.iter_mut().find(|known| known.id == id) else {
            return;
        };
        end(delivery, Receipt::new(ReceiptState::Stalled, why));
        delivery.text.clear();
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Gives up all texts for a closed process.
    pub fn give_up(&self, process: &ProcessId, why: &str) {
        let receipt = Receipt::new(ReceiptState::Stalled, why);
        self.finish_where(|delivery| delivery.to == *process, &receipt);
        self.unwatch(process);
    }

    /// Counts the changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn finish_where(&self, which: impl Fn(&Delivery) -> bool, receipt: &Receipt) {
        let mut table = self.table();
        let mut ended = false;
        for delivery in table.deliveries.iter_mut() {
            if delivery.stage != DeliveryStage::Done && which(delivery) {
                end(delivery, receipt.clone());
                ended = true;
            }
        }
        if !ended {
            return;
        }
        forget_texts(&mut table);
        let done = table.deliveries.iter().filter(|d| d.stage == DeliveryStage::Done).count();
        let mut surplus = done.saturating_sub(MAX_DONE);
        table.deliveries.retain(|delivery| {
            let goes = surplus > 0 && delivery.stage == DeliveryStage::Done;
            surplus -= usize::from(goes);
            !goes
        });
        if done > MAX_DONE {
            self.texts.retain(table.deliveries.iter().map(|delivery| delivery.id));
        }
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Writes what has already happened, so a full disk is not an error. If the server dies before
    /// the next write, the next server records the delivery as stalled.
    fn note(&self, table: &Table) {
        if let Err(error) = state::write_reserved(&self.file, VERSION, table) {
            tracing::error!(%error, "cannot write the result of a delivery to disk; it is written with the next change");
        }
        self.record(table);
    }

    fn record(&self, table: &Table) {
        lock(&self.recorder).compare(&table.deliveries, false);
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_first(delivery: &Delivery) -> bool {
    matches!(delivery.source, Source::FirstPrompt { .. })
}

/// Ends a delivery. A begun text that stalled keeps its text, because it may turn out to have been
/// accepted; so does one that may be unread, because it may be put back.
fn end(delivery: &mut Delivery, receipt: Receipt) {
    let is_watched =
        delivery.stage == DeliveryStage::Begun && receipt.state == ReceiptState::Stalled;
    if !is_watched && !delivery.unread {
        delivery.text.clear();
        delivery.left = None;
    }
    delivery.stage = DeliveryStage::Done;
    delivery.receipt = receipt;
}

/// Forgets the texts of stalled deliveries, except the last ones, and of those that were followed
/// by a delivered text: they would have been seen by then.
fn forget_texts(table: &mut Table) {
    let mut followed: HashSet<ProcessId> = HashSet::new();
    let mut watched = 0;
    for known in table.deliveries.iter_mut().rev() {
        if known.stage == DeliveryStage::Done && known.receipt.state == ReceiptState::Delivered {
            followed.insert(known.to.clone());
        }
        if known.is_watched() || known.unread {
            watched += 1;
            let is_followed = !known.unread && followed.contains(&known.to);
            if watched > MAX_WATCHED || is_followed {
                known.text.clear();
                known.left = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Source;

    fn deliveries(dir: &tempfile::TempDir) -> Deliveries {
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        Deliveries::load(&state, Clock::system()).unwrap()
    }

    fn text(to: u64, key: Option<&str>, text: &str) -> NewDelivery {
        NewDelivery {
            to: ProcessId::new(to),
            source: Source::Timer { timer_id: "t1".into() },
            key: key.map(Into::into),
            text: text.into(),
        }
    }

    #[test]
    fn waiting_and_begun_texts_survive_and_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let first = before.enqueue(text(1, None, "one")).unwrap();
        let second = before.enqueue(text(1, None, "two")).unwrap();
        before.begin(first, false).unwrap();
        let after = deliveries(&dir);
        assert_eq!(after.begun().iter().map(|begun| begun.id).collect::<Vec<_>>(), [first]);
        let next = after.next_for(&ProcessId::new(1)).unwrap();
        assert_eq!((next.id, next.text.as_str()), (second, "two"));
    }

    #[test]
    fn the_full_text_is_kept_after_delivery_and_follows_a_replacement() {
        let dir = tempfile::tempdir().unwrap();
        let known = deliveries(&dir);
        let long = "a long text ".repeat(100);
        let [one, two] = [0; 2].map(|_| known.enqueue(text(1, None, &long)).unwrap());
        let other = long.to_uppercase();
        known.replace(two, other.clone()).unwrap().unwrap();
        for id in [one, two] {
            known.withdraw(id).unwrap().unwrap();
        }
        let after = deliveries(&dir);
        let whole = |id| after.whole_text(&after.get(id).unwrap()).unwrap();
        assert_eq!((whole(one), whole(two)), (long, other));
    }

    /// The state of each delivery, and whether it is watched.
    fn states(deliveries: &Deliveries) -> Vec<(ReceiptState, bool)> {
        let all = deliveries.all();
        all.iter().map(|known| (known.receipt.state, known.is_watched())).collect()
    }

    #[test]
    fn a_stalled_text_can_be_corrected_by_the_next_server() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let [one, two] = ["one", "two"].map(|body| before.enqueue(text(1, None, body)).unwrap());
        before.begin(one, false).unwrap();
        before.finish(one, Receipt::new(ReceiptState::Stalled, "nothing shows"));
        before.give_up(&ProcessId::new(2), "another process");
        let after = deliveries(&dir);
        assert_eq!(after.watched(&ProcessId::new(1))[0].text, "one");
        after.correct(one, "a hook reported it");
        assert_eq!(states(&after)[0], (ReceiptState::Delivered, false));
        after.correct(two, "it waits");
        assert_eq!(states(&after)[1].0, ReceiptState::Queued, "a waiting text is not corrected");
    }

    #[test]
    fn a_stalled_text_is_watched_until_a_later_text_is_delivered() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        for n in 0..=MAX_WATCHED {
            let id = deliveries.enqueue(text(1, None, &n.to_string())).unwrap();
            deliveries.begin(id, false).unwrap();
            deliveries.finish(id, Receipt::new(ReceiptState::Stalled, "nothing shows"));
        }
        assert_eq!(deliveries.watched(&ProcessId::new(1)).len(), MAX_WATCHED);
        let last = deliveries.enqueue(text(1, None, "last")).unwrap();
        deliveries.finish(last, Receipt::new(ReceiptState::Delivered, "seen"));
        assert_eq!(deliveries.watched(&ProcessId::new(1)), []);
        assert_eq!(deliveries.waiting(), []);
    }

    /// Finishes two texts that were accepted during a turn; returns the deliveries as the next
    /// server loads them.
    fn unread(dir: &tempfile::TempDir) -> (Deliveries, [u64; 2]) {
        let deliveries = deliveries(dir);
        let ids = ["[lead] look at the tests", "[lead] and then at the docs"].map(|body| {
            let id = deliveries.enqueue(text(1, None, body)).unwrap();
            deliveries.begin(id, false).unwrap();
            let receipt = Receipt::new(ReceiptState::Delivered, "its prompt was empty");
            deliveries.finish(id, Ending { unread: true, ..receipt.into() });
            id
        });
        (self::deliveries(dir), ids)
    }

    #[test]
    fn a_text_in_a_clis_own_queue_counts_as_read_when_the_agent_is_idle() {
        let dir = tempfile::tempdir().unwrap();
        let (deliveries, _) = unread(&dir);
        let process = ProcessId::new(1);
        assert!(deliveries.has_unread(&process));
        assert_eq!(deliveries.watched(&process), [], "they are not stalled");
        deliveries.settle_unread(&process, Some("a person's draft"));
        assert!(!deliveries.has_unread(&process));
        deliveries.lose_unread(&process);
        assert_eq!(states(&deliveries), [(ReceiptState::Delivered, false); 2]);
    }

    #[test]
    fn a_text_in_a_clis_own_queue_is_stalled_when_its_run_ends() {
        let dir = tempfile::tempdir().unwrap();
        let (deliveries, [one, _]) = unread(&dir);
        deliveries.lose_unread(&ProcessId::new(2));
        assert_eq!(states(&deliveries), [(ReceiptState::Delivered, false); 2]);
        deliveries.lose_unread(&ProcessId::new(1));
        assert_eq!(states(&deliveries), [(ReceiptState::Stalled, false); 2]);
        assert_eq!(deliveries.get(one).unwrap().receipt.evidence, QUEUE_ENDED);
    }

    #[test]
    fn a_text_that_a_cli_puts_back_into_its_prompt_is_stalled_and_watched() {
        let dir = tempfile::tempdir().unwrap();
        let (deliveries, _) = unread(&dir);
        let in_prompt = "[lead] look at the\n tests\n[lead] and then at the docs";
        deliveries.settle_unread(&ProcessId::new(1), Some(in_prompt));
        assert_eq!(states(&deliveries), [(ReceiptState::Stalled, true); 2]);
        let after = self::deliveries(&dir);
        assert_eq!(after.watched(&ProcessId::new(1))[1].left.as_deref(), Some(in_prompt));
    }

    #[test]
    fn a_text_that_waits_for_a_person_is_not_being_typed() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        let id = deliveries.enqueue(text(1, None, "one")).unwrap();
        assert!(!deliveries.is_submitting());
        deliveries.begin(id, false).unwrap();
        assert!(deliveries.is_submitting());
        deliveries.explain(id, Pending::Person, "the text is in the prompt but was not submitted");
        assert!(!deliveries.is_submitting(), "its sender and an upgrade need not wait");
        deliveries.explain(id, Pending::Typing, SUBMITTING);
        assert!(deliveries.is_submitting());
    }

    #[test]
    fn the_next_server_knows_whether_a_text_was_shown_before_it_was_begun() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let ids = ["one", "two"].map(|body| before.enqueue(text(1, None, body)).unwrap());
        for (id, is_shown) in ids.into_iter().zip([true, false]) {
            before.begin(id, is_shown).unwrap();
            assert!(before.get(id).unwrap().begun_at.is_some());
        }
        before.put_back(ids[1], "a dialog swallowed it");
        before.begin(ids[1], true).unwrap();
        let begun = deliveries(&dir).begun();
        let known: Vec<_> =
            begun.iter().map(|begun| (begun.shown_before, begun.begun_at)).collect();
        assert_eq!(known, [(Some(true), None), (Some(false), None)]);
    }

    #[test]
    fn a_text_that_is_put_back_keeps_its_place_in_the_queue() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let [one, _] = ["one", "two"].map(|body| before.enqueue(text(1, None, body)).unwrap());
        before.begin(one, false).unwrap();
        before.put_back(one, "a dialog swallowed it");
        let next = deliveries(&dir).next_for(&ProcessId::new(1)).unwrap();
        assert_eq!((next.id, next.text.as_str()), (one, "one"));
    }

    #[test]
    fn the_same_key_is_the_same_delivery_even_when_it_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        let first = deliveries.enqueue(text(1, Some("timer t1"), "wake up")).unwrap();
        assert_eq!(deliveries.enqueue(text(1, Some("timer t1"), "wake up")).unwrap(), first);
        deliveries.finish(first, Receipt::new(ReceiptState::Delivered, "seen"));
        assert_eq!(deliveries.enqueue(text(1, Some("timer t1"), "wake up")).unwrap(), first);
        assert_eq!(deliveries.all().len(), 1);
    }

    #[test]
    fn the_numbers_of_waiting_and_of_kept_deliveries_are_limited() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        for n in 0..MAX_WAITING + MAX_DONE {
            let id = deliveries.enqueue(text(1, None, &n.to_string())).unwrap();
            if n >= MAX_WAITING {
                assert!(id > 0, "{n}");
            }
            deliveries.finish(id, Receipt::new(ReceiptState::Delivered, "seen"));
        }
        assert_eq!(deliveries.all().len(), MAX_DONE);
        for n in 0..MAX_WAITING {
            deliveries.enqueue(text(1, None, &n.to_string())).unwrap();
        }
        let full = deliveries.enqueue(text(1, None, "one too many")).unwrap_err();
        assert!(matches!(full, DeliveryError::Full { .. }), "{full}");
        deliveries.enqueue(text(2, None, "for another")).unwrap();
        deliveries.give_up(&ProcessId::new(1), "closed");
        assert!(deliveries.next_for(&ProcessId::new(1)).is_none());
        assert!(deliveries.next_for(&ProcessId::new(2)).is_some());
    }
}
