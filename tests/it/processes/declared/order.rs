//! A process waits until its dependencies are ready.

use serde_json::json;

use super::site::ReservedPort;
use super::{id, named, once, trusted};
use crate::support::tool_client::id_of;

#[test]
fn automatic_processes_start_in_the_order_of_their_dependencies() {
    let (_place, _server, mut tools) = trusted(
        r#"
        [processes.web]
        command = "echo web runs; cat"
        autostart = true
        depends_on = ["migrate", "db"]
        [processes.migrate]
        command = "read word; test $word = well"
        depends_on = ["db"]
        ready = { exits = true }
        [processes.db]
        command = "stty -echo; read line; echo accepting $line; cat"
        ready = { pattern = '^accepting' }
        [processes.other]
        command = "cat"
        "#,
    );
    once(&mut tools, "db", "running", |db| db["status"] == "running");
    let web = named(&mut tools, "web").unwrap();
    assert_eq!((&web["status"], &web["kind"]), (&json!("starting"), &json!("command")));
    assert_eq!(web["waiting_for"], json!(["migrate", "db"]));
    assert_eq!(named(&mut tools, "db").unwrap()["ready"], false);
    let db = id(&mut tools, "db");
    tools.line(&db, "connections");
    once(&mut tools, "migrate", "running", |migrate| migrate["status"] == "running");
    assert_eq!(named(&mut tools, "db").unwrap()["ready"], true);
    assert_eq!(named(&mut tools, "web").unwrap()["waiting_for"], json!(["migrate"]));
    let migrate = id(&mut tools, "migrate");
    tools.line(&migrate, "well");
    let web = once(&mut tools, "web", "running", |web| web["status"] == "running");
    assert_eq!(web.get("waiting_for"), None);
    let other = named(&mut tools, "other").unwrap();
    assert_eq!((&other["status"], &other["ready"]), (&json!("stopped"), &json!(false)));
}

#[test]
fn a_process_that_waits_for_another_is_neither_ended_nor_idle() {
    let (_place, _server, mut tools) = trusted(
        r#"
        [processes.web]
        command = "exit 7"
        depends_on = ["db"]
        [processes.db]
        command = "stty -echo; read line; echo accepting $line; cat"
        ready = { pattern = '^accepting' }
        "#,
    );
    let owner = tools.run(&["cat"]);
    let web = id_of(&tools.ok("spawn_process", json!({"preset": "web"})));
    let waiting = tools.status(&web);
    assert_eq!(waiting["status"], "starting", "{waiting}");
    let why = "it is waiting for db";
    assert_eq!(waiting["activity"], json!({"state": "unknown", "reason": why}), "{waiting}");
    let arm = |body: &str| json!({"watched": [web], "body": body, "owner_process_id": owner});
    let ended = tools.ok("timer_fire_on_exit", arm("ended"));
    assert_eq!(ended["waiting_on"], json!([web]), "{ended}");
    let idle = tools.ok("timer_fire_when_idle_all", arm("idle"));
    assert_eq!(idle["waiting_on"], json!([web]), "{idle}");
    let until = json!({"process_ids": [web], "until": "exited", "timeout_seconds": 0.3});
    assert_eq!(tools.ok("wait_for_agents", until)["timed_out"], true);
    assert_eq!(tools.ok("timer_list", json!({}))["timers"].as_array().unwrap().len(), 2);
    once(&mut tools, "db", "running", |db| db["status"] == "running");
    let db = id(&mut tools, "db");
    tools.line(&db, "connections");
    tools.wait(&owner, "^ended$");
    tools.wait(&owner, "^idle$");
    assert_eq!(tools.status(&web)["exit"], json!({"code": 7}));
}

#[test]
fn a_process_that_waits_for_a_failed_one_has_ended() {
    let (_place, _server, mut tools) = trusted(
        r#"
        [processes.web]
        command = "cat"
        depends_on = ["db"]
        [processes.db]
        command = "read line; exit 3"
        ready = { pattern = '^accepting' }
        "#,
    );
    let owner = tools.run(&["cat"]);
    let web = id_of(&tools.ok("spawn_process", json!({"preset": "web"})));
    let arm = json!({"watched": [web], "body": "ended", "owner_process_id": owner});
    tools.ok("timer_fire_on_exit", arm);
    once(&mut tools, "db", "running", |db| db["status"] == "running");
    let db = id(&mut tools, "db");
    tools.line(&db, "");
    tools.wait(&owner, "^ended$");
    let web = named(&mut tools, "web").unwrap();
    assert_eq!(web["problem"], "it needs db, which ended with exit code 3", "{web}");
}

