//! The bad-input table of the transport specification, line by line, over every transport. Whatever
//! the input, the connection still answers the ping that follows.

use patterm_host::GREETING_REFUSED;
use patterm_host::tools::ErrorKind;
use patterm_store::limits::Limits;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Serving, Transport, account};

/// The ping that follows every input, and its exact response.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"after","method":"ping"}"#;
const PONG: &[u8] = br#"{"jsonrpc":"2.0","id":"after","result":{}}"#;

/// A limit that a test reaches quickly; the proxy's flag accepts 1024 at least.
const SMALL_LIMIT: usize = 4096;

struct Served {
    server: Serving,
    _place: Place,
}

fn served_with(limits: Limits) -> Served {
    let place = Place::new();
    Served { server: place.serve_with(limits), _place: place }
}

fn served() -> Served {
    served_with(Limits::default())
}

fn small() -> Served {
    served_with(Limits { message_bytes: SMALL_LIMIT, ..Limits::default() })
}

/// All messages up to the response to a ping that is sent now.
fn said(peer: &mut Peer) -> Vec<String> {
    peer.send_body(PING);
    let mut said = Vec::new();
    loop {
        let body = peer.try_receive_raw().expect("the ping's answer, not the end");
        if body == PONG {
            return said;
        }
        said.push(account(&body));
    }
}

fn framed(framing: Framing, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    framing.encode(body, &mut frame);
    frame
}

/// The beginning of bytes, for the message of a failed assertion.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(200)].escape_ascii().to_string()
}

impl Served {
    /// Checks that each body, in its own frame, is answered with `expected`: as the first message
    /// of a connection and after others, over every transport.
    #[track_caller]
    fn check<B: AsRef<[u8]>>(&self, bodies: &[B], expected: &[&str]) {
        for transport in Transport::ALL {
            self.check_door(transport, bodies, expected);
        }
    }

    #[track_caller]
    fn check_door<B: AsRef<[u8]>>(&self, transport: Transport, bodies: &[B], expected: &[&str]) {
        let streams: Vec<_> =
            bodies.iter().map(|b| framed(transport.framing(), b.as_ref())).collect();
        self.check_streams(transport, &streams, expected);
    }

    /// The same for bytes with their own framing, or none.
    #[track_caller]
    fn check_streams<B: AsRef<[u8]>>(
        &self,
        transport: Transport,
        streams: &[B],
        expected: &[&str],
    ) {
        let mut used = self.server.connect(transport);
        assert_eq!(said(&mut used), [""; 0], "{transport:?}");
        for stream in streams {
            let stream = stream.as_ref();
            used.send(stream);
            assert_eq!(said(&mut used), expected, "{transport:?}: {}", shown(stream));
            let mut fresh = self.server.connect(transport);
            fresh.send(stream);
            assert_eq!(said(&mut fresh), expected, "{transport:?}, first: {}", shown(stream));
            assert_eq!(fresh.finish(), [Value::Null; 0], "{transport:?}: {}", shown(stream));
        }
        assert_eq!(used.finish(), [Value::Null; 0], "{transport:?}");
    }

    /// Checks that a stream that ends after these bytes is answered with `expected`, and ends
    /// cleanly.
    #[track_caller]
    fn check_end(&self, framing: Framing, stream: &[u8], expected: &[&str]) {
        for transport in [Transport::Socket(framing), Transport::Proxy(framing)] {
            let mut peer = self.server.connect(transport);
            peer.send(stream);
            let said: Vec<_> =
                peer.finish().iter().map(|v| account(v.to_string().as_bytes())).collect();
            assert_eq!(said, expected, "{transport:?}: {}", shown(stream));
        }
    }

    /// Checks that a request is refused with `code`, and that the error contains `word` in its
    /// message or data.
    #[track_caller]
    fn check_error(&self, method: &str, params: Value, code: i64, word: &str) {
        for transport in Transport::ALL {
            let mut peer = self.server.connect(transport);
            let error = peer.answer("it", method, params.clone())["error"].take();
            assert_eq!(error["code"], code, "{transport:?} {method} {params}: {error}");
            let names_it =
                error["message"].as_str().unwrap().contains(word) || error["data"] == word;
            assert!(names_it, "{transport:?} {method} {params}: {error} does not say {word:?}");
            assert_eq!(said(&mut peer), [""; 0], "{transport:?}");
        }
    }
}

