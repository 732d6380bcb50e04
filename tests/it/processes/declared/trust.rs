//! A cloned repository must not run anything by being opened.

use std::process::{Output, Stdio};

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::{hash, named, once, standing, trust, trusted, write};
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Peer, Place};

/// Everything in it that could run would create a file.
const HOSTILE: &str = r#"
    [processes.dev]
    command = "touch marker-process; cat"
    autostart = true
    restart = "always"
    watch = ["**/*"]
    [agents.claude]
    program = "./hostile"
    [agents.mine]
    like = "generic"
    program = "./hostile"
    [servers.files]
    command = ["touch", "marker-server"]
    [limits]
    processes = 1
"#;

fn hostile() -> Place {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    write(&place, HOSTILE);
    let script = place.path("project").join("hostile");
    std::fs::write(&script, "#!/bin/sh\ntouch marker-agent\n").unwrap();
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    place
}

fn marks(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.path("project")).unwrap().flatten();
    let names = files.map(|file| file.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("marker")).collect()
}

#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        place.patterm(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn a_hostile_project_file_runs_nothing_before_it_is_trusted() {
    let place = hostile();
    place.run(&["serve"]);
    place.run(&["ps"]);
    place.run(&["doctor"]);
    let agents = place.run(&["agents"]);
    assert!(!agents.contains("hostile") && !agents.contains("mine"), "{agents}");
    let error = fails(&place, &["call", "spawn_process", r#"{"preset": "dev"}"#]);
    assert!(error.contains("not trusted") && error.contains("`patterm trust`"), "{error}");
    let error = fails(&place, &["agent", "mine"]);
    assert!(error.contains("`mine`, which is not a preset"), "{error}");
    let error = fails(&place, &["trust"]);
    assert!(error.contains("no terminal to ask on"), "{error}");
    // Its limit of one process does not apply either.
    for _ in 0..2 {
        place.run(&["run", "--", "cat"]);
    }
    let status: Value = serde_json::from_str(&place.run(&["call", "get_project_status"])).unwrap();
    assert_eq!(status["project_file"]["state"], "untrusted");
    assert_eq!(status["project_file"]["processes"], json!([]));
    assert_eq!(status["processes"].as_array().unwrap().len(), 2);
    let mut client = Peer::through(&mut place.patterm(&["mcp-stdio"]), Framing::Newline);
    client.call(1, "list_processes", json!({}));
    client.answer(2, "tools/list", json!({}));
    client.finish();
    place.run(&["upgrade"]);
    place.run(&["ps"]);
    // After its shutdown, the server has done everything that it does by itself.
    place.run(&["kill"]);
    place.run(&["serve"]);
    place.run(&["kill"]);
    assert_eq!(marks(&place), [""; 0]);

    let error = place.run(&["trust", "--yes"]);
    for line in [
        "runs         sh -c 'touch marker-process; cat'",
        "runs         touch marker-server",
        "program = \"./hostile\"",
        "limit processes = 1",
    ] {
        assert!(error.contains(line), "{line}: {error}");
    }
    until("the mark", || (marks(&place) == ["marker-process"]).then_some(()));
    assert!(place.run(&["agents"]).contains("mine"));
    assert_eq!(
        place.run(&["trust"]),
        format!("{} is already trusted\n", place.project().root().join("patterm.toml").display())
    );
}

#[test]
fn a_changed_file_is_untrusted_again_and_an_old_content_is_not() {
    let (place, _server, mut tools) = trusted("[processes.a]\ncommand = 'cat'\n");
    assert_eq!(standing(&mut tools)["state"], "trusted");
    write(&place, "[processes.a]\ncommand = 'touch marker'\n[processes.b]\ncommand = 'cat'\n");
    let changed = standing(&mut tools);
    assert_eq!(changed["state"], "untrusted");
    assert_eq!(changed["processes"], json!(["a"]), "what was trusted last stays in effect");
    assert!(named(&mut tools, "b").is_none());
    let started = id_of(&tools.ok("spawn_process", json!({"preset": "a"})));
    assert_eq!(tools.status(&started)["argv"], json!(["sh", "-c", "cat"]));
    tools.refused("unavailable", "spawn_process", json!({"preset": "b"}));
    write(&place, "[processes.a]\ncommand = 'cat'\n");
    assert_eq!(standing(&mut tools)["state"], "trusted");
    assert_eq!(marks(&place), [""; 0]);
}

#[test]
fn only_the_content_that_was_shown_is_trusted() {
    let (place, _server, mut tools) = trusted("");
    write(&place, "[processes.a]\ncommand = 'cat'\n");
    let seen = hash(&place);
    write(&place, "[processes.a]\ncommand = 'touch marker'\nautostart = true\n");
    let error = tools.refused("unavailable", "patterm/trust", json!({"hash": seen}));
    assert!(error.contains("changed after it was shown"), "{error}");
    assert_eq!(standing(&mut tools)["state"], "untrusted");
    write(&place, "[processes.a]\ncomand = 'cat'\n");
    let error = tools.refused("unavailable", "patterm/trust", json!({"hash": hash(&place)}));
    let name = place.project().root().join("patterm.toml");
    let fault = format!(
        "{}:2:1: unknown key `comand` in `processes.a`; did you mean `command`?",
        name.display()
    );
    assert!(error.contains(&fault), "{error}");
    let faulty = standing(&mut tools);
    assert_eq!(faulty["state"], "faulty");
    assert_eq!(faulty["faults"][1], fault);
    std::fs::remove_file(name).unwrap();
    assert_eq!(standing(&mut tools)["state"], "absent");
    tools.refused("unavailable", "patterm/trust", json!({"hash": seen}));
}

#[test]
fn the_same_file_in_another_project_is_not_trusted() {
    let (place, _server, _desk) = trusted("[processes.a]\ncommand = './run'\n");
    let other = Place::new();
    std::fs::copy(
        place.project().root().join("patterm.toml"),
        other.project().root().join("patterm.toml"),
    )
    .unwrap();
    let server = other.serve_in_process();
    assert_eq!(standing(&mut ToolClient::of(&server))["state"], "untrusted");
}

#[test]
fn no_agent_can_trust_a_file() {
    let place = Place::new();
    write(
        &place,
        "[processes.a]\ncommand = 'touch marker'\nautostart = true\n[processes.shell]\ncommand = 'sh'\n",
    );
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let error = agent.refused("not_owner", "patterm/trust", json!({"hash": hash(&place)}));
    assert!(error.contains("only a person"), "{error}");
    // By the verb, as itself.
    let mut verb = place.patterm(&["trust", "--yes"]);
    let output = verb.env("PATTERM_IDENTITY_FILE", "/dev/null").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("only a person"));
    // By the verb, without its identity: what it starts runs in a pane of its own.
    let env = json!({
        "HOME": place.path("home"), "XDG_RUNTIME_DIR": place.path("run"),
        "XDG_STATE_HOME": place.path("state"),
    });
    let argv = json!([place.binary(), "trust", "--yes"]);
    let own = id_of(&agent.ok("spawn_process", json!({"argv": argv, "env": env})));
    agent.wait(&own, "only a person");
    let away = "\"$0\" trust --yes > said 2>&1; touch over";
    let script = format!(
        "setsid -f sh -c '{away}' \"$0\"; until test -e over; do sleep 0.01; done; cat said"
    );
    let argv = json!(["sh", "-c", script, place.binary()]);
    let away = id_of(&agent.ok("spawn_process", json!({"argv": argv, "env": env})));
    agent.wait(&away, "only a person");
    // Nor does it end the server.
    let argv = json!([place.binary(), "kill"]);
    let own = id_of(&agent.ok("spawn_process", json!({"argv": argv, "env": env})));
    agent.wait(&own, "only a person");
    let mut person = ToolClient::of(&server);
    assert_eq!(standing(&mut person)["state"], "untrusted");
    // A person in their own shell can.
    let argv = json!([place.binary(), "trust", "--yes"]);
    let own = id_of(&person.ok("spawn_process", json!({"argv": argv, "env": env})));
    person.wait(&own, "trusted; a changed file");
    assert_eq!(standing(&mut person)["state"], "trusted");
    once(&mut person, "a", "ended", |a| a["status"] == "exited");
}

