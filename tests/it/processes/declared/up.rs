//! `patterm up`, `down` and `start`, groups, and the reasons why something is not running.

use serde_json::Value;

use super::write;
use crate::support::Place;
use crate::support::tool_client::until;

const FILE: &str = r#"
[processes.db]
command = "echo up; cat"
ready = { pattern = "^up" }

[processes.api]
command = "cat"
depends_on = ["db"]

[processes.docs]
command = "cat"

[groups]
backend = ["api", "db"]
"#;

/// A project whose file is trusted.
fn trusted(text: &str) -> Place {
    let place = Place::new();
    write(&place, text);
    place.run(&["trust", "--yes"]);
    place
}

fn output_of(place: &Place, arguments: &[&str]) -> String {
    let output = place.patterm(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Why a process is not running.
#[track_caller]
fn why(place: &Place, name: &str) -> String {
    let all: Value = serde_json::from_str(&place.run(&["ps", "--json"])).unwrap();
    let process = all.as_array().unwrap().iter().find(|process| process["name"] == name).unwrap();
    process["why_not_running"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn up_and_down_take_names_and_groups() {
    let place = trusted(FILE);
    assert_eq!(why(&place, "db"), "it was not started");
    let up = place.run(&["up", "backend"]);
    assert!(up.contains("db   started") && up.contains("api  waits for db"), "{up}");
    place.run(&["wait", "db", "up"]);
    let up = place.run(&["up"]);
    assert!(up.contains("db    is running") && up.contains("docs  started"), "{up}");
    let down = place.run(&["down", "backend"]);
    let order: Vec<_> = down.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(order, ["api", "db"], "what needs others ends first: {down}");
    assert_eq!(why(&place, "api"), "it was stopped");
    assert!(place.run(&["down"]).contains("docs  stopped"));
    assert!(place.run(&["down", "docs"]).contains("docs  is not running"));
    let unknown = output_of(&place, &["up", "web"]);
    assert!(
        unknown.contains("no process or group `web`; it declares api, db, docs, backend"),
        "{unknown}"
    );
}

#[test]
fn a_closed_declared_process_is_started_again_by_its_name() {
    let place = trusted(FILE);
    place.run(&["close", "docs"]);
    let started = place.run(&["start", "docs"]);
    assert!(started.starts_with("started p"), "{started}");
    assert!(place.run(&["up", "docs"]).contains("is running"));
    place.run(&["close", "db", "api"]);
    assert!(place.run(&["up", "backend"]).contains("db   started"));
}

#[test]
fn a_process_that_waits_or_cannot_start_is_not_reported_as_restarted() {
    let file = r#"
        [processes.db]
        command = "sleep 3600"
        ready = { pattern = "never" }
        [processes.api]
        command = "cat"
        depends_on = ["db"]
    "#;
    let place = trusted(file);
    assert_eq!(place.run(&["restart", "api"]), "p1 is waiting for db\n");
    assert_eq!(why(&place, "api"), "waits for db");
    assert!(place.run(&["ps"]).contains("api  (waiting for db)"));
    let runs =
        |listed: String| listed.lines().any(|row| row.contains("running") && row.contains("db"));
    until("db runs", || runs(place.run(&["ps"])).then_some(()));
    place.run(&["stop", "api"]);
    place.run(&["stop", "db"]);
    // A dependency that failed is the reason.
    write(&place, &file.replace("sleep 3600", "exit 1"));
    place.run(&["trust", "--yes"]);
    place.run(&["up", "api"]);
    assert_eq!(place.patterm(&["wait", "db", "x"]).output().unwrap().status.code(), Some(4));
    let reason = "it needs db, which ended with exit code 1";
    until(reason, || (why(&place, "api") == reason).then_some(()));
}

#[test]
fn a_process_cannot_take_the_name_of_a_group() {
    let place = trusted(FILE);
    let refused = output_of(&place, &["run", "--name", "backend", "--", "cat"]);
    assert!(refused.contains("`backend`, which is a group in patterm.toml"), "{refused}");
    let id = place.run(&["shell", "--name", "mine"]);
    let refused = output_of(
        &place,
        &[
            "call",
            "rename_process",
            &format!("{{\"process_id\": \"{}\", \"name\": \"backend\"}}", id.trim()),
        ],
    );
    assert!(refused.contains("which is a group"), "{refused}");
    assert!(place.run(&["ps"]).contains("  mine"));
}

#[test]
fn an_untrusted_project_file_is_reported() {
    let place = Place::new();
    write(&place, FILE);
    let message = output_of(&place, &["up"]);
    assert!(message.contains("patterm.toml is not trusted; `patterm trust`"), "{message}");
    for verb in ["ps", "servers"] {
        let printed = place.run(&[verb]);
        assert!(printed.contains("patterm.toml is not trusted, so nothing in it"), "{printed}");
    }
    let message = output_of(&place, &["start", "db"]);
    assert!(message.contains("not trusted") && message.contains("patterm trust"), "{message}");
}

#[test]
fn trusting_again_shows_what_has_changed() {
    let place = trusted(FILE);
    assert!(!place.run(&["ps"]).contains("trust"));
    write(&place, &FILE.replace("echo up; cat", "echo up; sleep 3600"));
    let ps = place.run(&["ps"]);
    assert!(
        ps.contains("patterm.toml has changed since you trusted it; a running server keeps"),
        "{ps}"
    );
    // The trusted content stays in effect, and those who start something are told.
    let started = place.patterm(&["up", "docs"]).output().unwrap();
    assert!(String::from_utf8(started.stdout).unwrap().contains("docs  started"));
    let again = place.patterm(&["start", "api"]).output().unwrap();
    for errors in [started.stderr, again.stderr] {
        let errors = String::from_utf8(errors).unwrap();
        assert!(errors.contains("patterm.toml has changed since you trusted it"), "{errors}");
    }
    place.run(&["stop", "api"]);
    // A file with errors is not merely a changed one.
    write(&place, "[processes.db\n");
    let printed = place.patterm(&["up", "docs"]).output().unwrap();
    let warned = String::from_utf8(printed.stderr).unwrap();
    for text in [warned, place.run(&["ps"])] {
        assert!(text.contains("patterm.toml has errors (patterm.toml:1:"), "{text}");
        assert!(text.contains("keeps the content that you trusted last"), "{text}");
    }
    write(&place, &FILE.replace("echo up; cat", "echo up; sleep 3600"));
    let changes = "patterm.toml has changed since you trusted it (- before, + now):\n\n  \n  [processes.db]\n\
        - command = \"echo up; cat\"\n+ command = \"echo up; sleep 3600\"\n";
    let shown = place.run(&["trust", "--yes"]);
    assert!(shown.contains(changes), "{shown}");
    // State of 0.1 has only hashes.
    std::fs::remove_dir_all(place.state().file("trusted")).unwrap();
    write(&place, FILE);
    assert_eq!(
        place.run(&["trust", "--yes"]),
        format!("{} is already trusted\n", place.path("project/patterm.toml").display())
    );
    write(&place, &FILE.replace("up; cat", "up"));
    assert!(!place.run(&["trust", "--yes"]).contains("It has changed"));
}
