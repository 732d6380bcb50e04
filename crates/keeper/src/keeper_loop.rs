//! The keeper's event loop: one thread that waits for the server, for inits that exit, and for the
//! time to restart the server. It reads no output and knows nothing about its programs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::adopted::AdoptedInits;
use crate::client::{has_listener, timespec};
use crate::detach::start_detached;
use crate::ending::{CHECK_INTERVAL, EndingPane, survivor};
use crate::init::children;
use crate::message::{
    KeeperReply, KeeperRequest, MESSAGE_BYTES, Received, Survivor, receive, send,
};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault, spawn};

/// A server that stops in the middle of a message is disconnected after this.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last programs may take to exit when the server ends on purpose.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before the server is restarted, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A server that ran this long did not fail to start: the pauses begin again.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// How soon killed strays are checked again, at first and after that many rounds: what is left then
/// cannot be killed.
const STRAY_INTERVAL: Duration = Duration::from_millis(20);
const FAST_ROUNDS: u32 = 100;
const SLOW_STRAY_INTERVAL: Duration = Duration::from_secs(1);

/// How often the keeper checks that its socket is still its own while no server is connected.
const SOCKET_INTERVAL: Duration = Duration::from_millis(250);

/// The extension of the file beside the keeper's socket with which a client requests a server at
/// once. A client must not connect: every connection is taken for the server's.
pub const START_REQUEST: &str = "wanted";

/// How often that file is looked for while there is no server.
const START_REQUEST_INTERVAL: Duration = Duration::from_millis(50);

/// Where the keeper listens and how it starts the server.
#[derive(Debug)]
pub struct KeeperOptions {
    /// Its socket.
    pub socket: PathBuf,
    /// The program and arguments that start a server in the background.
    pub server: Vec<OsString>,
}

struct PaneEntry {
    pane: Pane,
    /// The init and its pidfd; `None` once it exited, and for an adopted pane, whose init is not a
    /// child of this keeper.
    init: Option<(Pid, OwnedFd)>,
    adopted: bool,
}

struct KeeperLoop {
    options: KeeperOptions,
    listener: UnixListener,
    /// The device and the inode of the socket's file.
    socket_identity: (u64, u64),
    server: Option<UnixStream>,
    panes: BTreeMap<String, PaneEntry>,
    /// The inits of panes that another keeper started.
    adopted_inits: AdoptedInits,
    /// Panes that the server dropped, until nothing is left in them.
    ending: Vec<EndingPane>,
    /// Stray children were killed and are still to be reaped.
    strays: bool,
    /// Consecutive checks that found strays.
    stray_rounds: u32,
    /// When the server last connected.
    server_since: Instant,
    pause: Duration,
    /// When to start the server, if it must be started.
    start_at: Option<Instant>,
}

/// What happened.
enum Event {
    Server,
    Connection,
    /// An init exited.
    Child,
}

