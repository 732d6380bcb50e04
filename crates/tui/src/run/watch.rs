//! Notices when the server does not answer, because it is suspended or the machine is swapping.
//!
//! A second after something was last sent to the server or received from it, the server is asked for a sign of life.
//! Without one it counts as hung. As long as the terminal has the focus, it is asked again a second after each sign of
//! life, so that a server that hangs while nothing happens is noticed within two seconds, too. That wakes up both sides
//! once a second; while another window has the focus, nothing is sent at rest, and the server is asked at once when the
//! focus returns. A terminal that does not report its focus counts as one that has it.

use std::time::{Duration, Instant};

/// After this time without anything from the server, it is asked for a sign of life. Longer than the pause between the
/// measurements of an open dashboard, whose answers are signs enough.
const QUIET: Duration = Duration::from_millis(1_100);

/// How long the answer may take. Together with `QUIET` and the time to draw it is less than two seconds.
const PATIENCE: Duration = Duration::from_millis(700);

/// What the server has sent lately.
#[derive(Debug, Default)]
pub(super) struct ServerWatch {
    /// When to ask for a sign of life.
    check_at: Option<Instant>,
    /// When it was asked.
    asked: Option<Instant>,
    is_hung: bool,
    /// The terminal has the focus, so somebody may be looking at it.
    is_attended: bool,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchStep {
    /// Ask for a sign of life.
    Ask,
    /// It does not answer.
    Hung,
}

impl ServerWatch {
    /// Something was sent to the server.
    pub(super) fn sent(&mut self, now: Instant) {
        // Not later than before: a user who keeps typing must not postpone it.
        if self.asked.is_none() && !self.is_hung {
            self.check_at.get_or_insert(now + QUIET);
        }
    }

    /// Something came from the server; whether it had not answered before.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        (self.check_at, self.asked) = (Some(now + QUIET), None);
        std::mem::take(&mut self.is_hung)
    }

    /// The sign of life came. If nobody is looking, the server is asked again only after something else has happened.
    pub(super) fn answered(&mut self, now: Instant) {
        (self.check_at, self.asked) = (self.is_attended.then_some(now + QUIET), None);
    }

    /// Notes whether the terminal has the focus.
    pub(super) fn attend(&mut self, is_attended: bool, now: Instant) {
        let was_attended = std::mem::replace(&mut self.is_attended, is_attended);
        // It may have stopped answering while nobody was looking.
        if is_attended && !was_attended && self.asked.is_none() && !self.is_hung {
            self.check_at.get_or_insert(now);
        }
    }

    /// When the next step is due; `None` at rest without the focus, and while the server hangs.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.asked {
            _ if self.is_hung => None,
            Some(asked) => Some(asked + PATIENCE),
            None => self.check_at,
        }
    }

    /// The step that is due.
    pub(super) fn step(&mut self, now: Instant) -> Option<WatchStep> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        if self.asked.is_some() {
            self.is_hung = true;
            return Some(WatchStep::Hung);
        }
        self.asked = Some(now);
        Some(WatchStep::Ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_server_that_answers_is_asked_once_and_then_left_alone() {
        let (mut watch, start) = (ServerWatch::default(), Instant::now());
        assert_eq!(watch.next(), None, "nothing is due at rest");
        watch.heard(start);
        watch.heard(start + ms(700));
        assert_eq!(watch.step(start + QUIET), None, "it printed in the meantime");
        assert_eq!(watch.step(start + ms(700) + QUIET), Some(WatchStep::Ask));
        assert!(!watch.heard(start + ms(1_900)));
        watch.answered(start + ms(1_900));
        assert_eq!(watch.next(), None, "nothing is due at rest");
    }

    #[test]
    fn a_server_that_hangs_at_rest_is_noticed_within_two_seconds_if_the_terminal_has_the_focus() {
        let (mut watch, start) = (ServerWatch::default(), Instant::now());
        watch.attend(true, start);
        assert_eq!(watch.step(start), Some(WatchStep::Ask), "at once");
        watch.attend(true, start + ms(1));
        watch.heard(start + ms(5));
        watch.answered(start + ms(5));
        // From here on it hangs.
        let asked = watch.next().unwrap();
        assert_eq!(watch.step(asked), Some(WatchStep::Ask));
        let hung = watch.next().unwrap();
        assert!(hung - (start + ms(5)) < ms(2_000));
        assert_eq!(watch.step(hung), Some(WatchStep::Hung));
    }

    #[test]
    fn a_server_is_left_alone_while_the_terminal_does_not_have_the_focus() {
        let (mut watch, start) = (ServerWatch::default(), Instant::now());
        watch.attend(true, start);
        assert_eq!(watch.step(start), Some(WatchStep::Ask));
        watch.attend(false, start + ms(1));
        watch.heard(start + ms(2));
        watch.answered(start + ms(2));
        assert_eq!(watch.next(), None);
        watch.attend(true, start + ms(60_000));
        assert_eq!(
            watch.next(),
            Some(start + ms(60_000)),
            "it is asked at once when the focus is back"
        );
    }

    #[test]
    fn a_hung_server_is_noticed_within_two_seconds_of_a_key() {
        let (mut watch, start) = (ServerWatch::default(), Instant::now());
        for key in 0..10 {
            watch.sent(start + ms(key * 100));
        }
        let asked = watch.next().unwrap();
        assert_eq!(asked, start + QUIET, "more keys do not postpone it");
        assert_eq!(watch.step(asked), Some(WatchStep::Ask));
        watch.sent(asked + ms(10));
        let hung = watch.next().unwrap();
        assert!(hung - start < ms(2_000));
        assert_eq!(watch.step(hung), Some(WatchStep::Hung));
        watch.sent(hung + ms(10));
        assert_eq!((watch.next(), watch.step(hung + ms(9_999))), (None, None), "it is said once");
        assert!(watch.heard(hung + ms(10_000)), "it answers again");
        assert!(!watch.heard(hung + ms(10_001)));
    }
}
