//! The lines of several processes, merged in the order of their times.

mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Process, ProcessId};
use patterm_wire::logs::LogLine;
pub(crate) use source::{Begin, LineSource};

/// Bytes of text in one part, apart from its last line.
const PART_BYTES: usize = 128 << 10;

/// Lines in one part.
const PART_LINES: usize = 4096;

/// What each line costs besides its text.
const LINE_COST: usize = 64;

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// The processes; all if there are none.
    pub(crate) processes: Vec<ProcessId>,
    /// Only the last lines of each.
    pub(crate) tail: Option<u64>,
    /// Only lines since this time.
    pub(crate) since_ms: Option<u64>,
    /// Where to continue.
    pub(crate) continue_at: BTreeMap<String, u64>,
    /// Also what is printed later, and by new processes.
    pub(crate) follow: bool,
}

impl Wanted {
    fn includes(&self, id: &ProcessId) -> bool {
        self.processes.is_empty() || self.processes.contains(id)
    }
}

/// One process of those that are merged.
#[derive(Debug)]
struct Merged {
    id: ProcessId,
    name: String,
    run: Arc<ProcessRun>,
    source: LineSource,
    /// The run was over when its log was last read.
    was_over: bool,
}

impl Merged {
    fn is_over(&self) -> bool {
        self.run.watch().borrow().is_over()
    }

    fn fill(&mut self) {
        // Before reading, so that nothing printed at the end is missed.
        self.was_over = self.is_over();
        self.source.fill(self.was_over);
    }
}

/// The lines of several processes.
#[derive(Debug)]
pub(crate) struct MergedLines {
    wanted: Wanted,
    /// In the order of the process table.
    processes: Vec<Merged>,
    /// The processes that exist now were added; those that come later are new, and are read from the beginning.
    begun: bool,
    /// A process is being started, and its run is not known yet.
    starting: bool,
}

impl MergedLines {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, processes: Vec::new(), begun: false, starting: false }
    }

    /// Adds new processes and runs, and removes closed processes.
    pub(crate) fn update(&mut self, panes: &Panes) {
        let all = panes.processes.all();
        self.processes.retain(|merged| all.iter().any(|process| process.id == merged.id));
        self.starting = false;
        for process in &all {
            let is_late = self.begun && !self.wanted.follow;
            if is_late || !self.wanted.includes(&process.id) {
                continue;
            }
            let run = panes.run_of(&process.id);
            let is_known = run.as_ref().is_some_and(|run| run.number == process.runs);
            self.starting |= process.status.is_alive() && !is_known;
            if let Some(run) = run {
                self.update_process(process, &run);
            }
        }
        self.begun = true;
    }

    fn update_process(&mut self, process: &Process, run: &Arc<ProcessRun>) {
        let run_offset = process.run_offset.get();
        let known = self.processes.iter_mut().find(|merged| merged.id == process.id);
        let Some(merged) = known else {
            let mut source = self.begin(&process.id, run);
            source.continue_with(run.log.clone(), run_offset);
            let (id, name) = (process.id.clone(), process.name.clone());
            self.processes.push(Merged { id, name, run: run.clone(), source, was_over: false });
            return;
        };
        merged.name.clone_from(&process.name);
        if merged.run.number != run.number {
            merged.run = run.clone();
            merged.source.continue_with(run.log.clone(), run_offset);
        }
    }

    fn begin(&self, id: &ProcessId, run: &ProcessRun) -> LineSource {
        let Wanted { tail, since_ms, continue_at, .. } = &self.wanted;
        let begin = match continue_at.get(id.as_str()) {
            Some(offset) => Begin::At(*offset),
            None if self.begun => Begin::Last { lines: None, since_ms: None },
            None => Begin::Last { lines: *tail, since_ms: *since_ms },
        };
        let is_over = run.watch().borrow().is_over();
        let mut source = LineSource::new(run.log.clone(), begin, is_over);
        if !self.wanted.follow {
            source.stop_at_end();
        }
        source
    }

    /// The next lines, and whether there may be more now.
    pub(crate) fn next_part(&mut self) -> (Vec<LogLine>, bool) {
        let (mut part, mut bytes) = (Vec::new(), 0);
        self.processes.iter_mut().for_each(Merged::fill);
        while bytes < PART_BYTES && part.len() < PART_LINES {
            let ready = self.processes.iter_mut();
            let ready = ready.filter_map(|merged| Some((merged.source.next_time()?, merged)));
            let Some((_, first)) = ready.min_by_key(|(time, _)| *time) else {
                return (part, false);
            };
            let Some(line) = first.source.pop() else { return (part, false) };
            // What the others print meanwhile is in the next part.
            first.fill();
            for (at, text) in line.texts.into_iter().enumerate() {
                bytes += text.len() + LINE_COST;
                part.push(LogLine {
                    process_id: first.id.to_string(),
                    name: first.name.clone(),
                    time_ms: line.time_ms,
                    text,
                    next_offset: line.end,
                    lost: if at == 0 { line.lost } else { 0 },
                });
            }
        }
        (part, true)
    }

    /// The offset of the next line of each process.
    pub(crate) fn offsets(&self) -> BTreeMap<String, u64> {
        let offset = |merged: &Merged| (merged.id.to_string(), merged.source.next_offset());
        self.processes.iter().map(offset).collect()
    }

    /// Whether processes were named, and none of them prints any more.
    pub(crate) fn is_over(&self) -> bool {
        let is_all = self.wanted.processes.is_empty();
        !is_all && !self.starting && self.processes.iter().all(|merged| merged.was_over)
    }

    /// Whether a new run has to be looked for again.
    pub(crate) fn is_starting(&self) -> bool {
        self.starting
    }

    /// The runs, each with the offset up to which it was read, and whether it was over then.
    pub(crate) fn runs(&self) -> Vec<(Arc<ProcessRun>, u64, bool)> {
        let run = |merged: &Merged| (merged.run.clone(), merged.source.read(), merged.was_over);
        self.processes.iter().map(run).collect()
    }
}