/// Keeps panes until the server ends on purpose. Must be called in a single-threaded process.
pub fn run(options: KeeperOptions) -> io::Result<()> {
    let _ = rustix::process::setsid();
    crate::descriptors::raise_limit();
    // If an init is killed, its processes are reparented to us instead of running on unnoticed.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if has_listener(&options.socket) {
        let message =
            format!("another keeper is already listening at {}", options.socket.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    let _ = std::fs::remove_file(&options.socket);
    let (listener, socket_identity) = bind(&options.socket)?;
    report_ready()?;
    let mut keeper = KeeperLoop {
        options,
        listener,
        socket_identity,
        server: None,
        panes: BTreeMap::new(),
        adopted_inits: AdoptedInits::default(),
        ending: Vec::new(),
        strays: false,
        stray_rounds: 0,
        server_since: Instant::now(),
        pause: FIRST_PAUSE,
        // The server that started us may die before it connects.
        start_at: Some(Instant::now() + STABLE_AFTER),
    };
    let outcome = keeper.run();
    if identity(&keeper.options.socket).is_ok_and(|found| found == keeper.socket_identity) {
        let _ = std::fs::remove_file(&keeper.options.socket);
    }
    outcome
}

impl KeeperLoop {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let events = self.wait()?;
            if self.strays || events.iter().any(|event| matches!(event, Event::Child)) {
                self.reap();
            }
            self.adopted_inits.check();
            self.advance_endings();
            for event in events {
                match event {
                    Event::Connection => self.accept(),
                    Event::Child => {}
                    Event::Server => {
                        if self.serve() {
                            return Ok(());
                        }
                    }
                }
            }
            if self.start_at.is_some() && self.is_displaced() {
                // Another keeper replaced this one. Panes that neither that keeper nor the server
                // took over have no holder left, so their inits end them.
                return Ok(());
            }
            if self.start_at.is_some_and(|at| Instant::now() >= at || self.is_start_requested()) {
                self.start_server();
            }
        }
    }

    /// Whether the socket's path belongs to another process. If it is gone, it is created again.
    fn is_displaced(&mut self) -> bool {
        match identity(&self.options.socket) {
            Ok(found) => found != self.socket_identity,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match bind(&self.options.socket) {
                    Ok((listener, socket_identity)) => {
                        (self.listener, self.socket_identity) = (listener, socket_identity);
                        false
                    }
                    Err(error) => error.kind() == io::ErrorKind::AddrInUse,
                }
            }
            Err(_) => false,
        }
    }

    /// Makes progress with panes that are being ended.
    fn advance_endings(&mut self) {
        self.ending.retain(|ending| !ending.is_done());
        self.ending.iter().for_each(EndingPane::unblock_init);
    }

    fn wait(&self) -> io::Result<Vec<Event>> {
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let mut events = vec![Event::Connection];
        if let Some(server) = &self.server {
            watched.push(PollFd::new(server, PollFlags::IN));
            events.push(Event::Server);
        }
        let inits = self.panes.values().filter_map(|entry| entry.init.as_ref());
        for (_, pidfd) in inits {
            watched.push(PollFd::new(pidfd, PollFlags::IN));
            events.push(Event::Child);
        }
        for ending in &self.ending {
            watched.push(ending.watch());
            events.push(Event::Child);
        }
        for adopted in self.adopted_inits.watch() {
            watched.push(adopted);
            events.push(Event::Child);
        }
        let start = self.start_at.map(|at| at.saturating_duration_since(Instant::now()));
        let start = start.map(|start| start.min(SOCKET_INTERVAL).min(START_REQUEST_INTERVAL));
        let ending = self.ending.iter().map(EndingPane::pause).min();
        let pauses = start.into_iter().chain(self.stray_pause()).chain(ending);
        let pause = pauses.chain(self.adopted_inits.pause()).min().map(timespec);
        match poll(&mut watched, pause.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(e) => return Err(e.into()),
        }
        let ready = watched.iter().map(|w| !w.revents().is_empty()).collect::<Vec<_>>();
        Ok(events.into_iter().zip(ready).filter(|(_, r)| *r).map(|(event, _)| event).collect())
    }

    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let ours = rustix::net::sockopt::socket_peercred(&stream)
            .is_ok_and(|peer| peer.uid == rustix::process::getuid());
        let ready = stream.set_read_timeout(Some(MESSAGE_TIMEOUT)).is_ok()
            && stream.set_write_timeout(Some(MESSAGE_TIMEOUT)).is_ok();
        if ours && ready {
            // The newest server wins: a lock ensures that there is only one.
            self.server = Some(stream);
            self.server_since = Instant::now();
            self.start_at = None;
        }
    }

    /// Serves one request; `true` if the server ends on purpose.
    fn serve(&mut self) -> bool {
        let Some(server) = self.server.take() else { return false };
        let answered = match receive::<KeeperRequest>(&server) {
            Ok(Received::Message(
                request @ (KeeperRequest::End | KeeperRequest::EndAll { .. }),
                _,
            )) => {
                // Answered when it is done: the server's caller relies on it.
                let left = self.end_all();
                let reply = match request {
                    KeeperRequest::EndAll { id } => KeeperReply::Ended { id, left },
                    _ => KeeperReply::Done,
                };
                let _ = send(&server, &reply, &[]);
                return true;
            }
            Ok(Received::Message(request, descriptors)) => {
                self.answer(&server, request, descriptors)
            }
            Ok(Received::TooLong(bytes)) => {
                // Only a 0.1.0 server sends one, and only to start a program.
                let message = format!(
                    "the program's arguments and environment take {bytes} bytes in a message, but the \
                     limit is {MESSAGE_BYTES}"
                );
                send(
                    &server,
                    &KeeperReply::Failed(SpawnError::new(SpawnFault::Request, message)),
                    &[],
                )
            }
            Ok(Received::End) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        };
        match answered {
            Ok(()) => self.server = Some(server),
            Err(_) => self.server_lost(),
        }
        false
    }

    fn answer(
        &mut self,
        server: &UnixStream,
        request: KeeperRequest,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<()> {
        match request {
            KeeperRequest::Spawn { pane, program, id } => {
                match self.spawn(&pane, &program, descriptors) {
                    Ok(entry) => {
                        send(server, &KeeperReply::Pane { pane, id }, &entry.pane.descriptors())
                    }
                    Err(error) => send(server, &KeeperReply::failed(id, error), &[]),
                }
            }
            KeeperRequest::List => self.list(server, None),
            KeeperRequest::ListPanes { id } => self.list(server, Some(id)),
            KeeperRequest::Adopt { pane, id } => {
                if let Some(adopted) = Pane::from_descriptors(descriptors) {
                    self.adopted_inits.add(&adopted);
                    let entry = PaneEntry { pane: adopted, init: None, adopted: true };
                    self.panes.insert(pane, entry);
                }
                send(server, &KeeperReply::done(id), &[])
            }
            KeeperRequest::Forget { pane, id } => {
                if let Some(entry) = self.panes.remove(&pane) {
                    self.ending.push(EndingPane::begin(entry.pane, entry.init, entry.adopted));
                }
                send(server, &KeeperReply::done(id), &[])
            }
            KeeperRequest::End | KeeperRequest::EndAll { .. } => Ok(()),
        }
    }

    fn list(&self, server: &UnixStream, id: Option<u64>) -> io::Result<()> {
        for (name, entry) in &self.panes {
            let reply = KeeperReply::Pane { pane: name.clone(), id };
            send(server, &reply, &entry.pane.descriptors())?;
        }
        send(server, &KeeperReply::done(id), &[])
    }

    /// Starts a program, with the streams that were sent instead of a terminal.
    fn spawn(
        &mut self,
        name: &str,
        program: &Program,
        streams: Vec<OwnedFd>,
    ) -> Result<&PaneEntry, SpawnError> {
        if self.panes.contains_key(name) {
            let message = format!("the pane {name} already exists");
            return Err(SpawnError::new(SpawnFault::System, message));
        }
        let (pane, init, pidfd) = spawn(program, streams.try_into().ok())?;
        let entry = PaneEntry { pane, init: Some((init, pidfd)), adopted: false };
        Ok(self.panes.entry(name.to_owned()).or_insert(entry))
    }

    /// The server disconnected unexpectedly: start another, with growing pauses while none
    /// survives.
    fn server_lost(&mut self) {
        self.server = None;
        if self.server_since.elapsed() >= STABLE_AFTER {
            self.pause = FIRST_PAUSE;
        }
        self.start_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether a client requested a server since the last one was started.
    fn is_start_requested(&self) -> bool {
        std::fs::remove_file(self.options.socket.with_extension(START_REQUEST)).is_ok()
    }

    /// Starts a server; if it does not connect before the next pause is over, another is started.
    fn start_server(&mut self) {
        self.start_at = Some(Instant::now() + self.pause.max(STABLE_AFTER));
        let Some((program, arguments)) = self.options.server.split_first() else { return };
        let start = |program: &OsStr| {
            #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
            crate::descriptors::pass_original_limit(&mut command);
            start_detached(&mut command)
        };
        // An error needs no report: the next attempt follows by itself.
        if start(program).is_err() {
            // Its file was removed or moved; this process runs the same program.
            let _ = start(OsStr::new("/proc/self/exe"));
        }
    }

    /// Reaps every child that exited, and kills strays, whose init was killed.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        while let Ok(Some((child, _))) = wait(WaitOptions::NOHANG) {
            ended.push(child);
        }
        let gone = |child: &Pid| ended.contains(child);
        let inits = self.panes.values_mut().map(|entry| &mut entry.init);
        for init in inits.chain(self.ending.iter_mut().map(|ending| &mut ending.init)) {
            init.take_if(|(init, _)| gone(init));
        }
        let strays = self.stray_children();
        self.strays = !strays.is_empty();
        self.stray_rounds = if self.strays { self.stray_rounds.saturating_add(1) } else { 0 };
        for stray in strays {
            let _ = kill_process(stray, Signal::KILL);
        }
    }

    /// Children that are not inits.
    fn stray_children(&self) -> Vec<Pid> {
        let held = self.panes.values().filter_map(|entry| entry.init.as_ref());
        let ending = self.ending.iter().filter_map(|ending| ending.init.as_ref());
        let known: Vec<Pid> = held.chain(ending).map(|(child, _)| *child).collect();
        children().into_iter().filter(|child| !known.contains(child)).collect()
    }

    /// When to check for strays again.
    fn stray_pause(&self) -> Option<Duration> {
        let is_fast = self.stray_rounds < FAST_ROUNDS;
        self.strays.then_some(if is_fast { STRAY_INTERVAL } else { SLOW_STRAY_INTERVAL })
    }

    /// Ends everything in every pane and waits for it. Returns what could not be ended.
    fn end_all(&mut self) -> Vec<Survivor> {
        for (_, entry) in std::mem::take(&mut self.panes) {
            self.ending.push(EndingPane::begin(entry.pane, entry.init, entry.adopted));
        }
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            self.advance_endings();
            let left = deadline.saturating_duration_since(Instant::now());
            self.adopted_inits.check();
            let is_done = self.ending.is_empty() && !self.strays && self.adopted_inits.is_done();
            if is_done || left.is_zero() {
                break;
            }
            let mut watched: Vec<_> = self.ending.iter().map(EndingPane::watch).collect();
            let pauses = self.stray_pause().into_iter().chain(self.adopted_inits.pause());
            let pause = pauses.min().unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL).min(left);
            match poll(&mut watched, Some(&timespec(pause))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Waiting is impossible; what is running now is what is left.
                Err(_) => break,
            }
            drop(watched);
            self.reap();
        }
        let strays = self.stray_children().into_iter();
        let strays = strays.filter_map(|stray| survivor(stray.as_raw_nonzero().get()));
        let left = strays.chain(self.adopted_inits.survivors());
        self.ending.iter().flat_map(EndingPane::survivors).chain(left).collect()
    }
}

/// Writes one byte to the process that started us, then closes standard output.
fn report_ready() -> io::Result<()> {
    let _ = rustix::io::write(rustix::stdio::stdout(), b"!");
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    Ok(())
}

/// Listens with mode 0600 at an unused path. Also returns the identity of the socket's file.
fn bind(path: &Path) -> io::Result<(UnixListener, (u64, u64))> {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok((listener, identity(path)?))
}

/// What distinguishes a file from any other at its path: its device and inode.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