/// Opens a connection with a negotiated revision, or without one.
fn of_revision(server: &Serving, transport: Transport, revision: Option<&str>) -> Peer {
    let mut peer = server.connect(transport);
    if let Some(revision) = revision {
        let client = json!({"name": "t", "version": "0"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let answer = peer.answer("init", "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], revision);
        peer.notify("notifications/initialized", json!({}));
    }
    peer
}

#[test]
fn invalid_json_is_a_parse_error() {
    served().check(
        &[
            "nonsense",
            "{",
            "}",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping""#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
            "{'jsonrpc':'2.0','id':1,'method':'ping'}",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},"#,
            "NaN",
            "\u{feff}\u{feff}",
            "GET / HTTP/1.1",
        ],
        &["null -32700"],
    );
}

#[test]
fn an_empty_body_is_a_parse_error_with_headers() {
    let served = served();
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        served.check_door(transport, &["", " ", "\n"], &["null -32700"]);
    }
}

#[test]
fn json_that_is_not_a_request_is_refused_with_its_id_if_there_is_one() {
    let served = served();
    served.check(
        &[
            "[]",
            "1",
            "null",
            "true",
            r#""ping""#,
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        ],
        &["null -32600"],
    );
    served.check(
        &[
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#,
            r#"{"id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":null}"#,
        ],
        &["7 -32600"],
    );
    served.check(&[r#"{"jsonrpc":"3","id":"a\u0062","method":"ping"}"#], &[r#""a\u0062" -32600"#]);
}

#[test]
fn a_response_is_ignored() {
    served().check(
        &[
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"after","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":5}"#,
            r#"{"jsonrpc":"2.0","result":null}"#,
        ],
        &[],
    );
}

#[test]
fn an_unknown_method_is_named_in_the_refusal() {
    let served = served();
    for method in ["no/such", "", "initialise", "rpc.discover", "notifications/cancelled", "é\n"] {
        served.check_error(method, json!({}), -32601, method);
    }
    let mut peer = served.server.connect(Transport::ALL[0]);
    assert_eq!(
        peer.answer(1, "no/such", json!({})),
        json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": -32601, "message": "Method not found", "data": "no/such"}})
    );
}

#[test]
fn bad_parameters_are_refused_by_name() {
    let served = served();
    let check = |method: &str, params: Value, word: &str| {
        served.check_error(method, params, -32602, word);
    };
    check("ping", json!([1]), "`params`");
    check("ping", json!("x"), "`params`");
    check("ping", json!({"_meta": 5}), "`params._meta`");
    check("tools/call", json!({}), "`params.name`");
    check("tools/call", json!({"name": 5}), "`params.name`");
    check("tools/call", json!({"name": "whoami", "arguments": []}), "`params.arguments`");
    check("tools/call", json!({"name": "no_such_tool"}), "no_such_tool");
    check("tools/list", json!({"cursor": 1}), "`params.cursor`");
    check("initialize", json!({"protocolVersion": 1}), "`params.protocolVersion`");
    check("initialize", json!({"capabilities": []}), "`params.capabilities`");
    check("initialize", json!({"clientInfo": "me"}), "`params.clientInfo`");
    check("completion/complete", json!({}), "ref");
    check("test_large", json!({}), "`bytes`");
    check("test_large", json!({"bytes": "many"}), "`bytes`");
}

#[test]
fn a_bad_header_block_is_reported_once_for_everything_skipped() {
    let served = served();
    let junk = r#"{"jsonrpc":"2.0","id":66,"method":"ping"}"#;
    let endless = "X-Other: y\r\n".repeat(2000);
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        served.check_streams(
            transport,
            &[
                format!("Content-Length: x\r\n\r\n{junk}"),
                format!("Content-Length:\r\n\r\n{junk}\r\n\r\n{junk}\n{junk}\n"),
                format!("Content-Length: -1\r\n\r\n{junk}"),
                format!("Content-Length: 1e3\r\n\r\n{junk}"),
                format!("Content-Length: 41 bytes\r\n\r\n{junk}"),
                format!("Content-Length: 99999999999999999999999\r\n\r\n{junk}"),
                format!("Content-Length: {}\r\n\r\n{junk}", (64 << 20) + 1),
                format!("Content-Length: {}\r\n\r\n{junk}", u64::MAX),
                format!("Content-Length: 41\r\nContent-Length: 40\r\n\r\n{junk}"),
                format!("Content-Type: application/json\r\n\r\n{junk}"),
                format!("Content-Type: a\r\nX-Other: b\r\n\r\n{junk}\nContent-Type: c\r\n\r\n"),
                format!("Content-Nonsense\r\n\r\n{junk}"),
                format!("Content-\0: 5\r\n\r\n{junk}"),
                format!("Content-Length: 41\r\n{endless}\r\n{junk}"),
                format!("Content-Length: {}", "4".repeat(10_000)),
                format!("Content-Type: {}", "4".repeat(100_000)),
                format!("Content-Length: x\r\n\r\n{}", "\0\u{ff}content-lengthContent-Length;"),
            ],
            &["null -32700"],
        );
    }
}

#[test]
fn the_next_content_length_is_found_wherever_it_is() {
    let served = served();
    let ping = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let good = format!("Content-Length: {}\r\n\r\n{}", ping(77).len(), ping(77));
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        served.check_streams(
            transport,
            &[
                format!("Content-Length: x\r\n\r\n{}{good}", ping(66)),
                format!("Content-Length: x\r\n{good}"),
                format!("Content-Length: x {good}"),
                format!("Content-Length: {good}"),
                format!("Content-Length:{good}"),
                format!("Content-Length: x\r\n\r\n\r\n{}", good.to_lowercase()),
                format!("Content-Length: x\r\n\r\n{}", good.replace("Content-L", "CONTENT-l")),
                format!("Content-Length: x\r\n\r\nContent-Content-Length{good}"),
                format!("Content-Type: x\r\n\r\nContent-Type: y {good}"),
                format!("Content-Type: x; {good}"),
                format!("Content-Type{good}"),
                format!("Content-Length: 999999999\r\n\r\n{}{good}", ping(66)),
                format!("Content-Nonsense {good}"),
            ],
            &["null -32700", "77 {}"],
        );
    }
}

