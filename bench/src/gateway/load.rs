//! Clients of an endpoint, each with its own connection and session and one call at a time. One thread
//! without a runtime drives all of them, so that the load generator uses little CPU.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};

/// Longer than any response of a working relay takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What kind of call clients make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// In a session, answered as JSON.
    #[default]
    Stateful,
    /// Without a session, as in revision 2026-07-28.
    Stateless,
    /// In a session, with a progress token: the server reports progress before it answers, and the
    /// answer is a stream of events.
    Events,
}

/// How to call a relay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoint {
    pub(crate) port: u16,
    /// `{}` stands for the number of a client's server.
    pub(crate) path: String,
    pub(crate) servers: usize,
    pub(crate) tool: String,
    pub(crate) token: Option<String>,
    /// The session of a relay that has none, so that its clients send headers of the same length.
    pub(crate) session: Option<String>,
    pub(crate) style: Style,
}

impl Endpoint {
    /// The endpoint of a client: clients are spread over all servers.
    fn of_client(&self, number: usize) -> Self {
        let number = number % self.servers.max(1);
        Self { path: self.path.replace("{}", &format!("{number:0>2}")), ..self.clone() }
    }
}

/// All clients.
pub(crate) struct Load {
    clients: Vec<Client>,
    poll: rustix::fd::OwnedFd,
}

struct Client {
    stream: TcpStream,
    endpoint: Endpoint,
    session: Option<String>,
    /// The request; its id is changed in place.
    request: Vec<u8>,
    id_at: usize,
    answer: Vec<u8>,
    asked: Instant,
}

/// The metadata of a stateless call.
const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Ids have ten digits, so that every request has the same length. No two clients use the same id: some
/// relays would mix them up.
const FIRST_ID: u64 = 1_000_000_000;

impl Load {
    pub(crate) fn connect(endpoint: &Endpoint, clients: usize) -> anyhow::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let clients: anyhow::Result<Vec<_>> =
            (0..clients).map(|number| Client::connect(endpoint.of_client(number))).collect();
        let clients = clients?;
        for (number, client) in clients.iter().enumerate() {
            let data = epoll::EventData::new_u64(u64::try_from(number)?);
            epoll::add(&poll, &client.stream, data, epoll::EventFlags::IN)?;
        }
        Ok(Self { clients, poll })
    }

    /// Makes calls for this time; returns the duration of each.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<Vec<Duration>> {
        let start = Instant::now();
        let mut id = FIRST_ID;
        let mut times = Vec::with_capacity(1 << 18);
        for client in &mut self.clients {
            client.ask(id)?;
            id += 1;
        }
        let mut waiting = self.clients.len();
        let mut events = Vec::with_capacity(self.clients.len());
        while waiting > 0 {
            events.clear();
            let set_timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
            let spare = rustix::buffer::spare_capacity(&mut events);
            let count = epoll::wait(&self.poll, spare, Some(&set_timeout))?;
            anyhow::ensure!(count > 0, "{waiting} calls got no response within {TIMEOUT:?}");
            for event in &events {
                let client = &mut self.clients[usize::try_from(event.data.u64())?];
                if !client.read()? {
                    continue;
                }
                client.check()?;
                times.push(client.asked.elapsed());
                if start.elapsed() < time {
                    client.ask(id)?;
                    id += 1;
                } else {
                    waiting -= 1;
                }
            }
        }
        Ok(times)
    }

    /// Ends the sessions, so that the next round starts from the same state.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.clients.into_iter().try_for_each(Client::end)
    }
}

