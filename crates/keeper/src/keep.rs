//! The keeper's event loop: one thread that waits for the server, for inits that exit, and for the
//! time to restart the server.

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

use crate::adopted::Adoptions;
use crate::client::{is_listened_at, timespec};
use crate::detach::start_outside;
use crate::ending::{Ending, LOOK_AGAIN, survivor};
use crate::init::children;
use crate::message::{MESSAGE_BYTES, Received, Reply, Request, Survivor, receive, send};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault, spawn};

/// A server that stops in the middle of a message is disconnected after this.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(5);

/// How long the last programs may take to exit when the server ends on purpose.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The pause before the server is restarted, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A server that ran this long did not fail to start: the pauses begin again.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// How soon killed strays are checked again, at first and after that many rounds: what is left then
/// cannot be killed.
const STRAYS_AGAIN: Duration = Duration::from_millis(20);
const HASTY_ROUNDS: u32 = 100;
const STRAYS_LATER: Duration = Duration::from_secs(1);

/// How often the keeper checks that its socket is still its own while no server is connected.
const SOCKET_AGAIN: Duration = Duration::from_millis(250);

/// The extension of the file beside the keeper's socket with which a client requests a server at
/// once. A client must not connect: every connection is taken for the server's.
pub const WANTED: &str = "wanted";

/// How often that file is looked for while there is no server.
const WANTED_AGAIN: Duration = Duration::from_millis(50);

/// Where the keeper listens and how it starts the server.
#[derive(Debug)]
pub struct Options {
    /// Its socket.
    pub socket: PathBuf,
    /// The program and arguments that start a server in the background.
    pub server: Vec<OsString>,
}

struct Kept {
    pane: Pane,
    /// The init and its pidfd; `None` once it exited, and for an adopted pane, whose init is not a
    /// child of this keeper.
    init: Option<(Pid, OwnedFd)>,
    adopted: bool,
}

struct Keep {
    options: Options,
    listener: UnixListener,
    /// The device and the inode of the socket's file.
    bound: (u64, u64),
    server: Option<UnixStream>,
    panes: BTreeMap<String, Kept>,
    /// The inits of panes that another keeper started.
    adoptions: Adoptions,
    /// Panes that the server dropped, until nothing is left in them.
    ending: Vec<Ending>,
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
pub fn run(options: Options) -> io::Result<()> {
    let _ = rustix::process::setsid();
    crate::descriptors::raise_limit();
    // If an init is killed, its processes are reparented to us instead of running on unnoticed.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if is_listened_at(&options.socket) {
        let message = format!("another keeper listens at {}", options.socket.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    let _ = std::fs::remove_file(&options.socket);
    let (listener, bound) = bind(&options.socket)?;
    say_ready()?;
    let mut keep = Keep {
        options,
        listener,
        bound,
        server: None,
        panes: BTreeMap::new(),
        adoptions: Adoptions::default(),
        ending: Vec::new(),
        strays: false,
        stray_rounds: 0,
        server_since: Instant::now(),
        pause: FIRST_PAUSE,
        // The server that started us may die before it connects.
        start_at: Some(Instant::now() + GOOD_LIFE),
    };
    let outcome = keep.run();
    if identity(&keep.options.socket).is_ok_and(|found| found == keep.bound) {
        let _ = std::fs::remove_file(&keep.options.socket);
    }
    outcome
}

impl Keep {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let events = self.wait()?;
            if self.strays || events.iter().any(|event| matches!(event, Event::Child)) {
                self.reap();
            }
            self.adoptions.look();
            self.push_on();
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
            if self.start_at.is_some_and(|at| Instant::now() >= at || self.is_wanted()) {
                self.start_server();
            }
        }
    }

