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

use crate::message::{KeeperReply, KeeperRequest, Received, Survivor, receive, send};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault};

/// How long the keeper may take for a reply: longer than it may wait for an exec.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the keeper may take to end everything: its own limit, and some more.
pub const END_TIMEOUT: Duration = Duration::from_secs(8);

/// A connection to the project's keeper.
#[derive(Debug)]
pub struct KeeperConnection {
    stream: UnixStream,
    process: Arc<KeeperProcess>,
    timeout: Option<Duration>,
    /// The number of the last request, and how long its reply may take.
    last_request: u64,
    current_timeout: Option<Duration>,
    /// The keeper repeats numbers: its version is later than 0.1.0.
    numbered: bool,
    /// The connection was closed for this reason.
    broken: Option<String>,
}

/// The process of a keeper.
#[derive(Debug)]
pub struct KeeperProcess {
    pid: i32,
    pidfd: OwnedFd,
}

impl KeeperProcess {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it has exited.
    pub fn has_exited(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits for its exit; `false` if that takes longer.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(timeout))).is_ok_and(|ready| ready > 0)
    }

    /// Continues it if it is stopped.
    pub fn resume(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
    }
}

/// Connects to the process that listens at this path. If that process is suspended and its backlog
/// is full, the attempt fails after `limit` with `WouldBlock`.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let stream = UnixStream::from(socket);
    // The kernel uses this timeout for connecting as well.
    match timeout.is_zero() {
        true => stream.set_nonblocking(true)?,
        false => stream.set_write_timeout(Some(timeout))?,
    }
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Whether a process listens at a path. This probes with a socket of another type, which the kernel
/// refuses without informing the listener: a keeper takes every connection for its server's.
pub fn has_listener(path: &Path) -> bool {
    let refused = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    let other_type = rustix::io::Errno::PROTOTYPE.raw_os_error();
    refused.is_err_and(|error| error.raw_os_error() == Some(other_type))
}

