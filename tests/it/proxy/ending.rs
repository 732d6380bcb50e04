//! How the proxy exits: at the end of its input, on a signal, when nobody is left.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use patterm_wire::Framing;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{NOTHING, client};
use crate::support::{FakeServer, Peer, Place, Running, Transport};

const PROXY: Transport = Transport::Proxy(Framing::Newline);

/// Less than its own timeout for missing responses, which is 7 s: it has not waited for that. A busy machine may take a
/// while.
const AT_ONCE: Duration = Duration::from_secs(6);

/// That timeout, with a margin.
const IN_THE_END: Duration = Duration::from_secs(20);

#[track_caller]
fn within<T>(limit: Duration, what: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = what();
    assert!(begun.elapsed() < limit, "took {:?}", begun.elapsed());
    outcome
}

fn ids(answers: &[Value]) -> Vec<u64> {
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn at_the_end_of_input_it_answers_everything_it_read_and_exits() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Proxy(framing));
        peer.ask(1, "test_large", json!({"bytes": 2_000_000}));
        peer.ask(2, "test_wait", json!({}));
        peer.ask(3, "tools/list", json!({}));
        peer.ask(4, "test_wait", json!({"reports": 20, "once": true}));
        let answers = within(AT_ONCE, || peer.finish());
        assert_eq!(ids(&answers), [1, 2, 3, 4]);
        assert!(answers.iter().all(|answer| answer.get("result").is_some()));
    }
}

#[test]
fn with_nothing_in_flight_it_exits_at_once() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    peer.answer(1, "ping", json!({}));
    assert_eq!(within(AT_ONCE, || peer.finish()), NOTHING);
}

/// A refusal of a whole batch has no id; the proxy must nevertheless know what it answers.
#[test]
fn a_batch_that_is_refused_is_answered_once_and_its_ids_are_free() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    let element = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    for _ in 0..2 {
        peer.send_body(json!([element(1), element(2)]).to_string().as_bytes());
        let refusal = peer.receive();
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&Value::Null, &json!(-32600)));
        assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
    }
    // One that ends with the input.
    peer.send_body(json!([element(1), 7]).to_string().as_bytes());
    let answers = within(AT_ONCE, || peer.finish());
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["error"]["code"], -32600);
}

/// The last response counts, not what the server does afterwards.
#[test]
fn it_does_not_wait_for_a_server_that_has_answered_everything_and_stays() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let mut peer = client(&place, &[("PATTERM_SOCKET", server.socket())]);
    peer.ask(1, "tools/list", json!({}));
    let mut conversation = server.accept();
    let list = conversation.receive();
    peer.ask(2, "tools/call", json!({"name": "x"}));
    let call = conversation.receive();
    conversation.answer(&list, json!({}));
    assert_eq!(peer.receive()["id"], 1);
    peer.end();
    assert_eq!(conversation.try_receive(), None, "told that there is no more input");
    conversation.answer(&call, json!({}));
    let answers = within(AT_ONCE, || peer.finish());
    assert_eq!(ids(&answers), [2]);
    drop(conversation);
}

#[test]
fn a_call_that_never_ends_is_given_up_in_the_end() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let mut peer = client(&place, &[("PATTERM_SOCKET", server.socket())]);
    peer.ask(1, "tools/call", json!({"name": "x"}));
    let mut conversation = server.accept();
    conversation.receive();
    let answers = within(IN_THE_END, || peer.finish());
    assert_eq!(ids(&answers), [1]);
    assert_eq!(answers[0]["error"]["code"], -32008);
    let message = answers[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("did not answer in time"), "{message}");
}

#[test]
fn sigterm_lets_calls_in_flight_finish_and_exits_0() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Proxy(framing));
        peer.ask(1, "test_wait", json!({}));
        // Answered after the call before it has reached the server.
        peer.answer(2, "ping", json!({}));
        peer.signal(Signal::TERM);
        within(AT_ONCE, || {
            assert_eq!(peer.receive()["result"], json!({"ok": true}));
            assert_eq!(peer.try_receive(), None, "although standard input is still open");
            assert_eq!(peer.wait().unwrap().code(), Some(0));
        });
    }
}

