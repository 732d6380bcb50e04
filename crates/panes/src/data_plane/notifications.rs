//! Bells and notifications (OSC 9 and 777) of programs, for clients that do not show their screens.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use patterm_screen::Notice;
use patterm_store::sync::lock;

use crate::offset::{AtomicOffset, Offset};

/// Characters of a notification that are kept: more than a desktop or a status line shows.
const TEXT_CHARACTERS: usize = 200;

/// A program's notification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramNotification {
    /// How many there were in this run.
    pub number: u64,
    /// The beginning of its text, without control characters.
    pub text: String,
}

/// The last bell and the last notification of a run. Only the parser's thread writes them; a reader that sees a bell
/// a moment late is woken again, so `Relaxed` is enough.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    /// The output before this offset contains the last bell.
    rang: AtomicOffset,
    last: Mutex<Option<ProgramNotification>>,
}

impl Notifications {
    /// Records what a program told its terminal in the output before an offset; `true` if there was a bell or a
    /// notification.
    pub(super) fn note(&self, notices: Vec<Notice>, parsed: Offset) -> bool {
        let mut any = false;
        for notice in notices {
            match notice {
                Notice::Bell => self.rang.advance(parsed, Ordering::Relaxed),
                Notice::Notification { title, body } => {
                    let parts = [title, body].into_iter().filter(|part| !part.is_empty());
                    let text = parts.collect::<Vec<_>>().join(": ");
                    let text = text.chars().take(TEXT_CHARACTERS).collect();
                    let mut last = lock(&self.last);
                    let number = last.as_ref().map_or(0, |last| last.number) + 1;
                    *last = Some(ProgramNotification { number, text });
                }
                _ => continue,
            }
            any = true;
        }
        any
    }

    /// Whether a bell rang in the output from an offset on.
    pub(super) fn rang_since(&self, from: Offset) -> bool {
        self.rang.load(Ordering::Relaxed) > from
    }

    pub(super) fn last(&self) -> Option<ProgramNotification> {
        lock(&self.last).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_notification_is_kept_short_and_a_bell_until_its_output_is_seen() {
        let notifications = Notifications::default();
        let says = |title: &str, body: &str| Notice::Notification {
            title: title.to_owned(),
            body: body.to_owned(),
        };
        assert!(!notifications.note(vec![Notice::Title("x".into())], Offset::new(5)));
        assert!(notifications.note(vec![Notice::Bell], Offset::new(10)));
        assert!(notifications.rang_since(Offset::new(9)));
        assert!(!notifications.rang_since(Offset::new(10)));
        assert_eq!(notifications.last(), None);
        let two = vec![says("cargo", "done"), says("", &"x".repeat(4_000))];
        assert!(notifications.note(two, Offset::new(20)));
        let last = notifications.last().unwrap();
        assert_eq!((last.number, last.text), (2, "x".repeat(200)));
        notifications.note(vec![says("cargo", "done")], Offset::new(30));
        assert_eq!(notifications.last().unwrap().text, "cargo: done");
    }
}