#[test]
fn a_wrong_length_costs_at_most_the_next_message() {
    let served = served();
    let ping = r#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#;
    let good = format!("Content-Length: {}\r\n\r\n{ping}", ping.len());
    let short = format!("Content-Length: {}\r\n\r\n{ping}{good}", ping.len() - 1);
    // The body consumes the next header's first letter, so that frame is lost; the one after is
    // not.
    let long = format!("Content-Length: {}\r\n\r\n{ping}{good}{good}", ping.len() + 1);
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        served.check_streams(
            transport,
            &[short.as_str()],
            &["null -32700", "null -32700", "77 {}"],
        );
        served.check_streams(transport, &[long.as_str()], &["null -32700", "null -32700", "77 {}"]);
    }
}

#[test]
fn a_body_truncated_by_the_end_is_a_parse_error_and_the_connection_ends_cleanly() {
    let served = served();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let good = format!("Content-Length: {}\r\n\r\n{ping}", ping.len());
    for cut in ["Content-Length: 60\r\n\r\n", "Content-Length: 60\r\n", "Content-Length: 60", "C"] {
        let cut_off = if cut.ends_with("\n\r\n") { format!("{cut}{ping}") } else { cut.to_owned() };
        served.check_end(
            Framing::Headers,
            format!("{good}{cut_off}").as_bytes(),
            &["1 {}", "null -32700"],
        );
    }
    served.check_end(Framing::Headers, b"Content-Length: 60\r\n\r\n{", &["null -32700"]);
    served.check_end(Framing::Headers, b"Content-Length: 60\r\n", &["null -32700"]);
    served.check_end(Framing::Newline, &ping.as_bytes()[..20], &["null -32700"]);
}

