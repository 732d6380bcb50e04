//! The log as a value with files: appends events, drops the oldest, and continues after a crash.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use patterm_store::clock::Clock;
use patterm_store::private::PrivateDir;
use patterm_store::state;
use patterm_wire::events::{Actor, EventClass, EventRecord, Fact, format_time, parse_time};
use serde_json::{Map, Value};

use crate::checkpoint::Checkpoint;
use crate::class_log::{ClassLog, FoundEnd};
use crate::digest::Kept;
use crate::error::EventError;
use crate::known_state::KnownState;
use crate::line::{NO_HASH, StoredEvent, hash_of};
use crate::merge::{Merged, Piece};
use crate::new_event::{About, NewEvent};
use crate::newest::Newest;
use crate::segment::Segment;
use crate::tail::Tail;
use crate::timeline::Timeline;

/// The size of a log by default: weeks of a busy team, and as much as one process's output.
pub const DEFAULT_BYTES: u64 = 64 << 20;

/// The shares of the classes, in eighths: calls are the most frequent and matter least.
const SHARES: [(EventClass, u64); 3] =
    [(EventClass::Calls, 2), (EventClass::States, 3), (EventClass::People, 3)];

/// Events that wait in memory while the disk has no room: a minute of a busy project, at most a few megabytes.
const MOST_WAITING: usize = 4_096;

/// Events that may be appended before they are synced. After a power loss this many numbers are skipped, so that a
/// number that somebody has seen is not used again.
pub(crate) const MOST_UNSYNCED: u64 = 1_000;

/// Events after a checkpoint, which a server reads in a few milliseconds when it starts.
const CHECKPOINT_EVENTS: u64 = 5_000;

/// A log.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    clock: Clock,
    timeline: Timeline,
    classes: Vec<ClassLog>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) known_state: KnownState,
    pub(crate) tail: Tail,
    /// The number and hash of the last event.
    last: (u64, String),
    /// What is known about the last event that was written, and where that is kept.
    newest: Newest,
    newest_file: Option<File>,
    /// The number of the last event that is in a file.
    pub(crate) written: u64,
    unsynced: u64,
    /// Events that have a number, but no room on the disk yet.
    waiting: VecDeque<(NewEvent, StoredEvent)>,
    /// Events that were refused since the disk became full.
    refused: u64,
    /// Why the last event could not be written.
    pub(crate) trouble: Option<String>,
}

impl Store {
    /// Opens the log in a folder, which is created if necessary. Events that an earlier server did not write completely
    /// are cut.
    pub(crate) fn open(folder: &Path, bytes: u64, clock: Clock) -> Result<Self, EventError> {
        PrivateDir::make(folder).map_err(state::refused("make", folder))?;
        let (mut store, ends, power_loss) = Self::read(folder, bytes, clock, true)?;
        store.continue_after(&ends, power_loss)?;
        Ok(store)
    }

    /// Opens a log without changing anything. Nothing may be appended.
    pub(crate) fn open_to_read(folder: &Path, clock: Clock) -> Result<Self, EventError> {
        let (mut store, ends, power_loss) = Self::read(folder, DEFAULT_BYTES, clock, false)?;
        let found = newest(&ends).map_or(0, |event| event.seq);
        store.written = found.max(store.checkpoint.through).max(store.newest.seq);
        let mut lost = store.retell()?;
        lost.push((found + 1, store.written));
        // The next server records what a power loss has taken.
        for range in lost.into_iter().filter(|(first, last)| power_loss && first <= last) {
            store.checkpoint.note_lost(range);
        }
        Ok(store)
    }

