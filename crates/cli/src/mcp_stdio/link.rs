//! The way to the server: found, started, greeted, lost and found again.

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

use super::Wanted;
use crate::start;

/// The longest answer taken from the server: far above the 8 MiB it keeps to. The limit of the
/// client's own messages is another matter.
const ANSWER_BYTES: usize = patterm_wire::DEFAULT_MESSAGE_LIMIT;

/// Where the way to the server stands.
#[derive(Debug)]
pub(super) enum Link {
    /// Nobody is there, or nobody was asked yet.
    Down,
    /// A server is being started; its starter's output tells when it serves.
    Starting(Child),
    Up(Connection),
    /// The server will not serve this caller.
    Refused(String),
}

/// One message on its way to the server, with the ids under which answers are expected.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) ids: Vec<Id>,
    /// The client's word that the handshake is done.
    pub(super) is_initialized: bool,
    pub(super) line: Vec<u8>,
}

impl Outgoing {
    /// A message that expects answers with these ids.
    pub(super) fn new(ids: Vec<Id>, line: Vec<u8>) -> Self {
        Self { ids, is_initialized: false, line }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    pub(super) decoder: Decoder,
    /// What this connection needs before the client's own messages: greeting and handshake.
    opening: VecDeque<Vec<u8>>,
    /// Bytes of the first message in line that are written already.
    written: usize,
    /// The server has said something.
    pub(super) heard: bool,
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
            heard: false,
            closed: false,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Puts a message before all of the client's.
    pub(super) fn open_with(&mut self, message: &[u8]) {
        let mut line = Vec::new();
        Framing::Newline.encode(message, &mut line);
        self.opening.push_back(line);
    }

    /// Writes what the server takes now, and says of each request that it has whole that it is
    /// `sent`. A server that is gone takes nothing; the stream's end says so to whoever reads.
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

    /// Reads what is there; `false` at the end of the stream.
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

    /// Whether we said that nothing more comes.
    pub(super) fn is_ended(&self) -> bool {
        self.closed
    }

    /// Says that the client asks nothing more.
    pub(super) fn end(&mut self) {
        if !self.closed {
            self.closed = true;
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        }
    }
}

/// The first step toward a server.
pub(super) enum Found {
    Server(UnixStream),
    Starter(Child),
}

/// Connects to the server that is meant, or begins to start it.
pub(super) fn find(wanted: &Wanted) -> anyhow::Result<Found> {
    let (found, left_behind) = look(wanted)?;
    if let Some(stream) = found {
        return Ok(Found::Server(stream));
    }
    let key = key_of(wanted)?;
    let project = [wanted.project.as_ref(), left_behind.as_ref()]
        .into_iter()
        .flatten()
        .find(|project| project.key() == key);
    let Some(project) = project else {
        anyhow::bail!(
            "no server runs for the project with key {key}, and the working directory belongs to \
             another project; run patterm in that project first"
        );
    };
    let limit = format!("--max-message-bytes={}", wanted.message_bytes);
    Ok(Found::Starter(start::begin_serve(project.root(), &[limit])?))
}

/// Connects to the server that is meant, if it runs.
pub(super) fn find_running(wanted: &Wanted) -> Option<UnixStream> {
    look(wanted).ok()?.0
}

/// The server that is meant, and the project of one that died.
fn look(wanted: &Wanted) -> anyhow::Result<(Option<UnixStream>, Option<Project>)> {
    if let Some(socket) = &wanted.socket
        && let Some(stream) = start::connect(socket)?
    {
        return Ok((Some(stream), None));
    }
    let key = key_of(wanted)?;
    let folders = RuntimeDir::candidates(wanted.socket.as_deref());
    let state = StateDir::from_env(key).ok();
    let entries = registry::find(key, &folders, state.as_ref());
    for entry in &entries {
        if let Some(stream) = start::connect(&entry.socket)? {
            return Ok((Some(stream), None));
        }
    }
    Ok((None, entries.iter().find_map(|entry| Project::of(&entry.project).ok())))
}

fn key_of(wanted: &Wanted) -> anyhow::Result<&str> {
    let own_key = wanted.project.as_ref().map(Project::key);
    wanted.project_key.as_deref().or(own_key).ok_or_else(|| {
        anyhow::anyhow!("no project: the working directory is gone, and no project key is given")
    })
}

/// What became of a start whose output has ended.
pub(super) fn started(starter: Child) -> anyhow::Result<UnixStream> {
    let output = starter.wait_with_output()?;
    let entry = start::read_entry(&output.stdout, &output.stderr)?;
    start::connect(&entry.socket)?
        .ok_or_else(|| anyhow::anyhow!("the server that was started is gone again"))
}
