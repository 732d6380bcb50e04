//! The life of a process through the tools: spawned, started, stopped, restarted, renamed, closed.

use serde_json::{Value, json};

use crate::support::tool_client::{alive, id_of, tools, until};

#[test]
fn a_command_runs_as_requested() {
    let (place, _server, mut tools) = tools();
    std::fs::create_dir(place.path("project/sub")).unwrap();
    let started = tools.ok(
        "spawn_process",
        json!({"argv": ["sh", "-c", "echo $GREETING in $(pwd); echo size $(stty size)"],
            "env": {"GREETING": "hello"}, "working_dir": "sub", "name": "greet"}),
    );
    assert_eq!(started, json!({"process_id": "p1", "name": "greet", "status": "running"}));
    let status = tools.ended("p1");
    let folder = place.path("project/sub").canonicalize().unwrap();
    assert_eq!(tools.rows("p1").concat(), format!("hello in {}size 24 80", folder.display()));
    assert_eq!(status["status"], "exited");
    assert_eq!(status["exit"], json!({"code": 0}));
    assert_eq!(status["kind"], "command");
    assert_eq!(status["working_dir"], json!(folder));
}

#[test]
fn kinds_and_their_defaults() {
    let (_place, _server, mut tools) = tools();
    let env = json!({"SHELL": "/bin/sh"});
    for (arguments, kind) in [
        (json!({"env": env}), "terminal"),
        (json!({"env": env, "kind": "terminal"}), "terminal"),
        (json!({"argv": ["cat"]}), "command"),
        (json!({"argv": ["cat"], "kind": "command"}), "command"),
        (json!({"argv": ["sh"], "kind": "terminal"}), "terminal"),
    ] {
        let id = id_of(&tools.ok("spawn_process", arguments.clone()));
        assert_eq!(tools.status(&id)["kind"], kind, "{arguments}");
    }
    tools.line("p1", "echo $((6 * 7))");
    tools.wait("p1", "^42$");
}

#[test]
fn a_command_line_goes_through_a_shell() {
    let (_place, _server, mut tools) = tools();
    let arguments = json!({"argv": ["echo one", "&& echo", "$((1 + 1))"], "shell": true});
    let id = id_of(&tools.ok("spawn_process", arguments));
    tools.ended(&id);
    assert_eq!(tools.rows(&id), ["one", "2"]);
    let status = tools.status(&id);
    assert_eq!(status["argv"], json!(["sh", "-lc", "echo one && echo $((1 + 1))"]));
    assert_eq!(status["name"], "echo");
}

#[test]
fn a_failed_start_leaves_no_entry() {
    let (place, _server, mut tools) = tools();
    std::fs::write(place.path("project/text"), "text").unwrap();
    for (arguments, names) in [
        (json!({"argv": ["no-such-program"]}), "no-such-program"),
        (json!({"argv": ["./text"]}), "cannot be executed"),
        (json!({"argv": []}), "argv"),
        (json!({"argv": [""]}), "argv"),
        (json!({"argv": ["true", "a\u{0}b"]}), "NUL byte"),
        (json!({"argv": ["true"], "working_dir": "missing"}), "missing"),
        (json!({"argv": ["true"], "working_dir": "text"}), "not a folder"),
        (json!({"preset": "dev"}), "`dev`"),
        (json!({"preset": "dev", "argv": ["true"]}), "preset"),
        (json!({"kind": "command"}), "argv"),
        (json!({"kind": "agent", "argv": ["true"]}), "kind"),
        (json!({"argv": "true"}), "argv"),
        (json!({"argv": ["true"], "env": {"A": 1}}), "env"),
        (json!({"argv": ["true"], "shell": "yes"}), "shell"),
        (json!({"argv": ["true"], "name": "two\nlines"}), "name"),
        (json!({"argv": ["true"], "name": ""}), "name"),
    ] {
        let message = tools.refused("invalid_argument", "spawn_process", arguments.clone());
        assert!(message.contains(names), "{arguments}: {message}");
        assert_eq!(tools.ids(), Vec::<String>::new(), "{arguments}");
    }
    assert!(std::fs::read_dir(place.state().file("output")).map_or(0, Iterator::count) == 0);
    // An id is never reused, even that of an entry that nobody saw.
    assert_ne!(tools.run(&["true"]), "p1");
}

