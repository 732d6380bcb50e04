//! The server: what it says, and the search for one that is gone.

use std::time::{Duration, Instant};

use super::{Error, Tui};
use crate::layout::PaneId;
use crate::link::{Broken, Calls, Follow, FromPane, Told};
use crate::update::Event;

/// Between two looks for a server that is gone, at first and at the most.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A server that is not back after this was ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// The search for a server that is gone.
pub(super) struct Looking {
    pub(super) next: Instant,
    pub(super) pause: Duration,
    pub(super) until: Instant,
}

impl Looking {
    pub(super) fn from(now: Instant) -> Self {
        Self { next: now, pause: LOOK_AGAIN.0, until: now + PATIENCE }
    }
}

impl Tui {
    pub(super) fn serve_follow(&mut self) -> Result<(), Error> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        match follow.read() {
            Ok(Some(Told::ProjectSnapshot(seen))) => {
                self.looking = None;
                self.happen(Event::Snapshot(*seen));
            }
            Ok(Some(Told::Ended)) => self.happen(Event::GaveUp),
            Ok(Some(Told::Refused(why))) => return Err(Error::Server(why)),
            Ok(None) => {}
            Err(Broken) => self.lose(),
        }
        Ok(())
    }

    /// The server is gone; it is looked for from now on.
    pub(super) fn lose(&mut self) {
        self.follow = None;
        self.panes.clear();
        self.drop_calls();
        if self.looking.is_none() {
            self.looking = Some(Looking::from(Instant::now()));
        }
        self.happen(Event::Lost);
    }

    pub(super) fn drop_calls(&mut self) {
        for asked in self.calls.take().map(Calls::give_up).unwrap_or_default() {
            let why = "the server ended while it was asked".to_owned();
            self.happen(Event::Answer(asked, Err(why)));
        }
    }

    pub(super) fn look_for_server(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let Some(looking) = &mut self.looking else { return Ok(()) };
        if looking.next > now {
            return Ok(());
        }
        if looking.until <= now {
            self.looking = None;
            self.happen(Event::GaveUp);
            return Ok(());
        }
        looking.next = now + looking.pause;
        looking.pause = (looking.pause * 2).min(LOOK_AGAIN.1);
        if self.follow.is_none() {
            let stream = self.door.open().map_err(Error::Server)?;
            self.follow = stream.and_then(|stream| Follow::begin(stream).ok());
        }
        Ok(())
    }

    pub(super) fn serve_calls(&mut self) {
        let Some(calls) = &mut self.calls else { return };
        match calls.serve() {
            Ok(answers) => {
                for (asked, answer) in answers {
                    self.happen(Event::Answer(asked, answer));
                }
            }
            Err(Broken) => self.drop_calls(),
        }
    }

    pub(super) fn serve_pane(&mut self, id: PaneId) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        match pane.serve() {
            Ok(came) => {
                for came in came {
                    self.happen(match came {
                        FromPane::Frame(frame) => Event::Frame(id, frame),
                        FromPane::Refused(why) => Event::PaneRefused(id, why),
                    });
                }
            }
            Err(Broken) => {
                self.panes.remove(&id);
                self.happen(Event::PaneLost(id));
            }
        }
    }
}
