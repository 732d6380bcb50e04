//! The greeting: whom a connection represents, and that a wrong one is never served anonymously.

use patterm_agents::identity::Token;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Rng, Serving, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

fn caller(peer: &mut Peer) -> Value {
    peer.call(1, "whoami", json!({}))["caller"].take()
}

fn greeted(server: &Serving, token: &Token) -> Peer {
    let mut peer = server.connect(SOCKET);
    peer.greet(&token.reveal(), None);
    peer
}

#[test]
fn a_token_identifies_the_process_of_every_call() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (lead, lead_token) = server.agent("lead", None);
    let (sub, sub_token) = server.agent("sub", Some(&lead.id));
    let lead_is = json!({"process_id": lead.id, "name": "lead", "role": "orchestrator"});
    let sub_is =
        json!({"process_id": sub.id, "name": "sub", "role": "sub-agent", "parent_id": lead.id});
    // The framing is detected after the greeting, which is a line in either case.
    for framing in [Framing::Newline, Framing::Headers] {
        for key in [None, Some(place.project().key())] {
            for (token, expected) in [(&lead_token, &lead_is), (&sub_token, &sub_is)] {
                let mut peer = server.connect(Transport::Socket(framing));
                peer.greet(&token.reveal(), key);
                assert_eq!(caller(&mut peer), *expected);
                assert_eq!(peer.answer(2, "whoami", json!({}))["result"]["caller"], *expected);
                assert_eq!(peer.finish(), Vec::<Value>::new(), "a greeting has no answer");
            }
        }
        let mut stranger = server.connect(Transport::Socket(framing));
        assert_eq!(caller(&mut stranger), json!({"role": "external"}));
    }
}

#[test]
fn an_agent_learns_who_it_is_and_who_its_parent_is() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (lead, lead_token) = server.agent("lead", None);
    let (sub, sub_token) = server.agent("sub", Some(&lead.id));
    let instructions = |token: &Token| {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let answer = greeted(&server, token).answer(1, "initialize", params);
        answer["result"]["instructions"].as_str().unwrap().to_owned()
    };
    assert!(instructions(&lead_token).ends_with("and close them when they are done."));
    let text = instructions(&sub_token);
    let who = format!("You are the sub-agent sub ({}), started by lead ({}).", sub.id, lead.id);
    assert!(text.contains(&who) && text.contains("send_message"), "{text}");
}

#[test]
fn a_person_greets_without_a_token_and_is_not_a_process() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    peer.send(format!("{}\n", patterm_host::PERSON).as_bytes());
    assert_eq!(caller(&mut peer), json!({"role": "external"}));
}

#[test]
fn a_greeting_counts_only_as_the_first_line() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let mut peer = server.connect(SOCKET);
    peer.answer(1, "ping", json!({}));
    peer.greet(&token.reveal(), None);
    assert_eq!(peer.receive()["error"]["code"], -32600);
    assert_eq!(caller(&mut peer), json!({"role": "external"}));
}

/// Sends a first line and a ping. The line must be refused for this reason, the ping not answered,
/// and the connection closed.
#[track_caller]
fn check_refused(server: &Serving, line: &str, reason: &str) {
    let mut peer = server.connect(SOCKET);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    // In one write: the server may close before a second.
    peer.send(format!("{line}\n{ping}\n").as_bytes());
    let answer = peer.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32000)), "{line}");
    assert_eq!(answer["error"]["data"], json!({"reason": reason}), "{line}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("greeting refused: "), "{message}");
    assert_eq!(peer.try_receive(), None, "{line}");
}

fn check_token_refused(server: &Serving, token: &Token) {
    check_refused(
        server,
        &json!({"patterm_identity": token.reveal()}).to_string(),
        "unknown_token",
    );
}

#[test]
fn forged_tokens_are_refused() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let token = token.reveal();
    let mut one_off = token.clone();
    one_off.replace_range(63.., if token.ends_with('0') { "1" } else { "0" });
    for forged in [&*one_off, &"0".repeat(64), &token[..63], &format!("{token}0"), "lead", "p1", ""]
    {
        check_refused(&server, &json!({"patterm_identity": forged}).to_string(), "unknown_token");
    }
}

