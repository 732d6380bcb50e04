//! One token, or one response, cannot harm the others.

use serde_json::json;

use super::client::{Client, call, request};
use super::harness::{Harness, ServerConfig};

#[test]
fn a_token_with_too_many_sessions_loses_its_own_idlest_one() {
    let harness = Harness::of(ServerConfig::with("[http]\nsessions = 16"));
    let other = Client::greeted_with(&harness, &harness.tokens[1], json!({}));
    let mut own: Vec<Client> = (0..2).map(|_| Client::greeted(&harness)).collect();
    // The second one has been idle for the longest time.
    let echo = |client: &Client| client.post(&call(1, "echo", json!({}))).status;
    assert_eq!(echo(&own[0]), 200);
    own.push(Client::greeted(&harness));
    assert_eq!(own.iter().map(echo).collect::<Vec<_>>(), [200, 404, 200]);
    // However many sessions it begins, there is room for others.
    for _ in 0..40 {
        Client::greeted(&harness);
    }
    assert_eq!(echo(&other), 200, "no other session ended");
    Client::greeted_with(&harness, &harness.tokens[1], json!({}));
}

/// A call in flight when its token is revoked gets an error.
#[test]
fn a_call_in_flight_ends_with_its_token() {
    let harness = Harness::of(ServerConfig::default());
    let waiting = Client::greeted(&harness).send(&call(7, "hang", json!({})));
    harness.log.until("tools/call", 1);
    harness.place.run(&["token", "revoke", "one"]);
    let answer = super::client::Exchange::of(waiting).rest().json();
    assert_eq!(answer["id"], 7, "{answer}");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("the token was revoked"), "{answer}");
    harness.log.until("notifications/cancelled", 1);
}

#[test]
fn an_answer_nested_200_000_deep_fails_its_call_and_no_other() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
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
fn metrics_show_only_what_a_token_may_see() {
    let harness = Harness::of(ServerConfig::with("[servers.secret]\ncommand = ['true']"));
    let token = harness.place.run(&["token", "new", "narrow", "--servers", "everything"]);
    let narrow = Client::greeted_with(&harness, token.trim(), json!({}));
    let metrics = |client: &Client| client.get("/metrics", &[]).body;
    let whole = metrics(&Client::of(&harness));
    assert!(
        whole.contains("server=\"everything\"") && whole.contains("server=\"secret\""),
        "{whole}"
    );
    assert!(whole.contains("patterm_http_requests_total"), "{whole}");
    let seen = metrics(&narrow);
    assert!(seen.contains("server=\"everything\"") && !seen.contains("secret"), "{seen}");
    assert!(seen.contains("patterm_http_sessions 1\n"), "{seen}");
    assert!(!seen.contains("patterm_http_requests_total"), "{seen}");
    // A server that is gone does not reveal the others either.
    let token = harness.place.run(&["token", "new", "stale", "--servers", "gone"]);
    let mut stale = Client::of(&harness);
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
