//! What a person typed and has not seen the echo of. A key and its echo pass three threads and two
//! other programs; beside a flood, which keeps all processors busy, each of them would wait for its
//! turn. So the reader stands still for a moment: what floods is not read, its program waits, and
//! the processors are free.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

use super::run::ProcessRun;

/// How long others wait for one echo at the most: a program that prints nothing for a key must not
/// cost more.
const HOLD: Duration = Duration::from_millis(5);

/// How long they wait once the echo is on its screen, so that it is drawn.
const DRAW: Duration = Duration::from_micros(500);

/// How often a pane that a person typed into is looked at between the turns of others, until it has
/// printed something: as long as a flood of them lasts for one key.
const LOOKS: u32 = 1024;

/// Panes that were typed into.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// Those that have printed nothing yet, and how often they are looked at.
    awaited: Vec<(u64, u32)>,
    /// Those that have, and wait for the parser.
    printed: Vec<Arc<ProcessRun>>,
    /// Until when all others wait.
    until: Option<Instant>,
    /// When the echo will be drawn, once it is parsed.
    drawn: Option<Instant>,
    /// They do not wait again before this: as long as they waited, they are read.
    again: Option<Instant>,
}

impl Echoes {
    /// Notes that somebody typed into a pane.
    pub(super) fn wait_for(&mut self, token: u64, now: Instant) {
        if !self.awaited.iter().any(|(other, _)| *other == token) {
            self.awaited.push((token, LOOKS));
        }
        if self.until.is_none() && self.again.is_none_or(|again| now >= again) {
            self.until = Some(now + HOLD);
        }
    }

    /// Panes that have printed nothing yet.
    pub(super) fn awaited(&self) -> impl Iterator<Item = u64> {
        self.awaited.iter().map(|(token, _)| *token)
    }

    /// Looks at them: `read` returns `None` for one that cannot be read, and the process where
    /// something was printed.
    pub(super) fn look(&mut self, mut read: impl FnMut(u64) -> Option<Option<Arc<ProcessRun>>>) {
        let printed = &mut self.printed;
        self.awaited.retain_mut(|(token, looks)| {
            *looks -= 1;
            match read(*token) {
                None => false,
                Some(None) => *looks > 0,
                Some(Some(run)) => {
                    printed.push(run);
                    false
                }
            }
        });
    }

    /// How long nothing but an echo is to be read; `None` if all may be.
    pub(super) fn hold(&mut self, now: Instant) -> Option<Timespec> {
        let until = self.until.as_mut()?;
        if self.awaited.is_empty() && self.printed.iter().all(|run| run.lag() == 0) {
            let drawn = match self.printed.is_empty() {
                true => now,
                false => *self.drawn.get_or_insert(now + DRAW),
            };
            *until = drawn.min(*until);
        }
        let left = until.saturating_duration_since(now);
        if left.is_zero() {
            self.printed.clear();
            (self.until, self.drawn, self.again) = (None, None, Some(now + HOLD));
            return None;
        }
        Some(Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) })
    }
}

/// Notes that a process is parsed; `true` if the reader waits for that.
pub(super) fn is_awaited(run: &ProcessRun) -> bool {
    run.echoes.swap(false, Ordering::AcqRel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_an_echo_holds_the_others_up_for_a_moment_and_then_not_for_as_long() {
        let (mut echoes, start) = (Echoes::default(), Instant::now());
        assert_eq!(echoes.hold(start), None, "nobody typed");
        echoes.wait_for(1, start);
        assert!(echoes.hold(start).is_some());
        echoes.look(|_| Some(None));
        assert!(echoes.hold(start + HOLD / 2).is_some());
        assert_eq!(echoes.hold(start + HOLD), None);
        echoes.wait_for(1, start + HOLD);
        assert_eq!(echoes.hold(start + HOLD), None, "it is the others' turn");
        assert_eq!(echoes.awaited().count(), 1, "but it is looked at between theirs");
        echoes.wait_for(1, start + HOLD * 2);
        assert!(echoes.hold(start + HOLD * 2).is_some());
    }

    #[test]
    fn a_pane_that_cannot_be_read_holds_nobody_up() {
        let (mut echoes, start) = (Echoes::default(), Instant::now());
        echoes.wait_for(1, start);
        echoes.look(|_| None);
        assert_eq!(echoes.hold(start), None);
    }
}