#[test]
fn an_open_port_means_ready() {
    let reserved = ReservedPort::new();
    let port = reserved.port;
    let (_place, _server, mut tools) = trusted(&format!(
        "[processes.api]\ncommand = ['python3', '-m', 'http.server', '--bind', '127.0.0.1', '{port}']\n\
         ready = {{ port = {port} }}\n[processes.web]\ncommand = 'cat'\ndepends_on = ['api']\n"
    ));
    let answer = tools.ok("spawn_process", json!({"preset": "web"}));
    assert_eq!(answer["status"], "starting", "it waits");
    assert_eq!(answer["name"], "web");
    once(&mut tools, "web", "running", |web| web["status"] == "running");
    assert_eq!(named(&mut tools, "api").unwrap()["ready"], true);
}

#[test]
fn a_process_whose_dependency_never_becomes_ready_says_why_it_waits() {
    let (_place, _server, mut tools) = trusted(
        r#"
        [processes.slow]
        command = "cat"
        ready = { pattern = "never", timeout_seconds = 0.05 }
        [processes.dead]
        command = "exit 7"
        ready = { pattern = "never" }
        [processes.missing]
        command = ["no-such-program"]
        [processes.after-slow]
        command = "cat"
        autostart = true
        depends_on = ["slow"]
        [processes.after-dead]
        command = "cat"
        autostart = true
        depends_on = ["dead"]
        [processes.after-missing]
        command = "cat"
        autostart = true
        depends_on = ["missing"]
        [processes.last]
        command = "cat"
        autostart = true
        depends_on = ["after-dead"]
        "#,
    );
    for (name, problem) in [
        ("after-slow", "it needs slow, which was not ready in time"),
        ("after-dead", "it needs dead, which ended with exit code 7"),
        ("after-missing", "it needs missing, which could not be started"),
        ("last", "it needs after-dead, which needs dead, which ended with exit code 7"),
    ] {
        let process = once(&mut tools, name, "given up", |process| process["problem"] == problem);
        assert_eq!(process["status"], "stopped", "{name}");
    }
    let missing = named(&mut tools, "missing").unwrap();
    assert_eq!(missing["status"], "failed");
    assert!(missing["problem"].as_str().unwrap().contains("no-such-program"), "{missing}");
    let slow = named(&mut tools, "slow").unwrap();
    assert_eq!((&slow["status"], &slow["ready"]), (&json!("running"), &json!(false)));
    assert_eq!(slow["problem"], "it was not ready within 0.05 s");
}

#[test]
fn starting_a_process_starts_its_dependencies_once() {
    let (_place, _server, mut tools) = trusted(
        "[processes.db]\ncommand = 'cat'\n[processes.web]\ncommand = 'cat'\ndepends_on = ['db']\n",
    );
    let web = id_of(&tools.ok("spawn_process", json!({"preset": "web", "name": "front"})));
    let seen = once(&mut tools, "web", "running", |web| web["status"] == "running");
    assert_eq!((&seen["name"], &seen["runs"]), (&json!("front"), &json!(1)));
    let error = tools.refused("already_running", "spawn_process", json!({"preset": "web"}));
    assert!(error.contains(&format!("as {web}")), "{error}");
    tools.refused("already_running", "start_process", json!({"process_id": web}));
    tools.ok("restart_process", json!({"process_id": web}));
    let db = id(&mut tools, "db");
    assert_eq!(tools.status(&db)["runs"], 1);
    assert_eq!(tools.status(&web)["runs"], 2);
    for (field, value) in [
        ("argv", json!(["cat"])),
        ("env", json!({})),
        ("working_dir", json!(".")),
        ("shell", json!(true)),
        ("kind", json!("terminal")),
    ] {
        let arguments = json!({"preset": "db", field: value});
        let error = tools.refused("invalid_argument", "spawn_process", arguments);
        assert!(error.contains(field) && error.contains("patterm.toml says"), "{error}");
    }
    let error = tools.refused("invalid_argument", "spawn_process", json!({"preset": "wbe"}));
    assert!(error.ends_with("it declares db, web"), "{error}");
}
