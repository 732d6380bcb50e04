//! Who decides what hooks run.

use serde_json::{Value, json};

use super::{configure, exit_once, hook, hook_until};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};

#[test]
fn a_hook_of_a_file_that_is_not_trusted_does_nothing() {
    let place = Place::new();
    configure(&place, "[[hooks]]\nname = 'mine'\non = ['process.exited']\nrun = ['true']\n");
    let text = "[[hooks]]\nname = 'theirs'\non = ['process.exited']\nrun = ['touch', 'marker']\n";
    std::fs::write(place.path("project/patterm.toml"), text).unwrap();
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    exit_once(&mut tools);
    hook_until(&mut tools, "mine", |hook| hook["fired"] == 1);
    assert_eq!(hook(&mut tools, "theirs"), None);
    tools.refused("not_found", "patterm/test-hook", json!({"name": "theirs"}));
    let trusted = place.run(&["trust", "--yes"]);
    assert!(
        trusted.contains("hook theirs on process.exited\n  runs         touch marker"),
        "{trusted}"
    );
    hook_until(&mut tools, "theirs", |hook| hook["file"] == "patterm.toml");
    assert!(!place.path("project/marker").exists(), "what happened before does not count");
    exit_once(&mut tools);
    hook_until(&mut tools, "theirs", |hook| hook["fired"] == 1);
    assert!(place.path("project/marker").exists());
    // A changed file must be trusted again; until then the old content stays in effect.
    std::fs::write(place.path("project/patterm.toml"), text.replace("marker", "other")).unwrap();
    exit_once(&mut tools);
    hook_until(&mut tools, "theirs", |hook| hook["fired"] == 2);
    assert!(!place.path("project/other").exists());
}

#[test]
fn no_agent_and_no_hook_can_test_a_hook() {
    let place = Place::new();
    let binary = place.binary();
    let binary = binary.display();
    configure(
        &place,
        &format!(
            "[[hooks]]\nname = 'tries'\non = ['process.exited']\n\
             run = ['sh', '-c', '{binary} hooks test deed >out 2>&1; {binary} ps --json >ps']\n\
             [[hooks]]\nname = 'deed'\non = ['agent.limited']\n\
             run = ['sh', '-c', 'cat >deed; test -n \"$PATTERM_EVENT_TEST\"; exit $?']\n\
             [[hooks]]\nname = 'fails'\non = ['agent.limited']\nrun = ['sh', '-c', 'echo why; exit 3']\n"
        ),
    );
    let mut issuing = place.serve_in_process();
    let (_, token) = issuing.agent("lead", None);
    issuing.stop();
    let server = place.serve();
    let mut agent = ToolClient::at(&server.socket());
    agent.peer.greet(&token.reveal(), None);
    let message = agent.refused("not_owner", "patterm/test-hook", json!({"name": "deed"}));
    assert!(message.contains("only a person may test a hook"), "{message}");
    let mut tools = ToolClient::at(&server.socket());
    exit_once(&mut tools);
    until("the other command", || place.path("project/ps").exists().then_some(()));
    hook_until(&mut tools, "tries", |hook| hook["fired"] == 1);
    let refused = std::fs::read_to_string(place.path("project/out")).unwrap();
    assert!(refused.contains("only a person may test a hook"), "{refused}");
    let ps = std::fs::read_to_string(place.path("project/ps")).unwrap();
    assert!(serde_json::from_str::<Value>(&ps).unwrap().is_array(), "{ps}");
    assert!(!place.path("project/deed").exists());
    assert_eq!(place.run(&["hooks", "test", "deed"]), "deed (config.toml) succeeded\n");
    let event: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("project/deed")).unwrap())
            .unwrap();
    assert_eq!((&event["type"], &event["test"]), (&json!("agent.limited"), &json!(true)));
    let output = place.patterm(&["hooks", "test", "fails"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "fails (config.toml) failed: its command exited with code 3: why\n");
    // Tests are not counted.
    assert_eq!(hook(&mut tools, "deed").unwrap()["fired"], 0);
}