    /// Reads what is there: the log, the end of each class, and whether the machine stopped after it was written.
    fn read(
        folder: &Path,
        bytes: u64,
        clock: Clock,
        can_write: bool,
    ) -> Result<(Self, Vec<FoundEnd>, bool), EventError> {
        let dir = PrivateDir::open(folder).map_err(state::refused("open", folder))?;
        let checkpoint = Checkpoint::read(folder)?;
        let boot = clock.boot();
        let after_power_loss = !checkpoint.closed
            && !checkpoint.boot.is_empty()
            && !boot.is_empty()
            && checkpoint.boot != *boot;
        let names = dir.names().map_err(state::failed("read", folder))?;
        let mut classes = Vec::new();
        let mut ends = Vec::new();
        for (class, share) in SHARES {
            let segments = segments_of(folder, class, &names);
            let dropped = checkpoint.dropped_through(class);
            let budget = bytes / 8 * share;
            let opened = ClassLog::open(
                class,
                folder.to_owned(),
                segments,
                budget,
                dropped,
                after_power_loss,
                can_write,
            );
            let (class, end) = opened.map_err(state::failed("open", folder))?;
            classes.push(class);
            ends.push(end);
        }
        let newest_file = can_write.then(|| Newest::open(folder)).transpose();
        let newest_file = newest_file.unwrap_or_else(|error| {
            tracing::warn!(%error, "it will not be noticed if the newest events disappear");
            None
        });
        let store = Self {
            newest: Newest::read(&dir, SHARES.len()).unwrap_or_else(|| Newest::none(SHARES.len())),
            newest_file,
            folder: folder.to_owned(),
            clock,
            timeline: Timeline::default(),
            classes,
            known_state: checkpoint.known_state.clone(),
            checkpoint,
            tail: Tail::default(),
            last: (0, NO_HASH.to_owned()),
            written: 0,
            unsynced: 0,
            waiting: VecDeque::new(),
            refused: 0,
            trouble: None,
        };
        Ok((store, ends, after_power_loss))
    }

    /// Continues after the events that are there.
    fn continue_after(&mut self, ends: &[FoundEnd], power_loss: bool) -> Result<(), EventError> {
        let newest = newest(ends);
        let damaged: u64 = ends.iter().map(|end| end.scan.damaged_at_end).sum();
        let found = newest.map_or(0, |event| event.seq);
        let present = (found + damaged).max(self.checkpoint.through);
        let mut last = present.max(self.newest.seq);
        let mut lost = self.retell()?;
        // Without a power loss nothing can be lost: then a missing event is damage, which `verify` reports.
        lost.retain(|(first, _)| power_loss && !self.checkpoint.is_lost(*first));
        if power_loss {
            lost.push((present + 1, last + MOST_UNSYNCED));
            last += MOST_UNSYNCED;
        }
        let record = newest.and_then(|event| serde_json::from_str::<EventRecord>(&event.json).ok());
        self.timeline =
            Timeline::after(record.and_then(|event| parse_time(&event.time)).unwrap_or(0));
        self.last = (last, newest.map_or_else(|| NO_HASH.to_owned(), |event| event.hash.clone()));
        self.written = last;
        for range in &lost {
            self.checkpoint.note_lost(*range);
        }
        if !power_loss {
            self.expect_newest();
        }
        (self.checkpoint.boot, self.checkpoint.closed) = (self.clock.boot().to_string(), false);
        self.save_checkpoint()?;
        let torn_bytes = ends.iter().map(|end| end.torn_bytes).sum();
        if torn_bytes > 0 || !lost.is_empty() {
            let fact = Fact::SystemRecovered { torn_bytes, lost, not_stored: None };
            self.append(NewEvent {
                fact,
                about: About::project(),
                actor: Actor::System,
                recovered: false,
            })?;
        }
        Ok(())
    }

    /// Events that were written and are gone leave a gap in their class, which `verify` reports.
    fn expect_newest(&mut self) {
        for (class, last) in self.classes.iter_mut().zip(&self.newest.class_last) {
            if *last > class.last && !self.checkpoint.is_lost(*last) {
                tracing::error!(
                    class = class.class().name(),
                    last,
                    "the newest events are missing"
                );
                class.last = *last;
            }
        }
    }

    /// Applies the events after the checkpoint. Returns the ranges of numbers that are missing among them.
    fn retell(&mut self) -> Result<Vec<(u64, u64)>, EventError> {
        let mut expected = self.checkpoint.through + 1;
        let mut missing = Vec::new();
        let mut events = Merged::new(self.files(), expected)?;
        while let Some((_, piece)) = events.next()? {
            let Piece::Event(event) = piece else { continue };
            if event.seq > expected {
                missing.push((expected, event.seq - 1));
            }
            expected = event.seq + 1;
            if let Ok(record) = serde_json::from_str::<EventRecord>(&event.json)
                && let Some(fact) = record.fact()
            {
                let about =
                    About { process_id: record.process_id, run: record.run, offset: record.offset };
                self.known_state.note(&about, &fact);
            }
        }
        Ok(missing)
    }