    /// Whether the socket's path belongs to another process. If it is gone, it is created again.
    fn is_displaced(&mut self) -> bool {
        match identity(&self.options.socket) {
            Ok(found) => found != self.bound,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match bind(&self.options.socket) {
                    Ok((listener, bound)) => {
                        (self.listener, self.bound) = (listener, bound);
                        false
                    }
                    Err(error) => error.kind() == io::ErrorKind::AddrInUse,
                }
            }
            Err(_) => false,
        }
    }

    /// Makes progress with panes that are being ended.
    fn push_on(&mut self) {
        self.ending.retain(|ending| !ending.is_done());
        self.ending.iter().for_each(Ending::insist);
    }

    fn wait(&self) -> io::Result<Vec<Event>> {
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let mut events = vec![Event::Connection];
        if let Some(server) = &self.server {
            watched.push(PollFd::new(server, PollFlags::IN));
            events.push(Event::Server);
        }
        let inits = self.panes.values().filter_map(|kept| kept.init.as_ref());
        for (_, life) in inits {
            watched.push(PollFd::new(life, PollFlags::IN));
            events.push(Event::Child);
        }
        for ending in &self.ending {
            watched.push(ending.watch());
            events.push(Event::Child);
        }
        for adopted in self.adoptions.watch() {
            watched.push(adopted);
            events.push(Event::Child);
        }
        let start = self.start_at.map(|at| at.saturating_duration_since(Instant::now()));
        let start = start.map(|start| start.min(SOCKET_AGAIN).min(WANTED_AGAIN));
        let ending = self.ending.iter().map(Ending::pause).min();
        let pauses = start.into_iter().chain(self.stray_pause()).chain(ending);
        let pause = pauses.chain(self.adoptions.pause()).min().map(timespec);
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
        let ready = stream.set_read_timeout(Some(MESSAGE_PATIENCE)).is_ok()
            && stream.set_write_timeout(Some(MESSAGE_PATIENCE)).is_ok();
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
        let answered = match receive::<Request>(&server) {
            Ok(Received::Message(request @ (Request::End | Request::EndAll { .. }), _)) => {
                // Answered when it is done: the server's caller relies on it.
                let left = self.end_all();
                let reply = match request {
                    Request::EndAll { id } => Reply::Ended { id, left },
                    _ => Reply::Done,
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
                send(&server, &Reply::Failed(SpawnError::new(SpawnFault::Request, message)), &[])
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
        request: Request,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<()> {
        match request {
            Request::Spawn { pane, program, id } => {
                match self.spawn(&pane, &program, descriptors) {
                    Ok(kept) => send(server, &Reply::Pane { pane, id }, &kept.pane.descriptors()),
                    Err(error) => send(server, &Reply::failed(id, error), &[]),
                }
            }
            Request::List => self.list(server, None),
            Request::ListPanes { id } => self.list(server, Some(id)),
            Request::Adopt { pane, id } => {
                if let Some(adopted) = Pane::from_descriptors(descriptors) {
                    self.adoptions.add(&adopted);
                    let kept = Kept { pane: adopted, init: None, adopted: true };
                    self.panes.insert(pane, kept);
                }
                send(server, &Reply::done(id), &[])
            }
            Request::Forget { pane, id } => {
                if let Some(kept) = self.panes.remove(&pane) {
                    self.ending.push(Ending::begin(kept.pane, kept.init, kept.adopted));
                }
                send(server, &Reply::done(id), &[])
            }
            Request::End | Request::EndAll { .. } => Ok(()),
        }
    }

    fn list(&self, server: &UnixStream, id: Option<u64>) -> io::Result<()> {
        for (name, kept) in &self.panes {
            let reply = Reply::Pane { pane: name.clone(), id };
            send(server, &reply, &kept.pane.descriptors())?;
        }
        send(server, &Reply::done(id), &[])
    }

    /// Starts a program, with the streams that were sent instead of a terminal.
    fn spawn(
        &mut self,
        name: &str,
        program: &Program,
        streams: Vec<OwnedFd>,
    ) -> Result<&Kept, SpawnError> {
        if self.panes.contains_key(name) {
            let message = format!("the pane {name} exists already");
            return Err(SpawnError::new(SpawnFault::System, message));
        }
        let (pane, init, life) = spawn(program, streams.try_into().ok())?;
        let kept = Kept { pane, init: Some((init, life)), adopted: false };
        Ok(self.panes.entry(name.to_owned()).or_insert(kept))
    }

    /// The server disconnected unexpectedly: start another, with growing pauses while none
    /// survives.
    fn server_lost(&mut self) {
        self.server = None;
        if self.server_since.elapsed() >= GOOD_LIFE {
            self.pause = FIRST_PAUSE;
        }
        self.start_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether a client requested a server since the last one was started.
    fn is_wanted(&self) -> bool {
        std::fs::remove_file(self.options.socket.with_extension(WANTED)).is_ok()
    }

    /// Starts a server; if it does not connect before the next pause is over, another is started.
    fn start_server(&mut self) {
        self.start_at = Some(Instant::now() + self.pause.max(GOOD_LIFE));
        let Some((program, arguments)) = self.options.server.split_first() else { return };
        let start = |program: &OsStr| {
            #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
            crate::descriptors::tell_usual(&mut command);
            start_outside(&mut command)
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
        let inits = self.panes.values_mut().map(|kept| &mut kept.init);
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
        let kept = self.panes.values().filter_map(|kept| kept.init.as_ref());
        let ending = self.ending.iter().filter_map(|ending| ending.init.as_ref());
        let known: Vec<Pid> = kept.chain(ending).map(|(child, _)| *child).collect();
        children().into_iter().filter(|child| !known.contains(child)).collect()
    }

    /// When to check for strays again.
    fn stray_pause(&self) -> Option<Duration> {
        let hasty = self.stray_rounds < HASTY_ROUNDS;
        self.strays.then_some(if hasty { STRAYS_AGAIN } else { STRAYS_LATER })
    }

    /// Ends everything in every pane and waits for it. Returns what could not be ended.
    fn end_all(&mut self) -> Vec<Survivor> {
        for (_, kept) in std::mem::take(&mut self.panes) {
            self.ending.push(Ending::begin(kept.pane, kept.init, kept.adopted));
        }
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            self.push_on();
            let left = deadline.saturating_duration_since(Instant::now());
            self.adoptions.look();
            let is_done = self.ending.is_empty() && !self.strays && self.adoptions.is_done();
            if is_done || left.is_zero() {
                break;
            }
            let mut watched: Vec<_> = self.ending.iter().map(Ending::watch).collect();
            let pauses = self.stray_pause().into_iter().chain(self.adoptions.pause());
            let pause = pauses.min().unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN).min(left);
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
        let left = strays.chain(self.adoptions.survivors());
        self.ending.iter().flat_map(Ending::survivors).chain(left).collect()
    }
}

/// Writes one byte to the process that started us, then closes standard output.
fn say_ready() -> io::Result<()> {
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
