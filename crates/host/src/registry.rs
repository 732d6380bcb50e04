//! Which server serves which project. A lock decides which server is active; an entry beside it
//! says where to find it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use patterm_keeper::timespec;
pub use patterm_wire::requests::ServerEntry;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::enclosing_keeper::suspended_keeper;
use crate::runtime::{self, RuntimeDir, RuntimeError};
use patterm_store::private::PrivateDir;
use patterm_store::project::{Project, is_key, key_of};
use patterm_store::state::{self, StateDir, StateError};

const ENTRY_VERSION: u32 = 1;

/// The second copy of the entry: even clients that start their MCP servers without
/// XDG_RUNTIME_DIR find the state folder.
const ENTRY_IN_STATE: &str = "server.json";

/// The largest entry that is read: two paths of up to 4 KiB, with up to six bytes per byte, and
/// a margin.
const ENTRY_BYTES: u64 = 64 << 10;

/// Parses the entry of the project with this key. `None` if it belongs to another project or
/// was not written by a server: it must not mislead a client.
#[must_use]
pub fn parse_entry(key: &str, text: &[u8]) -> Option<ServerEntry> {
    // Entries are written atomically, so one that cannot be parsed was not written by a server.
    let entry: ServerEntry = serde_json::from_slice(text).ok()?;
    let of_this_project = entry.key == key && key_of(&entry.project) == key;
    let could_run = entry.project.is_absolute() && entry.socket.is_absolute() && entry.pid > 0;
    (of_this_project && could_run).then_some(entry)
}

/// The result of trying to become a project's server.
#[derive(Debug)]
pub enum LockAttempt {
    /// This process is the server.
    Ours(ServerLock),
    /// Another server is active.
    Running(ServerEntry),
}

/// Why the attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum ServerLockError {
    /// The runtime folder cannot be used.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A lock file cannot be used.
    #[error("cannot lock {path}: {source}")]
    Lock {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A server holds the lock, but cannot be reached.
    #[error(
        "the server of {} (pid {}) is running, but its socket {} is gone; end it with `kill {}`",
        .0.project.display(), .0.pid, .0.socket.display(), .0.pid
    )]
    Unreachable(Box<ServerEntry>),
}

/// How long a killed server may take to disappear: the kernel closes its socket before it
/// releases its locks, and a program that the server was starting holds both until it is executed. That takes a
/// moment on a busy machine.
const DYING_PATIENCE: Duration = Duration::from_secs(5);

/// How often a lock is tried whose holder has ended: nothing signals that it is released.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// The right to serve a project, held as long as this value exists. The kernel releases the
/// locks however the process ends.
#[derive(Debug)]
pub struct ServerLock {
    /// The folders with an entry, and its name in each.
    entries: [(PathBuf, String); 2],
    _locks: [Option<File>; 2],
    /// Held from the first check until the entry is written, so that a rival that finds the
    /// project locked also finds the entry, in whichever folder it shares with us.
    starting: [Option<File>; 2],
}