impl KeeperConnection {
    /// Connects to the keeper that listens at this path.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::connect_with_timeout(path, Some(REPLY_TIMEOUT))
    }

    /// The same with another timeout per reply; `None` waits as long as the keeper lives.
    pub fn connect_with_timeout(path: &Path, timeout: Option<Duration>) -> io::Result<Self> {
        let stream = connect(path, Duration::ZERO)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::getuid() {
            return Err(io::Error::other("the keeper belongs to another user"));
        }
        let pidfd = pidfd_open(peer.pid, PidfdFlags::empty())?;
        let process = Arc::new(KeeperProcess { pid: Pid::as_raw_nonzero(peer.pid).get(), pidfd });
        let mut keeper = Self {
            stream,
            process,
            timeout,
            last_request: 0,
            current_timeout: None,
            numbered: false,
            broken: None,
        };
        let hello = keeper.exchange(|id, _| KeeperRequest::hello(id), &[], keeper.timeout)?;
        keeper.numbered = match hello {
            (KeeperReply::Completed { .. }, _) => true,
            (KeeperReply::Done, _) => false,
            (other, _) => return Err(keeper.unexpected(&other)),
        };
        Ok(keeper)
    }

    /// Sets the timeout for replies.
    pub fn set_reply_timeout(&mut self, timeout: Duration) {
        self.timeout = Some(timeout);
    }

    /// Its process: the parent of the panes' inits.
    pub fn process(&self) -> &Arc<KeeperProcess> {
        &self.process
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
            KeeperRequest::Spawn { pane: pane.to_owned(), program, id: Some(id) }
        };
        let streams = streams.as_ref().map_or(&[][..], |streams| &streams[..]);
        match self.exchange(request, streams, self.timeout).map_err(spawn_error)? {
            (KeeperReply::Pane { pane: name, .. }, Some(started)) if name == pane => Ok(started),
            (KeeperReply::Failed(error) | KeeperReply::Refused { error, .. }, _) => Err(error),
            (KeeperReply::Pane { pane: name, .. }, None) if name == pane => {
                // The kernel drops descriptors if this process has no room for them.
                self.forget(pane).map_err(spawn_error)?;
                let message = "cannot take a terminal: this server has no file descriptors left";
                Err(SpawnError::new(SpawnFault::Exhausted, message))
            }
            (other, _) => Err(spawn_error(self.unexpected(&other))),
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
            true => KeeperRequest::ListPanes { id },
            false => KeeperRequest::List,
        };
        let deadline = self.deadline(self.timeout);
        let mut next = self.exchange(ask, &[], self.timeout)?;
        loop {
            match next {
                (KeeperReply::Pane { pane: name, .. }, pane) => visit(name, pane),
                (KeeperReply::Done | KeeperReply::Completed { .. }, _) => return Ok(()),
                (other, _) => return Err(self.unexpected(&other)),
            }
            next = self.answer(deadline)?;
        }
    }

    /// Hands a pane whose keeper died to this keeper.
    pub fn adopt(&mut self, name: &str, pane: &Pane) -> io::Result<()> {
        let request = |id, _| KeeperRequest::Adopt { pane: name.to_owned(), id: Some(id) };
        self.command(request, &pane.descriptors())
    }

    /// Makes the keeper drop a pane. Everything that still runs in it is ended.
    pub fn forget(&mut self, name: &str) -> io::Result<()> {
        self.command(|id, _| KeeperRequest::Forget { pane: name.to_owned(), id: Some(id) }, &[])
    }

    /// Tells the keeper that the server ends on purpose. The keeper ends everything, then itself.
    /// Returns when it is gone, with the processes that it could not end; a 0.1.0 keeper does not
    /// report those.
    pub fn end(&mut self) -> io::Result<Vec<Survivor>> {
        let ask = |id, numbered| match numbered {
            true => KeeperRequest::EndAll { id },
            false => KeeperRequest::End,
        };
        let left = match self.exchange(ask, &[], Some(END_TIMEOUT))? {
            (KeeperReply::Ended { left, .. }, _) => left,
            (KeeperReply::Done, _) => Vec::new(),
            (other, _) => return Err(self.unexpected(&other)),
        };
        self.stream.set_read_timeout(Some(END_TIMEOUT))?;
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
    fn command(
        &mut self,
        request: impl FnOnce(u64, bool) -> KeeperRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        match self.exchange(request, descriptors, self.timeout)? {
            (KeeperReply::Done | KeeperReply::Completed { .. }, _) => Ok(()),
            (other, _) => Err(self.unexpected(&other)),
        }
    }

    /// Sends a request and waits for its first reply.
    fn exchange(
        &mut self,
        request: impl FnOnce(u64, bool) -> KeeperRequest,
        descriptors: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
    ) -> io::Result<(KeeperReply, Option<Pane>)> {
        if let Some(reason) = &self.broken {
            return Err(io::Error::other(reason.clone()));
        }
        self.last_request += 1;
        self.current_timeout = timeout;
        let request = request(self.last_request, self.numbered);
        let deadline = self.deadline(timeout);
        if !self.numbered && self.last_request > 1 && self.is_readable() {
            // Without numbers, it could not be distinguished from the reply to this request.
            return Err(self.fail(io::Error::other("it sent a message without a request")));
        }
        self.stream.set_write_timeout(timeout)?;
        match send(&self.stream, &request, descriptors) {
            Ok(()) => self.answer(deadline),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Waits for the next reply to the current request. Replies to earlier requests are dropped.
    fn answer(&mut self, deadline: Option<Instant>) -> io::Result<(KeeperReply, Option<Pane>)> {
        loop {
            let (reply, descriptors) = match self.receive(deadline) {
                Ok(received) => received,
                Err(error) => return Err(self.fail(error)),
            };
            match reply.id() {
                Some(id) if id < self.last_request => {}
                Some(id) if id > self.last_request => return Err(self.unexpected(&reply)),
                // Every reply of a keeper that repeats numbers has one.
                None if self.numbered => return Err(self.unexpected(&reply)),
                _ => return Ok((reply, Pane::from_descriptors(descriptors))),
            }
        }
    }

    fn receive(&self, deadline: Option<Instant>) -> io::Result<(KeeperReply, Vec<OwnedFd>)> {
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

    fn deadline(&self, timeout: Option<Duration>) -> Option<Instant> {
        timeout.map(|timeout| Instant::now() + timeout)
    }

    fn is_readable(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    }

    fn unexpected(&mut self, reply: &KeeperReply) -> io::Error {
        self.fail(io::Error::other(format!("unexpected reply {reply:?}")))
    }

    /// Closes the connection: nothing more is read from it.
    fn fail(&mut self, error: io::Error) -> io::Error {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        let pid = self.process.pid;
        let message = match error.kind() {
            TimedOut | WouldBlock => {
                let timeout = self.current_timeout.unwrap_or_default();
                format!(
                    "the keeper (pid {pid}) did not answer within {timeout:?}; if it is \
                     suspended, `kill -CONT {pid}` resumes it"
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

impl Drop for KeeperConnection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for KeeperConnection {
    /// Hung up when the keeper died or closed the connection.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A request refused before it was sent is the caller's fault, anything else the keeper's.
fn spawn_error(error: io::Error) -> SpawnError {
    let fault = match error.kind() {
        io::ErrorKind::InvalidInput => SpawnFault::Request,
        _ => SpawnFault::System,
    };
    SpawnError::new(fault, error.to_string())
}

/// A time for `poll`.
#[must_use]
pub fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

/// Starts a keeper in the background and connects to it. `program` is the patterm binary, `root`
/// the project's folder, where the keeper restarts the server if it dies.
pub fn launch(program: &Path, socket: &Path, root: &Path) -> io::Result<KeeperConnection> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.arg("keeper").arg("--socket").arg(socket);
    command.arg("--").arg(program).arg("serve").arg("--detached");
    command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped());
    crate::descriptors::pass_original_limit(&mut command);
    let mut child = command.spawn()?;
    // It writes one byte when it listens, and closes its output if it cannot.
    let mut word = [0; 1];
    let listens = child.stdout.take().map(|mut output| output.read_exact(&mut word));
    match listens {
        Some(Ok(())) => KeeperConnection::connect(socket),
        _ => {
            let status = child.wait()?;
            Err(io::Error::other(format!("the keeper exited immediately: {status}")))
        }
    }
}
