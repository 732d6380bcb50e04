//! One byte budget for the history of all panes: when it is spent, the oldest rows go, wherever
//! they are.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::live::{Live, lock};

/// What one pane has in its history, as last seen.
#[derive(Debug, Default)]
pub(super) struct Share {
    bytes: AtomicUsize,
    /// When its oldest row was written; `u64::MAX` without any.
    oldest: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// Grows with every turn: what rows are stamped with.
    turn: AtomicU64,
    panes: Mutex<Vec<Weak<Live>>>,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0), turn: AtomicU64::new(0), panes: Mutex::default() }
    }

    /// A pane whose history counts from here on.
    pub(super) fn add(&self, live: &Arc<Live>) {
        lock(&self.panes).push(Arc::downgrade(live));
        self.settle(live);
    }

    /// The stamp for what a pane prints now.
    pub(super) fn stamp(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts what a pane has now; if all have too much, the oldest rows go.
    pub(super) fn settle(&self, live: &Live) {
        let bytes = self.look_at(live);
        if bytes > self.limit {
            self.evict();
        }
    }

    /// Notes a pane's share; returns what all have.
    fn look_at(&self, live: &Live) -> usize {
        let (now, oldest) = {
            let screen = live.screen();
            let history = screen.history();
            (history.bytes(), history.oldest_stamp().unwrap_or(u64::MAX))
        };
        live.share.oldest.store(oldest, Ordering::Relaxed);
        let before = live.share.bytes.swap(now, Ordering::Relaxed);
        let used = self.used.load(Ordering::Relaxed).saturating_sub(before) + now;
        self.used.store(used, Ordering::Relaxed);
        used
    }

    fn evict(&self) {
        let mut panes = lock(&self.panes);
        // Panes that were closed no longer count.
        panes.retain(|pane| pane.strong_count() > 0);
        let lives: Vec<_> = panes.iter().filter_map(Weak::upgrade).collect();
        drop(panes);
        let mut used: usize =
            lives.iter().map(|live| live.share.bytes.load(Ordering::Relaxed)).sum();
        // A hundredth more than needed, so that not every turn has to do this.
        let wanted = self.limit - self.limit / 100;
        while used > wanted {
            let oldest = |live: &&Arc<Live>| live.share.oldest.load(Ordering::Relaxed);
            let Some(victim) = lives.iter().min_by_key(oldest).filter(|l| oldest(l) < u64::MAX)
            else {
                break;
            };
            let step = (used - wanted).min(self.limit / 100).max(1);
            let freed = victim.screen().history_mut().drop_oldest(step);
            let before = victim.share.bytes.load(Ordering::Relaxed);
            self.used.store(used, Ordering::Relaxed);
            used = self.look_at(victim);
            if freed == 0 || victim.share.bytes.load(Ordering::Relaxed) >= before {
                victim.share.oldest.store(u64::MAX, Ordering::Relaxed);
            }
        }
        self.used.store(used, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::{Screen, Size};

    use super::*;
    use crate::process::ProcessId;

    fn pane(number: u64, dir: &tempfile::TempDir) -> Arc<Live> {
        let log = Log::open(&dir.path().join(number.to_string()), 1 << 20).unwrap();
        let screen = Screen::new(Size::new(24, 80));
        Arc::new(Live::new(ProcessId::new(number), 1, None, log.reader(), screen, 0))
    }

    fn print(budget: &Budget, live: &Live, lines: usize) {
        for n in 0..lines {
            let mut screen = live.screen();
            screen.history_mut().set_stamp(budget.stamp());
            screen.feed(format!("line {n} of some length, as programs print them\r\n").as_bytes());
            drop(screen);
            budget.settle(live);
        }
    }

    #[test]
    fn the_oldest_rows_go_first_and_all_together_stay_within_a_hundredth() {
        const LIMIT: usize = 256 << 10;
        let dir = tempfile::tempdir().unwrap();
        let budget = Budget::new(LIMIT);
        let panes: Vec<_> = (1..=4).map(|number| pane(number, &dir)).collect();
        panes.iter().for_each(|live| budget.add(live));
        let bytes = |live: &Arc<Live>| live.screen().history().bytes();
        let total = || panes.iter().map(bytes).sum::<usize>();
        print(&budget, &panes[0], 2_000);
        let cold = bytes(&panes[0]);
        for live in &panes[1..] {
            print(&budget, live, 2_000);
            assert!(total() <= LIMIT + LIMIT / 100, "{} bytes", total());
        }
        assert!(bytes(&panes[0]) < cold / 2, "what nobody printed to for long went first");
        let newest = panes[3].screen().tail(1).pop().map(|line| line.text.into_owned());
        assert!(newest.is_some());
        print(&budget, &panes[1], 50_000);
        assert!(total() <= LIMIT + LIMIT / 100, "{} bytes", total());
        assert_eq!(bytes(&panes[0]), panes[0].screen().history().bytes());
    }

    #[test]
    fn a_closed_pane_gives_its_share_back() {
        // Rows go in blocks of 16 KiB: much less than a tenth of this.
        const LIMIT: usize = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let budget = Budget::new(LIMIT);
        let (gone, stays) = (pane(1, &dir), pane(2, &dir));
        budget.add(&gone);
        budget.add(&stays);
        print(&budget, &gone, 10_000);
        drop(gone);
        print(&budget, &stays, 40_000);
        let bytes = stays.screen().history().bytes();
        assert!(bytes > LIMIT * 9 / 10 && bytes <= LIMIT + LIMIT / 100, "{bytes}");
    }
}
