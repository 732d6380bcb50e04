//! A caller with an invalid identity gets an error for each request, and is never served
//! anonymously.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::{NOTHING, client};
use crate::support::{FakeServer, Peer, Place, User};

/// Sends three requests and a notification. Each request must fail with an error that contains
/// these words, the notification gets no response, and the proxy must exit with 1.
#[track_caller]
fn check_refused(mut peer: Peer, words: &str) {
    for (id, method) in [(1, "initialize"), (2, "tools/list"), (3, "tools/call")] {
        let answer = peer.answer(id, method, json!({"name": "whoami"}));
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        peer.notify("notifications/initialized", json!({}));
    }
    // One more that is still in flight when the input ends.
    peer.ask("last", "ping", json!({}));
    let (left, status) = peer.exit();
    let ids: Vec<&Value> = left.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, ["last"]);
    assert_eq!(left[0]["error"]["code"], -32000);
    assert_eq!(status.code(), Some(1));
}

#[test]
fn an_unreadable_identity_is_reported_for_each_request() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let write = |name: &str, text: &[u8]| {
        let path = place.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let (none, garbage) = ("cannot read the identity file", "contains no identity token");
    let token = "0".repeat(64);
    for (file, words) in [
        (place.path("missing"), none),
        (place.path("home"), none),
        (write("binary", b"\xff\xfe"), none),
        (write("empty", b""), garbage),
        (write("garbage", b"garbage"), garbage),
        (write("short", &token.as_bytes()[1..]), garbage),
        (write("two", format!("{token}\n{token}\n").as_bytes()), garbage),
    ] {
        let variables = [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY_FILE", &file)];
        check_refused(client(&place, &variables), words);
        assert_eq!(server.accept().try_receive(), None, "nothing was sent");
        assert!(server.no_connection(), "nor tried again");
    }
    let variables =
        [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY", Path::new("garbage"))];
    check_refused(client(&place, &variables), "PATTERM_IDENTITY is not an identity token");
    assert_eq!(server.accept().try_receive(), None);
    assert!(server.no_connection());
}

#[test]
fn an_identity_file_that_others_can_read_or_own_is_refused_and_nothing_is_sent() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let file = place.path("token");
    std::fs::write(&file, "0".repeat(64)).unwrap();
    let check = |words: &str| {
        let variables = [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY_FILE", &file)];
        check_refused(client(&place, &variables), words);
        assert_eq!(server.accept().try_receive(), None, "nothing was sent");
    };
    // A verb in an agent's shell reports it, and does not continue as a person.
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let key = place.project().key().to_owned();
    let mut verb = place.patterm(&["ps"]);
    let output = verb.env("PATTERM_PROJECT_KEY", key).env("PATTERM_IDENTITY_FILE", &file).output();
    let output = output.unwrap();
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{reason}");
    assert!(reason.contains("has mode 0644"), "{reason}");
    for mode in [0o644, 0o640, 0o606] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        check(&format!("has mode {mode:04o}, so others can read the token in it; run `chmod"));
    }
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&file, Some(User::reserve().uid), None).unwrap();
    check("another user owns it");
}

#[test]
fn a_greeting_that_the_server_refuses_is_not_repeated() {
    let place = Place::new();
    let _server = place.serve();
    let forged = "ab".repeat(32);
    for (refusals, framing) in [(1, Framing::Newline), (2, Framing::Headers)] {
        let mut command = place.patterm(&["mcp-stdio"]);
        let peer = Peer::through(command.env("PATTERM_IDENTITY", &forged), framing);
        check_refused(peer, "the identity token is unknown or revoked");
        let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
        assert_eq!(log.matches("a connection was refused").count(), refusals, "{log}");
    }
}

#[test]
fn another_projects_key_is_refused_likewise() {
    let place = Place::new();
    let mut issuing = place.serve_in_process();
    let (_, token) = issuing.agent("lead", None);
    issuing.stop();
    let server = place.serve();
    let (token, socket) = (token.reveal(), server.socket());
    let key = Path::new("0123456789abcdef");
    let variables = [
        ("PATTERM_SOCKET", &*socket),
        ("PATTERM_PROJECT_KEY", key),
        ("PATTERM_IDENTITY", Path::new(&token)),
    ];
    check_refused(client(&place, &variables), "this server serves another project");
}

/// Requests that are written together with the greeting are answered once each.
#[test]
fn requests_in_flight_at_the_refusal_are_answered() {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let token = "ab".repeat(32);
    let variables = [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY", Path::new(&token))];
    let mut peer = client(&place, &variables);
    for id in 1..=3 {
        peer.ask(id, "tools/call", json!({"name": "whoami"}));
    }
    let mut conversation = server.accept();
    assert_eq!(conversation.receive(), json!({"patterm_identity": token}));
    for id in 1..=3 {
        assert_eq!(conversation.receive()["id"], id);
    }
    conversation.send(&json!({"jsonrpc": "2.0", "id": null,
        "error": {"code": -32000, "message": "greeting refused: as the test likes"}}));
    drop(conversation);
    let (left, status) = peer.exit();
    let mut ids: Vec<_> = left.iter().map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3].map(Some));
    for answer in &left {
        assert_eq!(answer["error"]["message"], "greeting refused: as the test likes");
    }
    assert_eq!(status.code(), Some(1));
    assert!(server.no_connection());
}

/// Revoked while connected: the process is closed, and its calls are refused one by one.
#[test]
fn a_removed_process_is_refused_from_then_on() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (lead, token) = server.agent("lead", None);
    let token = token.reveal();
    let variables = [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY", Path::new(&token))];
    let mut peer = client(&place, &variables);
    assert_eq!(peer.call(1, "whoami", json!({}))["caller"]["name"], "lead");
    server.host().panes.processes.forget(&lead.id);
    assert_eq!(peer.answer(2, "whoami", json!({}))["error"]["code"], -32000);
    assert_eq!(peer.finish(), NOTHING);
}