#[test]
fn a_name_that_is_taken_gets_a_number() {
    let (_place, _server, mut tools) = tools();
    let mut named = |arguments: Value| tools.ok("spawn_process", arguments)["name"].clone();
    assert_eq!(named(json!({"argv": ["/bin/cat"]})), "cat");
    assert_eq!(named(json!({"argv": ["cat"]})), "cat-2");
    assert_eq!(named(json!({"argv": ["cat"], "name": "dev"})), "dev");
    assert_eq!(named(json!({"argv": ["cat"], "name": "dev"})), "dev-2");
    let renamed = |name: &str| json!({"process_id": "p1", "name": name});
    assert_eq!(tools.ok("rename_process", renamed("dev")), json!({"name": "dev-3"}));
    assert_eq!(tools.ok("rename_process", renamed(" log ")), json!({"name": "log"}));
    assert_eq!(tools.status("p1")["name"], "log");
    tools.refused("invalid_argument", "rename_process", renamed("\u{1b}[31m"));
    tools.refused("invalid_argument", "rename_process", json!({"process_id": "p1"}));
    // A name that looks like an id would be mistaken for one.
    for name in ["p7", " p1 ", "P22"] {
        tools.refused("invalid_argument", "rename_process", renamed(name));
        let spawn = json!({"argv": ["cat"], "name": name});
        tools.refused("invalid_argument", "spawn_process", spawn);
    }
    assert_eq!(tools.ok("rename_process", renamed("p7a")), json!({"name": "p7a"}));
}

#[test]
fn a_process_is_stopped_and_started_again_in_the_same_entry() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("trap 'echo bye; exit 3' TERM; echo life; read x");
    tools.wait(&id, "life");
    let one = json!({"process_id": id});
    tools.refused("already_running", "start_process", one.clone());
    let stopped = tools.ok("stop_process", one.clone());
    assert_eq!(stopped, json!({"status": "stopped", "exit": {"code": 3}}));
    assert_eq!(tools.rows(&id), ["life", "bye"], "its output stays");
    let before = tools.status(&id)["output_offset"].as_u64().unwrap();
    for tool in ["stop_process", "send_input"] {
        let arguments = json!({"process_id": id, "kind": "text", "text": "x"});
        tools.refused("not_running", tool, arguments);
    }
    let started = tools.ok("start_process", one.clone());
    assert_eq!((&started["process_id"], &started["status"]), (&json!(id), &json!("running")));
    tools.wait(&id, "life");
    assert_eq!(tools.rows(&id), ["life"], "a fresh terminal");
    assert_eq!(tools.status(&id)["output_offset"], before + 6, "offsets go on");
    let signalled = tools.ok("stop_process", json!({"process_id": id, "signal": 9}));
    assert_eq!(signalled, json!({"status": "stopped", "exit": {"signal": 9}}));
    for signal in [json!(0), json!(99), json!("TERMINATE"), json!(true)] {
        let arguments = json!({"process_id": id, "signal": signal});
        tools.refused("invalid_argument", "stop_process", arguments);
    }
}

#[test]
fn a_process_is_restarted_whether_it_runs_or_not() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("echo up $$; exec sleep 1000");
    tools.wait(&id, "up");
    let first = tools.status(&id)["pid"].as_u64().unwrap();
    let restarted = tools.ok("restart_process", json!({"process_id": id}));
    assert_eq!(restarted, json!({"process_id": id, "status": "running", "exit": {"signal": 15}}));
    tools.wait(&id, "up");
    let second = tools.status(&id)["pid"].as_u64().unwrap();
    assert!(first != second && !alive(first.try_into().unwrap()));
    let restarted = tools.ok("restart_process", json!({"process_id": id, "signal": 2}));
    assert_eq!(restarted["exit"], json!({"signal": 2}));
    tools.ok("stop_process", json!({"process_id": id}));
    assert_eq!(tools.ok("restart_process", json!({"process_id": id}))["status"], "running");
}

