//! A server that only the test speaks for: it sees every line that reaches it, and ends
//! connections when it likes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

/// There is such a server in this test, which is a process of its own: answers of tools may be any.
static FAKED: AtomicBool = AtomicBool::new(false);

/// Whether a test speaks for a server.
pub(super) fn is_faked() -> bool {
    FAKED.load(Ordering::Relaxed)
}

/// Listens as a server would. The socket's file goes with this value.
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

    /// Whether nobody has connected since the last [`FakeServer::accept`].
    pub(crate) fn nobody_came(&self) -> bool {
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

/// One connection. Dropping it is what a server's sudden death looks like from outside.
pub(crate) struct Conversation {
    stream: BufReader<UnixStream>,
}

impl Conversation {
    /// The next message; fails the test at the end of the stream.
    pub(crate) fn hear(&mut self) -> Value {
        self.try_hear().expect("a message, not the end of the stream")
    }

    /// The next message, or `None` at the end of the stream.
    pub(crate) fn try_hear(&mut self) -> Option<Value> {
        let line = self.hear_line();
        (!line.is_empty()).then(|| serde_json::from_slice(&line).unwrap())
    }

    /// The next line as it stands; empty at the end of the stream.
    pub(crate) fn hear_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        line
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.stream.get_mut(), "{message}").unwrap();
    }

    /// The stream itself, to say less than a message.
    pub(crate) fn stream(&mut self) -> &mut UnixStream {
        self.stream.get_mut()
    }

    /// Answers a request well.
    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }
}
