//! Waits for input, output and deadlines.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::overview::OverviewLinks;
use super::{Error, Tui};
use crate::layout::PaneId;
use crate::model::{ListKind, Mode};
use crate::update::{TYPING_MS, is_dashboard_open};
use crate::view::LEADER_MS;

/// How often a visible countdown is drawn.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// The pause after which the user counts as not typing; a little more, since the core counts whole milliseconds.
const DIGEST_PAUSE: Duration = Duration::from_millis(TYPING_MS + 50);

/// What is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Terminal,
    Resized,
    Ending,
    Settings,
    Layout,
    Follow,
    CallConnection,
    Logs,
    Pane(PaneId),
    /// A server registered or ended.
    Registry,
    /// A project of the overview, by its number there, and the calls to its server.
    Project(usize),
    ProjectCalls(usize),
}

impl Tui {
    /// Waits until something is ready, or a deadline has passed.
    pub(super) fn wait(&self) -> Result<Vec<Source>, Error> {
        let write =
            |wants: bool| if wants { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut sources = vec![Source::Terminal, Source::Resized, Source::Ending];
        let behind = self.terminal.is_behind();
        let mut watched = vec![
            PollFd::from_borrowed_fd(self.terminal.file(), write(behind)),
            PollFd::from_borrowed_fd(self.terminal.resized(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.terminal.ending(), PollFlags::IN),
        ];
        if let Some(file) = self.settings.as_ref().and_then(|settings| settings.watched()) {
            sources.push(Source::Settings);
            watched.push(PollFd::from_borrowed_fd(file, PollFlags::IN));
        }
        if let Some(file) = self.shared.as_ref().and_then(|layout| layout.watched()) {
            sources.push(Source::Layout);
            watched.push(PollFd::from_borrowed_fd(file, PollFlags::IN));
        }
        if let Some(follow) = &self.follow {
            sources.push(Source::Follow);
            watched.push(PollFd::from_borrowed_fd(follow.file(), write(follow.wants_to_write())));
        }
        if let Some(calls) = &self.calls {
            sources.push(Source::CallConnection);
            watched.push(PollFd::from_borrowed_fd(calls.file(), write(calls.wants_to_write())));
        }
        if let Some(logs) = &self.logs {
            sources.push(Source::Logs);
            watched.push(PollFd::from_borrowed_fd(logs.file(), write(logs.wants_to_write())));
        }
        for (id, pane) in &self.panes {
            sources.push(Source::Pane(*id));
            watched.push(PollFd::from_borrowed_fd(pane.file(), write(pane.wants_to_write())));
        }
        if let Some(overview) = &self.overview {
            if let Some(registry) = overview.watch() {
                sources.push(Source::Registry);
                watched.push(PollFd::new(registry, PollFlags::IN));
            }
            for (source, file, wants) in overview.sources() {
                sources.push(source);
                watched.push(PollFd::from_borrowed_fd(file, write(wants)));
            }
        }
        let timeout = self.next_deadline().map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(e) => return Err(io::Error::from(e).into()),
        }
        let ready = watched.iter().map(|watched| !watched.revents().is_empty());
        Ok(sources
            .into_iter()
            .zip(ready)
            .filter_map(|(source, ready)| ready.then_some(source))
            .collect())
    }

    /// The next deadline; `None` while nothing happens.
    fn next_deadline(&self) -> Option<Instant> {
        let draw = self.dirty.filter(|_| !self.terminal.is_behind()).map(|_| self.draw_at());
        let escape = self.escape_due();
        let retry = self.reconnect.as_ref().map(|reconnect| reconnect.next);
        let second = self.counts_down().then(|| self.drawn + SECOND);
        let leader = self.leader_due();
        let hung = self.overview.as_ref().and_then(OverviewLinks::next_due);
        let usage = self.usage_at.filter(|_| is_dashboard_open(&self.model));
        let digest = self.digest_due();
        let watch = self.watch.next();
        [draw, escape, retry, second, leader, hung, usage, digest, watch, self.save_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the keys after the leader will be shown.
    pub(super) fn leader_due(&self) -> Option<Instant> {
        let (now, due) = (self.model.now, self.model.leader_at.saturating_add(LEADER_MS));
        let waits = self.model.mode == Mode::Leader && now < due;
        waits.then(|| self.typed + Duration::from_millis(LEADER_MS))
    }

    /// When the user has not typed for so long that a digest may open.
    pub(super) fn digest_due(&self) -> Option<Instant> {
        self.model.away.absence.waits().then(|| self.typed + DIGEST_PAUSE)
    }

    /// Whether something that counts the seconds is visible.
    pub(super) fn counts_down(&self) -> bool {
        match self.model.mode {
            Mode::List { kind: ListKind::Timers, .. } => !self.model.snapshot.timers.is_empty(),
            // How long ago it was.
            Mode::Past => true,
            _ => false,
        }
    }
}
