//! A fake server controlled by the test: it sees every line that reaches it, and can end
//! connections at any time.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

/// Set if this test (a process of its own) has a fake server: tool results may be anything.
static FAKED: AtomicBool = AtomicBool::new(false);

/// Whether this test has a fake server.
pub(super) fn is_faked() -> bool {
    FAKED.load(Ordering::Relaxed)
}

/// A listening fake server. Its socket file is removed on drop.
pub(crate) struct FakeServer {
    listener: UnixListener,
    path: PathBuf,
}

impl FakeServer {
    pub(crate) fn at(path: &Path) -> Self {
        FAKED.store(true, Ordering::Relaxed);
        Self { listener: UnixListener::bind(path).unwrap(), path: path.to_owned() }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.path
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> Conversation {
        let (stream, _) = self.listener.accept().unwrap();
        Conversation { stream: BufReader::new(stream) }
    }

    /// Whether there was no connection since the last [`FakeServer::accept`].
    pub(crate) fn no_connection(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        let came = self.listener.accept();
        self.listener.set_nonblocking(false).unwrap();
        came.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// One connection. Dropping it looks like a server's sudden death from outside.
pub(crate) struct Conversation {
    stream: BufReader<UnixStream>,
}

impl Conversation {
    /// The next message; fails the test at the end of the stream.
    pub(crate) fn receive(&mut self) -> Value {
        self.try_receive().expect("a message, not the end of the stream")
    }

    /// The next message, or `None` at the end of the stream.
    pub(crate) fn try_receive(&mut self) -> Option<Value> {
        let line = self.receive_line();
        (!line.is_empty()).then(|| serde_json::from_slice(&line).unwrap())
    }

    /// The next line as raw bytes; empty at the end of the stream.
    pub(crate) fn receive_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        line
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stream.get_mut(), "{message}").unwrap();
    }

    /// The stream itself, to send less than a message.
    pub(crate) fn stream(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    /// Responds to a request with a result.
    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }
}