#[test]
fn a_last_line_without_a_newline_is_served() {
    let served = served();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    served.check_end(Framing::Newline, ping.as_bytes(), &["1 {}"]);
    served.check_end(Framing::Newline, format!("{ping}\r").as_bytes(), &["1 {}"]);
    served.check_end(Framing::Newline, format!("\n\n{ping}\n  ").as_bytes(), &["1 {}"]);
    let other = r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#;
    served.check_end(
        Framing::Newline,
        format!("{ping}\n{other}").as_bytes(),
        &["1 {}", "2 -32601"],
    );
    served.check_end(Framing::Newline, b"", &[]);
    served.check_end(Framing::Headers, b"", &[]);
}

#[test]
fn a_notification_is_never_answered() {
    served().check(
        &[
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","method":""}"#,
            r#"{"jsonrpc":"2.0","method":"ping","params":5}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":5}}"#,
            r#"{"jsonrpc":"2.0","method":"test_panic"}"#,
            r#"{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}"#,
        ],
        &[],
    );
}

#[test]
fn invalid_utf_8_is_a_parse_error() {
    served().check(
        &[
            &b"\xff"[..],
            b"\xc3\x28",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\xed\xa0\x80\",\"method\":\"ping\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"\xf8\":1}}",
        ],
        &["null -32700"],
    );
}

#[test]
fn nul_bytes_are_a_parse_error() {
    served().check(
        &[
            &b"\0"[..],
            b"\0\0\0\0",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\0\"method\":\"ping\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\0ng\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\0",
            b"\0{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        ],
        &["null -32700"],
    );
}

#[test]
fn nesting_ten_thousand_deep_is_a_parse_error_with_the_id_if_it_was_seen() {
    let served = served();
    let deep = |open: &str, close: &str| open.repeat(10_000) + "1" + &close.repeat(10_000);
    let (lists, objects) = (deep("[", "]"), deep(r#"{"a":"#, "}"));
    served.check(&[&lists, &objects, &"[".repeat(10_000)], &["null -32700"]);
    let request = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":8,"method":"ping","params":{{"a":{params}}}}}"#)
    };
    served.check(&[request(&lists), request(&objects)], &["8 -32700"]);
}

#[test]
fn a_message_over_the_limit_is_refused_with_the_id_if_it_was_seen() {
    let served = small();
    let long = |bytes: usize| {
        let start = r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":""#;
        let end = r#""}}"#;
        format!("{start}{}{end}", "x".repeat(bytes - start.len() - end.len()))
    };
    served.check(&[long(SMALL_LIMIT - 1), long(SMALL_LIMIT)], &["9 {}"]);
    let over = [long(SMALL_LIMIT + 1), long(10 * SMALL_LIMIT), long(100 * SMALL_LIMIT)];
    let unseen = ["x".repeat(SMALL_LIMIT + 1), " {\"a\":\"".to_owned() + &"id".repeat(SMALL_LIMIT)];
    for transport in [Transport::Socket(Framing::Newline), Transport::Proxy(Framing::Newline)] {
        served.check_door(transport, &over, &["9 -32700"]);
        served.check_door(transport, &unseen, &["null -32700"]);
    }
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        // The length alone is refused: the body is not parsed.
        served.check_door(transport, &over, &["null -32700"]);
        served.check_door(transport, &unseen, &["null -32700"]);
    }
}

#[test]
fn a_line_of_100_mib_is_refused_with_its_id_at_the_default_limit() {
    let served = served();
    let mut body = br#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":""#.to_vec();
    body.resize(100 << 20, b'x');
    body.extend_from_slice(b"\"}}");
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        peer.send_body(&body);
        let expected = match transport.framing() {
            Framing::Newline => "9 -32700",
            Framing::Headers => "null -32700",
        };
        assert_eq!(said(&mut peer), [expected], "{transport:?}");
        assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?}");
    }
}

#[test]
fn the_limit_of_messages_does_not_limit_answers() {
    let served = served_with(Limits { message_bytes: 1024, ..Limits::default() });
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        let answer = peer.answer(1, "test_large", json!({"bytes": 1 << 20}));
        assert_eq!(answer["result"]["text"].as_str().map(str::len), Some(1 << 20), "{transport:?}");
        assert_eq!(said(&mut peer), [""; 0], "{transport:?}");
    }
}

