//! The server's side of the keeper.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::message::{Reply, Request, receive, send};
use crate::pane::Pane;
use crate::spawn::{Program, SpawnError, SpawnFault};

/// How long the keeper may take for an answer: longer than it may wait for an exec.
const PATIENCE: Duration = Duration::from_secs(15);

/// A connection to the project's keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    pid: i32,
}

impl Keeper {
    /// Connects to the keeper that listens at this path.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::getuid() {
            return Err(io::Error::other("the keeper belongs to another user"));
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, pid: peer.pid.as_raw_nonzero().get() })
    }

    /// Its process: the parent of the panes' inits.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Readable or hung up when the keeper died: it never speaks first.
    pub fn life(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether the keeper still holds its end.
    pub fn is_alive(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It never speaks first, so that something to read is its end.
        poll(&mut watched, Some(&now)).is_ok_and(|ready| ready == 0)
    }

    /// Starts a program in a new pane. Where it gets streams (what it reads, prints, and prints
    /// beside it), it has no terminal.
    pub fn spawn(
        &mut self,
        pane: &str,
        program: &Program,
        streams: Option<[BorrowedFd<'_>; 3]>,
    ) -> Result<Pane, SpawnError> {
        let request = Request::Spawn { pane: pane.to_owned(), program: Box::new(program.clone()) };
        let gone = |e: io::Error| {
            SpawnError::new(SpawnFault::System, format!("the keeper does not answer: {e}"))
        };
        let streams = streams.as_ref().map_or(&[][..], |streams| &streams[..]);
        let asked = send(&self.stream, &request, streams).and_then(|()| self.answer());
        match asked.map_err(gone)? {
            (Reply::Pane { .. }, Some(pane)) => Ok(pane),
            (Reply::Failed(error), _) => Err(error),
            (Reply::Pane { pane }, None) => {
                // The kernel drops descriptors for which this process has no room.
                self.forget(&pane).map_err(gone)?;
                let message = "cannot take a terminal: this server has no descriptor left";
                Err(SpawnError::new(SpawnFault::Exhausted, message))
            }
            (other, _) => Err(gone(io::Error::other(format!("it said {other:?}")))),
        }
    }

    /// All panes the keeper holds, by name.
    pub fn list(&mut self) -> io::Result<Vec<(String, Pane)>> {
        send(&self.stream, &Request::List, &[])?;
        let mut panes = Vec::new();
        loop {
            match self.answer()? {
                (Reply::Pane { pane: name }, Some(pane)) => panes.push((name, pane)),
                (Reply::Done, _) => return Ok(panes),
                (other, _) => return Err(io::Error::other(format!("the keeper said {other:?}"))),
            }
        }
    }

    /// Gives a pane whose keeper died to this one.
    pub fn adopt(&mut self, name: &str, pane: &Pane) -> io::Result<()> {
        self.ask(&Request::Adopt { pane: name.to_owned() }, Some(pane)).map(drop)
    }

    /// Lets the keeper let go of a pane. Everything in it is ended if it was not before.
    pub fn forget(&mut self, name: &str) -> io::Result<()> {
        self.ask(&Request::Forget { pane: name.to_owned() }, None).map(drop)
    }

    /// Tells the keeper that the server ends on purpose. It ends everything, then itself; this
    /// returns when it is gone.
    pub fn end(&mut self) -> io::Result<()> {
        self.ask(&Request::End, None)?;
        self.stream.read_to_end(&mut Vec::new()).map(drop)
    }

    /// Waits, on a descriptor of its own, until the keeper is gone.
    pub fn until_gone(&self) -> io::Result<impl FnOnce() + Send + 'static> {
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

    fn ask(&mut self, request: &Request, pane: Option<&Pane>) -> io::Result<(Reply, Option<Pane>)> {
        match pane {
            Some(pane) => send(&self.stream, request, &pane.descriptors())?,
            None => send(&self.stream, request, &[])?,
        }
        self.answer()
    }

    fn answer(&mut self) -> io::Result<(Reply, Option<Pane>)> {
        let (reply, descriptors) = receive(&self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((reply, Pane::from_descriptors(descriptors)))
    }
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
