//! The verbs as a person uses them: what they print, how they exit.

use std::process::{Output, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::tool_client::until;
use crate::support::{Place, Running};

/// Runs a verb that must fail; returns its output.
#[track_caller]
fn fails(place: &Place, arguments: &[&str], code: i32) -> String {
    let Output { status, stdout, stderr } = place.patterm(arguments).output().unwrap();
    let message = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {message}");
    assert_eq!(String::from_utf8_lossy(&stdout), "", "{arguments:?}");
    message
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_readmes_commands_in_a_project_with_a_dev_server() {
    let place = Place::new();
    let write =
        |name: &str, text: &str| std::fs::write(place.path("project").join(name), text).unwrap();
    write("package.json", r#"{"name": "site", "scripts": {"dev": "node server.js"}}"#);
    write(
        "server.js",
        "const server = require('http').createServer((q, a) => a.end('hi'))
        server.listen(0, '127.0.0.1', () => console.log(
            'ready in 1 ms at http://localhost:' + server.address().port + '/'))
        setInterval(() => console.log('tick'), 20)",
    );
    assert_eq!(place.run(&["run", "--name", "dev", "--", "npm", "run", "dev"]), "p1\n");
    let line = place.run(&["wait", "dev", "ready in"]);
    assert!(line.starts_with("ready in 1 ms at http://localhost:"), "{line}");
    let ports = || json_of(&place.run(&["call", "get_process_ports", r#"{"process_id": "p1"}"#]));
    let before = ports();
    assert_eq!(before["ports"][0]["listening"], true);
    assert!(line.trim_end().ends_with(before["ports"][0]["url"].as_str().unwrap()));

    let mut follower = place.patterm(&["logs", "-f", "dev"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let listed = json_of(&place.run(&["ls", "--json"]));
    let own = listed.as_array().unwrap().iter().find(|entry| entry["key"] == place.project().key());
    let server = Running::of(own.unwrap()["pid"].as_u64().unwrap().try_into().unwrap());
    server.signal(Signal::KILL);
    server.wait();
    // A second read shows no change.
    let table = place.run(&["ps"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec!["ID", "STATUS", "ACTIVITY", "EXIT", "KIND", "NAME"],
            vec!["p1", "running", rows[1][2], "command", "dev"]
        ]
    );
    assert_eq!(ports(), before);
    place.run(&["wait", "p1", "tick"]);
    assert_eq!(place.run(&["stop", "dev"]), "stopped p1\n");
    // A follower of its output has seen the end of it.
    let mut followed = String::new();
    std::io::Read::read_to_string(&mut follower.stdout.take().unwrap(), &mut followed).unwrap();
    assert!(follower.wait().unwrap().success());
    assert_eq!(followed, place.run(&["logs", "dev"]));
    assert_eq!(place.run(&["close", "dev"]), "closed p1\n");
    assert_eq!(place.run(&["ps"]), "no processes; `patterm run -- COMMAND` starts one\n");
}

#[test]
fn logs_report_how_much_older_output_was_dropped() {
    let place = Place::new();
    place.run(&["serve", "--max-log-bytes", "1200000"]);
    place.run(&["run", "--", "sh", "-c", "echo first; seq 1 600000; echo last"]);
    place.run(&["wait", "p1", "^last$"]);
    let call =
        place.run(&["call", "get_process_output", r#"{"process_id": "p1", "mode": "stream"}"#]);
    let dropped = json_of(&call)["dropped"].as_u64().unwrap();
    assert!(dropped > 0, "{call}");
    let output = place.patterm(&["logs", "p1"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    let words = format!("patterm: {dropped} bytes of output before this are lost");
    assert!(message.starts_with(&words) && message.lines().count() == 1, "{message}");
    assert!(output.stdout.ends_with(b"last\n"));
    assert_eq!(json_of(&place.run(&["logs", "--json", "p1"]))["dropped"], dropped);
    place.run(&["run", "--", "cat"]);
    assert_eq!(json_of(&place.run(&["logs", "--json", "p2"])).get("dropped"), None);
}

#[test]
fn every_verb_about_a_process() {
    let place = Place::new();
    let started = json_of(&place.run(&["run", "--name", "echo", "--json", "--", "cat"]));
    assert_eq!(started, json!({"process_id": "p1", "name": "echo", "status": "running"}));
    place.run(&["send", "echo", "one line"]);
    assert_eq!(place.run(&["wait", "p1", "^one.*\\n?"]), "one line\n");
    // Once by the terminal's echo, and once by the program, which may be slow.
    until("echoed", || (place.run(&["logs", "p1"]).matches("one").count() == 2).then_some(()));
    place.run(&["send", "--no-enter", "ec", "two "]);
    place.run(&["send", "--paste", "p1", "pasted"]);
    place.run(&["wait", "p1", "^two pasted"]);
    until("echoed", || {
        (place.run(&["logs", "p1"]).matches("two pasted").count() == 2).then_some(())
    });
    assert_eq!(place.run(&["screen", "p1"]), "one line\none line\ntwo pasted\ntwo pasted\n");
    assert_eq!(place.run(&["logs", "p1"]), "one line\none line\ntwo pasted\ntwo pasted\n");
    assert_eq!(
        place.run(&["logs", "--raw", "p1"]),
        "one line\r\none line\r\ntwo pasted\r\ntwo pasted\r\n"
    );
    let screen = json_of(&place.run(&["screen", "--json", "p1"]));
    assert_eq!(screen["rows"][0], "one line");
    let found = place.run(&["search", "p1", "pasted", "--limit", "1"]);
    assert!(found.ends_with(": two pasted\n"), "{found}");
    let found = json_of(&place.run(&["search", "p1", "pasted", "--json"]));
    assert_eq!(found["total"], 2);
    let status = place.run(&["status", "echo"]);
    assert!(status.contains("status: running\n") && status.contains("argv: [\"cat\"]"), "{status}");
    assert_eq!(json_of(&place.run(&["status", "echo", "--json"]))["process_id"], "p1");
    let waited = json_of(&place.run(&["wait", "p1", "one", "--json"]));
    assert_eq!(waited["matched"], true);
    let listed = json_of(&place.run(&["ps", "--json"]));
    assert_eq!(listed[0]["name"], "echo");

    assert_eq!(place.run(&["restart", "echo"]), "restarted p1\n");
    place.run(&["key", "echo", "x", "enter"]);
    place.run(&["wait", "echo", "^x$"]);
    place.run(&["key", "echo", "ctrl+d"]);
    until("its end", || place.run(&["ps"]).contains("exited").then_some(()));
    let table = place.run(&["ps"]);
    assert!(table.contains("p1     exited              0     command   echo"), "{table}");

    let shell = place.run(&["shell"]);
    assert_eq!(shell, "p2\n");
    assert_eq!(place.run(&["stop", "p2", "--signal", "9"]), "stopped p2\n");
    assert_eq!(json_of(&place.run(&["status", "p2", "--json"]))["exit"], json!({"signal": 9}));
}

#[test]
fn failures_exit_1_with_the_reason_and_wrong_usage_exits_2() {
    let place = Place::new();
    place.run(&["run", "--name", "one", "--", "cat"]);
    place.run(&["run", "--name", "once", "--", "true"]);
    let message = fails(&place, &["status", "nobody"], 1);
    assert_eq!(
        message,
        "patterm: there is no process `nobody`; the processes are p1 (one), p2 (once)\n"
    );
    let message = fails(&place, &["logs", "on"], 1);
    assert_eq!(message, "patterm: `on` is ambiguous: p1 (one), p2 (once); use an id\n");
    let message = fails(&place, &["run", "--", "no-such-program"], 1);
    assert!(message.starts_with("patterm: there is no program `no-such-program`"), "{message}");
    let message = fails(&place, &["wait", "one", "never", "--timeout", "0.05"], 3);
    assert_eq!(message, "patterm: no match within 0.05 s\n");
    let message = fails(&place, &["wait", "once", "never"], 4);
    assert_eq!(message, "patterm: p2 ended before a line matched\n");
    let message = fails(&place, &["wait", "one", "a(b"], 2);
    assert!(message.contains("does not compile"), "{message}");
    assert_eq!(fails(&place, &["search", "one", "nothing"], 1), "patterm: no line matches\n");
    let message = fails(&place, &["stop", "once"], 1);
    assert!(message.contains("is not running"), "{message}");
    assert!(fails(&place, &["key", "one", "hyper+x"], 2).contains("hyper+x"));
    let message = fails(&place, &["call", "no_such_tool"], 1);
    assert!(message.contains("no_such_tool"), "{message}");
    assert!(fails(&place, &["call", "whoami", "{"], 2).contains("JSON"));
    assert!(fails(&place, &["call", "whoami", "[]"], 2).contains("object"));
    for arguments in [&["run"][..], &["run", "cat"], &["status"], &["key", "one"], &["wait", "one"]]
    {
        assert!(fails(&place, arguments, 2).starts_with("error: "), "{arguments:?}");
    }
}

#[test]
fn following_ends_with_the_process_and_misses_nothing() {
    let place = Place::new();
    let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    for (flag, ends) in [(None, expected.clone()), (Some("--raw"), expected.replace('\n', "\r\n"))]
    {
        let id = place.run(&["run", "--", "sh", "-c", "stty -echo; echo up; read x; seq 1 50000"]);
        let id = id.trim();
        place.run(&["wait", id, "up"]);
        let mut follower = place.patterm(&["logs", "-f", id]);
        let follower = follower.args(flag).stdout(Stdio::piped()).spawn().unwrap();
        place.run(&["send", id, ""]);
        let output = follower.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first.trim_end(), "up");
        assert!(rest == ends, "{} bytes of {}", rest.len(), ends.len());
    }
}

/// A verb does not wait for a pipe that was closed.
#[test]
fn following_ends_when_nobody_reads() {
    let place = Place::new();
    place.run(&["run", "--", "sh", "-c", "while :; do echo x; sleep 0.01; done"]);
    let mut follower = place.patterm(&["logs", "-f", "p1"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 2];
    std::io::Read::read_exact(&mut follower.stdout.take().unwrap(), &mut some).unwrap();
    assert!(follower.wait().unwrap().success());
}
