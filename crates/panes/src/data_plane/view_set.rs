//! The views that the reader's thread serves. They have an epoll of their own, so that the reader can look for keys
//! between two turns of panes that flood.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::run::ProcessRun;
use super::view::{View, ViewNews};

/// Events taken at once; the others come with the next call.
const EVENTS: usize = 64;

/// Does not wait.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The views, by tokens of their own.
#[derive(Debug)]
pub(super) struct ViewSet {
    epoll: OwnedFd,
    views: BTreeMap<u64, (View, EventFlags)>,
    last: u64,
}

impl ViewSet {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, views: BTreeMap::new(), last: 0 })
    }

    /// Readable when a view has something to read or to write.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(super) fn add(&mut self, view: View) -> io::Result<u64> {
        self.last += 1;
        let data = EventData::new_u64(self.last);
        epoll::add(&self.epoll, view.file(), data, EventFlags::IN)?;
        self.views.insert(self.last, (view, EventFlags::IN));
        Ok(self.last)
    }

    pub(super) fn remove(&mut self, token: u64) -> Option<View> {
        let (view, _) = self.views.remove(&token)?;
        let _ = epoll::delete(&self.epoll, view.file());
        Some(view)
    }

    pub(super) fn get(&mut self, token: u64) -> Option<&mut View> {
        self.views.get_mut(&token).map(|(view, _)| view)
    }

    /// Waits for room in the stream of a view that has something to write.
    pub(super) fn arm(&mut self, token: u64) {
        let Some((view, armed)) = self.views.get_mut(&token) else { return };
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, view.wants_to_write());
        if flags != *armed {
            *armed = flags;
            let _ = epoll::modify(&self.epoll, view.file(), EventData::new_u64(token), flags);
        }
    }

    /// The views that can be read or written now.
    pub(super) fn ready(&self) -> Vec<u64> {
        if self.views.is_empty() {
            return Vec::new();
        }
        let mut ready = Vec::with_capacity(EVENTS.min(self.views.len()));
        let spare = rustix::buffer::spare_capacity(&mut ready);
        let _ = epoll::wait(&self.epoll, spare, Some(&AT_ONCE));
        ready.iter().map(|event| event.data.u64()).collect()
    }

    /// The views of a process.
    pub(super) fn of(&self, run: &Arc<ProcessRun>) -> Vec<u64> {
        let shown = self.views.iter().filter(|(_, (view, _))| Arc::ptr_eq(&view.run, run));
        shown.map(|(token, _)| *token).collect()
    }

    /// The view with this news.
    pub(super) fn with(&self, news: &Arc<ViewNews>) -> Option<u64> {
        let mut views = self.views.iter();
        views.find(|(_, (view, _))| Arc::ptr_eq(&view.news, news)).map(|(token, _)| *token)
    }

    /// When the next view is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.views.values().filter_map(|(view, _)| view.due()).min()
    }

    /// The views that are due.
    pub(super) fn due(&self, now: Instant) -> Vec<u64> {
        let is_due = |view: &View| view.due().is_some_and(|due| due <= now);
        let due = self.views.iter().filter(|(_, (view, _))| is_due(view));
        due.map(|(token, _)| *token).collect()
    }
}
