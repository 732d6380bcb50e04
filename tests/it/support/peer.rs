//! A client that may send anything: over the socket or through the proxy, in either framing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use patterm_wire::{Decoder, Frame, Framing};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::fake::is_faked;
use super::place::patterm_binary;
use super::running::Running;
use super::schema;

/// A transport with a framing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Transport {
    Socket(Framing),
    Proxy(Framing),
}

impl Transport {
    pub(crate) const ALL: [Self; 4] = [
        Self::Socket(Framing::Newline),
        Self::Socket(Framing::Headers),
        Self::Proxy(Framing::Newline),
        Self::Proxy(Framing::Headers),
    ];

    pub(crate) fn framing(self) -> Framing {
        match self {
            Self::Socket(framing) | Self::Proxy(framing) => framing,
        }
    }
}

enum Ends {
    Socket(UnixStream),
    Proxy { child: Child, stdin: Option<ChildStdin>, stdout: Option<ChildStdout> },
}

/// A client. It checks that what it receives is well framed, in its own framing, and that every
/// tool result fits the tool's declared schema.
pub(crate) struct Peer {
    ends: Ends,
    framing: Framing,
    decoder: Decoder,
    /// The tools that were called and have not answered, by request id.
    called: BTreeMap<String, String>,
}

impl Peer {
    pub(crate) fn connect(transport: Transport, socket: &Path) -> Self {
        Self::connect_with(transport, socket, &[])
    }

    /// A client whose proxy, if the transport has one, gets these extra flags.
    pub(crate) fn connect_with(transport: Transport, socket: &Path, flags: &[String]) -> Self {
        let ends = match transport {
            Transport::Socket(_) => Ends::Socket(UnixStream::connect(socket).unwrap()),
            Transport::Proxy(_) => {
                return Self::through(proxy(socket).args(flags), transport.framing());
            }
        };
        Self::new(ends, transport.framing())
    }

