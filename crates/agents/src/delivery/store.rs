//! All deliveries of a project: what waits, what was begun, and what became of the last ones.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::DeliveryError;
use super::evidence::has_words_of;
use super::receipt::{Receipt, ReceiptState};
use super::record::{
    Delivery, DeliveryStage, Ending, NewDelivery, Pending, SUBMITTING, Source, excerpt,
};
use patterm_panes::process::ProcessId;
use patterm_store::clock::now_ms;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "deliveries.json";
const VERSION: u32 = 1;

/// The evidence of a receipt before a worker has tried the text.
const ENQUEUED: &str = "it was queued";

/// What is said of a text that a server had begun to write when it ended.
pub(super) const HALF_WRITTEN: &str = "the server stopped while typing it; it may or may not have \
    arrived";

/// What is said of a text that a CLI had accepted into its own queue when it ended.
const QUEUE_ENDED: &str = "its CLI accepted it during a turn and ended before that turn was over; send it \
    again if the conversation does not have it";

/// What is said of one that a CLI put back into its prompt.
const GIVEN_BACK: &str = "its CLI accepted it during a turn, which was interrupted, and put it back into its \
    prompt, not entered";

/// Texts that may wait for one process: more than an agent will ever read in a row.
const WAITING: usize = 100;

/// Deliveries that are over and still told of.
const KEPT: usize = 200;

/// Texts that stalled and are kept to be compared with what is seen later: more than stall at once,
/// and little enough to be written with every change.
const WATCHED: usize = 16;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Table {
    last: u64,
    deliveries: Vec<Delivery>,
}

/// The texts before one that waits.
struct Queue<'a> {
    length: usize,
    /// Why the first of them is not delivered yet.
    first: &'a str,
}

impl Queue<'_> {
    fn words(&self) -> String {
        match self.length {
            1 => format!("queued behind another text: {}", self.first),
            more => {
                format!("queued behind {more} other texts; the first: {}", self.first)
            }
        }
    }
}

/// The deliveries of a project. What it says is on the disk before it says it.
#[derive(Debug)]
pub struct Deliveries {
    file: PathBuf,
    table: Mutex<Table>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

impl Deliveries {
    /// Reads what earlier servers left. Whether a first prompt that they had given was taken can no
    /// longer be seen; of other texts the prompt may still tell.
    pub fn load(state: &StateDir) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let mut table: Table = state::read(&file, VERSION)?.unwrap_or_default();
        let given = |d: &&mut Delivery| d.stage == DeliveryStage::Begun && is_first(d);
        for delivery in table.deliveries.iter_mut().filter(given) {
            end(delivery, Receipt::new(ReceiptState::Stalled, HALF_WRITTEN));
        }
        for delivery in table.deliveries.iter_mut().filter(|d| d.stage == DeliveryStage::Begun) {
            delivery.pending = Pending::Typing;
        }
        Ok(Self { file, table: Mutex::new(table), changes: watch::Sender::new(0) })
    }

