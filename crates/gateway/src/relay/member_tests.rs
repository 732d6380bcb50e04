//! The relay as a value: subscriptions, log levels, requests from the server and cancellation.

use patterm_wire::Id;

use super::tests::{DISCOVER_META, RelayTest, of_two_callers};
use super::*;

/// A server of the older era, started again after another with these clients.
fn restarted(members: Vec<Member>) -> RelayTest {
    let config = RelayConfig { roots: "[]".into(), ..RelayConfig::default() };
    let mut test = RelayTest::new(config, Some(false));
    test.0.adopt(members);
    test.request(9, "1", "ping", "{}");
    test.outputs();
    test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    test.outputs();
    test.0.initialized_written(true);
    test
}

#[test]
fn the_next_session_restores_subscriptions_and_log_levels() {
    let mut test = of_two_callers();
    test.request(1, "1", "resources/subscribe", r#"{"uri":"file:///a"}"#);
    test.request(2, "1", "resources/subscribe", r#"{"uri":"file:///a"}"#);
    test.request(2, "2", "logging/setLevel", r#"{"level":"debug"}"#);
    test.request(5, "1", "tools/call", &format!(r#"{{"name":"x",{DISCOVER_META}}}"#));
    assert!(test.0.has_subscribers());
    test.0.close(&GatewayError::new(GatewayErrorKind::Ended, "it exited"), false);
    let members = test.0.members();
    let ids: Vec<_> = members.iter().map(|member| member.client.0).collect();
    assert_eq!(ids, [1, 2, 3], "the stateless client is not among them");
    let mut next = restarted(members);
    next.check(
        r#"
        to server: {"id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}
        to server: {"id":3,"method":"logging/setLevel","params":{"level":"debug"}}
        to server: {"id":4,"method":"ping","params":{}}
        "#,
    );
    next.receive_line(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#;
    next.receive_line(updated);
    next.receive_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    next.check(
        r#"
        notify 1 about -: {"method":"notifications/resources/updated","params":{"uri":"file:///a"}}
        notify 2 about -: {"method":"notifications/resources/updated","params":{"uri":"file:///a"}}
        notify 1 about -: {"method":"notifications/tools/list_changed"}
        notify 2 about -: {"method":"notifications/tools/list_changed"}
        notify 3 about -: {"method":"notifications/tools/list_changed"}
        notify 9 about -: {"method":"notifications/tools/list_changed"}
        "#,
    );
}

#[test]
fn each_caller_has_its_own_log_level() {
    let mut test = of_two_callers();
    test.request(1, "1", "logging/setLevel", r#"{"level":"error"}"#);
    test.check(r#"to server: {"id":3,"method":"logging/setLevel","params":{"level":"error"}}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    test.request(2, "1", "logging/setLevel", r#"{"level":"debug"}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    test.check(
        r#"
        to 1: {"id":1,"result":{}}
        to server: {"id":4,"method":"logging/setLevel","params":{"level":"debug"}}
        to 2: {"id":1,"result":{}}
        "#,
    );
    // The server stays as verbose as the other client needs it.
    test.request(1, "2", "logging/setLevel", r#"{"level":"warning"}"#);
    test.check(r#"to 1: {"id":2,"result":{}}"#);
    let log = |level: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}"}}}}"#
        )
    };
    for (client, levels) in [(1, 1), (2, 2)] {
        test.request(client, "3", "tools/call", "{}");
        test.outputs();
        test.receive_line(&log("info"));
        test.receive_line(&log("warning"));
        let outputs = test.outputs();
        assert_eq!(outputs.lines().count(), levels, "{outputs}");
        let of = format!("notify {client} about 3: ");
        assert!(outputs.lines().all(|line| line.starts_with(&of)), "{outputs}");
        test.receive_line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, client + 4));
        test.outputs();
    }
    // Calls of two callers: it could be about either.
    test.request(1, "4", "tools/call", "{}");
    test.request(2, "4", "tools/call", "{}");
    test.outputs();
    test.receive_line(&log("error"));
    test.check("");
    // Nobody needs the details any more.
    test.0.leave(ClientId(2));
    let outputs = test.outputs();
    assert!(
        outputs.contains(r#""method":"logging/setLevel","params":{"level":"warning"}"#),
        "{outputs}"
    );
}

#[test]
fn a_level_that_the_server_refuses_is_not_remembered() {
    let mut test = of_two_callers();
    test.request(1, "1", "logging/setLevel", r#"{"level":"debug"}"#);
    test.receive_line(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}"#);
    test.outputs();
    test.request(2, "1", "logging/setLevel", r#"{"level":"info"}"#);
    test.check(r#"to server: {"id":4,"method":"logging/setLevel","params":{"level":"info"}}"#);
    test.request(2, "2", "logging/setLevel", r#"{"level":"loud"}"#);
    test.check(r#"to server: {"id":5,"method":"logging/setLevel","params":{"level":"loud"}}"#);
}

#[test]
fn a_stateless_client_gets_the_log_messages_it_asks_for() {
    let mut test = RelayTest::shared();
    test.0.join(ClientId(5), "s", false);
    let meta = DISCOVER_META
        .replace("\"_meta\":{", "\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"notice\",");
    test.request(5, "1", "tools/call", &format!("{{{meta}}}"));
    let outputs = test.outputs();
    assert!(
        outputs.starts_with(
            r#"to server: {"id":3,"method":"logging/setLevel","params":{"level":"notice"}}"#
        ),
        "{outputs}"
    );
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#;
    test.receive_line(log);
    assert!(test.outputs().starts_with("notify 5 about 1: "));
    test.receive_line(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    test.outputs();
    test.0.join(ClientId(6), "t", false);
    test.request(6, "1", "tools/call", &format!("{{{DISCOVER_META}}}"));
    test.outputs();
    test.receive_line(log);
    test.check("");
}

#[test]
fn requests_from_a_server_whose_only_client_cannot_answer_are_refused() {
    for (can_respond, params) in [(true, format!("{{{DISCOVER_META}}}")), (false, "{}".to_owned())]
    {
        let config = RelayConfig { exclusive: true, roots: "[]".into(), ..RelayConfig::default() };
        let mut test = RelayTest::new(config, Some(false));
        test.0.join(ClientId(1), "a", can_respond);
        test.request(1, "1", "tools/call", &params);
        test.receive_line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
        test.0.initialized_written(true);
        test.outputs();
        test.receive_line(r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#);
        let outputs = test.outputs();
        assert!(outputs.starts_with(r#"to server: {"id":"s","error":{"code":-32601"#), "{outputs}");
        test.receive_line(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
        test.check(r#"to server: {"id":"r","result":{"roots":[]}}"#);
    }
}

#[test]
fn a_cancelled_request_is_answered_as_such() {
    let mut test = RelayTest::shared();
    test.request(1, "7", "tools/call", "{}");
    let listen = format!(r#"{{"notifications":{{}},{DISCOVER_META}}}"#);
    test.request(5, "8", "subscriptions/listen", &listen);
    test.outputs();
    for (client, id) in [(1, "7"), (5, "8"), (1, "7"), (1, "8")] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"enough"}}}}"#
        );
        test.0.notify(ClientId(client), "notifications/cancelled", &text);
    }
    let cancelled = |id| {
        format!(
            r#"{{"id":{id},"error":{{"code":-32800,"message":"the client cancelled this request","data":{{"kind":"cancelled"}}}}}}"#
        )
    };
    test.check(&format!(
        r#"
        to server: {{"method":"notifications/cancelled","params":{{"requestId":3,"reason":"enough"}}}}
        to 1: {}
        to 5: {}
        "#,
        cancelled(7),
        cancelled(8)
    ));
    assert_eq!(test.0.in_flight(), 0);
    let id = Id::from_number(7);
    test.request(1, id.as_json(), "tools/call", "{}");
    assert!(test.outputs().contains("to server"), "the id can be used again");
}