    /// Appends an event; returns its number. While the disk has no room, it waits in memory.
    pub(crate) fn append(&mut self, new: NewEvent) -> Result<u64, EventError> {
        let settled = self.write_waiting();
        if let Err(source) = settled
            && self.waiting.len() >= MOST_WAITING
        {
            self.refused += 1;
            return Err(EventError::NotStored {
                folder: self.folder.clone(),
                waiting: self.waiting.len(),
                source,
            });
        }
        let (time, changed) = self.timeline.take(self.clock.now());
        if let Some(fact) = changed {
            let about = About::project();
            self.store(NewEvent { fact, about, actor: Actor::System, recovered: false }, time);
        }
        let seq = self.store(new, time);
        if let Err(error) = self.write_waiting() {
            tracing::warn!(%error, seq, "an event waits until it can be written");
        }
        Ok(seq)
    }

    /// Gives an event its number and hash.
    fn store(&mut self, new: NewEvent, time: u64) -> u64 {
        let seq = self.last.0 + 1;
        let event = new.event(seq, time, &self.last.1);
        // Strings and numbers can always be serialized.
        let json = serde_json::to_string(&event).unwrap_or_default();
        let hash = hash_of(&json);
        self.last = (seq, hash.clone());
        self.waiting.push_back((new, StoredEvent { seq, hash, class_prev: 0, json }));
        seq
    }

    /// Writes the events that wait.
    pub(crate) fn write_waiting(&mut self) -> io::Result<()> {
        while let Some((new, event)) = self.waiting.front() {
            let class = new.fact.class();
            let Some(log) = self.classes.iter_mut().find(|log| log.class() == class) else { break };
            if let Err(error) = log.append(event.seq, &event.hash, &event.json) {
                self.trouble = Some(error.to_string());
                return Err(error);
            }
            let Some((new, event)) = self.waiting.pop_front() else { break };
            self.note_written(&new, event);
        }
        self.trouble = None;
        if self.refused > 0 {
            let not_stored = Some(std::mem::take(&mut self.refused));
            tracing::warn!(not_stored, "the log of events has room again");
            let fact = Fact::SystemRecovered { torn_bytes: 0, lost: Vec::new(), not_stored };
            let about = About::project();
            let (time, _) = self.timeline.take(self.clock.now());
            self.store(NewEvent { fact, about, actor: Actor::System, recovered: false }, time);
            return self.write_waiting();
        }
        Ok(())
    }

    fn note_written(&mut self, new: &NewEvent, event: StoredEvent) {
        self.known_state.note(&new.about, &new.fact);
        self.written = event.seq;
        (self.newest.seq, self.newest.hash) = (event.seq, event.hash.clone());
        self.newest.class_last = self.classes.iter().map(|class| class.last).collect();
        if let Some(Err(error)) = self.newest_file.as_ref().map(|file| self.newest.write(file)) {
            tracing::debug!(%error, "cannot write down which event is the newest");
        }
        self.unsynced += 1;
        self.tail.push(event);
        if let Err(error) = self.drop_excess() {
            tracing::error!(%error, "cannot drop old events");
        }
    }

    /// Drops the oldest events of every class that is too large.
    fn drop_excess(&mut self) -> Result<(), EventError> {
        for at in 0..self.classes.len() {
            while let Some(through) = self.classes[at].must_drop() {
                self.checkpoint.note_dropped(self.classes[at].class(), through);
                self.save_checkpoint()?;
                self.classes[at].drop_oldest(through);
            }
        }
        Ok(())
    }

    /// The time that continues those of the events.
    pub(crate) fn now_ms(&self) -> u64 {
        self.timeline.expected(&self.clock.now())
    }

    /// Whether so much is unsynced that it must be synced now.
    pub(crate) fn must_sync(&self) -> bool {
        self.unsynced >= MOST_UNSYNCED
    }