#[test]
fn sigterm_twice_is_harmless_and_idle_it_exits_0() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    peer.answer(1, "ping", json!({}));
    let process = Running::of(peer.pid().unwrap());
    process.signal(Signal::TERM);
    process.signal(Signal::TERM);
    assert_eq!(within(AT_ONCE, || peer.wait()).unwrap().code(), Some(0));
    assert_eq!(peer.try_receive(), None);
}

#[test]
fn sigint_ends_it_at_once_whatever_is_in_flight() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    peer.ask(1, "test_stuck", json!({}));
    peer.answer(2, "ping", json!({}));
    peer.signal(Signal::INT);
    let status = within(AT_ONCE, || peer.wait()).unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
    assert_eq!(peer.try_receive(), None);
}

#[test]
fn a_closed_stdout_ends_it() {
    let place = Place::new();
    let server = place.serve_in_process();
    for in_flight in ["ping", "test_stuck"] {
        let mut peer = server.connect(PROXY);
        peer.answer(1, "ping", json!({}));
        peer.ask(2, in_flight, json!({}));
        peer.close_output();
        within(AT_ONCE, || peer.wait());
    }
}

#[test]
fn the_death_of_its_parent_ends_it() {
    let place = Place::new();
    let server = place.serve_in_process();
    // The shell waits for it, and this test keeps both ends of its standard input open.
    let (input, mut writer) = std::io::pipe().unwrap();
    let mut shell = place.command(Path::new("sh"));
    shell.args(["-c", r#""$PATTERM" mcp-stdio; exit 1"#]).env("PATTERM", place.binary());
    shell.env("PATTERM_SOCKET", server.socket());
    shell.stdin(input.try_clone().unwrap()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut stdout = shell.stdout.take().unwrap();
    let ask = |id: u64, method: &str| {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method}))
    };
    let requests = ask(1, "test_wait") + &ask(2, "ping");
    std::io::Write::write_all(&mut writer, requests.as_bytes()).unwrap();
    let pong = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n";
    let mut answer = vec![0; pong.len()];
    stdout.read_exact(&mut answer).unwrap();
    assert_eq!(answer, pong);
    shell.kill().unwrap();
    shell.wait().unwrap();
    let mut rest = String::new();
    within(AT_ONCE, || stdout.read_to_string(&mut rest).unwrap());
    assert_eq!(rest, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true}}\n");
    drop((input, writer));
}

/// A client that requests much and reads nothing must not keep the proxy forever.
#[test]
fn sigterm_ends_it_although_its_client_does_not_read() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    peer.answer(1, "ping", json!({}));
    for id in 2..12 {
        peer.ask(id, "test_large", json!({"bytes": 3_000_000}));
    }
    peer.signal(Signal::TERM);
    within(IN_THE_END, || peer.wait());
}

/// The same at the end of input: responses that are read late are complete.
#[test]
fn a_client_that_reads_late_gets_everything() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(PROXY);
    for id in 0..10 {
        peer.ask(id, "test_large", json!({"bytes": 3_000_000}));
    }
    peer.ask(10, "ping", json!({}));
    peer.end();
    let answers = within(IN_THE_END, || peer.finish());
    assert_eq!(ids(&answers), (0..=10).collect::<Vec<_>>());
    for answer in answers.iter().filter(|answer| answer["id"] != 10) {
        assert_eq!(answer["result"]["text"].as_str().unwrap().len(), 3_000_000);
    }
}

/// Nothing of the proxy outlives it, except the server that it started.
#[test]
fn it_leaves_the_server_it_started() {
    let place = Place::new();
    let mut command = place.patterm(&["mcp-stdio"]);
    let mut peer = Peer::through(&mut command, Framing::Newline);
    let server = Running::of(super::server_pid(&peer.call(1, "whoami", json!({}))));
    assert_eq!(peer.finish(), NOTHING);
    assert!(!server.is_gone());
}