impl ServerLock {
    /// Tries to become the server of `project`. Waits while another start is in progress.
    pub fn claim(
        project: &Project,
        runtime: &RuntimeDir,
        state: &StateDir,
    ) -> Result<LockAttempt, ServerLockError> {
        let key = project.key();
        let entries =
            [(runtime.make()?, format!("{key}.json")), (state.make()?, ENTRY_IN_STATE.to_owned())];
        let lock_names = [format!("{key}.lock"), "server.lock".to_owned()];
        // Always in this order, so that two rivals cannot deadlock.
        let starting = [
            lock(&entries[0].0, &format!("{key}.starting"), Patience::Wait)?,
            lock(&entries[1].0, "server.starting", Patience::Wait)?,
        ];
        let mut held = [None, None];
        for ((held, name), (folder, entry)) in held.iter_mut().zip(&lock_names).zip(&entries) {
            *held = lock(folder, name, Patience::Refuse)?;
            if held.is_some() {
                continue;
            }
            match read_entry(folder, entry, key) {
                Some(entry) if is_listening(&entry) => return Ok(LockAttempt::Running(entry)),
                // It was killed a moment ago.
                Some(entry) => {
                    let deadline = Instant::now() + DYING_PATIENCE;
                    let ended = wait_for_end(entry.pid, deadline);
                    *held = lock(folder, name, Patience::Refuse)?;
                    while ended && held.is_none() && Instant::now() < deadline {
                        let _ = poll(&mut [], Some(&timespec(LOCK_INTERVAL)));
                        *held = lock(folder, name, Patience::Refuse)?;
                    }
                    if held.is_none() {
                        return Err(ServerLockError::Unreachable(Box::new(entry)));
                    }
                }
                // Locked without an entry: that server is shutting down.
                None => *held = lock(folder, name, Patience::Wait)?,
            }
        }
        let entries = entries.map(|(folder, name)| (folder.path().to_owned(), name));
        let server_lock = Self { entries, _locks: held, starting };
        // Entries of killed servers are stale from now on.
        server_lock.retire();
        Ok(LockAttempt::Ours(server_lock))
    }

    /// Writes the entry, so that clients and rivals find this server.
    pub fn publish(&mut self, entry: &ServerEntry) -> Result<(), StateError> {
        self.update(entry)?;
        self.starting = [None, None];
        Ok(())
    }

    /// Rewrites the entry.
    pub fn update(&self, entry: &ServerEntry) -> Result<(), StateError> {
        self.entries.iter().try_for_each(|(folder, name)| {
            state::write_reserved(&folder.join(name), ENTRY_VERSION, entry)
        })
    }

    /// Removes the entry; the project stays locked until the value is dropped.
    pub fn retire(&self) {
        for (folder, name) in &self.entries {
            if let Ok(folder) = PrivateDir::open_to_write(folder) {
                let _ = folder.remove(name);
            }
        }
    }
}