    /// Whether something has to be synced, or waits for room.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.waiting.is_empty()
            || self.refused > 0
            || self.classes.iter().any(|class| class.unsynced)
    }

    /// The files to sync; they count as synced from now on.
    pub(crate) fn take_unsynced(&mut self) -> Vec<Arc<File>> {
        self.unsynced = 0;
        let unsynced = self.classes.iter_mut().filter(|class| class.unsynced);
        let files = unsynced.filter_map(|class| {
            class.unsynced = false;
            class.current()
        });
        files.collect()
    }

    /// The files could not be synced.
    pub(crate) fn note_unsynced(&mut self, error: &io::Error) {
        self.trouble = Some(error.to_string());
        for class in &mut self.classes {
            class.unsynced = true;
        }
    }

    /// Everything is on the disk, and nothing will be appended.
    pub(crate) fn close(&mut self) -> Result<(), EventError> {
        let _ = self.write_waiting();
        self.checkpoint.closed = self.waiting.is_empty();
        self.save_checkpoint()
    }

    /// Writes a checkpoint if there are many events after the last one: the next server has to read them.
    pub(crate) fn keep_checkpoint(&mut self) -> Result<(), EventError> {
        if self.written < self.checkpoint.through + CHECKPOINT_EVENTS {
            return Ok(());
        }
        self.save_checkpoint()
    }

    /// Writes a checkpoint. All events that it covers are on the disk by then.
    fn save_checkpoint(&mut self) -> Result<(), EventError> {
        for file in self.take_unsynced() {
            file.sync_data().map_err(state::failed("sync", &self.folder))?;
        }
        (self.checkpoint.through, self.checkpoint.known_state) =
            (self.written, self.known_state.clone());
        Ok(self.checkpoint.write(&self.folder)?)
    }

    /// The files of each class.
    pub(crate) fn files(&self) -> Vec<Vec<Segment>> {
        self.classes.iter().map(ClassLog::segments).collect()
    }

    /// From where on nothing was dropped.
    pub(crate) fn kept(&self) -> Kept {
        let known_state = self.classes.iter().filter(|class| class.class() != EventClass::Calls);
        let told_from = known_state.map(|class| class.dropped_through + 1).max().unwrap_or(1);
        let all_from = self.classes.iter().map(|class| class.dropped_through + 1).max();
        Kept { told_from, all_from: all_from.unwrap_or(1) }
    }

    /// What was written last. A log of an earlier version knows only what is there.
    pub(crate) fn newest(&self) -> Newest {
        let class_last = self.classes.iter().map(|class| class.last).zip(&self.newest.class_last);
        let class_last = class_last.map(|(found, known)| found.max(*known)).collect();
        Newest { class_last, ..self.newest.clone() }
    }

    /// By class: the last event that was dropped.
    pub(crate) fn dropped_through(&self) -> Vec<u64> {
        self.classes.iter().map(|class| class.dropped_through).collect()
    }
}

impl NewEvent {
    fn event(&self, seq: u64, time: u64, prev: &str) -> EventRecord {
        let data = match serde_json::to_value(&self.fact) {
            Ok(Value::Object(mut fact)) => fact.remove("data").and_then(|data| match data {
                Value::Object(data) => Some(data),
                _ => None,
            }),
            _ => None,
        };
        EventRecord {
            seq,
            time: format_time(time),
            kind: self.fact.name().to_owned(),
            process_id: self.about.process_id.clone(),
            run: self.about.run,
            actor: self.actor.clone(),
            offset: self.about.offset,
            data: data.unwrap_or_else(Map::new),
            recovered: self.recovered,
            prev: prev.to_owned(),
        }
    }
}

/// The newest event at the ends of the classes.
fn newest(ends: &[FoundEnd]) -> Option<&StoredEvent> {
    ends.iter().filter_map(|end| end.scan.last.as_ref()).max_by_key(|event| event.seq)
}

/// The files of a class, oldest first.
fn segments_of(
    folder: &Path,
    class: EventClass,
    names: &[std::ffi::OsString],
) -> VecDeque<Segment> {
    let found = names.iter().filter_map(|name| {
        let name = name.to_str()?;
        let (_, first) = Segment::parse_name(name).filter(|(of, _)| *of == class)?;
        let path = folder.join(name);
        let bytes = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        Some(Segment { path, first, bytes })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|segment| segment.first);
    found.into()
}
