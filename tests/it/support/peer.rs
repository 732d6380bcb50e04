//! A client that may say anything: over the socket or through the proxy, in either framing.

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

/// A way in and a framing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Door {
    Socket(Framing),
    Proxy(Framing),
}

impl Door {
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

/// A client. What it receives must be well framed, in the framing it speaks, and every answer of a tool
/// must fit the schema that the tool declares.
pub(crate) struct Peer {
    ends: Ends,
    framing: Framing,
    decoder: Decoder,
    /// The tools that were called and have not answered, by the ids of the requests.
    called: BTreeMap<String, String>,
}

impl Peer {
    pub(crate) fn connect(door: Door, socket: &Path) -> Self {
        Self::connect_with(door, socket, &[])
    }

    /// A client whose proxy, if the door has one, gets these flags too.
    pub(crate) fn connect_with(door: Door, socket: &Path, flags: &[String]) -> Self {
        let ends = match door {
            Door::Socket(_) => Ends::Socket(UnixStream::connect(socket).unwrap()),
            Door::Proxy(_) => {
                return Self::through(proxy(socket).args(flags), door.framing());
            }
        };
        Self::new(ends, door.framing())
    }

    /// A client of a proxy that is started by this command.
    pub(crate) fn through(command: &mut Command, framing: Framing) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Self::new(Ends::Proxy { child, stdin, stdout }, framing)
    }

    fn new(ends: Ends, framing: Framing) -> Self {
        Self { ends, framing, decoder: Decoder::new(64 << 20), called: BTreeMap::new() }
    }

    /// Sends bytes as they are.
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

    /// Says who calls, as the first line of a connection. It is a line in either framing.
    pub(crate) fn greet(&mut self, token: &str, project_key: Option<&str>) {
        let mut greeting = json!({"patterm_identity": token});
        if let Some(key) = project_key {
            greeting["project_key"] = key.into();
        }
        self.send(format!("{greeting}\n").as_bytes());
    }

    /// Calls a tool and returns its structured answer.
    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut answer = self.answer(id, "tools/call", params);
        answer["result"]["structuredContent"].take()
    }

    /// Asks and returns the next message, which must be the answer.
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

    /// The next message as it stood.
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

    /// The next message that was read whole.
    pub(crate) fn whole(&mut self) -> Option<Vec<u8>> {
        let frame = self.decoder.next_frame()?;
        let Frame::Body(body) = frame else { panic!("badly framed: {frame:?}") };
        let body = body.to_vec();
        assert_eq!(self.decoder.framing(), Some(self.framing), "answers keep the framing");
        Some(body)
    }

    /// Reads at most so many bytes; `false` at the end of the stream.
    pub(crate) fn read(&mut self, most: usize) -> bool {
        let mut buffer = vec![0; most];
        let read = match &mut self.ends {
            Ends::Socket(stream) => stream.read(&mut buffer),
            Ends::Proxy { stdout, .. } => stdout.as_mut().unwrap().read(&mut buffer),
        };
        match read {
            // The server may end a connection that it refused before it read all of it.
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

    /// Ends this side; what is still said is read with [`Peer::receive`].
    pub(crate) fn end(&mut self) {
        match &mut self.ends {
            Ends::Socket(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Ends::Proxy { stdin, .. } => drop(stdin.take()),
        }
    }

    /// Ends this side and returns everything that is still said. A proxy must then exit with 0.
    pub(crate) fn finish(mut self) -> Vec<Value> {
        self.end();
        let left = std::iter::from_fn(|| self.try_receive()).collect();
        if let Some(status) = self.wait() {
            assert!(status.success(), "{status}");
        }
        left
    }

    /// Ends this side of a proxy and returns everything that is still said, and how it exited.
    pub(crate) fn exit(mut self) -> (Vec<Value>, ExitStatus) {
        self.end();
        let left = std::iter::from_fn(|| self.try_receive()).collect();
        (left, self.wait().unwrap())
    }

    /// Reads no more, for good.
    pub(crate) fn close_output(&mut self) {
        match &mut self.ends {
            Ends::Socket(stream) => stream.shutdown(Shutdown::Read).unwrap(),
            Ends::Proxy { stdout, .. } => drop(stdout.take()),
        }
    }

    /// Sends the proxy a signal.
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

    /// Waits for the proxy's end.
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

/// The proxy to a given socket, without any other way to a server.
#[expect(clippy::disallowed_methods, reason = "tests start what they test")]
fn proxy(socket: &Path) -> Command {
    let mut command = Command::new(patterm_binary());
    command.env_clear().arg("mcp-stdio").arg("--socket").arg(socket);
    command
}

/// Checks the answer of a tool, by its own name or by `tools/call`, and its failure by the latter.
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
