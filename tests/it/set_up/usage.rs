//! Arguments that no server could accept are wrong usage, before anything is started.

use serde_json::json;

use super::fails;
use crate::support::Place;
use crate::support::tool_client::ToolClient;

#[test]
fn an_argument_that_no_server_could_accept_is_wrong_usage() {
    let place = Place::new();
    for (arguments, reason) in [
        (&["key", "p1", "enter", "nokey"][..], "there is no key \"nokey\"; known keys are"),
        (&["stop", "p1", "--signal", "BOGUS"], "takes 1 to 31 or a name such as"),
        (&["stop", "p1", "--signal", "32"], "takes 1 to 31 or a name such as"),
        (&["events", "--type", "agent.idle,bogus"], "the types are process.created, "),
        (&["events", "--type", "bogus.*"], "is not a type of events"),
        (&["run", "--name", "p7", "--", "cat"], "must not look like a process's id"),
        (&["shell", "--name", ""], "takes 1 to 100 characters"),
        (&["agent", "claude", "--name", "7"], "must not look like a process's id"),
        (&["pad", "../x"], "takes a plain name"),
        (&["token", "new", "a b"], "is not a valid name for a token"),
        (&["kill", "--grace=-1"], "takes 0 to 3600 seconds"),
        (&["kill", "--grace", "nan"], "takes 0 to 3600 seconds"),
        (&["search", "p1", "x", "--limit", "0"], "0 is not in 1.."),
    ] {
        let output = place.patterm(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        let is_refused = message.starts_with("error: invalid value ") && message.contains(reason);
        assert!(is_refused, "{arguments:?}: {message}");
    }
    assert!(!place.path("run/patterm").exists(), "nothing was started");
    assert!(!place.path("state/patterm").exists(), "nothing was created");
}

#[test]
fn events_of_an_unknown_process_are_an_error_and_those_of_a_closed_one_are_not() {
    let place = Place::new();
    assert!(fails(&place, &["events", "nosuch"]).contains("there is no process `nosuch`"));
    place.run(&["run", "--name", "one", "--", "cat"]);
    assert!(place.run(&["events", "one"]).contains("process.started"));
    place.run(&["close", "one"]);
    assert!(place.run(&["events", "p1"]).contains("process.closed"));
    let message = fails(&place, &["events", "p2", "--type", "process.*"]);
    assert!(message.contains("there is no process `p2`"), "{message}");
}

#[test]
fn tools_refuse_types_that_no_event_has() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    let types = json!({"types": ["agent.*", "bogus"]});
    let refused = tools.refused("invalid_argument", "get_events", types);
    assert!(refused.contains("contains \"bogus\", which is not a type of events"), "{refused}");
    let types = json!({"types": ["bogus.*"]});
    let refused = tools.refused("invalid_argument", "wait_for_event", types);
    assert!(refused.contains("the types are process.created"), "{refused}");
}
