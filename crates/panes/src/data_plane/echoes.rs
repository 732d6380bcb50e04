//! Echoes that a person waits for. A key and its echo pass through three threads and two other programs; during a
//! flood that keeps all processors busy, each of them would wait for its turn. So the reader holds back all other
//! panes for a moment: the flooding program has to wait, and the processors are free.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

use super::run::ProcessRun;

/// The longest time that others wait for one echo: a key for which a program prints nothing must not cost more.
const HOLD: Duration = Duration::from_millis(5);

/// How long they wait after the echo is on its screen, so that it can be drawn.
const DRAW: Duration = Duration::from_micros(500);

/// How often a pane that a person typed into is read between the turns of others until it has printed something.
const LOOKS: u32 = 1024;

/// Panes that were typed into.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// Panes that have printed nothing yet, each with the number of reads left.
    awaited: Vec<(u64, u32)>,
    /// Panes that have printed something that may not be parsed or drawn yet.
    printed: Vec<(u64, Arc<ProcessRun>)>,
    /// All other panes wait until then.
    until: Option<Instant>,
    /// When the echo will have been drawn; set once it is parsed.
    drawn: Option<Instant>,
    /// The others do not wait again before this, so that they are read for as long as they waited.
    again: Option<Instant>,
}

impl Echoes {
    /// A person typed into a pane.
    pub(super) fn wait_for(&mut self, token: u64, now: Instant) {
        self.end_if_over(now);
        if !self.awaited.iter().any(|(awaited, _)| *awaited == token) {
            self.awaited.push((token, LOOKS));
        }
        if self.until.is_none() && self.again.is_none_or(|again| now >= again) {
            self.until = Some(now + HOLD);
        }
    }

    /// Panes that are read though the others wait: those that have printed nothing yet, and those that may continue.
    pub(super) fn typed_into(&self) -> impl Iterator<Item = u64> {
        let printed = self.printed.iter().map(|(token, _)| *token);
        self.awaited.iter().map(|(token, _)| *token).chain(printed)
    }

    pub(super) fn is_typed_into(&self, token: u64) -> bool {
        self.typed_into().any(|typed_into| typed_into == token)
    }

    /// The panes that are read once more, to see whether they have printed something.
    pub(super) fn tokens_to_look_at(&mut self) -> Vec<u64> {
        self.awaited.retain_mut(|(_, looks)| {
            *looks = looks.saturating_sub(1);
            *looks > 0
        });
        self.typed_into().collect()
    }

    /// A pane cannot be read.
    pub(super) fn forget(&mut self, token: u64) {
        self.awaited.retain(|(awaited, _)| *awaited != token);
        self.printed.retain(|(printed, _)| *printed != token);
    }

    /// A pane has printed something; whether that was awaited.
    pub(super) fn printed(&mut self, token: u64, run: &Arc<ProcessRun>) -> bool {
        let before = self.awaited.len();
        self.awaited.retain(|(awaited, _)| *awaited != token);
        let is_awaited = self.awaited.len() < before;
        if is_awaited && !self.printed.iter().any(|(printed, _)| *printed == token) {
            self.printed.push((token, run.clone()));
        }
        is_awaited
    }

    /// How long the reader must hold back all other panes; `None` if it may read them.
    pub(super) fn hold(&mut self, now: Instant) -> Option<Timespec> {
        let until = self.until.as_mut()?;
        if self.awaited.is_empty() && self.printed.iter().all(|(_, run)| run.lag() == 0) {
            let drawn = match self.printed.is_empty() {
                true => now,
                false => *self.drawn.get_or_insert(now + DRAW),
            };
            *until = drawn.min(*until);
        }
        let left = until.saturating_duration_since(now);
        self.end_if_over(now);
        self.until?;
        Some(Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) })
    }

    fn end_if_over(&mut self, now: Instant) {
        let Some(until) = self.until.filter(|until| *until <= now) else { return };
        self.printed.clear();
        (self.until, self.drawn, self.again) = (None, None, Some(until + HOLD));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_an_echo_delays_the_others_for_a_moment_and_then_not_for_the_same_time() {
        let (mut echoes, start) = (Echoes::default(), Instant::now());
        assert_eq!(echoes.hold(start), None, "nobody typed");
        echoes.wait_for(1, start);
        assert!(echoes.hold(start).is_some());
        assert_eq!(echoes.tokens_to_look_at(), [1]);
        assert!(echoes.hold(start + HOLD / 2).is_some());
        assert_eq!(echoes.hold(start + HOLD), None);
        echoes.wait_for(1, start + HOLD);
        assert_eq!(echoes.hold(start + HOLD), None, "it is the others' turn");
        assert!(echoes.is_typed_into(1), "but it is read between theirs");
        echoes.wait_for(1, start + HOLD * 2);
        assert!(echoes.hold(start + HOLD * 2).is_some());
    }

    #[test]
    fn a_pane_that_cannot_be_read_delays_nobody() {
        let (mut echoes, start) = (Echoes::default(), Instant::now());
        echoes.wait_for(1, start);
        echoes.forget(1);
        assert_eq!(echoes.hold(start), None);
    }
}
