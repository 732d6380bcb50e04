//! One byte budget for what scrolled off all screens: when it is spent the coldest rows go,
//! whoever's they are.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::run::ProcessRun;
use crate::process::ProcessId;

/// Bytes dropped at once: one block of a history, so that the next coldest may be another pane's.
const STEP_BYTES: usize = 1;

/// How much history there is, and whose.
#[derive(Debug)]
pub(super) struct Histories {
    budget: usize,
    total: usize,
    panes: HashMap<(ProcessId, u64), Known>,
    /// Grows with every turn of the parser: rows with a smaller one are older.
    stamp: u64,
}

#[derive(Debug)]
struct Known {
    run: Weak<ProcessRun>,
    bytes: usize,
    /// The stamp of its coldest rows; `None` where it has no history.
    oldest: Option<u64>,
}

impl Histories {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, total: 0, panes: HashMap::new(), stamp: 0 }
    }

    /// What new rows are stamped with.
    pub(super) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Counts a pane's history again, and drops the coldest rows of all while there is too much.
    pub(super) fn count(&mut self, run: &Arc<ProcessRun>) {
        let key = (run.id.clone(), run.number);
        if !self.panes.contains_key(&key) {
            // With each that comes, those that went are forgotten: even a weak hold on one keeps
            // its memory.
            self.panes.retain(|_, known| known.run.strong_count() > 0);
            self.total = self.panes.values().map(|known| known.bytes).sum();
            let known = Known { run: Arc::downgrade(run), bytes: 0, oldest: None };
            self.panes.insert(key.clone(), known);
        }
        self.look(&key, run, 0);
        if self.total > self.budget {
            self.panes.retain(|_, known| known.run.strong_count() > 0);
            self.total = self.panes.values().map(|known| known.bytes).sum();
        }
        while self.total > self.budget {
            let coldest = self.panes.iter().filter(|(_, known)| known.oldest.is_some());
            let Some((key, known)) = coldest.min_by_key(|(_, known)| known.oldest) else { return };
            let (key, Some(run)) = (key.clone(), known.run.upgrade()) else { return };
            self.look(&key, &run, STEP_BYTES);
        }
    }

    /// Drops `bytes` of a pane's history and notes what is left.
    fn look(&mut self, key: &(ProcessId, u64), run: &ProcessRun, bytes: usize) {
        let mut screen = run.screen();
        let history = screen.history_mut();
        history.drop_oldest(bytes);
        if let Some(known) = self.panes.get_mut(key) {
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

    fn run_of(dir: &tempfile::TempDir, number: u64) -> Arc<ProcessRun> {
        let id = ProcessId::new(number);
        let log = Log::open(&dir.path().join(id.as_str()), 1 << 20).unwrap();
        Arc::new(ProcessRun::new(id, 1, None, log.reader(), Screen::new(Size::new(24, 80)), 0))
    }

    fn print(histories: &mut Histories, run: &Arc<ProcessRun>, lines: usize) {
        run.screen().history_mut().set_stamp(histories.next_stamp());
        for n in 0..lines {
            run.screen().feed(format!("line {n} of some length or other\r\n").as_bytes());
        }
        histories.count(run);
    }

    #[test]
    fn the_coldest_rows_go_first_and_the_budget_holds_over_all() {
        const BUDGET: usize = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let (cold, warm) = (run_of(&dir, 1), run_of(&dir, 2));
        let mut histories = Histories::new(BUDGET);
        print(&mut histories, &cold, 5_000);
        print(&mut histories, &warm, 5_000);
        let bytes = |run: &ProcessRun| run.screen().history().bytes();
        let first_line = |run: &ProcessRun| run.screen().history().first_line();
        assert_eq!((first_line(&cold), first_line(&warm)), (0, 0));
        while first_line(&warm) == 0 {
            print(&mut histories, &warm, 1_000);
            assert!(bytes(&cold) + bytes(&warm) <= BUDGET);
        }
        assert!(run_is_empty(&cold), "the cold one gave all before the warm one gave any");
        // What a closed pane had is free again.
        drop(warm);
        print(&mut histories, &cold, 5_000);
        assert_eq!(histories.total, bytes(&cold) + histories.gone());
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
        /// Bytes still counted for panes that are no more: found when the budget is spent.
        fn gone(&self) -> usize {
            let gone = self.panes.values().filter(|known| known.run.strong_count() == 0);
            gone.map(|known| known.bytes).sum()
        }
    }
}
