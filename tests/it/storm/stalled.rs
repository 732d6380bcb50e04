//! Clients that stop reading for a while during a flood: a view, a client of the socket, one over
//! HTTP. The server's memory stays bounded, others are served, and the view is correct when it
//! reads again.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::{MIB, scaled};
use crate::support::tool_client::ToolClient;
use crate::support::{Baseline, Peer, Place, ProcessStats, Spawned, Transport};
use crate::view::View;

/// The memory that a client that does not read may cost (design/bars.md).
const MEMORY: u64 = 8 * MIB;

/// On the alternate screen: what scrolls away there is not kept as history, which would be counted.
const FLOOD: &str =
    "trap : INT; printf '\\033[?1049h'; yes much of the same; printf '\\033[?1049l';
    echo; echo the end; exec cat";

struct Flood {
    place: Place,
    server: Spawned,
    tools: ToolClient,
    id: String,
}

impl Flood {
    fn begin() -> Self {
        let place = Place::new();
        let output = place.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
        let server = Spawned { entry: serde_json::from_str(&output).unwrap() };
        let mut tools = ToolClient::at(&server.socket());
        let id = tools.sh(FLOOD);
        tools.wait(&id, "much");
        Self { place, server, tools, id }
    }

    /// The peak cost while they do not read, with others served meanwhile.
    fn watch(&mut self, at_rest: &Baseline) {
        let span = Duration::from_secs(scaled(2, 60) as u64);
        let (begun, mut served, mut cost) = (Instant::now(), 0, 0);
        while begun.elapsed() < span {
            assert_eq!(self.tools.status(&self.id)["status"], "running");
            served += 1;
            cost = cost.max(at_rest.more_anonymous());
        }
        assert!(cost <= MEMORY, "{} KiB", cost / 1024);
        assert!(served > 10, "only {served} calls in {span:?}");
    }

    /// What the server uses while it serves the flood to clients that read: the first response of
    /// its size allocates buffers that stay.
    fn baseline(&mut self, mut read: impl FnMut()) -> Baseline {
        let (tools, id) = (&mut self.tools, &self.id);
        Baseline::after(&ProcessStats::of(self.server.pid()), || {
            tools.ok("get_process_raw_output", large(id));
            read();
        })
    }

    /// Requests much, repeatedly.
    fn requests(&self) -> impl Iterator<Item = Value> {
        let arguments = large(&self.id);
        (0..200).map(move |id| {
            let params = json!({"name": "get_process_raw_output", "arguments": arguments});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        })
    }
}

fn large(id: &str) -> Value {
    json!({"process_id": id, "max_bytes": 1 << 20})
}

#[test]
fn a_view_of_a_flood() {
    let mut flood = Flood::begin();
    let (socket, id) = (flood.server.socket(), flood.id.clone());
    let attach = || {
        let mut view = View::attach_at(&socket, &id, 24, 80);
        view.until(|view| view.shows("much"));
        view
    };
    let at_rest = flood.baseline(|| drop(attach()));
    let mut view = attach();
    flood.watch(&at_rest);
    flood.tools.key(&flood.id, "ctrl+c");
    view.until(|view| view.shows("the end"));
    let shown: Vec<String> = view.screen.rows().iter().map(|row| row.trim_end().into()).collect();
    assert_eq!(shown[..2], flood.tools.rows(&flood.id)[..2]);
}

#[test]
fn a_client_of_the_socket() {
    let mut flood = Flood::begin();
    let mut unread = Peer::connect(Transport::Socket(Framing::Newline), &flood.server.socket());
    let at_rest = flood.baseline(|| {});
    let requests: String = flood.requests().map(|request| format!("{request}\n")).collect();
    unread.send(requests.as_bytes());
    flood.watch(&at_rest);
    // It is not disconnected: requests are answered in order.
    assert_eq!(unread.receive()["id"], 0);
}

#[test]
fn a_client_over_http() {
    let mut flood = Flood::begin();
    let token = flood.place.run(&["token", "new", "lazy"]);
    let address = flood.server.entry.http.unwrap();
    let post = |stream: &mut TcpStream, request: &Value, connection: &str| {
        let (token, body) = (token.trim(), request.to_string());
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: {connection}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    };
    let requests: Vec<_> = flood.requests().collect();
    let at_rest = flood.baseline(|| {
        let mut stream = TcpStream::connect(address).unwrap();
        post(&mut stream, &requests[0], "close");
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    });
    let mut stream = TcpStream::connect(address).unwrap();
    for request in &requests {
        post(&mut stream, request, "keep-alive");
    }
    flood.watch(&at_rest);
}