#[test]
fn changes_are_noticed_without_a_request() {
    let (place, _server, mut tools) = trusted("");
    let text = "[processes.late]\ncommand = 'cat'\nautostart = true\n";
    write(&place, text);
    trust(&place, &mut tools);
    once(&mut tools, "late", "running", |late| late["status"] == "running");
    // Both contents are trusted; no call checks the file here.
    write(&place, "");
    until("it is declared no more", || named(&mut tools, "late").is_none().then_some(()));
    let moved = place.project().root().join("new");
    std::fs::write(&moved, text).unwrap();
    std::fs::rename(moved, place.project().root().join("patterm.toml")).unwrap();
    until("it is declared again", || named(&mut tools, "late"));
}

/// Editors and tools replace a file in many ways; no call checks it here.
#[test]
fn every_way_to_replace_the_file_is_noticed() {
    use std::os::unix::fs::symlink;
    let text = "[processes.late]\ncommand = 'cat'\n";
    let (place, _server, mut tools) = trusted(text);
    write(&place, "");
    trust(&place, &mut tools);
    let root = place.project().root().to_owned();
    let file = root.join("patterm.toml");
    let with = root.join("with.toml");
    let without = place.path("without.toml");
    std::fs::write(&with, text).unwrap();
    std::fs::write(&without, "").unwrap();
    let seen = |tools: &mut ToolClient, what: &str, there: bool| {
        until(what, || (named(tools, "late").is_some() == there).then_some(()));
    };
    seen(&mut tools, "nothing is declared", false);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, text).unwrap();
    seen(&mut tools, "deleted and written again", true);
    std::fs::rename(&file, root.join("patterm.toml~")).unwrap();
    std::fs::copy(&without, &file).unwrap();
    seen(&mut tools, "moved away and copied back", false);
    let swap = |target: &std::path::Path| {
        symlink(target, root.join("swapped")).unwrap();
        std::fs::rename(root.join("swapped"), &file).unwrap();
    };
    swap(&with);
    seen(&mut tools, "a link", true);
    swap(&without);
    seen(&mut tools, "a link to elsewhere", false);
    // The target of the link is in another folder, and changes there.
    std::fs::write(&without, text).unwrap();
    seen(&mut tools, "what the link leads to was written", true);
    std::fs::write(place.path("new.toml"), "").unwrap();
    std::fs::rename(place.path("new.toml"), &without).unwrap();
    seen(&mut tools, "what the link leads to was replaced", false);
}