impl Client {
    fn connect(endpoint: Endpoint) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", endpoint.port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (request, answer) = (Vec::new(), Vec::new());
        let asked = Instant::now();
        let mut client = Self { stream, endpoint, session: None, request, id_at: 0, answer, asked };
        if client.endpoint.style != Style::Stateless {
            client.begin_session()?;
        }
        let meta = match client.endpoint.style {
            Style::Stateful => "",
            Style::Stateless => META,
            Style::Events => r#","_meta":{"progressToken":1}"#,
        };
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{FIRST_ID},\"method\":\"tools/call\",\"params\":{{\
             \"name\":\"{}\",\"arguments\":{{\"text\":\"a word\"}}{meta}}}}}",
            client.endpoint.tool
        );
        client.request = client.whole("POST", &call);
        let id = FIRST_ID.to_string();
        client.id_at = memchr::memmem::find(&client.request, id.as_bytes()).context("no id")?;
        Ok(client)
    }

    fn begin_session(&mut self) -> anyhow::Result<()> {
        let client = self;
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
        client.exchange("POST", hello)?;
        let head = String::from_utf8_lossy(&client.answer).into_owned();
        anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "initialize: {head}");
        client.session = head
            .lines()
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
            .map(|(_, id)| id.to_owned())
            .or_else(|| client.endpoint.session.clone());
        client.exchange("POST", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(())
    }

    /// A complete request with its head.
    fn whole(&self, method: &str, body: &str) -> Vec<u8> {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.endpoint.path,
            self.endpoint.port,
            body.len()
        );
        if let Some(token) = &self.endpoint.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        if let Some(session) = &self.session {
            head.push_str(&format!(
                "Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"
            ));
        }
        if self.endpoint.style == Style::Stateless {
            head.push_str(&format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n",
                self.endpoint.tool
            ));
        }
        format!("{head}\r\n{body}").into_bytes()
    }

    /// Sends a request and waits for the response.
    fn exchange(&mut self, method: &str, body: &str) -> anyhow::Result<()> {
        let request = self.whole(method, body);
        self.answer.clear();
        (&self.stream).write_all(&request)?;
        while !self.read()? {
            let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
            let set_timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
            let ready = rustix::event::poll(&mut fds, Some(&set_timeout))?;
            anyhow::ensure!(ready > 0, "no response within {TIMEOUT:?} to {body}");
        }
        Ok(())
    }

    fn ask(&mut self, id: u64) -> anyhow::Result<()> {
        self.answer.clear();
        let digits = id.to_string();
        self.request[self.id_at..self.id_at + digits.len()].copy_from_slice(digits.as_bytes());
        self.asked = Instant::now();
        // Much smaller than the socket's buffer.
        (&self.stream).write_all(&self.request)?;
        Ok(())
    }

    /// Reads available bytes; returns whether the response is complete.
    fn read(&mut self) -> anyhow::Result<bool> {
        let mut bytes = [0; 4096];
        match (&self.stream).read(&mut bytes) {
            Ok(0) => anyhow::bail!("the relay closed the connection"),
            Ok(read) => self.answer.extend_from_slice(&bytes[..read]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        let Some(end) = memchr::memmem::find(&self.answer, b"\r\n\r\n") else { return Ok(false) };
        let (head, body) = (&self.answer[..end], &self.answer[end + 4..]);
        match header(head, b"content-length: ") {
            Some(length) => Ok(body.len() >= std::str::from_utf8(length)?.trim().parse::<usize>()?),
            None if header(head, b"transfer-encoding: ").is_some() => {
                Ok(body.ends_with(b"0\r\n\r\n"))
            }
            None => Ok(true),
        }
    }

    /// Checks that the response belongs to this call.
    fn check(&self) -> anyhow::Result<()> {
        let id = &self.request[self.id_at..self.id_at + 10];
        let right = self.answer.starts_with(b"HTTP/1.1 200")
            && memchr::memmem::find(&self.answer, id).is_some()
            && memchr::memmem::find(&self.answer, b"a word").is_some();
        anyhow::ensure!(right, "unexpected response: {}", String::from_utf8_lossy(&self.answer));
        Ok(())
    }

    fn end(mut self) -> anyhow::Result<()> {
        if self.session.is_some() && self.endpoint.session.is_none() {
            self.exchange("DELETE", "")?;
        }
        Ok(())
    }
}

/// The value of a header, whatever the case of its name.
fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(|line| {
        line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    })?;
    Some(&line[name.len()..])
}