    /// Takes a text; it is on the disk when this returns, with its number.
    pub fn enqueue(&self, new: NewDelivery) -> Result<u64, DeliveryError> {
        let mut table = self.table();
        let same = |known: &&Delivery| new.key.is_some() && known.key == new.key;
        if let Some(known) = table.deliveries.iter().find(same) {
            return Ok(known.id);
        }
        let open = |known: &&Delivery| known.to == new.to && known.stage != DeliveryStage::Done;
        if table.deliveries.iter().filter(open).count() >= WAITING {
            return Err(DeliveryError::Full { waiting: WAITING, to: new.to });
        }
        let mut next = table.clone();
        next.last += 1;
        let id = next.last;
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
            said_before: None,
            unread: false,
            called: false,
            at: now_ms(),
            stage: DeliveryStage::Waiting,
            pending: Pending::Worker,
            receipt: Receipt::new(ReceiptState::Queued, ENQUEUED),
        });
        state::write(&self.file, VERSION, &next)?;
        *table = next;
        drop(table);
        self.notify();
        Ok(id)
    }

    /// The oldest that waits for a process.
    pub(crate) fn next_for(&self, id: &ProcessId) -> Option<Delivery> {
        let waits = |known: &&Delivery| known.to == *id && known.stage == DeliveryStage::Waiting;
        self.table().deliveries.iter().find(waits).cloned()
    }

    /// The processes for which something waits, is watched or may be unread.
    pub fn waiting(&self) -> Vec<ProcessId> {
        let table = self.table();
        let is_open = |known: &&Delivery| {
            known.stage == DeliveryStage::Waiting || known.is_watched() || known.unread
        };
        table.deliveries.iter().filter(is_open).map(|known| known.to.clone()).collect()
    }

    /// Texts for a process that stalled and may yet be seen to have been taken, oldest first.
    pub fn watched(&self, id: &ProcessId) -> Vec<Delivery> {
        let watched = |known: &&Delivery| known.to == *id && known.is_watched();
        self.table().deliveries.iter().filter(watched).cloned().collect()
    }

    /// Whether the same text is known more than once: then what a screen shows tells nothing of one.
    pub(crate) fn is_repeated(&self, one: &Delivery) -> bool {
        let same = |known: &&Delivery| {
            (&known.to, &known.excerpt, known.bytes) == (&one.to, &one.excerpt, one.bytes)
        };
        self.table().deliveries.iter().filter(same).nth(1).is_some()
    }

    /// A text that stalled was taken after all.
    pub(crate) fn correct(&self, id: u64, evidence: &str) {
        let mut table = self.table();
        let watched = |known: &&mut Delivery| known.id == id && known.is_watched();
        let Some(delivery) = table.deliveries.iter_mut().find(watched) else { return };
        let evidence = format!("{evidence}; it was called stalled before");
        end(delivery, Receipt::new(ReceiptState::Delivered, evidence));
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Whether a person is to be called to a text: once.
    pub(crate) fn call_once(&self, id: u64) -> bool {
        let mut table = self.table();
        let is_it = |known: &&mut Delivery| known.id == id;
        let found = table.deliveries.iter_mut().find(is_it);
        found.is_some_and(|known| !std::mem::replace(&mut known.called, true))
    }

    /// Nothing more will be seen of what stalled for a process.
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

    /// Puts a text back that was begun and of which nothing is in its process.
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

    /// Texts that were begun and are not done; right after the start, an earlier server began them.
    pub fn begun(&self) -> Vec<Delivery> {
        let begun = |known: &&Delivery| !is_first(known) && known.stage == DeliveryStage::Begun;
        self.table().deliveries.iter().filter(begun).cloned().collect()
    }

    /// First prompts that were given as arguments and are not seen to be taken yet.
    pub(crate) fn first_prompts_given(&self) -> Vec<Delivery> {
        let given = |known: &&Delivery| is_first(known) && known.stage == DeliveryStage::Begun;
        self.table().deliveries.iter().filter(given).cloned().collect()
    }

    /// The instructions that a process was given as arguments and was not seen to take.
    pub(crate) fn first_prompt_not_taken(&self, id: &ProcessId) -> Option<Delivery> {
        let table = self.table();
        let mut all = table.deliveries.iter().rev();
        let last = all.find(|known| known.to == *id && is_first(known))?;
        let is_open = last.stage == DeliveryStage::Begun || last.is_watched();
        is_open.then(|| last.clone())
    }

    /// Whether a process was given such a one.
    pub(crate) fn first_prompt_is_given(&self, id: &ProcessId) -> bool {
        self.first_prompts_given().iter().any(|given| given.to == *id)
    }

    /// Whether a text is half typed in; one that waits for a person may wait for the next server as well.
    pub(crate) fn is_submitting(&self) -> bool {
        self.begun().iter().any(Delivery::is_being_typed)
    }

    /// Whether a process has instructions to begin with that it has not taken.
    pub(crate) fn first_prompt_is_open(&self, id: &ProcessId) -> bool {
        let open = |d: &Delivery| d.to == *id && is_first(d) && d.stage != DeliveryStage::Done;
        self.table().deliveries.iter().any(open)
    }

    /// Whether a text for a process waits or is being typed in.
    pub fn has_open(&self, id: &ProcessId) -> bool {
        self.table().deliveries.iter().any(|d| d.to == *id && d.stage != DeliveryStage::Done)
    }

    /// How many texts wait for a process or are being typed in, and why the first is not delivered yet.
    pub fn queue_of(&self, id: &ProcessId) -> Option<(usize, String)> {
        let table = self.table();
        let mut open =
            table.deliveries.iter().filter(|d| d.to == *id && d.stage != DeliveryStage::Done);
        let first = open.next()?;
        Some((1 + open.count(), first.receipt.evidence.clone()))
    }

    /// One of them.
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
                delivery.receipt.evidence = queue.words();
                delivery.pending = Pending::Gate;
            }
        }
        Some(delivery)
    }

    /// All that are known, oldest first. One that is not the next for its process waits for what
    /// the next waits for.
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
                    delivery.receipt.evidence = queue.words();
                    queue.length += 1;
                }
                None => {
                    queues.insert(&known.to, Queue { length: 1, first: &known.receipt.evidence });
                }
            }
        }
        all
    }

    /// Says why one waits; not worth a write to the disk.
    pub fn explain(&self, id: u64, pending: Pending, evidence: &str) {
        let mut table = self.table();
        let open = |d: &&mut Delivery| d.id == id && d.stage != DeliveryStage::Done;
        let Some(delivery) = table.deliveries.iter_mut().find(open) else { return };
        if delivery.receipt.evidence != evidence || delivery.pending != pending {
            delivery.pending = pending;
            delivery.receipt = Receipt::new(ReceiptState::Queued, evidence);
            drop(table);
            self.notify();
        }
    }

    /// Notes that writing begins, and whether the conversation has the same text already; returns what is
    /// to be written, `None` if the text does not wait any more. Without that on the disk nothing may be
    /// written. Of a text that was put back, the first beginning counts.
    pub fn begin(&self, id: u64, is_said: bool) -> Result<Option<Delivery>, StateError> {
        self.change_waiting(id, state::write_reserved, |delivery| {
            delivery.stage = DeliveryStage::Begun;
            delivery.pending = Pending::Typing;
            delivery.begun_at.get_or_insert_with(Instant::now);
            delivery.said_before.get_or_insert(is_said);
            delivery.receipt.evidence = SUBMITTING.into();
        })
    }

    /// Takes a text back of which nothing was written yet; `None` if it does not wait any more.
    pub fn withdraw(&self, id: u64) -> Result<Option<Delivery>, StateError> {
        let why = "its sender withdrew it before anything of it was written";
        let withdrawn = |d: &mut Delivery| end(d, Receipt::new(ReceiptState::Stalled, why));
        self.change_waiting(id, state::write_reserved, withdrawn)
    }

    /// Puts another text in the place of one of which nothing was written yet; `None` if it does not
    /// wait any more.
    pub fn replace(&self, id: u64, text: String) -> Result<Option<Delivery>, StateError> {
        self.change_waiting(id, state::write, |delivery| {
            delivery.excerpt = excerpt(&text);
            delivery.bytes = text.len();
            delivery.text = text;
        })
    }

    /// Changes a text that waits, on the disk first.
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
        drop(table);
        self.notify();
        Ok(Some(changed))
    }

    /// Notes how one ended.
    pub fn finish(&self, id: u64, ending: impl Into<Ending>) {
        let Ending { receipt, left, unread } = ending.into();
        let is_it = |known: &&mut Delivery| known.id == id && known.stage != DeliveryStage::Done;
        if let Some(delivery) = self.table().deliveries.iter_mut().find(is_it) {
            delivery.left = left;
            delivery.unread = unread;
        }
        self.finish_where(|delivery| delivery.id == id, &receipt);
    }

    /// Whether a process has texts that its CLI may keep in its own queue.
    pub(crate) fn has_unread(&self, id: &ProcessId) -> bool {
        self.table().deliveries.iter().any(|known| known.to == *id && known.unread)
    }

    /// An agent rests: its CLI has read what was in its queue, or has given it back into its prompt, which
    /// holds `stands`.
    pub(crate) fn settle_unread(&self, id: &ProcessId, stands: Option<&str>) {
        self.change_unread(id, |known| {
            let gives_back = |stands: &&str| has_words_of(stands, known.known_text());
            match stands.filter(gives_back) {
                Some(stands) => {
                    known.receipt = Receipt::new(ReceiptState::Stalled, GIVEN_BACK);
                    known.left = Some(stands.to_owned());
                }
                None => known.text.clear(),
            }
        });
    }

    /// The run of a process ended, and with it its CLI's own queue.
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

    /// Another delivery has the same text: this one is not watched any more.
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

    /// The process is gone: what waited for it will not be written.
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
        let mut surplus = done.saturating_sub(KEPT);
        table.deliveries.retain(|delivery| {
            let goes = surplus > 0 && delivery.stage == DeliveryStage::Done;
            surplus -= usize::from(goes);
            !goes
        });
        self.note(&table);
        drop(table);
        self.notify();
    }

    /// Writes down what has happened: a full disk cannot undo it. A server that dies before the next
    /// write calls it stalled.
    fn note(&self, table: &Table) {
        if let Err(error) = state::write_reserved(&self.file, VERSION, table) {
            tracing::error!(%error, "the end of a delivery is not written down yet");
        }
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

/// What was begun and stalled keeps its text: it may yet be seen that it was taken. So does what may be
/// unread: it may be given back.
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

/// Forgets the texts of all that stalled but the last ones, and of those that a text was delivered
/// after: what was typed in before it would have been seen by then.
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
            if watched > WATCHED || is_followed {
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
        Deliveries::load(&state).unwrap()
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
    fn what_waits_survives_and_what_was_begun_is_told_apart() {
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

    /// What a table says of a text.
    fn states(deliveries: &Deliveries) -> Vec<(ReceiptState, bool)> {
        let all = deliveries.all();
        all.iter().map(|known| (known.receipt.state, known.is_watched())).collect()
    }

    #[test]
    fn what_stalled_is_corrected_also_by_the_next_server() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let [one, two] = ["one", "two"].map(|said| before.enqueue(text(1, None, said)).unwrap());
        before.begin(one, false).unwrap();
        before.finish(one, Receipt::new(ReceiptState::Stalled, "nothing shows"));
        before.give_up(&ProcessId::new(2), "another process");
        let after = deliveries(&dir);
        assert_eq!(after.watched(&ProcessId::new(1))[0].text, "one");
        after.correct(one, "a hook told it");
        assert_eq!(states(&after)[0], (ReceiptState::Delivered, false));
        after.correct(two, "it waits");
        assert_eq!(states(&after)[1].0, ReceiptState::Queued, "what waits is not corrected");
    }

    #[test]
    fn what_stalled_is_watched_until_a_later_text_is_delivered() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        for n in 0..=WATCHED {
            let id = deliveries.enqueue(text(1, None, &n.to_string())).unwrap();
            deliveries.begin(id, false).unwrap();
            deliveries.finish(id, Receipt::new(ReceiptState::Stalled, "nothing shows"));
        }
        assert_eq!(deliveries.watched(&ProcessId::new(1)).len(), WATCHED);
        let last = deliveries.enqueue(text(1, None, "last")).unwrap();
        deliveries.finish(last, Receipt::new(ReceiptState::Delivered, "seen"));
        assert_eq!(deliveries.watched(&ProcessId::new(1)), []);
        assert_eq!(deliveries.waiting(), []);
    }

    /// Finishes two texts that were accepted during a turn; returns the deliveries as the next server has them.
    fn unread(dir: &tempfile::TempDir) -> (Deliveries, [u64; 2]) {
        let deliveries = deliveries(dir);
        let ids = ["[lead] look at the tests", "[lead] and then at the docs"].map(|said| {
            let id = deliveries.enqueue(text(1, None, said)).unwrap();
            deliveries.begin(id, false).unwrap();
            let receipt = Receipt::new(ReceiptState::Delivered, "its prompt was empty");
            deliveries.finish(id, Ending { unread: true, ..receipt.into() });
            id
        });
        (self::deliveries(dir), ids)
    }

    #[test]
    fn what_a_cli_may_keep_in_its_own_queue_is_read_when_the_agent_rests() {
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
    fn what_a_cli_may_keep_in_its_own_queue_is_stalled_when_its_run_ends() {
        let dir = tempfile::tempdir().unwrap();
        let (deliveries, [one, _]) = unread(&dir);
        deliveries.lose_unread(&ProcessId::new(2));
        assert_eq!(states(&deliveries), [(ReceiptState::Delivered, false); 2]);
        deliveries.lose_unread(&ProcessId::new(1));
        assert_eq!(states(&deliveries), [(ReceiptState::Stalled, false); 2]);
        assert_eq!(deliveries.get(one).unwrap().receipt.evidence, QUEUE_ENDED);
    }

    #[test]
    fn what_a_cli_puts_back_into_its_prompt_is_stalled_and_watched() {
        let dir = tempfile::tempdir().unwrap();
        let (deliveries, _) = unread(&dir);
        let stands = "[lead] look at the\n tests\n[lead] and then at the docs";
        deliveries.settle_unread(&ProcessId::new(1), Some(stands));
        assert_eq!(states(&deliveries), [(ReceiptState::Stalled, true); 2]);
        let after = self::deliveries(&dir);
        assert_eq!(after.watched(&ProcessId::new(1))[1].left.as_deref(), Some(stands));
    }

    #[test]
    fn what_waits_for_a_person_is_not_being_put_in() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        let id = deliveries.enqueue(text(1, None, "one")).unwrap();
        assert!(!deliveries.is_submitting());
        deliveries.begin(id, false).unwrap();
        assert!(deliveries.is_submitting());
        deliveries.explain(id, Pending::Person, "it stands in its prompt, not entered");
        assert!(!deliveries.is_submitting(), "its sender and an upgrade need not wait");
        deliveries.explain(id, Pending::Typing, SUBMITTING);
        assert!(deliveries.is_submitting());
    }

    #[test]
    fn the_next_server_knows_whether_a_text_was_said_before_it_was_begun() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let ids = ["one", "two"].map(|said| before.enqueue(text(1, None, said)).unwrap());
        for (id, is_said) in ids.into_iter().zip([true, false]) {
            before.begin(id, is_said).unwrap();
            assert!(before.get(id).unwrap().begun_at.is_some());
        }
        before.put_back(ids[1], "a dialog took it");
        before.begin(ids[1], true).unwrap();
        let begun = deliveries(&dir).begun();
        let known: Vec<_> = begun.iter().map(|begun| (begun.said_before, begun.begun_at)).collect();
        assert_eq!(known, [(Some(true), None), (Some(false), None)]);
    }

    #[test]
    fn what_is_put_back_waits_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let before = deliveries(&dir);
        let [one, _] = ["one", "two"].map(|said| before.enqueue(text(1, None, said)).unwrap());
        before.begin(one, false).unwrap();
        before.put_back(one, "a dialog took it");
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
    fn no_more_than_so_many_wait_and_no_more_than_so_many_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let deliveries = deliveries(&dir);
        for n in 0..WAITING + KEPT {
            let id = deliveries.enqueue(text(1, None, &n.to_string())).unwrap();
            if n >= WAITING {
                assert!(id > 0, "{n}");
            }
            deliveries.finish(id, Receipt::new(ReceiptState::Delivered, "seen"));
        }
        assert_eq!(deliveries.all().len(), KEPT);
        for n in 0..WAITING {
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
