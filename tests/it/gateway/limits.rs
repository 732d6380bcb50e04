//! What one token, or one answer, cannot do to the others.

use serde_json::json;

use super::client::{Client, call, request};
use super::gate::{Gate, Wish};

#[test]
fn a_token_with_all_its_sessions_loses_its_own_idlest_and_locks_nobody_out() {
    let gate = Gate::of(Wish::with("[http]\nsessions = 16"));
    let other = Client::greeted_with(&gate, &gate.tokens[1], json!({}));
    let mut own: Vec<Client> = (0..2).map(|_| Client::greeted(&gate)).collect();
    // The second is the one that was not used for the longest time.
    let echo = |client: &Client| client.post(&call(1, "echo", json!({}))).status;
    assert_eq!(echo(&own[0]), 200);
    own.push(Client::greeted(&gate));
    assert_eq!(own.iter().map(echo).collect::<Vec<_>>(), [200, 404, 200]);
    // However many it asks for, there is room for others.
    for _ in 0..40 {
        Client::greeted(&gate);
    }
    assert_eq!(echo(&other), 200, "nobody else's session ended");
    Client::greeted_with(&gate, &gate.tokens[1], json!({}));
}

/// A call that is on its way when its token is revoked is not answered any more.
#[test]
fn a_call_in_flight_ends_with_its_token() {
    let gate = Gate::of(Wish::default());
    let waiting = Client::greeted(&gate).send(&call(7, "hang", json!({})));
    gate.log.until("tools/call", 1);
    gate.place.run(&["token", "revoke", "one"]);
    let answer = super::client::Exchange::of(waiting).rest().json();
    assert_eq!(answer["id"], 7, "{answer}");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("the token was revoked"), "{answer}");
    gate.log.until("notifications/cancelled", 1);
}

#[test]
fn an_answer_nested_200_000_deep_fails_its_call_and_no_other() {
    let gate = Gate::of(Wish::default());
    let client = Client::greeted(&gate);
    let waiting = client.send(&call(1, "slow", json!({"milliseconds": 1000})));
    let deep = client.post(&call(2, "deep_answer", json!({"depth": 200_000}))).json();
    assert_eq!(deep["id"], 2, "{deep}");
    let why = deep["error"]["message"].as_str().unwrap();
    assert!(why.contains("cannot parse") && why.contains("nested deeper than"), "{deep}");
    let other = super::client::Exchange::of(waiting).rest().json();
    assert_eq!((&other["id"], other["result"].is_object()), (&json!(1), true), "{other}");
    let shallow = client.post(&call(3, "deep_answer", json!({"depth": 100}))).json();
    assert!(shallow["result"].is_object(), "{shallow}");
}

#[test]
fn metrics_name_only_what_a_token_is_good_for() {
    let gate = Gate::of(Wish::with("[servers.secret]\ncommand = ['true']"));
    let token = gate.place.run(&["token", "new", "narrow", "--servers", "everything"]);
    let narrow = Client::greeted_with(&gate, token.trim(), json!({}));
    let metrics = |client: &Client| client.get("/metrics", &[]).body;
    let whole = metrics(&Client::of(&gate));
    assert!(
        whole.contains("server=\"everything\"") && whole.contains("server=\"secret\""),
        "{whole}"
    );
    assert!(whole.contains("patterm_http_requests_total"), "{whole}");
    let seen = metrics(&narrow);
    assert!(seen.contains("server=\"everything\"") && !seen.contains("secret"), "{seen}");
    assert!(seen.contains("patterm_http_sessions 1\n"), "{seen}");
    assert!(!seen.contains("patterm_http_requests_total"), "{seen}");
    // A server that is gone does not make the others known either.
    let token = gate.place.run(&["token", "new", "stale", "--servers", "gone"]);
    let mut stale = Client::of(&gate);
    stale.token = token.trim().to_owned();
    let refused = stale.send_text(
        "POST",
        "/servers/gone/mcp",
        &[],
        &request(1, "ping", json!({})).to_string(),
    );
    let refused = super::client::Exchange::of(refused).rest();
    assert!(refused.status == 404 && !refused.body.contains("secret"), "{refused:?}");
}
