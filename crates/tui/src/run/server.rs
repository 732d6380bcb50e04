//! The connections to the server, and reconnecting when it is gone.

use std::time::{Duration, Instant};

use super::{Error, Tui};
use crate::connection::{
    CallConnection, ConnectionLost, FollowConnection, Notification, PaneEvent,
};
use crate::layout::PaneId;
use crate::update::{Event, local_error};

/// The pause between attempts to reconnect, at first and at most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A server that is not back by then was ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// Attempts to reconnect.
pub(super) struct Reconnect {
    pub(super) next: Instant,
    pub(super) pause: Duration,
    pub(super) until: Instant,
}

impl Reconnect {
    pub(super) fn from(now: Instant) -> Self {
        Self { next: now, pause: RETRY_PAUSE.0, until: now + PATIENCE }
    }
}

impl Tui {
    pub(super) fn serve_follow(&mut self) -> Result<(), Error> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        match follow.read() {
            Ok(Some(Notification::Snapshot(snapshot))) => {
                self.reconnect = None;
                self.handle(Event::Snapshot(*snapshot));
            }
            Ok(Some(Notification::Ended)) => self.handle(Event::GaveUp),
            Ok(Some(Notification::Refused(why))) => return Err(Error::Server(why)),
            Ok(None) => {}
            Err(ConnectionLost) => self.lose(),
        }
        Ok(())
    }

    /// The connection is lost; from now on, reconnect.
    pub(super) fn lose(&mut self) {
        self.follow = None;
        self.panes.clear();
        self.drop_calls();
        if self.reconnect.is_none() {
            self.reconnect = Some(Reconnect::from(Instant::now()));
        }
        self.handle(Event::Lost);
    }

    pub(super) fn drop_calls(&mut self) {
        for purpose in self.calls.take().map(CallConnection::give_up).unwrap_or_default() {
            let error = local_error("the server ended before it answered");
            self.handle(Event::Answer(purpose, Err(error)));
        }
    }

    pub(super) fn reconnect_if_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let Some(reconnect) = &mut self.reconnect else { return Ok(()) };
        if reconnect.next > now {
            return Ok(());
        }
        if reconnect.until <= now {
            self.reconnect = None;
            self.handle(Event::GaveUp);
            return Ok(());
        }
        reconnect.next = now + reconnect.pause;
        reconnect.pause = (reconnect.pause * 2).min(RETRY_PAUSE.1);
        if self.follow.is_none() {
            let stream = self.server.connect().map_err(Error::Server)?;
            self.follow = stream.and_then(|stream| FollowConnection::begin(stream).ok());
        }
        Ok(())
    }

    pub(super) fn serve_calls(&mut self) {
        let Some(calls) = &mut self.calls else { return };
        match calls.serve() {
            Ok(answers) => {
                for (purpose, outcome) in answers {
                    self.handle(Event::Answer(purpose, outcome));
                }
            }
            Err(ConnectionLost) => self.drop_calls(),
        }
    }

    pub(super) fn serve_pane(&mut self, id: PaneId) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        match pane.serve() {
            Ok(events) => {
                for event in events {
                    self.handle(match event {
                        PaneEvent::Frame(frame) => Event::Frame(id, frame),
                        PaneEvent::Refused(why) => Event::PaneRefused(id, why),
                    });
                }
            }
            Err(ConnectionLost) => {
                self.panes.remove(&id);
                self.handle(Event::PaneLost(id));
            }
        }
    }
}
