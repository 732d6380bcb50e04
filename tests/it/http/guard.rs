//! Requests that must be refused.

use serde_json::json;

use super::{call, open, request};
use crate::support::Place;

#[test]
fn an_unauthorised_request_reaches_no_tool() {
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
    // A correct request does.
    assert_eq!(client.send("POST", "/mcp", &[], &body).status, 200);
    assert_ne!(place.run(&["ps", "--json"]), "[]\n");
}

/// Values that two parsers could interpret as different hosts.
#[test]
fn a_malformed_host_or_origin_is_refused() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let body = request(1, "tools/list", json!({})).to_string();
    let sent = |headers: &[(&str, &str)]| client.send("POST", "/mcp", headers, &body).status;
    for host in [
        "[::1]evil.com",
        "[::1]:80evil",
        "localhost:80:evil",
        "localhost:",
        "localhost:evil",
        "localhost.",
        "evil.com@localhost",
        "localhost@evil.com",
        "localhost, evil.com",
    ] {
        assert_eq!(sent(&[("Host", host)]), 403, "{host}");
        assert_eq!(sent(&[("Origin", &format!("http://{host}"))]), 403, "{host}");
    }
    assert_eq!(sent(&[("Host", "localhost"), ("Host", "evil.com")]), 400);
    assert_eq!(sent(&[("Host", "localhost"), ("Host", "localhost")]), 400);
    let local = ("Origin", "http://localhost");
    assert_eq!((sent(&[local]), sent(&[local, local])), (200, 400));
    let bearer = format!("Bearer {}", client.token);
    let bearer = ("Authorization", bearer.as_str());
    assert_eq!((sent(&[bearer]), sent(&[bearer, bearer])), (200, 401));
    // A target that names another host than the header.
    let target =
        |target: &str, host: &str| client.send("POST", target, &[("Host", host)], &body).status;
    assert_eq!(target("http://localhost/mcp", "localhost"), 200);
    assert_eq!(target("http://evil.com/mcp", "localhost"), 403);
    assert_eq!(target("http://localhost:81/mcp", "localhost:80"), 403);
    for host in ["localhost:80", "LOCALHOST", "127.0.0.1:7711", "[::1]:80"] {
        assert_eq!(sent(&[("Host", host)]), 200, "{host}");
    }
    for path in ["/servers", "/metrics"] {
        let twice = [("Host", "localhost"), ("Host", "localhost")];
        assert_eq!(client.send("GET", path, &twice, "").status, 400, "{path}");
    }
}
