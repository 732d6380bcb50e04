//! The server's side of the connection to the keeper.
//!
//! A reply is matched to its request by number and by the pane's name. After anything but the
//! expected reply (a timeout, another pane, a malformed message) the connection is closed for good:
//! whatever the keeper still sends is dropped. The next connection asks for the list of panes to
//! learn what happened to the request: the keeper serves one connection at a time, so nothing
//! requested on the old one happens after that.

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

/// How long the keeper may take for a reply: longer than it may wait for an exec.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// How long the keeper may take to end everything: its own limit, and some more.
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
    /// The keeper repeats numbers: its version is later than 0.1.0.
    numbered: bool,
    /// The connection was closed for this reason.
    broken: Option<String>,
}

/// The process of a keeper.
#[derive(Debug)]
pub struct Life {
    pid: i32,
    process: OwnedFd,
}

impl Life {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it has exited.
    pub fn is_over(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for its exit; `false` if that takes longer.
    pub fn wait(&self, patience: Duration) -> bool {
        let mut watched = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(patience))).is_ok_and(|ready| ready > 0)
    }

    /// Continues it if it is stopped.
    pub fn resume(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// Connects to the process that listens at this path. If that process is suspended and its backlog
/// is full, the attempt fails after `limit` with `WouldBlock`.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let stream = UnixStream::from(socket);
    // The kernel uses this timeout for connecting as well.
    match patience.is_zero() {
        true => stream.set_nonblocking(true)?,
        false => stream.set_write_timeout(Some(patience))?,
    }
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Whether a process listens at a path. This probes with a socket of another type, which the kernel
/// refuses without informing the listener: a keeper takes every connection for its server's.
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

    /// The same with another timeout per reply; `None` waits as long as the keeper lives.
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

    /// Sets the timeout for replies.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// Its process: the parent of the panes' inits.
    pub fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Whether requests can be sent: neither side has closed the connection.
    pub fn is_connected(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let open =
            poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().intersects(closed);
        self.broken.is_none() && open
    }

    /// Starts a program in a new pane. With streams (input, output and error) it has no terminal.
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
                // The kernel drops descriptors if this process has no room for them.
                self.forget(pane).map_err(unanswered)?;
                let message = "cannot take a terminal: this server has no file descriptors left";
                Err(SpawnError::new(SpawnFault::Exhausted, message))
            }
            (other, _) => Err(unanswered(self.unexpected(&other))),
        }
    }

    /// All panes of the keeper, by name.
    pub fn list(&mut self) -> io::Result<Vec<(String, Pane)>> {
        let mut taken = Some(Vec::new());
        self.visit_panes(|name, pane| match (&mut taken, pane) {
            (Some(taken), Some(pane)) => taken.push((name, pane)),
            _ => taken = None,
        })?;
        taken.ok_or_else(|| {
            // The kernel drops descriptors if this process has no room for them.
            io::Error::other("cannot take all panes: this server has no file descriptors left")
        })
    }

    /// The names of all panes of the keeper. At most one pane's descriptors are open at a time.
    pub fn names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        self.visit_panes(|name, _| names.push(name))?;
        Ok(names)
    }

    /// Visits every pane of the keeper, without its descriptors if there was no room for them.
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

    /// Hands a pane whose keeper died to this keeper.
    pub fn adopt(&mut self, name: &str, pane: &Pane) -> io::Result<()> {
        let request = |id, _| Request::Adopt { pane: name.to_owned(), id: Some(id) };
        self.order(request, &pane.descriptors())
    }

    /// Makes the keeper drop a pane. Everything that still runs in it is ended.
    pub fn forget(&mut self, name: &str) -> io::Result<()> {
        self.order(|id, _| Request::Forget { pane: name.to_owned(), id: Some(id) }, &[])
    }

    /// Tells the keeper that the server ends on purpose. The keeper ends everything, then itself.
    /// Returns when it is gone, with the processes that it could not end; a 0.1.0 keeper does not
    /// report those.
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

    /// Waits, on a descriptor of its own, until either side closes the connection.
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

    /// Sends a request that returns nothing.
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

    /// Sends a request and waits for its first reply.
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
            // Without numbers, it could not be distinguished from the reply to this request.
            return Err(self.give_up(io::Error::other("it sent a message without a request")));
        }
        self.stream.set_write_timeout(patience)?;
        match send(&self.stream, &request, descriptors) {
            Ok(()) => self.answer(deadline),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            Err(error) => Err(self.give_up(error)),
        }
    }

    /// Waits for the next reply to the current request. Replies to earlier requests are dropped.
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
        self.give_up(io::Error::other(format!("unexpected reply {reply:?}")))
    }

    /// Closes the connection: nothing more is read from it.
    fn give_up(&mut self, error: io::Error) -> io::Error {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        let pid = self.life.pid;
        let message = match error.kind() {
            TimedOut | WouldBlock => {
                let patience = self.waits.unwrap_or_default();
                format!(
                    "the keeper (pid {pid}) did not answer within {patience:?}; if it is stopped, \
                     continue it with `kill -CONT {pid}`"
                )
            }
            UnexpectedEof => format!("the keeper (pid {pid}) closed the connection"),
            _ => format!("invalid reply from the keeper (pid {pid}): {error}"),
        };
        self.broken = Some(message.clone());
        // A duplicate of the descriptor sees this, too.
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
    /// Hung up when the keeper died or closed the connection.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A request refused before it was sent is the caller's fault, anything else the keeper's.
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
/// the project's folder, where the keeper restarts the server if it dies.
pub fn launch(program: &Path, socket: &Path, root: &Path) -> io::Result<Keeper> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.arg("keeper").arg("--socket").arg(socket);
    command.arg("--").arg(program).arg("serve").arg("--detached");
    command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped());
    crate::descriptors::tell_usual(&mut command);
    let mut child = command.spawn()?;
    // It writes one byte when it listens, and closes its output if it cannot.
    let mut word = [0; 1];
    let listens = child.stdout.take().map(|mut output| output.read_exact(&mut word));
    match listens {
        Some(Ok(())) => Keeper::connect(socket),
        _ => {
            let status = child.wait()?;
            Err(io::Error::other(format!("the keeper exited immediately: {status}")))
        }
    }
}
