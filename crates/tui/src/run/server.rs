//! The connections to the server, and reconnecting when it is gone.

use std::time::{Duration, Instant};

use super::watch::{ServerWatch, WatchStep};
use super::{Error, Tui};
use crate::connection::{
    CallConnection, ConnectionLost, FollowConnection, Notification, PaneEvent,
};
use crate::layout::PaneId;
use crate::log_connection::LogEvent;
use crate::update::{CallPurpose, Event, local_error};

/// The pause between attempts to reconnect, at first and at most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A server that is not back by then was ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// The method that asks for a sign of life. No server knows it; the error is one.
const SIGN_OF_LIFE: &str = "patterm/alive";

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
        let read = follow.read();
        let heard = follow.take_heard();
        self.note_heard(heard);
        match read {
            Ok(Some(Notification::Snapshot(snapshot))) => {
                self.came_from = None;
                if self.reconnect.take().is_some() {
                    self.open_calls();
                }
                self.handle(Event::Snapshot(*snapshot));
            }
            Ok(Some(Notification::Ended)) => self.handle(Event::GaveUp),
            Ok(Some(Notification::Refused(why))) => {
                if !self.switch_back(&why) {
                    return Err(Error::Server(why));
                }
            }
            Ok(None) => {}
            Err(ConnectionLost) => self.lose(),
        }
        Ok(())
    }

    /// The connection is lost; from now on, reconnect.
    pub(super) fn lose(&mut self) {
        self.follow = None;
        self.watch = ServerWatch::default();
        self.panes.clear();
        self.logs = None;
        self.drop_calls();
        if self.reconnect.is_none() {
            self.reconnect = Some(Reconnect::from(Instant::now()));
        }
        self.handle(Event::Lost);
    }

    pub(super) fn drop_calls(&mut self) {
        if let Some(calls) = self.calls.take() {
            self.fail_calls(calls);
        }
    }

    /// Nothing answers these calls any more.
    pub(super) fn fail_calls(&mut self, calls: CallConnection) {
        let open = calls.give_up();
        for purpose in open.into_iter().filter(|purpose| *purpose != CallPurpose::SignOfLife) {
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
        // A server that accepted the connection has not ended, even if it does not answer.
        if reconnect.until <= now && self.follow.is_none() {
            self.reconnect = None;
            if !self.switch_back("its server does not answer") {
                self.handle(Event::GaveUp);
            }
            return Ok(());
        }
        reconnect.next = now + reconnect.pause;
        reconnect.pause = (reconnect.pause * 2).min(RETRY_PAUSE.1);
        if self.follow.is_none() {
            let stream = match self.server.connect() {
                Err(why) if self.switch_back(&why) => return Ok(()),
                stream => stream.map_err(Error::Server)?,
            };
            self.follow = stream.and_then(|stream| FollowConnection::begin(stream, false).ok());
            if self.follow.is_some() {
                self.watch.sent(now);
            }
        }
        Ok(())
    }

    /// Something may have come from the server.
    fn note_heard(&mut self, heard: bool) {
        if heard && self.watch.heard(Instant::now()) {
            self.handle(Event::Answers);
            self.send_kept_input();
        }
    }

    /// Asks the server for a sign of life if that is due, and reports if none came.
    pub(super) fn watch_server(&mut self) {
        let now = Instant::now();
        self.watch.attend(self.model.focused && self.follow.is_some(), now);
        match self.watch.step(now) {
            None => {}
            Some(WatchStep::Hung) => {
                let advice = self.server.advice_if_hung();
                self.handle(Event::Hung(advice));
            }
            Some(WatchStep::Ask) => {
                self.open_calls();
                let params = serde_json::Value::Null;
                let purpose = CallPurpose::SignOfLife;
                let asked =
                    self.calls.as_mut().map(|calls| calls.call(SIGN_OF_LIFE, &params, purpose));
                if matches!(asked, Some(Err(ConnectionLost))) {
                    self.drop_calls();
                }
            }
        }
    }

    pub(super) fn serve_calls(&mut self) {
        let Some(calls) = &mut self.calls else { return };
        let served = calls.serve();
        let heard = calls.take_heard();
        self.note_heard(heard);
        match served {
            Ok(answers) => {
                for (purpose, outcome) in answers {
                    match purpose {
                        // Any answer will do: a server of 0.1.0 does not know the request.
                        CallPurpose::SignOfLife => self.watch.answered(Instant::now()),
                        purpose => self.handle(Event::Answer(purpose, outcome)),
                    }
                }
            }
            Err(ConnectionLost) => self.drop_calls(),
        }
    }

    pub(super) fn serve_logs(&mut self) {
        let Some(logs) = &mut self.logs else { return };
        match logs.serve() {
            Ok(events) => {
                for event in events {
                    self.handle(match event {
                        LogEvent::Lines(lines) => Event::Logs(lines),
                        LogEvent::Refused(why) => Event::LogsRefused(why),
                    });
                }
            }
            Err(ConnectionLost) => {
                self.logs = None;
                self.handle(Event::LogsLost);
            }
        }
    }

    pub(super) fn serve_pane(&mut self, id: PaneId) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        let served = pane.serve();
        let heard = pane.take_heard();
        self.note_heard(heard);
        match served {
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
