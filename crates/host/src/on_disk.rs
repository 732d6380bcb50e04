//! Answers read-only requests from a project's state on disk, while no server is running. The answers come from
//! the same tools as a server's; nothing is started, and the project's state is not changed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use patterm_events::EventLog;
use patterm_panes::keeper_client::KeeperClient;
use patterm_store::clock::Clock;
use patterm_store::state::{self, StateDir, StateError};

use crate::host::{Host, Parts};
use crate::server::{EVENTS, Settings, StartError};
use crate::socket;

/// Folders that are copied with their files, so that nothing a tool writes while it reads reaches the originals.
const COPIED: [&str; 2] = ["messages", "scratchpads"];

/// The folder with the output of processes. It may contain gigabytes and is only read, so it is not copied.
const OUTPUT: &str = "output";

/// Attempts to find a free name for the copy.
const TRIES: u32 = 16;

/// A connection to a project's state on disk.
#[derive(Debug)]
pub struct OnDisk {
    /// The client's end. It speaks the protocol of the server's socket.
    pub stream: UnixStream,
    /// The copy of the state, removed when this value is dropped.
    pub copy: StateCopy,
    /// The state files that are damaged: what they contained is missing from the answers.
    pub damaged: Vec<PathBuf>,
}

/// A copy of a project's small state files.
#[derive(Debug)]
pub struct StateCopy(PathBuf);

impl Drop for StateCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl StateCopy {
    /// Copies the state of a project. A project without state has an empty copy.
    fn of(state: &StateDir, key: &str) -> Result<(Self, StateDir), StateError> {
        // A folder that belongs to another user is not read.
        let exists = state.check()?;
        let failed = || state::failed("read", state.path());
        let copy = Self(make_folder().map_err(failed())?);
        let to = StateDir::within(&copy.0, key);
        to.ensure()?;
        if exists {
            copy_state(state, &to).map_err(failed())?;
        }
        Ok((copy, to))
    }
}

fn copy_state(state: &StateDir, to: &StateDir) -> io::Result<()> {
    copy_files(state.path(), to.path(), |name| name.ends_with(".json"))?;
    for folder in COPIED {
        let (from, to) = (state.file(folder), to.file(folder));
        if from.is_dir() {
            DirBuilder::new().mode(0o700).create(&to)?;
            copy_files(&from, &to, |_| true)?;
        }
    }
    match state.file(OUTPUT).is_dir() {
        true => symlink(state.file(OUTPUT), to.file(OUTPUT)),
        false => Ok(()),
    }
}

/// A new folder that only this user can enter.
fn make_folder() -> io::Result<PathBuf> {
    let mut tries = 0;
    loop {
        let name = format!("patterm-look-{}-{tries}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
            made => return made.map(|()| path),
        }
    }
}

/// Copies the regular files of a folder whose names are wanted.
fn copy_files(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_file() && name.to_str().is_some_and(&wanted) {
            match fs::copy(entry.path(), to.join(&name)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                copied => drop(copied?),
            }
        }
    }
    Ok(())
}

impl OnDisk {
    /// Reads a project's state and answers on the connection until it is closed. The caller has made sure that
    /// the project has neither a server nor a keeper.
    pub fn open(settings: Settings) -> Result<Self, StartError> {
        let Settings { project, state, tools, limits, program, settings, .. } = settings;
        let clock = Clock::system();
        let events = EventLog::open_to_read(&state.file(EVENTS), clock.clone())?;
        let original = state.clone();
        let (copy, state) = StateCopy::of(&state, project.key())?;
        let failed = |e| StartError::State(state::failed("read", state.path())(e));
        let nowhere = |name: &str| copy.0.join(name);
        let parts = Parts {
            keeper: KeeperClient::new(nowhere("keeper"), program.clone(), project.root()),
            socket: nowhere("socket"),
            pipes: nowhere("pipes"),
            report: nowhere("ended"),
            tools: tools.names().map(str::to_owned).collect(),
            clock,
            events,
            project,
            state: state.clone(),
            limits,
            settings,
            program,
        };
        let (host, _events) = Host::load(parts)?;
        // The copies of damaged files were set aside just now; those of earlier servers were not copied.
        let damaged = state.damaged_names().iter().map(|name| original.file(name)).collect();
        host.recover().map_err(StartError::Keeper)?;
        // As when a server takes over from another, nothing is started.
        host.declared.note_takeover();
        host.declared.read_project_file();
        host.shared.declare();
        host.hooks.configure();
        let (ours, stream) = UnixStream::pair().map_err(failed)?;
        let (host, tools) = (Arc::new(host), Arc::new(tools));
        let answer = move || -> io::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(socket::serve_one(ours, host, tools))
        };
        let thread = std::thread::Builder::new().name("patterm-on-disk".into()).spawn(answer);
        thread.map_err(failed)?;
        Ok(Self { stream, copy, damaged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_leaves_the_original_alone_and_is_removed() {
        let top = tempfile::tempdir().unwrap();
        let state = StateDir::within(top.path(), "k");
        state.ensure().unwrap();
        fs::write(state.file("timers.json"), "{}").unwrap();
        fs::write(state.file("server.log"), "long").unwrap();
        fs::create_dir(state.file("scratchpads")).unwrap();
        fs::write(state.file("scratchpads/plan.md"), "first this").unwrap();
        fs::create_dir_all(state.file("output/p1")).unwrap();
        let (copy, to) = StateCopy::of(&state, "k").unwrap();
        assert_eq!(fs::read(to.file("timers.json")).unwrap(), b"{}");
        assert_eq!(fs::read(to.file("scratchpads/plan.md")).unwrap(), b"first this");
        assert!(to.file("output/p1").is_dir() && !to.file("server.log").exists());
        fs::write(to.file("timers.json"), "changed").unwrap();
        drop(copy);
        assert!(!to.path().exists());
        assert_eq!(fs::read(state.file("timers.json")).unwrap(), b"{}");
        assert!(state.file("output/p1").is_dir());
    }
}