/// The entries of a project's servers, likeliest first. All but one are stale, and even that
/// one may be: only a connection attempt can tell.
pub fn find(key: &str, folders: &[RuntimeDir], state: Option<&StateDir>) -> Vec<ServerEntry> {
    let name = format!("{key}.json");
    let in_runtime = folders.iter().filter_map(|folder| read_entry(&folder.open()?, &name, key));
    let in_state = state.and_then(|state| read_entry(&state.open()?, ENTRY_IN_STATE, key));
    let mut found = Vec::new();
    for entry in in_runtime.chain(in_state) {
        if !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}

/// Whether a keeper may hold panes of a project, even if no server is running.
pub fn is_kept(key: &str, folders: &[RuntimeDir]) -> bool {
    let listens = |folder: &RuntimeDir| runtime::has_listener(&folder.file(key, "keeper"));
    folders.iter().any(|folder| folder.open().is_some() && listens(folder))
}

/// Held while a server is replaced, until the next one serves. Clients wait for that one and start none themselves.
#[derive(Debug)]
pub struct Replacement {
    _lock: Option<File>,
}

impl Replacement {
    /// Begins to replace the server of a project. If that cannot be announced, clients may start a server meanwhile.
    pub fn begin(key: &str, folder: &RuntimeDir) -> Self {
        let lock = || lock(&folder.make().ok()?, &replacement_lock(key), Patience::Wait).ok()?;
        Self { _lock: lock() }
    }

    /// Whether the server of a project is being replaced.
    #[must_use]
    pub fn is_going_on(key: &str, folders: &[RuntimeDir]) -> bool {
        let is_held = |folder: &RuntimeDir| {
            let file = folder.open()?.file(&replacement_lock(key)).ok()?;
            Some(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
        };
        folders.iter().any(|folder| is_held(folder).unwrap_or(false))
    }
}

fn replacement_lock(key: &str) -> String {
    format!("{key}.replacing")
}

/// How often the keeper is checked while waiting: nothing signals its death.
const KEEPER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A keeper that is suspended for longer than this is reported: it was not just a debugger's pause.
const SUSPENDED_PATIENCE: Duration = Duration::from_secs(2);

/// While a keeper is running, only it starts the project's server, in its own environment. Asks
/// it for one and waits until it serves. `None` if no keeper is running, or it ended.
pub fn kept_server(
    key: &str,
    folders: &[RuntimeDir],
    state: Option<&StateDir>,
    patience: Duration,
) -> io::Result<Option<ServerEntry>> {
    let Some(folder) = folders.iter().find(|folder| is_kept(key, std::slice::from_ref(*folder)))
    else {
        return Ok(None);
    };
    // Before the first check, so that no change is missed.
    let coming = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&coming, folder.folder(), inotify::WatchFlags::MOVED_TO)?;
    let wanted = format!("{key}.{}", patterm_keeper::START_REQUEST);
    if let Some(folder) = folder.open() {
        folder.lock_file(&wanted)?;
    }
    let deadline = Instant::now() + patience;
    let suspended_deadline = Instant::now() + SUSPENDED_PATIENCE;
    let outcome = loop {
        let mut entries = find(key, folders, state).into_iter();
        if let Some(serving) = entries.find(is_listening) {
            break Some(serving);
        }
        if !is_kept(key, std::slice::from_ref(folder)) {
            break None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if Instant::now() >= suspended_deadline
            && let Some(pid) = suspended_keeper(&folder.file(key, "keeper"))
        {
            let message = format!(
                "the keeper of this project's programs (pid {pid}) is suspended and cannot \
                 start a server; resume it with `kill -CONT {pid}`"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        if left.is_zero() {
            let message = format!(
                "the keeper of this project's programs did not start a server within {patience:?}; see \
                 server.log for the reason"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        let pause = left.min(KEEPER_CHECK_INTERVAL);
        let _ = poll(&mut [PollFd::new(&coming, PollFlags::IN)], Some(&timespec(pause)));
        let mut space = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&coming, &mut space);
        while events.next().is_ok() {}
    };
    // An older keeper does not remove it.
    if let Some(folder) = folder.open() {
        let _ = folder.remove(&wanted);
    }
    Ok(outcome)
}

/// The entries of this user's servers, sorted by project. It waits for nothing and changes nothing, so that some may
/// be stale: only a connection attempt can tell.
pub fn entries(folders: &[RuntimeDir]) -> Vec<ServerEntry> {
    let mut entries = Vec::new();
    for folder in folders.iter().filter_map(RuntimeDir::open) {
        for name in folder.names().unwrap_or_default() {
            let Some(name) = name.to_str() else { continue };
            let Some(key) = name.strip_suffix(".json").filter(|key| is_key(key)) else { continue };
            entries.extend(read_entry(&folder, name, key));
        }
    }
    entries.sort_by(|a, b| a.project.cmp(&b.project));
    entries.dedup_by(|a, b| a.pid == b.pid && a.key == b.key);
    entries
}

/// All running servers of this user, sorted by project; removes the entries of dead ones.
pub fn list(folders: &[RuntimeDir]) -> Vec<ServerEntry> {
    let mut entries = Vec::new();
    for folder in folders.iter().filter_map(RuntimeDir::open) {
        for name in folder.names().unwrap_or_default() {
            let Some(name) = name.to_str() else { continue };
            let Some(key) = name.strip_suffix(".json").filter(|key| is_key(key)) else { continue };
            let Some(entry) = read_entry(&folder, name, key) else { continue };
            // A concurrent start must not mistake our brief lock for a server.
            let _starting = lock(&folder, &format!("{key}.starting"), Patience::Wait);
            match lock(&folder, &format!("{key}.lock"), Patience::Refuse) {
                Ok(Some(_lock)) => drop(folder.remove(name)),
                Ok(None) | Err(_) => entries.push(entry),
            }
        }
    }
    entries.sort_by(|a, b| a.project.cmp(&b.project));
    entries.dedup_by(|a, b| a.pid == b.pid && a.key == b.key);
    entries
}

fn read_entry(folder: &PrivateDir, name: &str, key: &str) -> Option<ServerEntry> {
    parse_entry(key, &folder.read(name, ENTRY_BYTES).ok()?)
}

fn is_listening(entry: &ServerEntry) -> bool {
    runtime::connect(&entry.socket).is_ok_and(|stream| stream.is_some())
}

/// Waits until a dying process has ended; returns whether it has.
fn wait_for_end(pid: u32, deadline: Instant) -> bool {
    let process = Pid::from_raw(pid.cast_signed());
    let Some(Ok(process)) = process.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return true;
    };
    let left = timespec(deadline.saturating_duration_since(Instant::now()));
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0)
}

#[derive(Clone, Copy, PartialEq)]
enum Patience {
    Wait,
    Refuse,
}

/// Locks a file of ours; `None` if another process has it and we do not wait.
fn lock(
    folder: &PrivateDir,
    name: &str,
    patience: Patience,
) -> Result<Option<File>, ServerLockError> {
    let failed = |source| ServerLockError::Lock { path: folder.path().join(name), source };
    let file = folder.lock_file(name).map_err(|refusal| failed(refusal.into()))?;
    if patience == Patience::Wait {
        file.lock().map_err(failed)?;
        return Ok(Some(file));
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    struct Place {
        _top: tempfile::TempDir,
        project: Project,
        runtime: RuntimeDir,
        state: StateDir,
    }

    fn place() -> Place {
        let top = tempfile::tempdir().unwrap();
        let project = Project::of(top.path()).unwrap();
        let runtime = RuntimeDir::for_session(Some(top.path()));
        let state = StateDir::within(top.path(), project.key());
        Place { _top: top, project, runtime, state }
    }

    impl Place {
        fn claim(&self) -> LockAttempt {
            ServerLock::claim(&self.project, &self.runtime, &self.state).unwrap()
        }

        fn entry(&self, pid: u32) -> ServerEntry {
            ServerEntry {
                pid,
                socket: self.runtime.socket(pid).unwrap(),
                project: self.project.root().to_owned(),
                key: self.project.key().to_owned(),
                patterm: "1".into(),
                started_at: 0,
                http: None,
            }
        }

        /// Becomes the server with this id: listens, and publishes its entry.
        fn serve(&self, mut server_lock: ServerLock, pid: u32) -> (ServerLock, UnixListener) {
            let entry = self.entry(pid);
            let listener = UnixListener::bind(&entry.socket).unwrap();
            server_lock.publish(&entry).unwrap();
            (server_lock, listener)
        }

        fn find(&self) -> Vec<u32> {
            self.find_beside(&self.runtime)
        }

        fn find_beside(&self, runtime: &RuntimeDir) -> Vec<u32> {
            let found = find(self.project.key(), std::slice::from_ref(runtime), Some(&self.state));
            found.iter().map(|entry| entry.pid).collect()
        }

        /// A runtime folder of another session.
        fn elsewhere(&self) -> RuntimeDir {
            let folder = self.runtime.folder().join("elsewhere");
            std::fs::create_dir_all(&folder).unwrap();
            RuntimeDir::for_session(Some(&folder))
        }
    }

    #[test]
    fn the_second_claim_finds_the_first() {
        let place = place();
        let LockAttempt::Ours(server_lock) = place.claim() else { panic!("nobody else is there") };
        let (server_lock, _listener) = place.serve(server_lock, 7);
        assert!(matches!(place.claim(), LockAttempt::Running(entry) if entry.pid == 7));
        assert_eq!(place.find(), [7]);
        assert_eq!(list(std::slice::from_ref(&place.runtime)).len(), 1);
        server_lock.retire();
        assert_eq!(place.find(), [] as [u32; 0]);
    }

    #[test]
    fn a_server_that_died_is_replaced_and_its_entry_removed() {
        let place = place();
        let LockAttempt::Ours(mut server_lock) = place.claim() else {
            panic!("nobody else is there")
        };
        server_lock.publish(&place.entry(7)).unwrap();
        drop(server_lock); // as the kernel does at kill -9
        assert_eq!(place.find(), [7], "the entry is still there");
        assert_eq!(list(std::slice::from_ref(&place.runtime)), []);
        assert!(matches!(place.claim(), LockAttempt::Ours(_)));
        assert_eq!(place.find(), [] as [u32; 0]);
    }

    #[test]
    fn a_rival_finds_a_server_from_another_runtime_folder() {
        let place = place();
        let LockAttempt::Ours(server_lock) = place.claim() else { panic!("nobody else is there") };
        let _server = place.serve(server_lock, 7);
        let other = place.elsewhere();
        let claim = ServerLock::claim(&place.project, &other, &place.state).unwrap();
        assert!(matches!(claim, LockAttempt::Running(entry) if entry.pid == 7));
        assert_eq!(place.find_beside(&other), [7]);
    }

    #[test]
    fn a_running_server_is_found_behind_the_entry_of_a_dead_one() {
        let place = place();
        let LockAttempt::Ours(mut dead) = place.claim() else { panic!("nobody else is there") };
        dead.publish(&place.entry(7)).unwrap();
        drop(dead);
        let claim = ServerLock::claim(&place.project, &place.elsewhere(), &place.state).unwrap();
        let LockAttempt::Ours(mut server_lock) = claim else { panic!("the other is dead") };
        server_lock.publish(&place.entry(8)).unwrap();
        assert_eq!(place.find(), [7, 8]);
    }

    #[test]
    fn a_start_in_another_runtime_folder_waits_only_for_the_entry() {
        let place = place();
        let LockAttempt::Ours(server_lock) = place.claim() else { panic!("nobody else is there") };
        std::thread::scope(|scope| {
            let other = place.elsewhere();
            let (project, state) = (&place.project, &place.state);
            let rival = scope.spawn(move || ServerLock::claim(project, &other, state).unwrap());
            // Before or after the rival's check: both must work.
            let _server = place.serve(server_lock, 7);
            let claim = rival.join().unwrap();
            assert!(matches!(claim, LockAttempt::Running(entry) if entry.pid == 7));
        });
    }

    #[test]
    fn a_server_that_is_dying_is_waited_for_and_replaced() {
        let place = place();
        let LockAttempt::Ours(mut server_lock) = place.claim() else {
            panic!("nobody else is there")
        };
        #[expect(clippy::disallowed_methods, reason = "a process that ends on request")]
        let mut dying =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        // Its socket is closed, but its locks are not released yet.
        server_lock.publish(&place.entry(dying.id())).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| place.claim());
            drop(server_lock);
            drop(dying.stdin.take());
            assert!(matches!(next.join().unwrap(), LockAttempt::Ours(_)));
        });
        dying.wait().unwrap();
    }

    #[test]
    fn listing_servers_does_not_prevent_a_start_from_replacing_a_dead_one() {
        let place = place();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    list(std::slice::from_ref(&place.runtime));
                }
            });
            for n in 1..=100 {
                let claim = place.claim();
                let ours = matches!(claim, LockAttempt::Ours(_));
                if let LockAttempt::Ours(mut server_lock) = claim {
                    server_lock.publish(&place.entry(n)).unwrap();
                }
                if !ours || n == 100 {
                    done.store(true, std::sync::atomic::Ordering::SeqCst);
                }
                assert!(ours, "start {n} mistook a check for a server");
            }
        });
    }

    #[test]
    fn exactly_one_of_many_simultaneous_claims_wins_and_the_others_find_it() {
        let place = place();
        let wins = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let claims: Vec<_> = (1..=8)
                .map(|n| {
                    let (place, wins) = (&place, &wins);
                    scope.spawn(move || match place.claim() {
                        LockAttempt::Ours(server_lock) => {
                            wins.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            Some(place.serve(server_lock, n))
                        }
                        LockAttempt::Running(_) => None,
                    })
                })
                .collect();
            let seats: Vec<_> = claims.into_iter().filter_map(|c| c.join().unwrap()).collect();
            assert_eq!(seats.len(), 1);
        });
        assert_eq!(wins.into_inner(), 1);
    }
}
