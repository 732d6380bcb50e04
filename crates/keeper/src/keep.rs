//! The keeper's own loop: one thread that waits for the server, for inits that end, and for the
//! time to start the server again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::detach::start_outside;
use crate::init::children;
use crate::message::{Reply, Request, receive, send};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault, spawn};

/// A server that stops in the middle of a message is given up after this.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(5);

/// How long the last programs may take to die when the server ends on purpose.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The pause before the server is started again, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A server that lived this long was no failure: the pauses begin anew.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// How soon killed strays are looked for again.
const STRAYS_AGAIN: Duration = Duration::from_millis(20);

/// The ending of the file beside the keeper's socket by which a client asks for a server at once: it
/// must not connect, since whoever connects is taken for the server.
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
    /// The init's life; `None` for an adopted pane, whose init is nobody's child any more, and
    /// once it ended.
    init: Option<(Pid, OwnedFd)>,
}

struct Keep {
    options: Options,
    listener: UnixListener,
    server: Option<UnixStream>,
    panes: BTreeMap<String, Kept>,
    /// Inits of panes that the server let go of, until they have ended everything.
    ending: Vec<(Pid, OwnedFd)>,
    /// Children that were nobody's were killed and are still to be reaped.
    strays: bool,
    /// When the server was last seen to begin.
    server_since: Instant,
    pause: Duration,
    /// When to start the server, if it is to be started.
    start_at: Option<Instant>,
}

/// What happened.
enum Event {
    Server,
    Connection,
    /// An init ended.
    Child,
}

/// Keeps panes until told to end. Must be called in a process with a single thread.
pub fn run(options: Options) -> io::Result<()> {
    let _ = rustix::process::setsid();
    crate::descriptors::raise_limit();
    // Should an init be killed, what it watched over comes to us rather than run on unseen.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let listener = bind(&options.socket)?;
    say_ready()?;
    let mut keep = Keep {
        options,
        listener,
        server: None,
        panes: BTreeMap::new(),
        ending: Vec::new(),
        strays: false,
        server_since: Instant::now(),
        pause: FIRST_PAUSE,
        // The server that started us may die before it connects.
        start_at: Some(Instant::now() + GOOD_LIFE),
    };
    let outcome = keep.run();
    let _ = std::fs::remove_file(&keep.options.socket);
    outcome
}

impl Keep {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let events = self.wait()?;
            if self.strays || events.iter().any(|event| matches!(event, Event::Child)) {
                self.reap();
            }
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
            if self.start_at.is_some_and(|at| Instant::now() >= at || self.is_wanted()) {
                self.start_server();
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<Event>> {
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let mut events = vec![Event::Connection];
        if let Some(server) = &self.server {
            watched.push(PollFd::new(server, PollFlags::IN));
            events.push(Event::Server);
        }
        let inits = self.panes.values().filter_map(|kept| kept.init.as_ref());
        for (_, life) in inits.chain(&self.ending) {
            watched.push(PollFd::new(life, PollFlags::IN));
            events.push(Event::Child);
        }
        let start = self.start_at.map(|at| at.saturating_duration_since(Instant::now()));
        let start = start.map(|start| start.min(WANTED_AGAIN));
        let strays = self.strays.then_some(STRAYS_AGAIN);
        let pause = start.into_iter().chain(strays).min().map(timespec);
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
            // The newest server is the one: a lock sees to it that there is only one.
            self.server = Some(stream);
            self.server_since = Instant::now();
            self.start_at = None;
        }
    }

    /// Serves one request; `true` if the server ends on purpose.
    fn serve(&mut self) -> bool {
        let Some(server) = self.server.take() else { return false };
        match receive::<Request>(&server) {
            Ok(Some((Request::End, _))) => {
                // Answered when it is done: whoever ended the server may count on it.
                let _ = self.end_all();
                let _ = send(&server, &Reply::Done, &[]);
                return true;
            }
            Ok(Some((request, descriptors))) => {
                if self.answer(&server, request, descriptors).is_ok() {
                    self.server = Some(server);
                } else {
                    self.server_lost();
                }
            }
            Ok(None) | Err(_) => self.server_lost(),
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
            Request::Spawn { pane, program } => match self.spawn(&pane, &program, descriptors) {
                Ok(kept) => send(server, &Reply::Pane { pane }, &kept.pane.descriptors()),
                Err(error) => send(server, &Reply::Failed(error), &[]),
            },
            Request::List => {
                for (name, kept) in &self.panes {
                    let reply = Reply::Pane { pane: name.clone() };
                    send(server, &reply, &kept.pane.descriptors())?;
                }
                send(server, &Reply::Done, &[])
            }
            Request::Adopt { pane } => {
                if let Some(adopted) = Pane::from_descriptors(descriptors) {
                    self.panes.insert(pane, Kept { pane: adopted, init: None });
                }
                send(server, &Reply::Done, &[])
            }
            Request::Forget { pane } => {
                if let Some(kept) = self.panes.remove(&pane) {
                    let _ = kept.pane.kill();
                    self.ending.extend(kept.init);
                }
                send(server, &Reply::Done, &[])
            }
            Request::End => Ok(()),
        }
    }

