//! Standard streams of every kind, and messages of every size.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::{NOTHING, client, shake_hands};
use crate::support::{FakeServer, Peer, Place, Transport};

fn request(id: u64, method: &str, params: Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn messages(text: &[u8]) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

#[test]
fn nothing_but_protocol_is_on_stdout_however_talkative_the_rest_is() {
    let place = Place::new();
    let mut command = place.patterm(&["mcp-stdio"]);
    command.env("PATTERM_LOG", "trace").env("RUST_LOG", "trace").env("RUST_BACKTRACE", "full");
    let mut peer = Peer::through(command.stderr(Stdio::null()), Framing::Newline);
    // Through everything that may print: a start, nonsense, a crash, the end.
    shake_hands(&mut peer);
    let who = peer.call(1, "whoami", json!({}));
    peer.send(b"nonsense\n");
    assert_eq!(peer.receive()["error"]["code"], -32700);
    crate::support::Running::of(super::server_pid(&who)).signal(rustix::process::Signal::KILL);
    assert_eq!(peer.answer(2, "tools/list", json!({}))["id"], 2);
    assert_eq!(peer.answer(3, "nonsense", json!({}))["error"]["code"], -32601);
    // `Peer` fails at the first byte that is not part of a message.
    assert_eq!(peer.finish(), NOTHING);
}

/// A proxy to this server that the test has not started yet.
fn proxy_to(place: &Place, socket: &Path) -> Command {
    let mut command = place.patterm(&["mcp-stdio"]);
    command.env("PATTERM_SOCKET", socket);
    command
}

/// Streams as Node gives them to its children: a non-blocking socket for each.
#[test]
fn sockets_as_standard_streams() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (mut input, child_input) = UnixStream::pair().unwrap();
    let (output, child_output) = UnixStream::pair().unwrap();
    child_input.set_nonblocking(true).unwrap();
    child_output.set_nonblocking(true).unwrap();
    let mut command = proxy_to(&place, server.socket());
    command.stdin(OwnedFd::from(child_input)).stdout(OwnedFd::from(child_output));
    let mut child = command.spawn().unwrap();
    // Only the child keeps its ends open.
    drop(command);
    let mut output = BufReader::new(output);
    let mut line = String::new();
    for (id, bytes) in [(1, 10), (2, 5_000_000), (3, 100)] {
        let padding = "y".repeat(bytes);
        input
            .write_all(request(id, "test_large", json!({"bytes": bytes, "p": padding})).as_bytes())
            .unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": id, "result": {"text": "x".repeat(bytes)}})
        );
    }
    input.write_all(request(4, "test_wait", json!({})).as_bytes()).unwrap();
    input.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert_eq!(messages(&rest), [json!({"jsonrpc": "2.0", "id": 4, "result": {"ok": true}})]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn one_socket_as_both_streams() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (mut client, child_end) = UnixStream::pair().unwrap();
    let mut command = proxy_to(&place, server.socket());
    let child_end = OwnedFd::from(child_end);
    command.stdin(child_end.try_clone().unwrap()).stdout(child_end);
    let mut child = command.spawn().unwrap();
    drop(command);
    client.write_all(request(1, "test_wait", json!({})).as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(messages(&received), [json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}})]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn files_as_standard_streams() {
    let place = Place::new();
    let server = place.serve_in_process();
    let text: String = (0..500)
        .map(|id| request(id, "test_large", json!({"bytes": 1_000 + id})))
        .collect::<String>();
    // The last line has no line feed.
    std::fs::write(place.path("input"), text.trim_end()).unwrap();
    let mut command = proxy_to(&place, server.socket());
    command
        .stdin(File::open(place.path("input")).unwrap())
        .stdout(File::create(place.path("output")).unwrap());
    assert!(command.status().unwrap().success());
    let answers = messages(&std::fs::read(place.path("output")).unwrap());
    assert_eq!(answers.len(), 500);
    for answer in answers {
        let bytes = 1_000 + answer["id"].as_u64().unwrap() as usize;
        assert_eq!(answer["result"]["text"].as_str().unwrap().len(), bytes);
    }
}

#[test]
fn an_answer_of_6_mib_passes_completely() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Proxy(framing));
        let answer = peer.answer(1, "test_large", json!({"bytes": 6 << 20}));
        assert!(
            answer == json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "x".repeat(6 << 20)}})
        );
        assert_eq!(peer.finish(), NOTHING);
    }
}

/// Byte for byte, seen from the server's side: 20 MB in one request, among small ones.
#[test]
fn a_request_of_20_mb_passes_completely() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let mut peer = client(&place, &[("PATTERM_SOCKET", server.socket())]);
    let text: String = (0..20_000_000u32).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let sent = [
        request(1, "ping", json!({})),
        request(2, "x", json!({"t": text})),
        request(3, "ping", json!({})),
    ];
    let mut conversation = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let mut conversation = server.accept();
            for line in &sent {
                assert!(conversation.receive_line() == line.as_bytes());
            }
            conversation
        });
        sent.iter().for_each(|line| peer.send(line.as_bytes()));
        hearing.join().unwrap()
    });
    for id in 1..=3 {
        conversation.answer(&json!({"id": id}), json!({}));
        assert_eq!(peer.receive()["id"], id);
    }
    peer.end();
    assert_eq!(conversation.try_receive(), None);
    drop(conversation);
    assert_eq!(peer.finish(), NOTHING);
}

#[test]
fn the_real_server_accepts_20_mb_too() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Proxy(framing));
        let params = json!({"bytes": 3, "padding": "z".repeat(20_000_000)});
        assert_eq!(peer.answer(1, "test_large", params)["result"], json!({"text": "xxx"}));
        assert_eq!(peer.finish(), NOTHING);
    }
}

/// The limit applies to the client's messages; the server's may be longer.
#[test]
fn a_small_limit_for_messages_does_not_cut_answers() {
    let place = Place::new();
    let mut command = place.patterm(&["mcp-stdio", "--max-message-bytes", "1024"]);
    let mut peer = Peer::through(&mut command, Framing::Newline);
    let answer = peer.answer(1, "tools/list", json!({}));
    assert!(answer.to_string().len() > 1024);
    peer.ask(2, "ping", json!({"padding": "z".repeat(2_000)}));
    let refused = peer.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32700)));
    assert_eq!(peer.answer(3, "ping", json!({}))["id"], 3);
    assert_eq!(peer.finish(), NOTHING);
}
