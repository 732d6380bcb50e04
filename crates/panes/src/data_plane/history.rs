//! One byte budget for the history of all screens: when it is exceeded, the oldest rows are dropped, whichever pane
//! they belong to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::run::ProcessRun;
use crate::process::{ProcessId, RunNumber};

/// Bytes dropped at once: this drops one block of a history, so that the next oldest may be another pane's.
const STEP_BYTES: usize = 1;

/// The stamp of the first turn of the parser. Rows that are rebuilt after a start of the server have lower ones: the
/// farther from the end, the lower.
pub(super) const FIRST_STAMP: u64 = 1 << 32;

/// The sizes of all histories.
#[derive(Debug)]
pub(super) struct Histories {
    budget: usize,
    total: usize,
    runs: HashMap<(ProcessId, RunNumber), History>,
    /// Increases with every turn of the parser: rows with a smaller stamp are older.
    stamp: u64,
}

#[derive(Debug)]
struct History {
    run: Weak<ProcessRun>,
    bytes: usize,
    /// The stamp of its oldest rows; `None` if it has no history.
    oldest: Option<u64>,
}

impl Histories {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, total: 0, runs: HashMap::new(), stamp: FIRST_STAMP }
    }

    /// The stamp for new rows.
    pub(super) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Counts the history of a run again, and drops the oldest rows of all runs while there are too many.
    pub(super) fn count(&mut self, run: &Arc<ProcessRun>) {
        let key = (run.id.clone(), run.number);
        if !self.runs.contains_key(&key) {
            // A new run is the occasion to forget closed ones: even a weak reference keeps their memory.
            self.runs.retain(|_, known| known.run.strong_count() > 0);
            self.total = self.runs.values().map(|known| known.bytes).sum();
            let known = History { run: Arc::downgrade(run), bytes: 0, oldest: None };
            self.runs.insert(key.clone(), known);
        }
        self.measure(&key, run, 0);
        if self.total > self.budget {
            self.runs.retain(|_, known| known.run.strong_count() > 0);
            self.total = self.runs.values().map(|known| known.bytes).sum();
        }
        while self.total > self.budget {
            let oldest = self.runs.iter().filter(|(_, known)| known.oldest.is_some());
            let Some((key, known)) = oldest.min_by_key(|(_, known)| known.oldest) else { return };
            let (key, Some(run)) = (key.clone(), known.run.upgrade()) else { return };
            self.measure(&key, &run, STEP_BYTES);
        }
    }

    /// Drops `bytes` of a history and measures the rest.
    fn measure(&mut self, key: &(ProcessId, RunNumber), run: &ProcessRun, bytes: usize) {
        let mut screen = run.screen_to_feed();
        let history = screen.history_mut();
        history.drop_oldest(bytes);
        if let Some(known) = self.runs.get_mut(key) {
            self.total = self.total - known.bytes + history.bytes();
            known.bytes = history.bytes();
            known.oldest = history.oldest_stamp();
        }
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::{Screen, Size};

    use super::*;
    use crate::offset::Offset;

    fn run_of(dir: &tempfile::TempDir, number: u64) -> Arc<ProcessRun> {
        let id = ProcessId::new(number);
        let log = Log::open(&dir.path().join(id.as_str()), 1 << 20).unwrap();
        let (screen, first) = (Screen::new(Size::new(24, 80)), RunNumber::FIRST);
        Arc::new(ProcessRun::new(id, first, None, log.reader(), screen, Offset::START))
    }

    fn print(histories: &mut Histories, run: &Arc<ProcessRun>, lines: usize) {
        run.screen().history_mut().set_stamp(histories.next_stamp());
        for n in 0..lines {
            run.screen().feed(format!("line {n} of some length or other\r\n").as_bytes());
        }
        histories.count(run);
    }

    #[test]
    fn the_oldest_rows_are_dropped_first_and_the_budget_holds_for_all_panes() {
        const BUDGET: usize = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (run_of(&dir, 1), run_of(&dir, 2));
        let mut histories = Histories::new(BUDGET);
        print(&mut histories, &old, 5_000);
        print(&mut histories, &new, 5_000);
        let bytes = |run: &ProcessRun| run.screen().history().bytes();
        let first_line = |run: &ProcessRun| run.screen().history().first_line();
        assert_eq!((first_line(&old), first_line(&new)), (0, 0));
        while first_line(&new) == 0 {
            print(&mut histories, &new, 1_000);
            assert!(bytes(&old) + bytes(&new) <= BUDGET);
        }
        assert!(
            run_is_empty(&old),
            "all rows of the old one were dropped before any of the new one"
        );
        // The history of a closed pane no longer counts.
        drop(new);
        print(&mut histories, &old, 5_000);
        assert_eq!(histories.total, bytes(&old) + histories.gone());
    }

    #[test]
    fn the_budget_of_all_histories_is_kept_and_used_within_a_percent() {
        const BUDGET: usize = 4 << 20;
        let dir = tempfile::tempdir().unwrap();
        let panes: Vec<_> = (1..=50).map(|number| run_of(&dir, number)).collect();
        let mut histories = Histories::new(BUDGET);
        let held = || panes.iter().map(|pane| pane.screen().history().bytes()).sum::<usize>();
        let mut full = false;
        for round in 0..40 {
            for pane in &panes {
                print(&mut histories, pane, 100);
                let held = held();
                assert_eq!(held, histories.total);
                assert!(held <= BUDGET, "{held} in round {round}");
                full |= held > BUDGET - BUDGET / 100;
                assert!(!full || held > BUDGET - BUDGET / 100, "{held} in round {round}");
            }
        }
        assert!(full);
    }

    fn run_is_empty(run: &ProcessRun) -> bool {
        run.screen().history().is_empty()
    }

    impl Histories {
        /// Bytes that are still counted for closed runs; they are found when the budget is exceeded.
        fn gone(&self) -> usize {
            let gone = self.runs.values().filter(|known| known.run.strong_count() == 0);
            gone.map(|known| known.bytes).sum()
        }
    }
}
