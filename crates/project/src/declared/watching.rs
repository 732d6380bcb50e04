//! Restarts caused by changes of watched files. A process that writes to a file it watches would be
//! restarted forever. So if each start is immediately followed by another change, each restart waits
//! twice as long as the one before.

use std::time::Duration;

use tokio::time::Instant;

/// A change this soon after a restart was probably made by the process itself.
const AT_ONCE: Duration = Duration::from_secs(3);

/// The number of consecutive restarts without a delay: a person may save a file a few times.
const FREE_RESTARTS: u32 = 3;

/// The first delay.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay: nobody who has fixed the process wants to wait longer for it.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The restarts of one process that were caused by changed files.
#[derive(Debug, Default)]
pub(super) struct WatchRestarts {
    last: Option<Instant>,
    /// The number of consecutive restarts that were immediately followed by another change.
    in_a_row: u32,
}

impl WatchRestarts {
    /// Notes a restart for a change that was first seen at `changed`.
    pub(super) fn note(&mut self, changed: Instant, now: Instant) {
        let at_once =
            self.last.is_some_and(|last| changed.saturating_duration_since(last) < AT_ONCE);
        self.in_a_row = if at_once { self.in_a_row.saturating_add(1) } else { 0 };
        self.last = Some(now);
    }

    /// Until then, changed files do not restart it again.
    pub(super) fn not_before(&self) -> Option<Instant> {
        Some(self.last? + self.delay()?)
    }

    fn delay(&self) -> Option<Duration> {
        let doublings = self.in_a_row.checked_sub(FREE_RESTARTS)?;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(FIRST_DELAY.saturating_mul(factor).min(LONGEST_DELAY))
    }

    /// What is wrong, while restarts are delayed.
    pub(super) fn problem(&self, now: Instant) -> Option<String> {
        let until = self.not_before()? + AT_ONCE;
        let delay = self.delay()?.as_secs();
        (now < until).then(|| {
            format!(
                "its watched files changed right after each of its last {} starts, probably \
                 because it changes them itself; a change restarts it no sooner than {delay} s \
                 after its last start; \
                 check `watch` in patterm.toml",
                self.in_a_row + 1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOUCHED: Duration = Duration::from_millis(100);

    #[test]
    fn restarts_that_each_cause_the_next_are_delayed_more_and_more() {
        let mut restarts = WatchRestarts::default();
        let mut now = Instant::now();
        restarts.note(now, now);
        let mut delays = Vec::new();
        for _ in 0..50 {
            // It touches its file, and is restarted as soon as that is allowed.
            let due = now + TOUCHED;
            now = restarts.not_before().map_or(due, |not_before| due.max(not_before));
            restarts.note(due, now);
            delays.push(restarts.delay().map_or(0, |delay| delay.as_secs()));
        }
        assert_eq!(delays[..8], [0, 0, 1, 2, 4, 8, 16, 32]);
        assert!(delays[8..].iter().all(|delay| *delay == 60), "{delays:?}");
        let words = restarts.problem(now).unwrap();
        assert!(words.contains("its last 51 starts") && words.contains("60 s"), "{words}");
    }

    #[test]
    fn saving_a_file_now_and_then_never_delays_a_restart() {
        let mut restarts = WatchRestarts::default();
        let mut now = Instant::now();
        for _ in 0..20 {
            restarts.note(now, now);
            assert_eq!((restarts.not_before(), restarts.problem(now)), (None, None));
            now += AT_ONCE;
        }
    }

    #[test]
    fn a_pause_resets_the_count() {
        let (mut restarts, now) = (WatchRestarts::default(), Instant::now());
        (0..9).for_each(|_| restarts.note(now, now));
        let later = restarts.not_before().unwrap() + AT_ONCE;
        assert_eq!(restarts.problem(later), None);
        restarts.note(later, later);
        assert_eq!(restarts.not_before(), None);
    }
}
