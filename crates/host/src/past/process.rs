//! A process through time: its runs, when its output was printed, and its screen at a moment.

use std::sync::Arc;

use patterm_events::{EventLog, MOST_EVENTS};
use patterm_keeper::log::{TimeMark, offset_after};
use patterm_panes::Offset;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Process, RunNumber};
use patterm_wire::base64;
use patterm_wire::events::{EventQuery, parse_time};
use patterm_wire::past::PastState;

/// The start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunStart {
    number: RunNumber,
    /// Where its output begins.
    begin: Offset,
    /// When it was started; `None` if that is not known.
    at_ms: Option<u64>,
}

/// A process with output.
#[derive(Debug)]
pub(super) struct PastProcess {
    pub(super) id: String,
    pub(super) run: Arc<ProcessRun>,
    /// Its runs, the first one first.
    starts: Vec<RunStart>,
    /// When its output was printed.
    pub(super) marks: Vec<TimeMark>,
}

impl PastProcess {
    pub(super) fn new(process: &Process, run: Arc<ProcessRun>, events: &EventLog) -> Self {
        let mut starts = earlier_starts(process, events);
        let (begin, at_ms) = (process.run_offset, process.started_at);
        starts.retain(|start| start.number < process.runs);
        starts.push(RunStart { number: process.runs, begin, at_ms });
        let marks = run.log.times(0, u64::MAX);
        Self { id: process.id.to_string(), run, starts, marks }
    }

    /// The first moment of which anything is known.
    pub(super) fn first_ms(&self) -> Option<u64> {
        let started = self.starts.first().and_then(|start| start.at_ms);
        let printed = self.marks.first().map(|mark| mark.wall_ms);
        match self.is_cut() {
            true => printed,
            false => started.into_iter().chain(printed).min(),
        }
    }

    /// Whether the beginning of its output was dropped.
    fn is_cut(&self) -> bool {
        let begin = self.starts.first().map_or(Offset::START, |start| start.begin);
        self.run.log.start() > begin.get()
    }

    /// The last moment at which it printed something, at or before a time.
    pub(super) fn printed_until(&self, at_ms: u64) -> Option<u64> {
        let after = self.marks.partition_point(|mark| mark.wall_ms <= at_ms);
        Some(self.marks[after.checked_sub(1)?].wall_ms)
    }

    /// The first moment after a time at which it printed something.
    pub(super) fn printed_after(&self, at_ms: u64) -> Option<u64> {
        let after = self.marks.partition_point(|mark| mark.wall_ms <= at_ms);
        self.marks.get(after).map(|mark| mark.wall_ms)
    }

    /// The end of the output that was printed at or before a time.
    pub(super) fn offset_at(&self, at_ms: u64) -> u64 {
        offset_after(&self.marks, at_ms).unwrap_or_else(|| self.run.log.end())
    }

    /// What it showed at a time, or at a place in its output that was printed then.
    pub(super) fn state(&self, at_ms: u64, place: Option<u64>) -> PastState {
        let place = place.filter(|place| *place <= self.run.log.end());
        let offset = place.unwrap_or_else(|| self.offset_at(at_ms));
        let Some((start, end)) = self.run_at(at_ms, offset) else {
            return match self.is_cut() {
                true => self.dropped(),
                false => PastState::NotStarted { started_ms: self.first_ms() },
            };
        };
        let at = Offset::new(offset.clamp(start.begin.get(), end));
        match self.run.screen_of_run(start.number, start.begin, at) {
            Some(screen) => {
                let (size, bytes) = (screen.size(), base64::encode(&screen.snapshot()));
                PastState::Shown { rows: size.rows, columns: size.columns, offset: at.get(), bytes }
            }
            None => self.dropped(),
        }
    }

    fn dropped(&self) -> PastState {
        PastState::Dropped { first_ms: self.marks.first().map(|mark| mark.wall_ms) }
    }

    /// The run that was the last one at a time, and where its output ends.
    fn run_at(&self, at_ms: u64, offset: u64) -> Option<(RunStart, u64)> {
        // Its output may be read in the same millisecond in which the start is recorded.
        let has_begun = |start: &RunStart| {
            let is_time = start.at_ms.is_none_or(|started| started <= at_ms);
            is_time || offset > start.begin.get()
        };
        let at = self.starts.iter().rposition(has_begun)?;
        let is_known = self.starts[at].at_ms.is_some() || offset > self.starts[at].begin.get();
        let end = self.starts.get(at + 1).map_or(u64::MAX, |next| next.begin.get());
        is_known.then_some((self.starts[at], end))
    }
}

/// The runs before the current one, of which the events tell.
fn earlier_starts(process: &Process, events: &EventLog) -> Vec<RunStart> {
    let query = EventQuery {
        types: vec!["process.started".to_owned()],
        process_id: Some(process.id.to_string()),
        limit: Some(MOST_EVENTS),
        ..EventQuery::default()
    };
    // Without them, the current run is known.
    let started = events.read(&query).map(|page| page.events).unwrap_or_default();
    let mut starts: Vec<RunStart> = Vec::new();
    for event in started {
        let (Some(number), Some(begin)) = (event.run, event.offset) else { continue };
        let number = RunNumber::new(number);
        let is_next = starts.last().is_none_or(|last| last.number < number);
        if is_next {
            let at_ms = parse_time(&event.time);
            starts.push(RunStart { number, begin: Offset::new(begin), at_ms });
        }
    }
    starts
}
