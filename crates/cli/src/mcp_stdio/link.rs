//! The connection to the server: finding or starting it, and reading and writing messages.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;

use patterm_host::Project;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_store::state::StateDir;
use patterm_wire::{Decoder, Framing, Id};

use super::Target;
use crate::start;

/// The longest message accepted from the server: far above its own limit of 8 MiB, and independent of the
/// limit for the client's messages.
const ANSWER_BYTES: usize = patterm_wire::DEFAULT_MESSAGE_LIMIT;

/// The state of the connection.
#[derive(Debug)]
pub(super) enum Link {
    /// There is no connection.
    Down,
    /// A server is being started; the starter prints when it is ready.
    Starting(Child),
    Up(Connection),
    /// The server refused this caller.
    Refused(String),
}

/// A message for the server, with the ids of its requests.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) ids: Vec<Id>,
    /// It is the client's `initialized` notification.
    pub(super) is_initialized: bool,
    pub(super) line: Vec<u8>,
}

impl Outgoing {
    /// A message with these requests.
    pub(super) fn new(ids: Vec<Id>, line: Vec<u8>) -> Self {
        Self { ids, is_initialized: false, line }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    pub(super) decoder: Decoder,
    /// Messages before the client's own: greeting and handshake.
    opening: VecDeque<Vec<u8>>,
    /// Bytes of the first message that are already written.
    written: usize,
    /// The server has sent something.
    pub(super) has_received: bool,
    /// Nothing more will be written.
    closed: bool,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            decoder: Decoder::new(ANSWER_BYTES),
            opening: VecDeque::new(),
            written: 0,
            has_received: false,
            closed: false,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Adds a message before all of the client's.
    pub(super) fn open_with(&mut self, message: &[u8]) {
        let mut line = Vec::new();
        Framing::Newline.encode(message, &mut line);
        self.opening.push_back(line);
    }

    /// Writes as much as the server accepts now, and calls `sent` for each request that is complete. If the
    /// server is gone, nothing is written; reading shows the end of the stream.
    pub(super) fn write(&mut self, queue: &mut VecDeque<Outgoing>, mut sent: impl FnMut(&Id)) {
        loop {
            let opening = self.opening.front();
            let Some(line) = opening.or_else(|| queue.front().map(|next| &next.line)) else {
                return;
            };
            match self.stream.write(&line[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            if self.written == line.len() {
                self.written = 0;
                if self.opening.pop_front().is_none() {
                    queue.pop_front().iter().flat_map(|done| &done.ids).for_each(&mut sent);
                }
            }
        }
    }

    pub(super) fn wants_to_write(&self, queue: &VecDeque<Outgoing>) -> bool {
        !self.opening.is_empty() || !queue.is_empty()
    }

    /// Reads what is available; `false` at the end of the stream.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> io::Result<bool> {
        match self.stream.read(scratch) {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                self.decoder.feed(&scratch[..bytes]);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Whether [`Connection::end`] was called.
    pub(super) fn is_ended(&self) -> bool {
        self.closed
    }

    /// Tells the server that there are no more requests.
    pub(super) fn end(&mut self) {
        if !self.closed {
            self.closed = true;
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        }
    }
}

/// A server, or the process that starts one.
pub(super) enum ServerOrStarter {
    Server(UnixStream),
    Starter(Child),
}

/// Connects to the target server, or begins to start it.
pub(super) fn find(target: &Target) -> anyhow::Result<ServerOrStarter> {
    let (found, left_behind) = find_server(target)?;
    if let Some(stream) = found {
        return Ok(ServerOrStarter::Server(stream));
    }
    let key = key_of(target)?;
    let project = [target.project.as_ref(), left_behind.as_ref()]
        .into_iter()
        .flatten()
        .find(|project| project.key() == key);
    let Some(project) = project else {
        anyhow::bail!(
            "no server is running for the project with key {key}, and the working directory belongs to \
             another project; run patterm in that project first"
        );
    };
    let limit = format!("--max-message-bytes={}", target.message_bytes);
    Ok(ServerOrStarter::Starter(start::begin_serve(project.root(), &[limit])?))
}

/// Connects to the target server, if it is running.
pub(super) fn find_running(target: &Target) -> Option<UnixStream> {
    find_server(target).ok()?.0
}

/// The target server, or the project of a server that died.
fn find_server(target: &Target) -> anyhow::Result<(Option<UnixStream>, Option<Project>)> {
    if let Some(socket) = &target.socket
        && let Some(stream) = start::connect(socket)?
    {
        return Ok((Some(stream), None));
    }
    let key = key_of(target)?;
    let folders = RuntimeDir::candidates(target.socket.as_deref());
    let state = StateDir::from_env(key).ok();
    let entries = registry::find(key, &folders, state.as_ref());
    for entry in &entries {
        if let Some(stream) = start::connect(&entry.socket)? {
            return Ok((Some(stream), None));
        }
    }
    Ok((None, entries.iter().find_map(|entry| Project::of(&entry.project).ok())))
}

fn key_of(target: &Target) -> anyhow::Result<&str> {
    let own_key = target.project.as_ref().map(Project::key);
    target.project_key.as_deref().or(own_key).ok_or_else(|| {
        anyhow::anyhow!("no project: the working directory is gone, and no project key was given")
    })
}

/// Connects to the server whose starter has finished.
pub(super) fn started(starter: Child) -> anyhow::Result<UnixStream> {
    let output = starter.wait_with_output()?;
    let entry = start::read_entry(&output.stdout, &output.stderr)?;
    start::connect(&entry.socket)?
        .ok_or_else(|| anyhow::anyhow!("the server ended right after its start"))
}
