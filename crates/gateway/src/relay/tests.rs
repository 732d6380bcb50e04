//! The relay as a value: inputs and their outputs.

use std::fmt::Write;

use patterm_wire::Id;

use super::*;

/// A session whose clients and server are played by the test.
struct Talk(Relay<u32>);

const DISCOVER_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

impl Talk {
    fn new(terms: Terms, modern: Option<bool>) -> Self {
        let mut count = 1..;
        let ids = Ids::of(move || count.next().unwrap());
        Self(Relay::new(terms, Eras { modern, legacy: None }, ids))
    }

    /// A shared session with a server of the older era, after the handshake.
    fn shared() -> Self {
        let mut talk = Self::new(Terms { roots: "[]".into(), ..Terms::default() }, Some(false));
        talk.ask(1, "1", "ping", "{}");
        talk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
        talk.0.initialized_written(true);
        talk.hear(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        talk.said();
        talk
    }

    fn request(id: &str, method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }

    /// The reply's number is the client's.
    fn ask(&mut self, line: u32, id: &str, method: &str, params: &str) {
        let text = Self::request(id, method, params);
        let era = Era::of(&text);
        let id = Id::from_json(id).unwrap();
        self.0.ask(Ask { line: line.into(), id, method: method.into(), text, era, reply: line });
    }

    fn hear(&mut self, text: &str) {
        self.0.hear(text.as_bytes());
    }

    /// All outputs, one per line.
    fn said(&mut self) -> String {
        let mut said = String::new();
        let mut outputs = Vec::new();
        self.0.move_output(&mut outputs);
        for output in outputs {
            let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
            match output {
                Output::Write(text) => writeln!(said, "to server: {text}"),
                Output::WriteInitialized(text) => writeln!(said, "to server, told: {text}"),
                Output::Answer(to, body) => writeln!(said, "to {to}: {}", text(body)),
                Output::GiveBack(to, text) => writeln!(said, "back to {to}: {text}"),
                Output::Tell { line, about, text } => {
                    let about = about.map_or("-".into(), |id| id.as_json().to_owned());
                    writeln!(said, "tell {line} of {about}: {text}")
                }
            }
            .unwrap();
        }
        said.replace(r#""jsonrpc":"2.0","#, "")
    }

    #[track_caller]
    fn check(&mut self, expected: &str) {
        let lines = |text: &str| -> Vec<String> {
            text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
        };
        assert_eq!(lines(&self.said()), lines(expected));
    }
}

#[test]
fn clients_with_equal_ids_get_their_own_responses() {
    let mut talk = Talk::shared();
    talk.ask(1, "7", "tools/call", r#"{"name":"a"}"#);
    talk.ask(2, "7", "tools/call", r#"{"name":"b"}"#);
    talk.ask(3, "\"7\"", "tools/call", r#"{"name":"c"}"#);
    talk.check(
        r#"
        to server: {"id":3,"method":"tools/call","params":{"name":"a"}}
        to server: {"id":4,"method":"tools/call","params":{"name":"b"}}
        to server: {"id":5,"method":"tools/call","params":{"name":"c"}}
        "#,
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"big":9007199254740993,"a":1.0}}"#);
    talk.hear(r#" {"result":{}, "jsonrpc":"2.0", "id":3, "x":true} "#);
    talk.hear(r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no","data":{"k":[1]}}}"#);
    talk.check(
        r#"
        to 2: {"id":7,"result":{"big":9007199254740993,"a":1.0}}
        to 1: {"result":{},  "id":7, "x":true}
        to 3: {"id":"7","error":{"code":-1,"message":"no","data":{"k":[1]}}}
        "#,
    );
    assert_eq!(talk.0.in_flight(), 0);
}

#[test]
fn an_empty_error_message_is_replaced() {
    let mut talk = Talk::shared();
    talk.ask(1, "7", "tools/call", r#"{"name":"a"}"#);
    talk.check(r#"to server: {"id":3,"method":"tools/call","params":{"name":"a"}}"#);
    talk.hear(
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":" ","data":{"message":""}}}"#,
    );
    talk.check(
        r#"
        to 1: {"id":7,"error":{"code":-1,"message":"internal error","data":{"message":""}}}
        "#,
    );
}

#[test]
fn the_handshake_runs_once_and_requests_wait_for_it() {
    let mut talk = Talk::new(Terms::default(), None);
    talk.ask(1, "0", "initialize", r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#);
    talk.ask(2, "9", "tools/list", "{}");
    let said = talk.said();
    assert!(said.starts_with(r#"to server: {"id":1,"method":"server/discover""#), "{said}");
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"#);
    let said = talk.said();
    assert!(said.starts_with(r#"to server: {"id":2,"method":"initialize""#), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    talk.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","x":1}}"#);
    talk.check(r#"to server, told: {"method":"notifications/initialized"}"#);
    // It is queued, and not sent twice.
    talk.ask(4, "7", "ping", "{}");
    talk.check("");
    // It could not be written; only that is repeated.
    talk.0.initialized_written(false);
    talk.ask(3, "5", "tools/list", "{}");
    talk.check(r#"to server, told: {"method":"notifications/initialized"}"#);
    talk.0.initialized_written(true);
    talk.check(
        r#"
        to 1: {"id":0,"result":{"protocolVersion":"2024-11-05","x":1}}
        to server: {"id":3,"method":"tools/list","params":{}}
        to server: {"id":4,"method":"ping","params":{}}
        to server: {"id":5,"method":"tools/list","params":{}}
        "#,
    );
    // Another client's handshake is answered from the first.
    talk.ask(4, "\"a\"", "initialize", r#"{"protocolVersion":"2025-11-25"}"#);
    talk.0.tell(4, "notifications/initialized", r#"{"method":"notifications/initialized"}"#);
    talk.check(r#"to 4: {"id":"a","result":{"protocolVersion":"2025-06-18","x":1}}"#);
}

#[test]
fn a_failed_handshake_fails_all_requests_and_the_next_one_retries() {
    let mut talk = Talk::new(Terms::default(), Some(false));
    talk.ask(1, "1", "tools/list", "{}");
    talk.ask(2, "1", "tools/list", "{}");
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
    // What was true of an earlier server may have changed.
    let said = talk.said();
    assert!(said.starts_with(r#"to server: {"id":2,"method":"server/discover""#), "{said}");
    talk.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"what?"}}"#);
    let said = talk.said();
    assert_eq!(said.matches("the handshake failed").count(), 2, "{said}");
    assert!(said.contains(r#""kind":"unavailable""#), "{said}");
    talk.ask(2, "1", "tools/list", "{}");
    assert!(talk.said().contains("server/discover"));
}

#[test]
fn requests_are_returned_if_the_probe_ends_the_server() {
    let ended = Refusal::new(crate::RefusalKind::Ended, "it exited");
    let mut talk = Talk::new(Terms::default(), None);
    talk.ask(1, "1", "tools/list", "{}");
    talk.said();
    assert!(talk.0.dies_of_probe());
    talk.0.close(&ended, true);
    talk.check(r#"back to 1: {"id":1,"method":"tools/list","params":{}}"#);
    // The next one is not probed, and exits for another reason.
    let mut talk = Talk::new(Terms::default(), None);
    talk.0.forbid_probe();
    talk.ask(1, "1", "tools/list", "{}");
    assert!(talk.said().contains("initialize"));
    assert!(!talk.0.dies_of_probe());
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
    assert!(talk.said().contains("the handshake failed"), "it is not probed after that either");
}

#[test]
fn a_late_answer_to_the_probe_counts() {
    let mut talk = Talk::new(Terms::default(), None);
    talk.ask(1, "1", "tools/list", "{}");
    talk.0.probe_is_over(1);
    assert!(talk.said().contains(r#"{"id":2,"method":"initialize""#));
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no handshake"}}"#);
    let said = talk.said();
    assert!(said.contains(r#""method":"tools/list""#), "{said}");
    assert_eq!(talk.0.eras(), Eras { modern: Some(true), legacy: Some(false) });
}

#[test]
fn a_malformed_response_fails_only_its_own_request() {
    let mut talk = Talk::shared();
    talk.ask(1, "1", "tools/call", "{}");
    talk.ask(2, "1", "tools/call", "{}");
    talk.ask(3, "1", "tools/call", "{}");
    talk.ask(3, "2", "tools/call", "{}");
    talk.said();
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    talk.hear(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#));
    let said = talk.said();
    assert!(said.starts_with(r#"to 1: {"id":1,"error":{"code":-32603"#), "{said}");
    assert!(said.contains("nested deeper than 127 levels"), "{said}");
    // The id may come after it, and other things may be wrong.
    talk.hear(&format!(r#"{{"jsonrpc":"2.0","result":{deep},"id":4}}"#));
    assert!(talk.said().starts_with("to 2: "));
    talk.0.hear(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"\xff\"}");
    assert!(talk.said().starts_with("to 3: "));
    talk.hear(r#"[{"jsonrpc":"2.0","id":6,"result":{},"result":{}}]"#);
    assert!(talk.said().starts_with("to 3: "));
    assert_eq!((talk.0.in_flight(), talk.0.noise()), (0, 4));
}

#[test]
fn a_request_is_cancelled_on_the_server_once() {
    let mut talk = Talk::shared();
    talk.ask(1, "1", "tools/call", "{}");
    talk.ask(2, "1", "tools/call", "{}");
    talk.said();
    let text = r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}"#;
    talk.0.tell(2, "notifications/cancelled", text);
    talk.0.leave(1);
    talk.0.leave(1);
    talk.0.cancel(2, &Id::from_number(1), "again");
    talk.check(
        r#"
        to server: {"method":"notifications/cancelled","params":{"requestId":4,"reason":"bored"}}
        to server: {"method":"notifications/cancelled","params":{"requestId":3,"reason":"the client disconnected"}}
        "#,
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    talk.check("");
}

#[test]
fn progress_is_routed_by_the_relays_own_token() {
    let mut talk = Talk::shared();
    let params = r#"{"arguments":{"_meta":{"progressToken":"not this"}},"_meta":{"a":1,"progressToken": "tok" }}"#;
    talk.ask(1, "1", "tools/call", params);
    talk.ask(2, "1", "tools/call", r#"{"_meta":{"progressToken":"tok"}}"#);
    talk.check(
        r#"
        to server: {"id":3,"method":"tools/call","params":{"arguments":{"_meta":{"progressToken":"not this"}},"_meta":{"a":1,"progressToken": 3 }}}
        to server: {"id":4,"method":"tools/call","params":{"_meta":{"progressToken":4}}}
        "#,
    );
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":4}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"tok"}}"#);
    talk.check(r#"tell 2 of 1: {"method":"notifications/progress","params":{"progress":1,"progressToken":"tok"}}"#);
}

#[test]
fn private_messages_are_not_sent_to_several_clients() {
    let mut talk = Talk::shared();
    talk.0.join(2, "b");
    talk.hear(r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}"#);
    talk.check(
        r#"
        to server: {"id":"s1","result":{"roots":[]}}
        to server: {"id":8,"result":{}}
        "#,
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}"#);
    let said = talk.said();
    assert!(said.contains(r#"to server: {"id":9,"error":{"code":-32601"#), "{said}");
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    talk.check(
        r#"
        tell 1 of -: {"method":"notifications/tools/list_changed"}
        tell 2 of -: {"method":"notifications/tools/list_changed"}
        "#,
    );
}

#[test]
fn resource_updates_go_to_subscribers_until_the_last_one_leaves() {
    let mut talk = Talk::shared();
    for line in [1, 2] {
        talk.ask(line, "1", "resources/subscribe", r#"{"uri":"file:///a"}"#);
    }
    talk.0.join(3, "c");
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    talk.said();
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#;
    talk.hear(updated);
    assert_eq!(talk.said().lines().count(), 2);
    talk.ask(1, "2", "resources/unsubscribe", r#"{"uri":"file:///a"}"#);
    talk.check(r#"to 1: {"id":2,"result":{}}"#);
    talk.hear(updated);
    assert!(talk.said().starts_with("tell 2 of -"));
    talk.0.leave(2);
    talk.check(
        r#"to server: {"id":5,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#,
    );
}

#[test]
fn an_exclusive_client_does_its_own_handshake_and_gets_requests() {
    let mut talk = Talk::new(Terms { exclusive: true, ..Terms::default() }, None);
    let own = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"2"}}"#;
    talk.ask(1, "0", "initialize", own);
    talk.check(&format!(r#"to server: {{"id":1,"method":"initialize","params":{own}}}"#));
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#);
    talk.0.initialized_written(true);
    talk.ask(1, "5", "tools/call", "{}");
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"n":1}}"#);
    talk.check(r#"tell 1 of 5: {"id":0,"method":"sampling/createMessage","params":{"n":1}}"#);
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"role":"assistant"}}"#;
    talk.0.respond(1, &Id::from_number(0), answer);
    talk.0.respond(1, &Id::from_number(0), answer);
    talk.check(r#"to server: {"id":0,"result":{"role":"assistant"}}"#);
}

#[test]
fn a_stateless_client_uses_an_older_server() {
    let mut talk = Talk::shared();
    talk.ask(5, "1", "server/discover", &format!("{{{DISCOVER_META}}}"));
    let said = talk.said();
    assert!(
        said.contains(r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#),
        "{said}"
    );
    talk.ask(5, "2", "tools/list", &format!("{{{DISCOVER_META}}}"));
    talk.ask(5, "3", "tools/call", &format!(r#"{{"name":"x",{DISCOVER_META}}}"#));
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#);
    talk.check(
        r#"
        to 5: {"id":2,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}
        to 5: {"id":3,"result":{"resultType":"complete","content":[]}}
        "#,
    );
    let listen = format!(r#"{{"notifications":{{"toolsListChanged":true}},{DISCOVER_META}}}"#);
    talk.ask(5, "\"l\"", "subscriptions/listen", &listen);
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    let said = talk.said();
    let own: Vec<_> = said.lines().filter(|line| line.starts_with("tell 5")).collect();
    assert_eq!(own.len(), 2, "{said}");
    assert!(own[0].contains("subscriptions/acknowledged"), "{said}");
    assert!(own[1].contains(r#"subscriptionId":"l""#), "{said}");
}

#[test]
fn an_older_client_uses_a_stateless_server() {
    let mut talk = Talk::new(Terms::default(), None);
    talk.ask(1, "0", "initialize", r#"{"protocolVersion":"2025-06-18"}"#);
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"3"}}}}"#);
    assert!(talk.said().contains("initialize"), "it may support both");
    talk.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such thing"}}"#);
    // Older clients get notifications about changed lists without asking.
    let said = talk.said();
    let (listens, answer) = said.split_once('\n').unwrap();
    assert!(listens.contains(r#""id":3,"method":"subscriptions/listen""#), "{said}");
    assert_eq!(
        answer.trim(),
        r#"to 1: {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"3"}}}"#
    );
    let of = r#""params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#;
    for method in ["subscriptions/acknowledged", "tools/list_changed"] {
        talk.hear(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}",{of}}}"#));
    }
    talk.check(&format!(r#"tell 1 of -: {{"method":"notifications/tools/list_changed",{of}}}"#));
    talk.ask(1, "1", "ping", "{}");
    talk.check(r#"to 1: {"id":1,"result":{}}"#);
    talk.ask(1, "2", "tools/call", r#"{"name":"x"}"#);
    let said = talk.said();
    assert!(
        said.contains(
            r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28""#
        ),
        "{said}"
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","x":1}}"#);
    assert!(talk.said().contains("requests input"));
}

#[test]
fn a_stateless_subscription_keeps_the_clients_id() {
    let mut talk = Talk::new(Terms::default(), None);
    talk.ask(
        1,
        "\"sub\"",
        "subscriptions/listen",
        &format!(r#"{{"notifications":{{}},{DISCOVER_META}}}"#),
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
    talk.check(
        r#"
        tell 1 of "sub": {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        to 1: {"id":"sub","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        "#,
    );
}

#[test]
fn a_stateless_client_gets_only_what_it_listens_to() {
    let mut talk = Talk::shared();
    talk.ask(5, "1", "tools/call", &format!(r#"{{"name":"x",{DISCOVER_META}}}"#));
    let listen = format!(r#"{{"notifications":{{"promptsListChanged":true}},{DISCOVER_META}}}"#);
    talk.ask(6, "2", "subscriptions/listen", &listen);
    talk.said();
    talk.hear(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    talk.check(r#"tell 1 of -: {"method":"notifications/tools/list_changed"}"#);
}

#[test]
fn lines_that_are_not_messages_are_counted_and_never_answered() {
    let mut talk = Talk::shared();
    for noise in [
        "listening on stdio",
        "{\"a\":1}",
        "[]",
        "",
        "   ",
        r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
    ] {
        talk.hear(noise);
    }
    talk.0.hear(b"\xff\xfe");
    talk.check("");
    assert_eq!(talk.0.noise(), 5);
}

#[test]
fn requests_over_the_limit_fail_at_once() {
    let mut talk = Talk::shared();
    talk.0.terms.in_flight = 3;
    for (line, id) in [(1, "1"), (1, "2"), (2, "1"), (2, "2")] {
        talk.ask(line, id, "tools/call", "{}");
    }
    let said = talk.said();
    let refused: Vec<_> = said.lines().filter(|line| line.contains("\"limit\"")).collect();
    assert_eq!(refused.len(), 1, "{said}");
    assert!(refused[0].starts_with("to 2: {\"id\":2"), "{said}");
}

#[test]
fn a_duplicate_id_is_refused_and_the_first_is_answered() {
    let mut talk = Talk::shared();
    talk.ask(1, "1", "tools/call", "{}");
    talk.ask(1, "1", "tools/call", "{}");
    let said = talk.said();
    assert!(said.contains("-32600"), "{said}");
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    talk.check(r#"to 1: {"id":1,"result":{}}"#);
}

#[test]
fn all_requests_fail_with_the_reason_for_the_end() {
    let mut talk = Talk::new(Terms::default(), Some(false));
    talk.ask(1, "1", "tools/list", "{}");
    talk.ask(2, "2", "tools/list", "{}");
    talk.said();
    talk.0.close(&Refusal::new(crate::RefusalKind::Ended, "it exited with code 3: boom"), false);
    let said = talk.said();
    assert_eq!(said.matches("exited with code 3: boom").count(), 2, "{said}");
    talk.ask(1, "9", "tools/list", "{}");
    assert!(talk.said().contains("server_ended"));
}

/// A session that two callers share: `a` with clients 1 and 3, `b` with client 2.
fn of_two_callers() -> Talk {
    let mut talk = Talk::shared();
    talk.0.terms.shared = true;
    for (line, caller) in [(1, "a"), (2, "b"), (3, "a")] {
        talk.0.join(line, caller);
    }
    talk
}

#[test]
fn a_caller_sees_and_cancels_only_its_own_tasks() {
    let mut talk = of_two_callers();
    talk.ask(1, "1", "tools/call", r#"{"name":"x","task":{"ttl":1}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}"#);
    talk.ask(2, "1", "tools/call", r#"{"name":"x"}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"task","taskId":"t-2"}}"#);
    talk.said();
    for method in ["get", "result", "cancel", "update", "anything"] {
        for (line, task) in [(2, "t-1"), (1, "t-2"), (1, "t-3")] {
            let params = format!(r#"{{"taskId":"{task}"}}"#);
            talk.ask(line, "2", &format!("tasks/{method}"), &params);
            let said = talk.said();
            let refused = format!(r#"to {line}: {{"id":2,"error":{{"code":-32602,"#);
            assert!(said.starts_with(&refused), "{method} of {task} by {line}: {said}");
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
        talk.ask(2, "3", method, params);
        let said = talk.said();
        assert!(said.contains("error") && !said.contains("to server"), "{method} {params}: {said}");
    }
    // From another client of the same caller, as with stateless clients.
    talk.ask(3, "4", "tasks/cancel", r#"{"taskId":"t-1"}"#);
    talk.check(r#"to server: {"id":5,"method":"tasks/cancel","params":{"taskId":"t-1"}}"#);
}

#[test]
fn a_list_of_tasks_contains_the_callers_own_byte_for_byte() {
    let mut talk = of_two_callers();
    talk.ask(1, "1", "tools/call", r#"{"name":"x","task":{}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1"}}}"#);
    // An id that the server uses again does not change the task's caller.
    talk.ask(2, "1", "tools/call", r#"{"name":"x","task":{}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"task":{"taskId":"t-1"}}}"#);
    talk.ask(1, "2", "tasks/list", "{}");
    talk.ask(2, "2", "tasks/list", "{}");
    talk.said();
    let all = r#"{"tasks":[{"taskId":"t-0"}, {"x": 1.0,"taskId":"t-1"}],"nextCursor":"c"}"#;
    talk.hear(&format!(r#"{{"jsonrpc":"2.0","id":5,"result":{all}}}"#));
    talk.hear(&format!(r#"{{"jsonrpc":"2.0","id":6,"result":{all}}}"#));
    talk.check(
        r#"
        to 1: {"id":2,"result":{"tasks":[{"x": 1.0,"taskId":"t-1"}],"nextCursor":"c"}}
        to 2: {"id":2,"result":{"tasks":[],"nextCursor":"c"}}
        "#,
    );
    talk.hear(
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1"}}"#,
    );
    talk.check(
        r#"
        tell 1 of -: {"method":"notifications/tasks/status","params":{"taskId":"t-1"}}
        tell 3 of -: {"method":"notifications/tasks/status","params":{"taskId":"t-1"}}
        "#,
    );
}

#[test]
fn an_exclusive_client_sees_all_tasks() {
    let mut talk = Talk::shared();
    talk.ask(1, "1", "tasks/get", r#"{"taskId":"from before"}"#);
    talk.check(r#"to server: {"id":3,"method":"tasks/get","params":{"taskId":"from before"}}"#);
}
