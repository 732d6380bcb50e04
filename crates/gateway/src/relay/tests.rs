//! The relay as a value: inputs and their outputs.

use std::fmt::Write;

use patterm_wire::Id;

use super::*;

/// A session whose clients and server are played by the test.
pub(super) struct RelayTest(pub(super) Relay<u32>);

pub(super) const DISCOVER_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

impl RelayTest {
    pub(super) fn new(config: RelayConfig, modern: Option<bool>) -> Self {
        let mut count = 1..;
        let ids = Ids::of(move || count.next().unwrap());
        Self(Relay::new(config, Eras { modern, legacy: None }, ids))
    }

    /// A shared session with a server of the older era, after the handshake.
    pub(super) fn shared() -> Self {
        let mut test =
            Self::new(RelayConfig { roots: "[]".into(), ..RelayConfig::default() }, Some(false));
        test.request(1, "1", "ping", "{}");
        test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
        test.0.initialized_written(true);
        test.receive_line(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        test.outputs();
        test
    }

    fn request_text(id: &str, method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }

    /// The reply's number is the client's.
    pub(super) fn request(&mut self, client: u32, id: &str, method: &str, params: &str) {
        let text = Self::request_text(id, method, params);
        let era = Era::of(&text);
        let id = Id::from_json(id).unwrap();
        self.0.request(ClientRequest {
            client: ClientId(client.into()),
            id,
            method: method.into(),
            text,
            era,
            reply: client,
        });
    }

    pub(super) fn receive_line(&mut self, text: &str) {
        self.0.receive_line(text.as_bytes());
    }

    /// All outputs, one per line.
    pub(super) fn outputs(&mut self) -> String {
        let mut lines = String::new();
        let mut outputs = Vec::new();
        self.0.move_output(&mut outputs);
        for output in outputs {
            let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
            match output {
                Output::Write(text) => writeln!(lines, "to server: {text}"),
                Output::WriteInitialized(text) => writeln!(lines, "to server, reported: {text}"),
                Output::Answer(to, body) => writeln!(lines, "to {to}: {}", text(body)),
                Output::Return(to, text) => writeln!(lines, "back to {to}: {text}"),
                Output::Notify { client, request_id, text } => {
                    let request_id = request_id.map_or("-".into(), |id| id.as_json().to_owned());
                    writeln!(lines, "notify {} about {request_id}: {text}", client.0)
                }
            }
            .unwrap();
        }
        lines.replace(r#""jsonrpc":"2.0","#, "")
    }

    #[track_caller]
    pub(super) fn check(&mut self, expected: &str) {
        let lines = |text: &str| -> Vec<String> {
            text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
        };
        assert_eq!(lines(&self.outputs()), lines(expected));
    }
}

#[test]
fn clients_with_equal_ids_get_their_own_responses() {
    let mut test = RelayTest::shared();
    test.request(1, "7", "tools/call", r#"{"name":"a"}"#);
    test.request(2, "7", "tools/call", r#"{"name":"b"}"#);
    test.request(3, "\"7\"", "tools/call", r#"{"name":"c"}"#);
    test.check(
        r#"
        to server: {"id":3,"method":"tools/call","params":{"name":"a"}}
        to server: {"id":4,"method":"tools/call","params":{"name":"b"}}
        to server: {"id":5,"method":"tools/call","params":{"name":"c"}}
        "#,
    );
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{"big":9007199254740993,"a":1.0}}"#);
    test.receive_line(r#" {"result":{}, "jsonrpc":"2.0", "id":3, "x":true} "#);
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no","data":{"k":[1]}}}"#,
    );
    test.check(
        r#"
        to 2: {"id":7,"result":{"big":9007199254740993,"a":1.0}}
        to 1: {"result":{},  "id":7, "x":true}
        to 3: {"id":"7","error":{"code":-1,"message":"no","data":{"k":[1]}}}
        "#,
    );
    assert_eq!(test.0.in_flight(), 0);
}

#[test]
fn an_empty_error_message_is_replaced() {
    let mut test = RelayTest::shared();
    test.request(1, "7", "tools/call", r#"{"name":"a"}"#);
    test.check(r#"to server: {"id":3,"method":"tools/call","params":{"name":"a"}}"#);
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":" ","data":{"message":""}}}"#,
    );
    test.check(
        r#"
        to 1: {"id":7,"error":{"code":-1,"message":"internal error","data":{"message":""}}}
        "#,
    );
}

#[test]
fn the_handshake_runs_once_and_requests_wait_for_it() {
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.request(1, "0", "initialize", r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#);
    test.request(2, "9", "tools/list", "{}");
    let outputs = test.outputs();
    assert!(outputs.starts_with(r#"to server: {"id":1,"method":"server/discover""#), "{outputs}");
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"#);
    let outputs = test.outputs();
    assert!(outputs.starts_with(r#"to server: {"id":2,"method":"initialize""#), "{outputs}");
    assert_eq!(outputs.lines().count(), 1, "{outputs}");
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","x":1}}"#,
    );
    test.check(r#"to server, reported: {"method":"notifications/initialized"}"#);
    // It is queued, and not sent twice.
    test.request(4, "7", "ping", "{}");
    test.check("");
    // It could not be written; only that is repeated.
    test.0.initialized_written(false);
    test.request(3, "5", "tools/list", "{}");
    test.check(r#"to server, reported: {"method":"notifications/initialized"}"#);
    test.0.initialized_written(true);
    test.check(
        r#"
        to 1: {"id":0,"result":{"protocolVersion":"2024-11-05","x":1}}
        to server: {"id":3,"method":"tools/list","params":{}}
        to server: {"id":4,"method":"ping","params":{}}
        to server: {"id":5,"method":"tools/list","params":{}}
        "#,
    );
    // Another client's handshake is answered from the first.
    test.request(4, "\"a\"", "initialize", r#"{"protocolVersion":"2025-11-25"}"#);
    test.0.notify(
        ClientId(4),
        "notifications/initialized",
        r#"{"method":"notifications/initialized"}"#,
    );
    test.check(r#"to 4: {"id":"a","result":{"protocolVersion":"2025-06-18","x":1}}"#);
}

#[test]
fn a_failed_handshake_fails_all_requests_and_the_next_one_retries() {
    let mut test = RelayTest::new(RelayConfig::default(), Some(false));
    test.request(1, "1", "tools/list", "{}");
    test.request(2, "1", "tools/list", "{}");
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
    // What was true of an earlier server may have changed.
    let outputs = test.outputs();
    assert!(outputs.starts_with(r#"to server: {"id":2,"method":"server/discover""#), "{outputs}");
    test.receive_line(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"what?"}}"#);
    let outputs = test.outputs();
    assert_eq!(outputs.matches("the handshake failed").count(), 2, "{outputs}");
    assert!(outputs.contains(r#""kind":"unavailable""#), "{outputs}");
    test.request(2, "1", "tools/list", "{}");
    assert!(test.outputs().contains("server/discover"));
}

#[test]
fn requests_are_returned_if_the_probe_ends_the_server() {
    let ended = GatewayError::new(GatewayErrorKind::Ended, "it exited");
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.request(1, "1", "tools/list", "{}");
    test.outputs();
    assert!(test.0.may_end_by_probe());
    test.0.close(&ended, true);
    test.check(r#"back to 1: {"id":1,"method":"tools/list","params":{}}"#);
    // The next one is not probed, and exits for another reason.
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.0.skip_probe();
    test.request(1, "1", "tools/list", "{}");
    assert!(test.outputs().contains("initialize"));
    assert!(!test.0.may_end_by_probe());
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
    assert!(test.outputs().contains("the handshake failed"), "it is not probed after that either");
}

#[test]
fn a_late_answer_to_the_probe_counts() {
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.request(1, "1", "tools/list", "{}");
    test.0.probe_timed_out(UpstreamId(1));
    assert!(test.outputs().contains(r#"{"id":2,"method":"initialize""#));
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no handshake"}}"#,
    );
    let outputs = test.outputs();
    assert!(outputs.contains(r#""method":"tools/list""#), "{outputs}");
    assert_eq!(test.0.eras(), Eras { modern: Some(true), legacy: Some(false) });
}

#[test]
fn a_malformed_response_fails_only_its_own_request() {
    let mut test = RelayTest::shared();
    test.request(1, "1", "tools/call", "{}");
    test.request(2, "1", "tools/call", "{}");
    test.request(3, "1", "tools/call", "{}");
    test.request(3, "2", "tools/call", "{}");
    test.outputs();
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    test.receive_line(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#));
    let outputs = test.outputs();
    assert!(outputs.starts_with(r#"to 1: {"id":1,"error":{"code":-32603"#), "{outputs}");
    assert!(outputs.contains("nested deeper than 127 levels"), "{outputs}");
    // The id may come after it, and other things may be wrong.
    test.receive_line(&format!(r#"{{"jsonrpc":"2.0","result":{deep},"id":4}}"#));
    assert!(test.outputs().starts_with("to 2: "));
    test.0.receive_line(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"\xff\"}");
    assert!(test.outputs().starts_with("to 3: "));
    test.receive_line(r#"[{"jsonrpc":"2.0","id":6,"result":{},"result":{}}]"#);
    assert!(test.outputs().starts_with("to 3: "));
    assert_eq!((test.0.in_flight(), test.0.noise()), (0, 4));
}

#[test]
fn a_request_is_cancelled_on_the_server_once() {
    let mut test = RelayTest::shared();
    test.request(1, "1", "tools/call", "{}");
    test.request(2, "1", "tools/call", "{}");
    test.outputs();
    let text = r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}"#;
    test.0.notify(ClientId(2), "notifications/cancelled", text);
    test.0.leave(ClientId(1));
    test.0.leave(ClientId(1));
    test.0.cancel(ClientId(2), &Id::from_number(1), "again");
    test.check(
        r#"
        to server: {"method":"notifications/cancelled","params":{"requestId":4,"reason":"bored"}}
        to 2: {"id":1,"error":{"code":-32800,"message":"the client cancelled this request","data":{"kind":"cancelled"}}}
        to server: {"method":"notifications/cancelled","params":{"requestId":3,"reason":"the client disconnected"}}
        "#,
    );
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    test.check("");
}

#[test]
fn progress_is_routed_by_the_relays_own_token() {
    let mut test = RelayTest::shared();
    let params = r#"{"arguments":{"_meta":{"progressToken":"not this"}},"_meta":{"a":1,"progressToken": "tok" }}"#;
    test.request(1, "1", "tools/call", params);
    test.request(2, "1", "tools/call", r#"{"_meta":{"progressToken":"tok"}}"#);
    test.check(
        r#"
        to server: {"id":3,"method":"tools/call","params":{"arguments":{"_meta":{"progressToken":"not this"}},"_meta":{"a":1,"progressToken": 3 }}}
        to server: {"id":4,"method":"tools/call","params":{"_meta":{"progressToken":4}}}
        "#,
    );
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":4}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"tok"}}"#);
    test.check(r#"notify 2 about 1: {"method":"notifications/progress","params":{"progress":1,"progressToken":"tok"}}"#);
}

#[test]
fn private_messages_are_not_sent_to_several_clients() {
    let mut test = RelayTest::shared();
    test.0.join(ClientId(2), "b", true);
    test.receive_line(r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
    test.receive_line(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}"#,
    );
    test.check(
        r#"
        to server: {"id":"s1","result":{"roots":[]}}
        to server: {"id":8,"result":{}}
        "#,
    );
    test.receive_line(r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}"#);
    let outputs = test.outputs();
    assert!(outputs.contains(r#"to server: {"id":9,"error":{"code":-32601"#), "{outputs}");
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    test.check(
        r#"
        notify 1 about -: {"method":"notifications/tools/list_changed"}
        notify 2 about -: {"method":"notifications/tools/list_changed"}
        "#,
    );
}

#[test]
fn resource_updates_go_to_subscribers_until_the_last_one_leaves() {
    let mut test = RelayTest::shared();
    for client in [1, 2] {
        test.request(client, "1", "resources/subscribe", r#"{"uri":"file:///a"}"#);
    }
    test.0.join(ClientId(3), "c", true);
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    test.outputs();
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#;
    test.receive_line(updated);
    assert_eq!(test.outputs().lines().count(), 2);
    test.request(1, "2", "resources/unsubscribe", r#"{"uri":"file:///a"}"#);
    test.check(r#"to 1: {"id":2,"result":{}}"#);
    test.receive_line(updated);
    assert!(test.outputs().starts_with("notify 2 about -"));
    test.0.leave(ClientId(2));
    test.check(
        r#"to server: {"id":5,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#,
    );
}

#[test]
fn an_exclusive_client_does_its_own_handshake_and_gets_requests() {
    let mut test = RelayTest::new(RelayConfig { exclusive: true, ..RelayConfig::default() }, None);
    let own = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"2"}}"#;
    test.0.join(ClientId(1), "a", true);
    test.request(1, "0", "initialize", own);
    test.check(&format!(r#"to server: {{"id":1,"method":"initialize","params":{own}}}"#));
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#);
    test.0.initialized_written(true);
    test.request(1, "5", "tools/call", "{}");
    test.outputs();
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"n":1}}"#,
    );
    test.check(r#"notify 1 about 5: {"id":0,"method":"sampling/createMessage","params":{"n":1}}"#);
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"role":"assistant"}}"#;
    test.0.respond(ClientId(1), &Id::from_number(0), answer);
    test.0.respond(ClientId(1), &Id::from_number(0), answer);
    test.check(r#"to server: {"id":0,"result":{"role":"assistant"}}"#);
}

#[test]
fn a_stateless_client_uses_an_older_server() {
    let mut test = RelayTest::shared();
    test.request(5, "1", "server/discover", &format!("{{{DISCOVER_META}}}"));
    let outputs = test.outputs();
    assert!(
        outputs.contains(r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#),
        "{outputs}"
    );
    test.request(5, "2", "tools/list", &format!("{{{DISCOVER_META}}}"));
    test.request(5, "3", "tools/call", &format!(r#"{{"name":"x",{DISCOVER_META}}}"#));
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#);
    test.check(
        r#"
        to 5: {"id":2,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}
        to 5: {"id":3,"result":{"resultType":"complete","content":[]}}
        "#,
    );
    let listen = format!(r#"{{"notifications":{{"toolsListChanged":true}},{DISCOVER_META}}}"#);
    test.request(5, "\"l\"", "subscriptions/listen", &listen);
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    let outputs = test.outputs();
    let own: Vec<_> = outputs.lines().filter(|client| client.starts_with("notify 5")).collect();
    assert_eq!(own.len(), 2, "{outputs}");
    assert!(own[0].contains("subscriptions/acknowledged"), "{outputs}");
    assert!(own[1].contains(r#"subscriptionId":"l""#), "{outputs}");
}

#[test]
fn an_older_client_uses_a_stateless_server() {
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.request(1, "0", "initialize", r#"{"protocolVersion":"2025-06-18"}"#);
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"3"}}}}"#);
    assert!(test.outputs().contains("initialize"), "it may support both");
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such thing"}}"#,
    );
    // Older clients get notifications about changed lists without asking.
    let outputs = test.outputs();
    let (listens, answer) = outputs.split_once('\n').unwrap();
    assert!(listens.contains(r#""id":3,"method":"subscriptions/listen""#), "{outputs}");
    assert_eq!(
        answer.trim(),
        r#"to 1: {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"3"}}}"#
    );
    let of = r#""params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#;
    for method in ["subscriptions/acknowledged", "tools/list_changed"] {
        test.receive_line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}",{of}}}"#
        ));
    }
    test.check(&format!(
        r#"notify 1 about -: {{"method":"notifications/tools/list_changed",{of}}}"#
    ));
    test.request(1, "1", "ping", "{}");
    test.check(r#"to 1: {"id":1,"result":{}}"#);
    test.request(1, "2", "tools/call", r#"{"name":"x"}"#);
    let outputs = test.outputs();
    assert!(
        outputs.contains(
            r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28""#
        ),
        "{outputs}"
    );
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","x":1}}"#);
    assert!(test.outputs().contains("requests input"));
}

#[test]
fn a_stateless_subscription_keeps_the_clients_id() {
    let mut test = RelayTest::new(RelayConfig::default(), None);
    test.request(
        1,
        "\"sub\"",
        "subscriptions/listen",
        &format!(r#"{{"notifications":{{}},{DISCOVER_META}}}"#),
    );
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
    test.check(
        r#"
        notify 1 about "sub": {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        to 1: {"id":"sub","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        "#,
    );
}

#[test]
fn a_stateless_client_gets_only_what_it_listens_to() {
    let mut test = RelayTest::shared();
    test.request(5, "1", "tools/call", &format!(r#"{{"name":"x",{DISCOVER_META}}}"#));
    let listen = format!(r#"{{"notifications":{{"promptsListChanged":true}},{DISCOVER_META}}}"#);
    test.request(6, "2", "subscriptions/listen", &listen);
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    test.check(r#"notify 1 about -: {"method":"notifications/tools/list_changed"}"#);
}

#[test]
fn lines_that_are_not_messages_are_counted_and_never_answered() {
    let mut test = RelayTest::shared();
    for noise in [
        "listening on stdio",
        "{\"a\":1}",
        "[]",
        "",
        "   ",
        r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
    ] {
        test.receive_line(noise);
    }
    test.0.receive_line(b"\xff\xfe");
    test.check("");
    assert_eq!(test.0.noise(), 5);
}

#[test]
fn requests_over_the_limit_fail_at_once() {
    let mut test = RelayTest::shared();
    test.0.config.in_flight = 3;
    for (client, id) in [(1, "1"), (1, "2"), (2, "1"), (2, "2")] {
        test.request(client, id, "tools/call", "{}");
    }
    let outputs = test.outputs();
    let refused: Vec<_> = outputs.lines().filter(|client| client.contains("\"limit\"")).collect();
    assert_eq!(refused.len(), 1, "{outputs}");
    assert!(refused[0].starts_with("to 2: {\"id\":2"), "{outputs}");
}

#[test]
fn a_duplicate_id_is_refused_and_the_first_is_answered() {
    let mut test = RelayTest::shared();
    test.request(1, "1", "tools/call", "{}");
    test.request(1, "1", "tools/call", "{}");
    let outputs = test.outputs();
    assert!(outputs.contains("-32600"), "{outputs}");
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    test.check(r#"to 1: {"id":1,"result":{}}"#);
}

#[test]
fn all_requests_fail_with_the_reason_for_the_end() {
    let mut test = RelayTest::new(RelayConfig::default(), Some(false));
    test.request(1, "1", "tools/list", "{}");
    test.request(2, "2", "tools/list", "{}");
    test.outputs();
    test.0.close(&GatewayError::new(GatewayErrorKind::Ended, "it exited with code 3: boom"), false);
    let outputs = test.outputs();
    assert_eq!(outputs.matches("exited with code 3: boom").count(), 2, "{outputs}");
    test.request(1, "9", "tools/list", "{}");
    assert!(test.outputs().contains("server_ended"));
}

/// A session that two callers share: `a` with clients 1 and 3, `b` with client 2.
pub(super) fn of_two_callers() -> RelayTest {
    let mut test = RelayTest::shared();
    test.0.config.shared = true;
    for (client, caller) in [(1, "a"), (2, "b"), (3, "a")] {
        test.0.join(ClientId(client), caller, true);
    }
    test
}

#[test]
fn a_caller_sees_and_cancels_only_its_own_tasks() {
    let mut test = of_two_callers();
    test.request(1, "1", "tools/call", r#"{"name":"x","task":{"ttl":1}}"#);
    test.receive_line(
        r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}"#,
    );
    test.request(2, "1", "tools/call", r#"{"name":"x"}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"task","taskId":"t-2"}}"#);
    test.outputs();
    for method in ["get", "result", "cancel", "update", "anything"] {
        for (client, task) in [(2, "t-1"), (1, "t-2"), (1, "t-3")] {
            let params = format!(r#"{{"taskId":"{task}"}}"#);
            test.request(client, "2", &format!("tasks/{method}"), &params);
            let outputs = test.outputs();
            let refused = format!(r#"to {client}: {{"id":2,"error":{{"code":-32602,"#);
            assert!(outputs.starts_with(&refused), "{method} of {task} by {client}: {outputs}");
        }
    }
    for (method, params) in [
        ("Tasks/Get", r#"{"taskId":"t-1"}"#),
        (" taſks/get", r#"{"taskId":"t-1"}"#),
        ("tasks/get", "{}"),
        ("tasks/get", r#"{"taskId":7}"#),
        ("tasks/get", r#"{"taskId":"t-2","taskid":"t-1"}"#),
        ("tasks/get", r#"{"taskId":"t-2","taskId":"t-1"}"#),
    ] {
        test.request(2, "3", method, params);
        let outputs = test.outputs();
        assert!(
            outputs.contains("error") && !outputs.contains("to server"),
            "{method} {params}: {outputs}"
        );
    }
    // From another client of the same caller, as with stateless clients.
    test.request(3, "4", "tasks/cancel", r#"{"taskId":"t-1"}"#);
    test.check(r#"to server: {"id":5,"method":"tasks/cancel","params":{"taskId":"t-1"}}"#);
}

#[test]
fn a_list_of_tasks_contains_the_callers_own_byte_for_byte() {
    let mut test = of_two_callers();
    test.request(1, "1", "tools/call", r#"{"name":"x","task":{}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1"}}}"#);
    // An id that the server uses again does not change the task's caller.
    test.request(2, "1", "tools/call", r#"{"name":"x","task":{}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{"task":{"taskId":"t-1"}}}"#);
    test.request(1, "2", "tasks/list", "{}");
    test.request(2, "2", "tasks/list", "{}");
    test.outputs();
    let all = r#"{"tasks":[{"taskId":"t-0"}, {"x": 1.0,"taskId":"t-1"}],"nextCursor":"c"}"#;
    test.receive_line(&format!(r#"{{"jsonrpc":"2.0","id":5,"result":{all}}}"#));
    test.receive_line(&format!(r#"{{"jsonrpc":"2.0","id":6,"result":{all}}}"#));
    test.check(
        r#"
        to 1: {"id":2,"result":{"tasks":[{"x": 1.0,"taskId":"t-1"}],"nextCursor":"c"}}
        to 2: {"id":2,"result":{"tasks":[],"nextCursor":"c"}}
        "#,
    );
    test.receive_line(
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1"}}"#,
    );
    test.check(
        r#"
        notify 1 about -: {"method":"notifications/tasks/status","params":{"taskId":"t-1"}}
        notify 3 about -: {"method":"notifications/tasks/status","params":{"taskId":"t-1"}}
        "#,
    );
}

#[test]
fn an_exclusive_client_sees_all_tasks() {
    let mut test = RelayTest::shared();
    test.request(1, "1", "tasks/get", r#"{"taskId":"from before"}"#);
    test.check(r#"to server: {"id":3,"method":"tasks/get","params":{"taskId":"from before"}}"#);
}
