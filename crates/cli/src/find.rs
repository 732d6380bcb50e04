//! Finds a project's server, and waits for the one that takes over from it. Nothing is started here: `patterm upgrade`
//! starts the next server, or the keeper does.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_host::Project;
use patterm_host::registry::{self, Replacement};
use patterm_host::runtime::{self, RuntimeDir};
use patterm_keeper::timespec;
use patterm_store::state::StateDir;
use patterm_wire::requests::ServerEntry;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long a keeper may take to start a server: it waits up to 5 s after a crash, and 10 s after a start
/// that failed.
pub(crate) const KEEPER_PATIENCE: Duration = Duration::from_secs(20);

/// How often the next server is looked for: nothing signals it in all the places where it may be.
const INTERVAL: Duration = Duration::from_millis(50);

/// How long a server may still be found after it has closed a connection: if it is longer, it is not ending.
const RETIRING: Duration = Duration::from_secs(1);

/// How long a keeper may take to start the next server by itself, before it is asked to. An earlier `patterm upgrade`,
/// which does not announce itself, is over by then as well.
const OF_ITS_OWN: Duration = Duration::from_secs(2);

/// Connects to a server of our own user; `None` if no such server listens there.
pub(crate) fn connect(socket: &Path) -> anyhow::Result<Option<UnixStream>> {
    runtime::connect(socket).with_context(|| format!("cannot connect to {}", socket.display()))
}

/// The process of a connection's server.
pub(crate) fn server_of(stream: &UnixStream) -> Option<Pid> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.pid)
}

/// The server of a project, if one is running.
pub(crate) fn find_running(project: &Project) -> anyhow::Result<Option<ServerEntry>> {
    let folders = RuntimeDir::candidates(None);
    let state = StateDir::from_env(project.key()).ok();
    for entry in registry::find(project.key(), &folders, state.as_ref()) {
        if connect(&entry.socket)?.is_some() {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Whether a project has a server, or is about to get one: from its keeper, or by `patterm upgrade`.
pub(crate) fn is_served(project: &Project) -> anyhow::Result<bool> {
    Ok(find_running(project)?.is_some() || is_expected(project))
}

/// Whether a project without a server is about to get one.
fn is_expected(project: &Project) -> bool {
    let (key, folders) = (project.key(), RuntimeDir::candidates(None));
    registry::is_kept(key, &folders) || Replacement::is_going_on(key, &folders)
}

/// Waits until another server serves the project, or until none is to be expected. A server that is ending its
/// programs is waited for, however long that takes.
pub(crate) fn wait_for_successor(project: &Project, lost: Option<Pid>) -> anyhow::Result<()> {
    let lost_pid = lost.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    let process = lost.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let begin = Instant::now();
    let mut ended_at = None;
    loop {
        let found = find_running(project)?;
        if found.is_some_and(|entry| Some(entry.pid) != lost_pid || begin.elapsed() > RETIRING) {
            return Ok(());
        }
        let mut watched: Vec<_> =
            process.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
        let has_ended =
            process.is_none() || poll(&mut watched, Some(&timespec(Duration::ZERO))) != Ok(0);
        if has_ended {
            let ended_at = *ended_at.get_or_insert_with(Instant::now);
            if !is_expected(project) || ended_at.elapsed() > patience(project) {
                return Ok(());
            }
            watched.clear();
        }
        let _ = poll(&mut watched, Some(&timespec(INTERVAL)));
    }
}

/// Waits for the next server if `patterm upgrade` is about to start it.
pub(crate) fn wait_for_replacement(project: &Project) -> anyhow::Result<()> {
    match Replacement::is_going_on(project.key(), &RuntimeDir::candidates(None)) {
        true => wait_for_successor(project, None),
        false => Ok(()),
    }
}

/// How long the next server may take.
fn patience(project: &Project) -> Duration {
    match Replacement::is_going_on(project.key(), &RuntimeDir::candidates(None)) {
        true => KEEPER_PATIENCE,
        false => OF_ITS_OWN,
    }
}