#[test]
fn an_id_in_flight_is_refused_and_the_first_request_is_still_answered() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        peer.ask(5, "test_wait", json!({}));
        peer.ask(5, "ping", json!({}));
        peer.ask(5, "test_wait", json!({}));
        // Different ids, although they look alike.
        peer.ask("5", "ping", json!({}));
        peer.ask(5.0, "ping", json!({}));
        assert_eq!(
            said(&mut peer),
            ["5 -32600", "5 -32600", r#""5" {}"#, "5.0 {}"],
            "{transport:?}"
        );
        let answer = json!({"jsonrpc": "2.0", "id": 5, "result": {"ok": true}});
        assert_eq!(peer.finish(), [answer], "{transport:?}");
    }
}

#[test]
fn an_id_is_free_once_it_was_answered_or_cancelled() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        for _ in 0..3 {
            peer.ask(5, "ping", json!({}));
            assert_eq!(said(&mut peer), ["5 {}"], "{transport:?}");
        }
        peer.ask(5, "test_wait", json!({}));
        peer.notify("notifications/cancelled", json!({"requestId": 5}));
        peer.ask(5, "ping", json!({}));
        assert_eq!(said(&mut peer), ["5 {}"], "{transport:?}");
        assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?}");
    }
}

/// The end of a cancelled call must not be mistaken for the end of the call that uses its id now.
#[test]
fn an_id_reused_right_after_its_cancellation_is_in_flight() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 5}});
        let wait = json!({"jsonrpc": "2.0", "id": 5, "method": "test_wait"});
        let together: Vec<_> = [&wait, &cancel, &wait]
            .iter()
            .flat_map(|body| framed(transport.framing(), body.to_string().as_bytes()))
            .collect();
        peer.send(&together);
        assert_eq!(said(&mut peer), [""; 0], "{transport:?}");
        peer.ask(5, "ping", json!({}));
        assert_eq!(said(&mut peer), ["5 -32600"], "{transport:?}");
        peer.send_body(cancel.to_string().as_bytes());
        peer.ask(5, "ping", json!({}));
        assert_eq!(said(&mut peer), ["5 {}"], "{transport:?}");
        assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?}");
    }
}

#[test]
fn a_batch_is_served_in_the_revision_that_has_batches() {
    let served = served();
    let batch = r#"[
        {"jsonrpc":"2.0","id":1,"method":"ping"},
        {"jsonrpc":"2.0","method":"notifications/initialized"},
        {"jsonrpc":"2.0","id":9,"result":{}},
        {"jsonrpc":"2.0","id":1,"method":"ping"},
        {"jsonrpc":"2.0","id":2,"method":"no/such"},
        {"jsonrpc":"1.0","id":3,"method":"ping"},
        4,
        {"jsonrpc":"2.0","id":"1","method":"ping"}
    ]"#
    .replace('\n', " ");
    let together = r#"["1" {}, 1 -32600, 1 {}, 2 -32601, 3 -32600, null -32600]"#;
    for transport in Transport::ALL {
        let mut peer = of_revision(&served.server, transport, Some("2025-03-26"));
        for _ in 0..2 {
            peer.send_body(batch.as_bytes());
            assert_eq!(said(&mut peer), [together], "{transport:?}");
        }
        peer.send_body(br#"[{"jsonrpc":"2.0","method":"no/such"}]"#);
        assert_eq!(said(&mut peer), [""; 0], "{transport:?}: nothing to answer");
        peer.send_body(b"[]");
        assert_eq!(said(&mut peer), ["null -32600"], "{transport:?}");
        assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?}");
    }
}

