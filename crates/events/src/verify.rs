//! Checks the whole log, and distinguishes what was dropped or lost from what is damaged.

use patterm_wire::events::{EventRecord, LogBreak, LogVerdict};

use crate::checkpoint::Checkpoint;
use crate::error::EventError;
use crate::line::StoredEvent;
use crate::merge::{Merged, Piece};
use crate::newest::Newest;
use crate::segment::Segment;

/// The log at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The files of each class.
    pub(crate) files: Vec<Vec<Segment>>,
    /// By class: the last event that was dropped.
    pub(crate) dropped_through: Vec<u64>,
    /// What is known about lost events.
    pub(crate) checkpoint: Checkpoint,
    /// The number of the last event.
    pub(crate) last: u64,
    /// What was written last.
    pub(crate) newest: Newest,
}

struct Check<'a> {
    snapshot: &'a Snapshot,
    verdict: LogVerdict,
    /// By class: the number of the last event.
    class_last: Vec<u64>,
    before: Option<StoredEvent>,
    /// The number of the last event.
    last_seq: u64,
}

/// Reads all events. Within a class, only the oldest may be missing, up to a recorded number; each other number belongs
/// to an event, or is recorded as lost.
pub(crate) fn verify(snapshot: &Snapshot) -> Result<LogVerdict, EventError> {
    let mut check = Check {
        class_last: snapshot.dropped_through.clone(),
        snapshot,
        verdict: LogVerdict::default(),
        before: None,
        last_seq: 0,
    };
    let mut events = Merged::new(snapshot.files.clone(), 0)?;
    while let Some((class, piece)) = events.next()? {
        match piece {
            Piece::Event(event) => check.event(class, event),
            Piece::Damaged(file, at) => {
                let seq = check.class_last[class] + 1;
                check.broken(seq, format!("an event is damaged: {file}, byte {at}"));
            }
        }
    }
    check.end();
    Ok(check.verdict)
}

impl Check<'_> {
    fn event(&mut self, class: usize, event: StoredEvent) {
        if event.class_prev != self.class_last[class] {
            let seq = event.class_prev.min(event.seq);
            self.broken(seq, "an event is missing that was not dropped for space".to_owned());
        }
        self.class_last[class] = event.seq;
        self.gap(event.seq);
        if let Some(before) = self.before.take().filter(|before| before.seq + 1 == event.seq) {
            let record = serde_json::from_str::<EventRecord>(&event.json);
            if record.map_or(true, |record| record.prev != before.hash) {
                let what = format!("its `prev` is not the hash of event {}", before.seq);
                self.broken(event.seq, what);
            }
        }
        self.verdict.events += 1;
        self.verdict.first.get_or_insert(event.seq);
        self.verdict.last = Some(event.seq);
        self.last_seq = event.seq;
        self.before = Some(event);
    }

    /// Every number between the last event and this one was dropped or lost.
    fn gap(&mut self, next: u64) {
        let dropped_through = self.snapshot.dropped_through.iter().copied().max().unwrap_or(0);
        let from = self.last_seq + 1;
        for seq in from..next {
            if self.snapshot.checkpoint.is_lost(seq) {
                self.verdict.lost += 1;
            } else if seq > dropped_through {
                self.verdict.missing += 1;
                self.broken(seq, "an event is missing".to_owned());
            } else {
                self.verdict.dropped += 1;
            }
        }
    }

    /// The log ends with the events that were written last.
    fn end(&mut self) {
        let Snapshot { newest, checkpoint, last, .. } = self.snapshot;
        self.gap(last + 1);
        for (class, expected) in newest.class_last.iter().enumerate() {
            if *expected > self.class_last[class] && !checkpoint.is_lost(*expected) {
                let what = format!("the newest events are missing: {expected} was recorded");
                self.broken(self.class_last[class] + 1, what);
            }
        }
        let before = self.before.as_ref().filter(|before| before.seq == newest.seq);
        if before.is_some_and(|before| before.hash != newest.hash) {
            self.broken(newest.seq, "it is not the event that was recorded".to_owned());
        }
    }

    fn broken(&mut self, seq: u64, what: String) {
        let earlier = self.verdict.first_break.as_ref().is_some_and(|found| found.seq <= seq);
        if !earlier {
            self.verdict.first_break = Some(LogBreak { seq, what });
        }
    }
}