    /// A client of a proxy that this command starts.
    pub(crate) fn through(command: &mut Command, framing: Framing) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Self::new(Ends::Proxy { child, stdin, stdout }, framing)
    }

    fn new(ends: Ends, framing: Framing) -> Self {
        Self { ends, framing, decoder: Decoder::new(64 << 20), called: BTreeMap::new() }
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        match &mut self.ends {
            Ends::Socket(stream) => stream.write_all(bytes).unwrap(),
            Ends::Proxy { stdin, .. } => stdin.as_mut().unwrap().write_all(bytes).unwrap(),
        }
    }

    /// Sends one frame with this body.
    pub(crate) fn send_body(&mut self, body: &[u8]) {
        let mut frame = Vec::new();
        self.framing.encode(body, &mut frame);
        self.send(&frame);
    }

    /// Sends a request.
    pub(crate) fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id = id.into();
        let tool = if method == "tools/call" { params["name"].as_str() } else { Some(method) };
        self.called.extend(tool.map(|tool| (id.to_string(), tool.to_owned())));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_body(request.to_string().as_bytes());
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_body(notification.to_string().as_bytes());
    }

    /// Sends the greeting, the first line of a connection. It is a line in either framing.
    pub(crate) fn greet(&mut self, token: &str, project_key: Option<&str>) {
        let mut greeting = json!({"patterm_identity": token});
        if let Some(key) = project_key {
            greeting["project_key"] = key.into();
        }
        self.send(format!("{greeting}\n").as_bytes());
    }

    /// Calls a tool and returns its structured result.
    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut answer = self.answer(id, "tools/call", params);
        answer["result"]["structuredContent"].take()
    }

    /// Sends a request and returns the next message, which must be the response.
    pub(crate) fn answer(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        self.ask(id.clone(), method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The next message; fails the test at the end of the stream.
    pub(crate) fn receive(&mut self) -> Value {
        self.try_receive().expect("a message, not the end of the stream")
    }

    /// The next message, or `None` at the end of the stream.
    pub(crate) fn try_receive(&mut self) -> Option<Value> {
        let message: Value = serde_json::from_slice(&self.try_receive_raw()?).unwrap();
        let called = self.called.remove(&message["id"].to_string());
        if let Some(tool) = called.filter(|_| !is_faked()) {
            fits(&tool, &message["result"]);
        }
        Some(message)
    }

    /// The next message as raw bytes.
    pub(crate) fn try_receive_raw(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(body) = self.whole() {
                return Some(body);
            }
            if !self.read(64 << 10) {
                assert_eq!(self.decoder.finish(), None, "nothing but whole messages");
                return None;
            }
        }
    }

    /// The next message that was read completely.
    pub(crate) fn whole(&mut self) -> Option<Vec<u8>> {
        let frame = self.decoder.next_frame()?;
        let Frame::Body(body) = frame else { panic!("badly framed: {frame:?}") };
        let body = body.to_vec();
        assert_eq!(self.decoder.framing(), Some(self.framing), "answers keep the framing");
        Some(body)
    }

    /// Reads at most `most` bytes; `false` at the end of the stream.
    pub(crate) fn read(&mut self, most: usize) -> bool {
        let mut buffer = vec![0; most];
        let read = match &mut self.ends {
            Ends::Socket(stream) => stream.read(&mut buffer),
            Ends::Proxy { stdout, .. } => stdout.as_mut().unwrap().read(&mut buffer),
        };
        match read {
            // The server may end a refused connection before it has read everything.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => false,
            Ok(0) => false,
            Ok(bytes) => {
                self.decoder.feed(&buffer[..bytes]);
                true
            }
            Err(e) => panic!("{e}"),
        }
    }

    /// Waits until something can be read, and reads nothing.
    pub(crate) fn until_readable(&self) {
        let mut polled = [match &self.ends {
            Ends::Socket(stream) => PollFd::new(stream, PollFlags::IN),
            Ends::Proxy { stdout, .. } => PollFd::new(stdout.as_ref().unwrap(), PollFlags::IN),
        }];
        poll(&mut polled, None).unwrap();
    }

    /// Ends this side; what is still sent is read with [`Peer::receive`].
    pub(crate) fn end(&mut self) {
        match &mut self.ends {
            Ends::Socket(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Ends::Proxy { stdin, .. } => drop(stdin.take()),
        }
    }

    /// Ends this side and returns everything that is still received. A proxy must then exit with 0.
    pub(crate) fn finish(mut self) -> Vec<Value> {
        self.end();
        let left = std::iter::from_fn(|| self.try_receive()).collect();
        if let Some(status) = self.wait() {
            assert!(status.success(), "{status}");
        }
        left
    }

    /// Closes the input of a proxy; returns all remaining messages and the exit status.
    pub(crate) fn exit(mut self) -> (Vec<Value>, ExitStatus) {
        self.end();
        let left = std::iter::from_fn(|| self.try_receive()).collect();
        (left, self.wait().unwrap())
    }

    /// Closes the reading side.
    pub(crate) fn close_output(&mut self) {
        match &mut self.ends {
            Ends::Socket(stream) => stream.shutdown(Shutdown::Read).unwrap(),
            Ends::Proxy { stdout, .. } => drop(stdout.take()),
        }
    }

    /// Sends a signal to the proxy.
    pub(crate) fn signal(&self, signal: Signal) {
        Running::of(self.pid().unwrap()).signal(signal);
    }

    /// The process id of the proxy.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.ends {
            Ends::Socket(_) => None,
            Ends::Proxy { child, .. } => Some(child.id()),
        }
    }

    /// Waits until the proxy has exited.
    pub(crate) fn wait(&mut self) -> Option<ExitStatus> {
        match &mut self.ends {
            Ends::Socket(_) => None,
            Ends::Proxy { child, .. } => Some(child.wait().unwrap()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Ends::Proxy { child, stdin, .. } = &mut self.ends {
            drop(stdin.take());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The proxy to a given socket, with no other way to find a server.
#[expect(clippy::disallowed_methods, reason = "tests start what they test")]
fn proxy(socket: &Path) -> Command {
    let mut command = Command::new(patterm_binary());
    command.env_clear().arg("mcp-stdio").arg("--socket").arg(socket);
    command
}

/// Checks the result of a tool, called by its own name or by `tools/call`, and its failure in the
/// latter case.
#[track_caller]
fn fits(tool: &str, result: &Value) {
    let misfit = match &result["structuredContent"] {
        Value::Null if result.is_null() || !result["content"].is_null() => None,
        Value::Null => schema::misfit(tool, result),
        failure if result["isError"] == true => schema::listed_misfit(tool, failure),
        answer => schema::misfit(tool, answer),
    };
    assert_eq!(misfit, None, "the answer of {tool} does not fit its own schema: {result}");
}