    /// Starts a program, with the streams that came along instead of a terminal.
    fn spawn(
        &mut self,
        name: &str,
        program: &Program,
        streams: Vec<OwnedFd>,
    ) -> Result<&Kept, SpawnError> {
        if self.panes.contains_key(name) {
            let message = format!("there is a pane {name} already");
            return Err(SpawnError::new(SpawnFault::System, message));
        }
        let (pane, init, life) = spawn(program, streams.try_into().ok())?;
        let kept = Kept { pane, init: Some((init, life)) };
        Ok(self.panes.entry(name.to_owned()).or_insert(kept))
    }

    /// The server is gone without a word: start another, with pauses that grow while none lives.
    fn server_lost(&mut self) {
        self.server = None;
        if self.server_since.elapsed() >= GOOD_LIFE {
            self.pause = FIRST_PAUSE;
        }
        self.start_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether a client asked for a server since the last one was started.
    fn is_wanted(&self) -> bool {
        std::fs::remove_file(self.options.socket.with_extension(WANTED)).is_ok()
    }

    /// Starts a server; if it does not connect before the next pause is over, another is tried.
    fn start_server(&mut self) {
        self.start_at = Some(Instant::now() + self.pause.max(GOOD_LIFE));
        let Some((program, arguments)) = self.options.server.split_first() else { return };
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        crate::descriptors::tell_usual(&mut command);
        // It need not be told here: the next try comes by itself.
        let _ = start_outside(&mut command);
    }

    /// Takes every child that ended, and ends those that are nobody's: their init was killed.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        while let Ok(Some((child, _))) = wait(WaitOptions::NOHANG) {
            ended.push(child);
        }
        let gone = |child: &Pid| ended.contains(child);
        self.ending.retain(|(init, _)| !gone(init));
        for kept in self.panes.values_mut() {
            kept.init.take_if(|(init, _)| gone(init));
        }
        let inits = self.panes.values().filter_map(|kept| kept.init.as_ref());
        let known: Vec<Pid> = inits.chain(&self.ending).map(|(child, _)| *child).collect();
        let strays = children().into_iter().filter(|child| !known.contains(child));
        self.strays = strays.fold(false, |_, stray| {
            let _ = kill_process(stray, Signal::KILL);
            true
        });
    }

    /// Ends everything in every pane and waits for it.
    fn end_all(&mut self) -> io::Result<()> {
        let mut adopted = Vec::new();
        for (_, kept) in std::mem::take(&mut self.panes) {
            let _ = kept.pane.kill();
            match kept.init {
                Some(init) => self.ending.push(init),
                None => adopted.push(kept.pane),
            }
        }
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            adopted.retain(|pane| !is_empty(pane));
            let left = deadline.saturating_duration_since(Instant::now());
            let done = self.ending.is_empty() && adopted.is_empty() && !self.strays;
            if done || left.is_zero() {
                break;
            }
            let mut watched: Vec<_> =
                self.ending.iter().map(|(_, life)| PollFd::new(life, PollFlags::IN)).collect();
            // The bells of an adopted init may be heard by the server; that it is gone, by all.
            watched
                .extend(adopted.iter().map(|pane| PollFd::new(pane.control(), PollFlags::empty())));
            let pause = if self.strays { left.min(STRAYS_AGAIN) } else { left };
            poll(&mut watched, Some(&timespec(pause)))?;
            drop(watched);
            self.reap();
        }
        Ok(())
    }
}

/// Whether nothing is left in a pane: its init says so, or is gone itself.
fn is_empty(pane: &Pane) -> bool {
    let hung_up = |flags: PollFlags| flags.intersects(PollFlags::HUP | PollFlags::ERR);
    let mut watched = [PollFd::new(pane.control(), PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = poll(&mut watched, Some(&now)).is_ok() && hung_up(watched[0].revents());
    gone || pane.status().ok().flatten().is_some_and(|status| status.empty)
}

/// Says one word to whoever started us, and then nothing more.
fn say_ready() -> io::Result<()> {
    let _ = rustix::io::write(rustix::stdio::stdout(), b"!");
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    Ok(())
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

/// Listens with mode 0600. What stands there is of a keeper that died: the caller holds the
/// keeper's lock.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}