/// Two callers start one process: it gets one run, and one caller is told so.
#[test]
fn two_starts_at_once_are_one() {
    let (_place, server, mut tools) = tools();
    let id = tools.run(&["true"]);
    tools.ended(&id);
    let mut other = crate::support::tool_client::ToolClient::of(&server);
    for _ in 0..10 {
        let one = json!({"process_id": id});
        let runs = tools.status(&id)["runs"].as_u64().unwrap();
        tools.ask("start_process", one.clone());
        tools.ask("start_process", one.clone());
        other.ask("start_process", one);
        let answers = [tools.receive(), tools.receive(), other.receive()];
        let started = answers.iter().filter(|answer| answer.is_ok()).count();
        tools.ended(&id);
        // One may have ended before the next began.
        assert_eq!(tools.status(&id)["runs"], runs + started as u64, "{answers:?}");
        for refusal in answers.into_iter().filter_map(Result::err) {
            assert_eq!(refusal.kind, "already_running");
        }
    }
}

#[test]
fn closing_removes_everything_that_belonged_to_the_process() {
    let (place, _server, mut tools) = tools();
    let script = "setsid sh -c 'echo daemon $$ .; exec sleep 1000' & sleep 0.05; exit 0";
    let id = tools.sh(script);
    let line = tools.wait(&id, r"daemon \d+ \.");
    let daemon: u32 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    tools.ended(&id);
    assert!(alive(daemon), "it outlives the program that started it");
    assert_eq!(tools.close(&id), std::slice::from_ref(&id));
    assert!(!alive(daemon), "closed is closed");
    assert!(!place.state().file("output").join(&id).exists());
    for tool in ["get_process_status", "close_process", "start_process", "get_process_output"] {
        let message = tools.refused("not_found", tool, json!({"process_id": id}));
        assert!(message.contains(&id), "{message}");
    }
    assert_ne!(tools.run(&["cat"]), id, "its id is never used again");
}

#[test]
fn a_stubborn_tree_is_gone_when_stop_and_close_answer() {
    let (_place, _server, mut tools) = tools();
    let script = "trap '' HUP INT TERM
        setsid sh -c 'trap \"\" HUP INT TERM; echo pid $$ .; while :; do sleep 1000; done' &
        (setsid sh -c '(trap \"\" HUP INT TERM; echo pid $(exec sh -c \"echo \\$PPID\") .; while :; do sleep 1000; done) &' &)
        echo pid $$ .; while :; do sleep 1000; done";
    for tool in ["stop_process", "close_process"] {
        let id = tools.sh(script);
        let pids = until("three pids", || {
            let text = tools.raw(&id);
            let words = text.lines().filter(|line| line.ends_with('.'));
            let pids: Vec<u32> =
                words.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
            (pids.len() == 3).then_some(pids)
        });
        assert!(pids.iter().all(|pid| alive(*pid)));
        let begun = std::time::Instant::now();
        tools.ok(tool, json!({"process_id": id}));
        until("nothing is left", || (!pids.iter().any(|pid| alive(*pid))).then_some(()));
        // Five seconds of grace for stop_process, and a wide margin.
        assert!(begun.elapsed().as_secs() < 10, "{tool}: {:?}", begun.elapsed());
    }
}

#[test]
fn selecting_changes_nothing_about_the_process() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    assert_eq!(
        tools.ok("select_process", json!({"process_id": id})),
        json!({"outcome": "nobody_watching"})
    );
    tools.refused("not_found", "select_process", json!({"process_id": "p9"}));
    assert_eq!(tools.status(&id)["status"], "running");
}

#[test]
fn the_number_of_processes_is_limited() {
    let place = crate::support::Place::new();
    let limits = patterm_store::limits::Limits { processes: 2, ..Default::default() };
    let server = place.serve_with(limits);
    let mut tools = crate::support::tool_client::ToolClient::of(&server);
    tools.run(&["cat"]);
    let second = tools.run(&["cat"]);
    let message = tools.refused("limit", "spawn_process", json!({"argv": ["cat"]}));
    assert!(message.contains("2 processes"), "{message}");
    tools.close(&second);
    tools.run(&["cat"]);
}