#[test]
fn a_batch_is_answered_as_a_whole_and_its_ids_are_in_flight_until_then() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = of_revision(&served.server, transport, Some("2025-03-26"));
        peer.send_body(
            br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},
                {"jsonrpc":"2.0","id":2,"method":"test_wait"}]"#
                .map(|b| if b == b'\n' { b' ' } else { b })
                .as_slice(),
        );
        for id in [1, 2] {
            peer.ask(id, "ping", json!({}));
            assert_eq!(said(&mut peer), [format!("{id} -32600")], "{transport:?}");
        }
        // A batch that repeats an id in flight is refused, and ends nothing.
        peer.send_body(br#"[{"jsonrpc":"2.0","id":2,"method":"ping"}]"#);
        assert_eq!(said(&mut peer), ["[2 -32600]"], "{transport:?}");
        peer.ask(2, "ping", json!({}));
        assert_eq!(said(&mut peer), ["2 -32600"], "{transport:?}");
        let whole: Vec<_> =
            peer.finish().iter().map(|v| account(v.to_string().as_bytes())).collect();
        assert_eq!(whole, [r#"[1 {}, 2 {"ok":true}]"#], "{transport:?}");
    }
}

#[test]
fn a_batch_is_refused_in_every_other_revision_and_leaves_its_ids_free() {
    let served = served();
    for transport in Transport::ALL {
        for revision in [None, Some("2024-11-05"), Some("2025-06-18"), Some("2025-11-25")] {
            let mut peer = of_revision(&served.server, transport, revision);
            for _ in 0..2 {
                peer.send_body(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
                assert_eq!(said(&mut peer), ["null -32600"], "{transport:?} {revision:?}");
                peer.ask(1, "ping", json!({}));
                assert_eq!(said(&mut peer), ["1 {}"], "{transport:?} {revision:?}");
            }
            assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?} {revision:?}");
        }
    }
}

#[test]
fn the_answers_of_a_batch_share_one_limit() {
    let ceiling = 64 << 10;
    let served = served_with(Limits { answer_bytes: ceiling, ..Limits::default() });
    let ask = |id: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "test_large",
        "params": {"bytes": 20 << 10}})
    };
    let batch = Value::from_iter((0..100).map(ask)).to_string();
    for transport in Transport::ALL {
        let mut peer = of_revision(&served.server, transport, Some("2025-03-26"));
        peer.send_body(batch.as_bytes());
        let answer = peer.receive();
        let answers = answer.as_array().unwrap();
        let mut ids: Vec<_> = answers.iter().map(|one| one["id"].as_u64().unwrap()).collect();
        ids.sort();
        assert!(ids.iter().copied().eq(0..100), "{transport:?}: each once, not {ids:?}");
        let given = answers.iter().filter(|one| one["result"].is_object()).count();
        let limited = ErrorKind::Limit.code();
        let refused = answers.iter().filter(|one| one["error"]["code"] == limited).count();
        assert_eq!((given, refused), (3, 97), "{transport:?}");
        assert_eq!(said(&mut peer), [""; 0], "{transport:?}");
    }
}

#[test]
fn a_refused_greeting_ends_its_connection() {
    let served = served();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for greeting in [
        r#"{"patterm_identity":"x"}"#,
        r#"{"patterm_identity":5}"#,
        r#"{"patterm_identity":"x","jsonrpc":"2.0","id":1,"method":"ping"}"#,
    ] {
        let mut peer = served.server.connect(Transport::Socket(Framing::Newline));
        peer.send(format!("{greeting}\n{ping}\n{ping}\n").as_bytes());
        let said: Vec<_> = std::iter::from_fn(|| peer.try_receive_raw()).collect();
        let said: Vec<_> = said.iter().map(|body| account(body)).collect();
        assert_eq!(said, [format!("null {GREETING_REFUSED}")], "{greeting}");
    }
}

#[test]
fn blank_lines_crlf_and_a_byte_order_mark_are_ignored() {
    let served = served();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let length = ping.len();
    for transport in [Transport::Socket(Framing::Newline), Transport::Proxy(Framing::Newline)] {
        let streams = [
            format!("\n\n\r\n  \n\t\n{ping}\n\n\n"),
            format!("{ping}\r\n"),
            format!("  {ping}  \r\n\r\n"),
        ];
        served.check_streams(transport, &streams, &["1 {}"]);
        served.check_streams(
            transport,
            &["\n", "\r\n", " \n \n", "\n".repeat(100_000).as_str()],
            &[],
        );
    }
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        let streams = [
            format!("\r\n\r\nContent-Length: {length}\r\n\r\n{ping}\r\n\r\n"),
            format!("content-length:{length}\n\n{ping}\n"),
            format!("CONTENT-LENGTH:   {length}  \r\nContent-Type: x; y=\"z\"\r\n\r\n{ping}"),
            format!("Content-Type: x\nContent-Length: {length}\nX-Y: Content-Type\n\n{ping}"),
            format!("Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{ping}"),
        ];
        served.check_streams(transport, &streams, &["1 {}"]);
        served.check_streams(transport, &["\r\n", "\n\n\r\n\r\n"], &[]);
    }
    let marked = |text: String| "\u{feff}".to_owned() + &text;
    served.check_end(Framing::Newline, marked(format!("{ping}\n")).as_bytes(), &["1 {}"]);
    let headers = marked(format!("Content-Length: {length}\r\n\r\n{ping}"));
    served.check_end(Framing::Headers, headers.as_bytes(), &["1 {}"]);
}

