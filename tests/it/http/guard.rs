//! Requests that must reach nobody.

use serde_json::json;

use super::{call, open, request};
use crate::support::Place;

#[test]
fn who_may_not_come_in_reaches_no_tool() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let body = call(1, "spawn_process", json!({"argv": ["cat"]})).to_string();
    let begun = client.own(&request(0, "initialize", json!({"protocolVersion": "2025-11-25"})));
    let session = begun.header("mcp-session-id").unwrap();
    let other = super::raw::Client::new(client.address, &super::new_token(&place, &["other"]));
    let too_long = (65u64 << 20).to_string();
    for (status, headers) in [
        (403, ("Host", "evil.example")),
        (403, ("Host", "127.0.0.1.nip.io")),
        (403, ("Origin", "http://evil.example")),
        (403, ("Origin", "null")),
        (401, ("Authorization", "")),
        (401, ("Authorization", "Bearer patterm_")),
        (401, ("Authorization", "Basic dGVzdDp0ZXN0")),
        (413, ("Content-Length", too_long.as_str())),
        (415, ("Content-Type", "text/plain")),
        (404, ("Mcp-Session-Id", "00000000000000000000000000000000")),
    ] {
        let answer = client.send("POST", "/mcp", &[headers], &body);
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
    let foreign = other.send("POST", "/mcp", &[("Mcp-Session-Id", &session)], &body);
    assert_eq!(foreign.status, 404, "{foreign:?}");
    for path in ["/servers", "/metrics", "/servers/x/mcp"] {
        let answer = client.send("GET", path, &[("Authorization", "")], "");
        assert_eq!(answer.status, 401, "{path}");
    }
    assert_eq!(client.send("GET", "/healthz", &[("Authorization", "")], "").status, 200);
    assert_eq!(place.run(&["ps", "--json"]), "[]\n");
    // With nothing wrong, it does.
    assert_eq!(client.send("POST", "/mcp", &[], &body).status, 200);
    assert_ne!(place.run(&["ps", "--json"]), "[]\n");
}
