//! The connections of the overview, as long as it is open: each server sends its project when that changes, and the
//! kernel reports when a server registers or ends. Nothing is polled.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use patterm_wire::requests::ServerEntry;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::Value;

use super::Tui;
use super::wait::Source;
use crate::connection::{CallConnection, ConnectionLost, FollowConnection, Notification};
use crate::overview::OverviewEvent;
use crate::update::{CallPurpose, Event, local_error};

/// A server that has not sent its project by then does not answer.
const HUNG_AFTER: Duration = Duration::from_secs(2);

/// Servers that are followed at the same time: more projects than anybody works on.
const SERVERS: usize = 64;

/// The connections of the open overview.
#[derive(Debug, Default)]
pub(super) struct OverviewLinks {
    /// Reports that a server registered or ended.
    watch: Option<OwnedFd>,
    links: Vec<Link>,
    /// Servers that closed their connection; they are not tried again.
    ended: Vec<ServerEntry>,
}

#[derive(Debug)]
struct Link {
    server: ServerEntry,
    follow: Option<FollowConnection>,
    calls: Option<CallConnection>,
    /// By when it must have sent its project; `None` once it has, or it is known to be hung.
    due: Option<Instant>,
}

impl OverviewLinks {
    fn at(&self, key: &str) -> Option<usize> {
        self.links.iter().position(|link| link.server.key == key)
    }

    pub(super) fn watch(&self) -> Option<&OwnedFd> {
        self.watch.as_ref()
    }

    /// Its connections to projects, and to answer questions there.
    pub(super) fn sources(
        &self,
    ) -> impl Iterator<Item = (Source, std::os::fd::BorrowedFd<'_>, bool)> {
        self.links.iter().enumerate().flat_map(|(at, link)| {
            let follow = link.follow.as_ref();
            let follow = follow.map(|f| (Source::Project(at), f.file(), f.wants_to_write()));
            let calls = link.calls.as_ref();
            let calls = calls.map(|c| (Source::ProjectCalls(at), c.file(), c.wants_to_write()));
            follow.into_iter().chain(calls)
        })
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.links.iter().filter_map(|link| link.due).min()
    }
}

/// Watches the folders in which servers register.
fn watch_folders(folders: &[PathBuf]) -> io::Result<OwnedFd> {
    let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let changes = WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::ONLYDIR;
    for folder in folders {
        // A folder of another session may not exist.
        let _ = inotify::add_watch(&fd, folder, changes);
    }
    Ok(fd)
}

impl Tui {
    pub(super) fn open_overview(&mut self) {
        // Before the first look, so that no change is missed.
        let watch = watch_folders(&self.server.registries()).ok();
        self.overview = Some(OverviewLinks { watch, ..OverviewLinks::default() });
        self.refresh_overview();
    }

    pub(super) fn close_overview(&mut self) {
        let links = self.overview.take().map(|overview| overview.links).unwrap_or_default();
        for calls in links.into_iter().filter_map(|link| link.calls) {
            self.fail_calls(calls);
        }
    }

    /// Connects to new servers, and forgets those that ended.
    pub(super) fn refresh_overview(&mut self) {
        let Some(overview) = &mut self.overview else { return };
        if let Some(watch) = &overview.watch {
            let mut space = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(watch, &mut space);
            while events.next().is_ok() {}
        }
        let now = Instant::now();
        let mut before = std::mem::take(&mut overview.links);
        for server in self.server.servers().into_iter().take(SERVERS) {
            if overview.ended.contains(&server) {
                continue;
            }
            if let Some(at) = before.iter().position(|link| link.server == server) {
                overview.links.push(before.swap_remove(at));
                continue;
            }
            let due = Some(now + HUNG_AFTER);
            let follow = match self.server.connect_to(&server) {
                Ok(Some(stream)) => FollowConnection::begin(stream, true).ok(),
                // Nobody listens: it has ended.
                Ok(None) => continue,
                // It does not accept connections.
                Err(_) => None,
            };
            overview.links.push(Link { server, follow, calls: None, due });
        }
        let servers = overview.links.iter().map(|link| link.server.clone()).collect();
        for calls in before.into_iter().filter_map(|link| link.calls) {
            self.fail_calls(calls);
        }
        self.handle(Event::Overview(OverviewEvent::Servers(servers)));
    }

    /// Reports the servers that do not answer.
    pub(super) fn note_hung(&mut self) {
        let Some(overview) = &mut self.overview else { return };
        let now = Instant::now();
        let late = overview.links.iter_mut().filter(|link| link.due.is_some_and(|due| due <= now));
        let late: Vec<ServerEntry> = late
            .map(|link| {
                link.due = None;
                link.server.clone()
            })
            .collect();
        for server in late {
            let advice = self.server.advice(&server);
            self.handle(Event::Overview(OverviewEvent::Hung(server.key, advice)));
        }
    }

    pub(super) fn serve_project(&mut self, at: usize) {
        let Some(link) = self.overview.as_mut().and_then(|o| o.links.get_mut(at)) else { return };
        let Some(follow) = &mut link.follow else { return };
        let key = link.server.key.clone();
        match follow.read() {
            Ok(Some(Notification::Snapshot(snapshot))) => {
                link.due = None;
                self.handle(Event::Overview(OverviewEvent::Snapshot(key, snapshot)));
            }
            Ok(Some(Notification::Refused(why))) => {
                (link.follow, link.due) = (None, None);
                self.handle(Event::Overview(OverviewEvent::Hung(key, why)));
            }
            Ok(None) => {}
            Ok(Some(Notification::Ended)) | Err(ConnectionLost) => {
                if let Some(overview) = &mut self.overview {
                    let ended = overview.links[at].server.clone();
                    overview.ended.push(ended);
                }
                self.refresh_overview();
            }
        }
    }

    /// Calls a method of another project's server.
    pub(super) fn call_at(
        &mut self,
        key: &str,
        method: &str,
        params: &Value,
        purpose: CallPurpose,
    ) {
        let at = self.overview.as_ref().and_then(|overview| overview.at(key));
        let link = at.and_then(|at| self.overview.as_mut()?.links.get_mut(at));
        let Some(link) = link else {
            let error = local_error("its server has ended");
            return self.handle(Event::Answer(purpose, Err(error)));
        };
        if link.calls.is_none() {
            let stream = self.server.connect_to(&link.server).ok().flatten();
            let greeting = self.server.greeting();
            link.calls = stream.and_then(|s| CallConnection::begin(s, &greeting, None).ok());
        }
        let failed = match &mut link.calls {
            Some(calls) => {
                let sent = calls.call(method, params, purpose);
                sent.err().and_then(|ConnectionLost| link.calls.take())
            }
            None => {
                let error = local_error("its server does not accept a connection");
                return self.handle(Event::Answer(purpose, Err(error)));
            }
        };
        if let Some(calls) = failed {
            self.fail_calls(calls);
        }
    }

    pub(super) fn serve_project_calls(&mut self, at: usize) {
        let Some(link) = self.overview.as_mut().and_then(|o| o.links.get_mut(at)) else { return };
        let Some(calls) = &mut link.calls else { return };
        match calls.serve() {
            Ok(answers) => {
                for (purpose, outcome) in answers {
                    self.handle(Event::Answer(purpose, outcome));
                }
            }
            Err(ConnectionLost) => {
                if let Some(calls) = link.calls.take() {
                    self.fail_calls(calls);
                }
            }
        }
    }
}
