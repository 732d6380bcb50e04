//! The server's side of the keeper.
//!
//! A reply is matched to its request by number and by the pane's name. After anything else than the
//! expected reply (none in time, another pane, a message that cannot be read) the connection is given
//! up for good: what the keeper still sends on it reaches nobody. Whoever connects again asks for the
//! list to learn what became of the request: the keeper serves one connection at a time, so nothing
//! that was asked on the old one happens after that.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::message::{Received, Reply, Request, Survivor, receive, send};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault};

/// How long the keeper may take for an answer: longer than it may wait for an exec.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// How long the keeper may take to end everything: its own bound, and a moment more.
pub const END_PATIENCE: Duration = Duration::from_secs(8);

/// A connection to the project's keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    life: Arc<Life>,
    patience: Option<Duration>,
    /// The number of the last request, and how long its reply may take.
    asked: u64,
    waits: Option<Duration>,
    /// The keeper repeats numbers: it is not of version 0.1.0.
    numbered: bool,
    /// The connection was given up, for this reason.
    broken: Option<String>,
}

/// The process of a keeper.
#[derive(Debug)]
pub struct Life {
    pid: i32,
    process: OwnedFd,
}

impl Life {
    /// Its id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for its end; `false` if it did not come in time.
    pub fn wait(&self, patience: Duration) -> bool {
        let mut watched = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(patience))).is_ok_and(|ready| ready > 0)
    }

    /// Continues it, should it be stopped.
    pub fn resume(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// Connects to the process that listens at this path. One that is suspended and has its queue full is
/// waited for no longer than this; then the error is `WouldBlock`.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let stream = UnixStream::from(socket);
    // The kernel takes it for the connection as well.
    match patience.is_zero() {
        true => stream.set_nonblocking(true)?,
        false => stream.set_write_timeout(Some(patience))?,
    }
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Whether a process listens at a path. It asks with a socket of another type, which the kernel refuses
/// without telling the listener: a keeper takes every connection for its server's.
pub fn is_listened_at(path: &Path) -> bool {
    let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    let other_type = rustix::io::Errno::PROTOTYPE.raw_os_error();
    asked.is_err_and(|error| error.raw_os_error() == Some(other_type))
}

impl Keeper {
    /// Connects to the keeper that listens at this path.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::connect_within(path, Some(PATIENCE))
    }

    /// The same with another patience for each answer; `None` waits as long as the keeper lives.
    pub fn connect_within(path: &Path, patience: Option<Duration>) -> io::Result<Self> {
        let stream = connect(path, Duration::ZERO)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::getuid() {
            return Err(io::Error::other("the keeper belongs to another user"));
        }
        let process = pidfd_open(peer.pid, PidfdFlags::empty())?;
        let life = Arc::new(Life { pid: Pid::as_raw_nonzero(peer.pid).get(), process });
        let mut keeper =
            Self { stream, life, patience, asked: 0, waits: None, numbered: false, broken: None };
        let hello = keeper.exchange(|id, _| Request::hello(id), &[], keeper.patience)?;
        keeper.numbered = match hello {
            (Reply::Completed { .. }, _) => true,
            (Reply::Done, _) => false,
            (other, _) => return Err(keeper.unexpected(&other)),
        };
        Ok(keeper)
    }

    /// Changes how long each answer may take.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// Its process: the parent of the panes' inits.
    pub fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Whether requests can be sent: the connection was not given up, and the keeper has not closed
    /// it.
    pub fn is_connected(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let open =
            poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().intersects(closed);
        self.broken.is_none() && open
    }

    /// Starts a program in a new pane. Where it gets streams (what it reads, prints, and prints
    /// beside it), it has no terminal.
    pub fn spawn(
        &mut self,
        pane: &str,
        program: &Program,
        streams: Option<[BorrowedFd<'_>; 3]>,
    ) -> Result<Pane, SpawnError> {
        program.check()?;
        let request = |id, _| {
            let program = Box::new(program.clone());
            Request::Spawn { pane: pane.to_owned(), program, id: Some(id) }
        };
        let streams = streams.as_ref().map_or(&[][..], |streams| &streams[..]);
        match self.exchange(request, streams, self.patience).map_err(unanswered)? {
            (Reply::Pane { pane: name, .. }, Some(started)) if name == pane => Ok(started),
            (Reply::Failed(error) | Reply::Refused { error, .. }, _) => Err(error),
            (Reply::Pane { pane: name, .. }, None) if name == pane => {
                // The kernel drops descriptors for which this process has no room.
                self.forget(pane).map_err(unanswered)?;
                let message = "cannot take a terminal: this server has no descriptor left";
                Err(SpawnError::new(SpawnFault::Exhausted, message))
            }
            (other, _) => Err(unanswered(self.unexpected(&other))),
        }
    }

    /// All panes the keeper holds, by name.
    pub fn list(&mut self) -> io::Result<Vec<(String, Pane)>> {
        let mut taken = Some(Vec::new());
        self.visit_panes(|name, pane| match (&mut taken, pane) {
            (Some(taken), Some(pane)) => taken.push((name, pane)),
            _ => taken = None,
        })?;
        taken.ok_or_else(|| {
            // The kernel drops descriptors for which this process has no room.
            io::Error::other("cannot take all panes: this server has no descriptor left")
        })
    }

    /// The names of all panes the keeper holds. No more than one pane's descriptors are open at a time.
    pub fn names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        self.visit_panes(|name, _| names.push(name))?;
        Ok(names)
    }

    /// Shows every pane the keeper holds, without its descriptors where there was no room for them.
    fn visit_panes(&mut self, mut visit: impl FnMut(String, Option<Pane>)) -> io::Result<()> {
        let ask = |id, numbered| match numbered {
            true => Request::ListPanes { id },
            false => Request::List,
        };
        let deadline = self.deadline(self.patience);
        let mut next = self.exchange(ask, &[], self.patience)?;
        loop {
            match next {
                (Reply::Pane { pane: name, .. }, pane) => visit(name, pane),
                (Reply::Done | Reply::Completed { .. }, _) => return Ok(()),
                (other, _) => return Err(self.unexpected(&other)),
            }
            next = self.answer(deadline)?;
        }
    }

    /// Gives a pane whose keeper died to this one.
    pub fn adopt(&mut self, name: &str, pane: &Pane) -> io::Result<()> {
        let request = |id, _| Request::Adopt { pane: name.to_owned(), id: Some(id) };
        self.order(request, &pane.descriptors())
    }

    /// Lets the keeper let go of a pane. Everything in it is ended if it was not before.
    pub fn forget(&mut self, name: &str) -> io::Result<()> {
        self.order(|id, _| Request::Forget { pane: name.to_owned(), id: Some(id) }, &[])
    }

    /// Tells the keeper that the server ends on purpose. It ends everything, then itself; this
    /// returns when it is gone, with what it could not end. A keeper of 0.1.0 does not say that.
    pub fn end(&mut self) -> io::Result<Vec<Survivor>> {
        let ask = |id, numbered| match numbered {
            true => Request::EndAll { id },
            false => Request::End,
        };
        let left = match self.exchange(ask, &[], Some(END_PATIENCE))? {
            (Reply::Ended { left, .. }, _) => left,
            (Reply::Done, _) => Vec::new(),
            (other, _) => return Err(self.unexpected(&other)),
        };
        self.stream.set_read_timeout(Some(END_PATIENCE))?;
        self.stream.read_to_end(&mut Vec::new())?;
        Ok(left)
    }

    /// Waits, on a descriptor of its own, until the connection is closed by either side.
    pub fn until_closed(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let stream = self.stream.try_clone()?;
        Ok(move || {
            let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            loop {
                let mut watched = [PollFd::new(&stream, PollFlags::RDHUP)];
                let seen = poll(&mut watched, None);
                if seen.is_ok() && watched[0].revents().intersects(gone) {
                    return;
                }
            }
        })
    }

    /// Asks for something that returns nothing.
    fn order(
        &mut self,
        request: impl FnOnce(u64, bool) -> Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        match self.exchange(request, descriptors, self.patience)? {
            (Reply::Done | Reply::Completed { .. }, _) => Ok(()),
            (other, _) => Err(self.unexpected(&other)),
        }
    }

    /// Sends a request and waits for the first reply to it.
    fn exchange(
        &mut self,
        request: impl FnOnce(u64, bool) -> Request,
        descriptors: &[BorrowedFd<'_>],
        patience: Option<Duration>,
    ) -> io::Result<(Reply, Option<Pane>)> {
        if let Some(reason) = &self.broken {
            return Err(io::Error::other(reason.clone()));
        }
        self.asked += 1;
        self.waits = patience;
        let request = request(self.asked, self.numbered);
        let deadline = self.deadline(patience);
        if !self.numbered && self.asked > 1 && self.is_readable() {
            // Without numbers nothing would tell it from the reply to this request.
            return Err(self.give_up(io::Error::other("it spoke without being asked")));
        }
        self.stream.set_write_timeout(patience)?;
        match send(&self.stream, &request, descriptors) {
            Ok(()) => self.answer(deadline),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            Err(error) => Err(self.give_up(error)),
        }
    }

    /// Waits for the next reply to the present request. Those to earlier requests are dropped.
    fn answer(&mut self, deadline: Option<Instant>) -> io::Result<(Reply, Option<Pane>)> {
        loop {
            let (reply, descriptors) = match self.receive(deadline) {
                Ok(received) => received,
                Err(error) => return Err(self.give_up(error)),
            };
            match reply.id() {
                Some(id) if id < self.asked => {}
                Some(id) if id > self.asked => return Err(self.unexpected(&reply)),
                // Every reply of a keeper that repeats numbers has one.
                None if self.numbered => return Err(self.unexpected(&reply)),
                _ => return Ok((reply, Pane::from_descriptors(descriptors))),
            }
        }
    }

    fn receive(&self, deadline: Option<Instant>) -> io::Result<(Reply, Vec<OwnedFd>)> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        match receive(&self.stream)? {
            Received::Message(reply, descriptors) => Ok((reply, descriptors)),
            Received::TooLong(bytes) => {
                Err(io::Error::other(format!("it sent a message of {bytes} bytes")))
            }
            Received::End => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn deadline(&self, patience: Option<Duration>) -> Option<Instant> {
        patience.map(|patience| Instant::now() + patience)
    }

    fn is_readable(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    }

    fn unexpected(&mut self, reply: &Reply) -> io::Error {
        self.give_up(io::Error::other(format!("it said {reply:?}")))
    }

    /// Gives the connection up: nothing is read from it any more.
    fn give_up(&mut self, error: io::Error) -> io::Error {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        let pid = self.life.pid;
        let message = match error.kind() {
            TimedOut | WouldBlock => {
                let patience = self.waits.unwrap_or_default();
                format!(
                    "the keeper (pid {pid}) did not answer within {patience:?}; if it is stopped, \
                     `kill -CONT {pid}` lets it go on"
                )
            }
            UnexpectedEof => format!("the keeper (pid {pid}) closed the connection"),
            _ => format!("the keeper (pid {pid}) cannot be understood: {error}"),
        };
        self.broken = Some(message.clone());
        // Whoever watches a copy of it sees this too.
        let _ = self.stream.shutdown(Shutdown::Both);
        io::Error::new(error.kind(), message)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for Keeper {
    /// Hung up when the keeper died, or let go of the connection.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A program that is refused before it is sent is the caller's fault; all else is the keeper's.
fn unanswered(error: io::Error) -> SpawnError {
    let fault = match error.kind() {
        io::ErrorKind::InvalidInput => SpawnFault::Request,
        _ => SpawnFault::System,
    };
    SpawnError::new(fault, error.to_string())
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

/// Starts a keeper in the background and connects to it. `program` is the patterm binary, `root`
/// the project's folder, where the keeper starts the server again should it die.
pub fn launch(program: &Path, socket: &Path, root: &Path) -> io::Result<Keeper> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.arg("keeper").arg("--socket").arg(socket);
    command.arg("--").arg(program).arg("serve").arg("--detached");
    command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped());
    crate::descriptors::tell_usual(&mut command);
    let mut child = command.spawn()?;
    // It says one word when it listens, and closes its output when it cannot.
    let mut word = [0; 1];
    let listens = child.stdout.take().map(|mut output| output.read_exact(&mut word));
    match listens {
        Some(Ok(())) => Keeper::connect(socket),
        _ => {
            let status = child.wait()?;
            Err(io::Error::other(format!("the keeper ended at once: {status}")))
        }
    }
}