#[test]
fn several_messages_in_one_write_are_all_answered() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for n in 0..500 {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#);
            bytes.extend(framed(transport.framing(), ping.as_bytes()));
            expected.push(format!("{n} {{}}"));
        }
        peer.send(&bytes);
        assert_eq!(said(&mut peer), expected, "{transport:?}");
    }
}

#[test]
fn one_message_over_many_writes_is_one_message() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        for id in [r#""ä€😀""#, "2", "3"] {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            for byte in framed(transport.framing(), ping.as_bytes()) {
                peer.send(&[byte]);
            }
            assert_eq!(said(&mut peer), [format!("{id} {{}}")], "{transport:?}");
        }
    }
}

#[test]
fn pretty_printed_json_is_one_message_with_a_length_header() {
    let served = served();
    let ping = "\r\n{\n  \"jsonrpc\": \"2.0\",\r\n\t\"id\":\n\n7\n,\n  \"method\": \"ping\"\n}\n\n";
    let other =
        "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": \"a\\nb\",\n  \"method\": \"no\\n\\r/such\"\n}";
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        served.check_door(transport, &[ping], &["7 {}"]);
        served.check_door(transport, &[other], &[r#""a\nb" -32601"#]);
        let mut peer = of_revision(&served.server, transport, Some("2025-03-26"));
        peer.send_body(format!("\n[\n{ping}\n]\n").as_bytes());
        assert_eq!(said(&mut peer), ["[7 {}]"], "{transport:?}");
    }
    // In line framing each piece is a message of its own, and none is valid.
    for transport in [Transport::Socket(Framing::Newline), Transport::Proxy(Framing::Newline)] {
        served.check_streams(transport, &["{\n  \"jsonrpc\": \"2.0\"\n}\n"], &["null -32700"; 3]);
    }
}

#[test]
fn ids_are_returned_byte_for_byte() {
    let served = served();
    let ids = [
        "1",
        "1.0",
        r#""1""#,
        "9223372036854775808",
        "18446744073709551616",
        "-0",
        "1e3",
        "1E+400",
        "0.10",
        r#""""#,
        r#""\u0041\/""#,
        "\"A/\u{7f}é\"",
        r#""null""#,
    ];
    for id in ids {
        let with = |method: &str, member: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{member}}}"#)
        };
        served
            .check(&[with("ping", ""), with("ping", r#","params":{}"#)], &[&format!("{id} {{}}")]);
        served.check(&[with("no/such", "")], &[&format!("{id} -32601")]);
        served.check(&[with("tools/call", "")], &[&format!("{id} -32602")]);
        served.check(&[with("ping", r#","method":1"#)], &["null -32600"]);
        served.check(&[format!(r#"{{"id":{id},"method":"ping"}}"#)], &[&format!("{id} -32600")]);
    }
}

#[test]
fn an_id_is_cancelled_only_by_its_own_bytes() {
    let served = served();
    for transport in Transport::ALL {
        let mut peer = served.server.connect(transport);
        peer.send_body(br#"{"jsonrpc":"2.0","id":1.0,"method":"test_wait"}"#);
        for other in ["1", "\"1\"", "\"1.0\"", "1.00"] {
            let cancel = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{other}}}}}"#
            );
            peer.send_body(cancel.as_bytes());
        }
        assert_eq!(said(&mut peer), [""; 0], "{transport:?}");
        peer.end();
        let answer = peer.try_receive_raw().unwrap();
        assert_eq!(account(&answer), r#"1.0 {"ok":true}"#, "{transport:?}");
        assert_eq!(peer.finish(), [Value::Null; 0], "{transport:?}");
    }
}