#[test]
fn malformed_greetings_are_refused() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let token = token.reveal();
    for malformed in [
        r#"{"patterm_identity":null}"#.to_owned(),
        r#"{"patterm_identity":1}"#.to_owned(),
        r#"{"patterm_identity":{}}"#.to_owned(),
        format!(r#"{{"patterm_identity":["{token}"]}}"#),
        format!(r#"{{"patterm_identity":"{token}","project_key":7}}"#),
        // Which of the two is meant?
        format!(r#"{{"patterm_identity":"{token}","patterm_identity":"{token}"}}"#),
        format!(r#"{{"patterm_identity":"{token}","patterm_identity":1}}"#),
        // Its sender has an identity, so it must not continue anonymously.
        format!(r#"{{"patterm_identity":"{token}""#),
        format!(r#"{{"patterm_identity":"{token}}}"#),
        format!(r#"{{"patterm_identity":"{token}"}},"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","patterm_identity":1}"#.to_owned(),
        r#"{"patterm\u005fidentity":1}"#.to_owned(),
    ] {
        check_refused(&server, &malformed, "malformed");
    }
}

#[test]
fn another_projects_key_is_refused_with_a_good_token_too() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    for key in ["0123456789abcdef", "", "no key"] {
        let line = json!({"patterm_identity": token.reveal(), "project_key": key}).to_string();
        check_refused(&server, &line, "other_project");
    }
}

#[test]
fn another_projects_token_is_refused() {
    let (place, other_place) = (Place::new(), Place::new());
    let (server, other) = (place.serve_in_process(), other_place.serve_in_process());
    server.agent("lead", None);
    let (_, token) = other.agent("lead", None);
    check_token_refused(&server, &token);
}

/// A first line without `patterm_identity` is an ordinary message, whatever its form.
#[test]
fn a_first_line_without_an_identity_is_an_anonymous_message() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let token = token.reveal();
    for (line, code) in [
        ("[1]".to_owned(), -32600),
        (format!(r#"["{token}"]"#), -32600),
        (r#"{"project_key":"0123456789abcdef"}"#.to_owned(), -32600),
        (format!(r#""{token}""#), -32600),
        ("nonsense".to_owned(), -32700),
    ] {
        let mut peer = server.connect(SOCKET);
        peer.send(format!("{line}\n").as_bytes());
        assert_eq!(peer.receive()["error"]["code"], code, "{line}");
        assert_eq!(caller(&mut peer), json!({"role": "external"}), "{line}");
    }
}

#[test]
fn a_revoked_token_is_refused() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (lead, token) = server.agent("lead", None);
    server.host().identities.revoke(&lead.id).unwrap();
    check_token_refused(&server, &token);
}

#[test]
fn the_token_of_a_removed_process_is_refused_on_open_connections_too() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (lead, token) = server.agent("lead", None);
    let (other, other_token) = server.agent("other", None);
    let mut peer = greeted(&server, &token);
    assert_eq!(caller(&mut peer)["process_id"], json!(lead.id));
    server.host().panes.processes.forget(&lead.id);
    for (id, method) in [(2, "ping"), (3, "whoami"), (4, "tools/list")] {
        let answer = peer.answer(id, method, json!({}));
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("revoked"), "{message}");
    }
    check_token_refused(&server, &token);
    assert_eq!(caller(&mut greeted(&server, &other_token))["process_id"], json!(other.id));
}

#[test]
fn a_token_outlives_a_restart_of_the_server() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    let (lead, token) = server.agent("lead", None);
    let (gone, gone_token) = server.agent("gone", None);
    server.host().identities.revoke(&gone.id).unwrap();
    server.stop();
    let server = place.serve_in_process();
    assert_eq!(caller(&mut greeted(&server, &token))["process_id"], json!(lead.id));
    check_token_refused(&server, &gone_token);
    drop(server);
    // The real one, and after a crash.
    place.serve().kill();
    let server = place.serve();
    let mut peer = server.connect(SOCKET);
    peer.greet(&token.reveal(), Some(place.project().key()));
    assert_eq!(caller(&mut peer)["name"], "lead");
}

/// Tokens that an attacker could have: invented, nearly right, of processes that are gone, of
/// another project.
#[test]
fn ten_thousand_forged_replayed_and_revoked_tokens_are_refused() {
    let (place, other_place) = (Place::new(), Place::new());
    let (server, other) = (place.serve_in_process(), other_place.serve_in_process());
    let mut rng = Rng::new(29);
    let issued = |server: &Serving, n: usize| -> Vec<String> {
        (0..n).map(|n| server.agent(&format!("agent{n}"), None).1.reveal()).collect()
    };
    let (good, foreign) = (issued(&server, 8), issued(&other, 8));
    let revoked: Vec<String> = (0..8)
        .map(|n| {
            let (process, token) = server.agent(&format!("gone{n}"), None);
            server.host().identities.revoke(&process.id).unwrap();
            token.reveal()
        })
        .collect();
    for turn in 0..10_000 {
        let mut token: Vec<u8> = rng.pick(&good).clone().into_bytes();
        let at = rng.within(0..token.len());
        match turn % 8 {
            0 => token.iter_mut().for_each(|b| *b = b"0123456789abcdef"[rng.within(0..16)]),
            // One bit of one digit is flipped.
            1 => {
                token[at] = b"0123456789abcdef"[(hex(token[at]) ^ (1 << rng.within(0..4))) as usize]
            }
            2 => token.truncate(at),
            3 => token.insert(at, b'0'),
            4 => token.rotate_left(1 + at / 2),
            5 => token.reverse(),
            6 => token = rng.pick(&revoked).clone().into_bytes(),
            _ => token = rng.pick(&foreign).clone().into_bytes(),
        }
        let token = String::from_utf8(token).unwrap();
        if !good.contains(&token) {
            check_refused(
                &server,
                &json!({"patterm_identity": token}).to_string(),
                "unknown_token",
            );
        }
    }
    for token in good {
        let mut peer = server.connect(SOCKET);
        peer.greet(&token, None);
        assert_eq!(caller(&mut peer)["role"], "orchestrator");
    }
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap() as u8
}
