//! What all verbs have in common: the folder they work in, several ids, exit codes, and that reading starts
//! nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::fails;
use crate::support::Place;

/// The exit code of a verb.
#[track_caller]
fn code(place: &Place, arguments: &[&str]) -> i32 {
    place.patterm(arguments).stdin(Stdio::null()).output().unwrap().status.code().unwrap()
}

#[test]
fn a_folder_can_be_given_to_every_verb() {
    let place = Place::new();
    let elsewhere = place.folder("elsewhere");
    let project = place.path("project").to_str().unwrap().to_owned();
    let mut command = place.patterm(&["-C", &project, "run", "--name", "there", "--", "cat"]);
    assert!(command.current_dir(&elsewhere).output().unwrap().status.success());
    for arguments in [["-C", &project, "ps"], ["ps", "-C", &project]] {
        let output = place.patterm(&arguments).current_dir(&elsewhere).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("there"), "{output:?}");
    }
    let message = fails(&place, &["-C", "nowhere", "ps"]);
    assert!(
        message.starts_with("patterm: cannot change to the folder nowhere (-C): "),
        "{message}"
    );
}

/// All files below a folder that are not output, with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true if path.ends_with("output") => {}
            true => all.extend(files(&path)),
            false => drop(all.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all
}

#[test]
fn verbs_that_only_read_start_no_server_and_answer_from_disk() {
    let place = Place::new();
    let id = place.run(&["run", "--name", "web", "--", "sh", "-c", "echo ready; cat"]);
    place.run(&["wait", id.trim(), "ready"]);
    let mut write = place.patterm(&["pad", "plan", "--write"]);
    let mut child = write.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"first this").unwrap();
    assert!(child.wait().unwrap().success());
    place.run(&["kill", "--now"]);
    let before = files(&place.path("state"));
    let ps = place.run(&["ps"]);
    assert!(ps.contains("web") && ps.contains("`patterm restore` restarts it"), "{ps}");
    assert!(ps.contains("no server is running for this project"), "{ps}");
    assert!(place.run(&["status", "web"]).contains("process_id: p1"));
    assert_eq!(place.run(&["logs", "web"]), "ready\n");
    assert_eq!(place.run(&["screen", "web"]), "ready\n");
    assert_eq!(place.run(&["search", "web", "rea"]), "1: ready\n");
    assert_eq!(place.run(&["wait", "web", "ready"]), "ready\n");
    assert_eq!(code(&place, &["wait", "web", "never"]), 4);
    assert_eq!(place.run(&["pad", "plan"]), "first this");
    assert!(place.run(&["pads"]).contains("plan"));
    let others = [
        &["timers"][..],
        &["messages"],
        &["servers"],
        &["hooks"],
        &["agents"],
        &["token", "ls"],
        &["doctor"],
        &["digest"],
        &["call", "list_processes"],
    ];
    for arguments in others {
        place.run(arguments);
    }
    // What needs a running process does not start a server to say that there is none.
    for arguments in [&["stop", "web"][..], &["send", "web", "x"], &["key", "web", "enter"]] {
        let message = fails(&place, arguments);
        assert!(message.contains("p1 (web) is not running; use `patterm start`"), "{message}");
    }
    assert!(place.run(&["down"]).starts_with("nothing to stop: no server is running"));
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "no server was started");
    assert_eq!(files(&place.path("state")), before, "nothing was written");
    // A project that was never used leaves no trace either.
    let unused = place.folder("unused");
    let output = place.patterm(&["ps", "--json"]).current_dir(&unused).output().unwrap();
    assert_eq!(output.stdout, b"[]\n");
    assert_eq!(files(&place.path("state")), before);
}

#[test]
fn verbs_that_act_take_several_ids() {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        place.run(&["run", "--name", name, "--", "cat"]);
    }
    assert_eq!(place.run(&["send", "one", "two", "hello"]), "typed into p1\ntyped into p2\n");
    for name in ["one", "two"] {
        place.run(&["wait", name, "hello"]);
    }
    let pressed = place.run(&["key", "one", "enter", "--also", "two"]);
    assert_eq!(pressed, "pressed enter in p1\npressed enter in p2\n");
    // A name that is unknown is found before anything is done; the same id twice counts once.
    assert!(fails(&place, &["stop", "one", "nope"]).contains("there is no process `nope`"));
    assert_eq!(place.run(&["stop", "one", "p1", "two"]), "stopped p1\nstopped p2\n");
    // What fails for one does not keep the others from their turn.
    let message = fails(&place, &["stop", "one", "three"]);
    assert!(
        message.contains("patterm: p1: p1 (one) is not running; use `patterm start`"),
        "{message}"
    );
    assert!(message.ends_with("patterm: 1 of 2 failed\n"), "{message}");
    assert_eq!(place.run(&["start", "one", "two"]), "started p1\nstarted p2\n");
    assert!(fails(&place, &["start", "one"]).contains("already"), "it runs");
    let restarted: Value =
        serde_json::from_str(&place.run(&["restart", "--json", "one", "three"])).unwrap();
    assert_eq!(restarted.as_array().unwrap().len(), 2);
    place.run(&["stop", "one", "two"]);
    assert_eq!(place.run(&["close", "--exited"]), "closed p1\nclosed p2\n");
    assert_eq!(place.run(&["close", "--exited"]), "nothing to close: no process has ended\n");
    let left: Value = serde_json::from_str(&place.run(&["ps", "--json"])).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1);
}

#[test]
fn the_exit_code_of_wait_says_how_it_ended() {
    let place = Place::new();
    place.run(&["run", "--name", "web", "--", "sh", "-c", "echo ready; cat"]);
    assert_eq!(code(&place, &["wait", "web", "ready"]), 0);
    assert_eq!(code(&place, &["wait", "web", "never", "--timeout", "0.1"]), 3);
    place.run(&["stop", "web"]);
    assert_eq!(code(&place, &["wait", "web", "never"]), 4);
    assert_eq!(code(&place, &["wait", "nope", "x"]), 1);
    for arguments in
        [&["wait", "web", "a(b"][..], &["search", "web", "a(b"], &["wait", "web", "a\nb"]]
    {
        let output = place.patterm(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: invalid value "));
    }
    assert!(place.run(&["wait", "--help"]).contains("3 no line matched in time"));
}

/// What a real bash offers for a line; it must be installed.
#[track_caller]
fn bash_completes(place: &Place, words: &[&str]) -> Vec<String> {
    let script = "source <(\"$0\" completions bash); COMP_WORDS=(\"$@\"); \
        COMP_CWORD=$(($# - 1)); COMP_WORDS[0]=$0; _patterm; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = place.command(Path::new("bash"));
    let output = command.args(["-c", script]).arg(place.binary()).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn completions_offer_what_there_is_and_start_nothing() {
    let place = Place::new();
    assert_eq!(bash_completes(&place, &["patterm", "rest"]), ["restart", "restore"]);
    assert_eq!(bash_completes(&place, &["patterm", "status", ""]), [""; 0]);
    assert!(bash_completes(&place, &["patterm", "agent", "cl"]).contains(&"claude".to_owned()));
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "no server was started");
    let declared = "[processes.api]\ncommand = \"cat\"\n[groups]\nall = [\"api\"]\n\
        [servers.search]\ncommand = [\"search-mcp\"]\n\
        [[hooks]]\nname = \"phone\"\non = [\"agent.idle\"]\nrun = [\"true\"]\n";
    std::fs::write(place.path("project/patterm.toml"), declared).unwrap();
    place.run(&["trust", "--yes"]);
    place.run(&["run", "--name", "two words", "--", "cat"]);
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "x"}"#]);
    for running in [true, false] {
        if !running {
            place.run(&["kill", "--now"]);
        }
        let complete = |words: &[&str]| bash_completes(&place, words);
        assert_eq!(complete(&["patterm", "stop", ""]), ["p1", "api", "p2", "two\\ words"]);
        assert_eq!(complete(&["patterm", "stop", "p1", "tw"]), ["two\\ words"]);
        assert_eq!(complete(&["patterm", "up", ""]), ["api", "all"]);
        assert_eq!(complete(&["patterm", "pad", ""]), ["plan"]);
        assert_eq!(complete(&["patterm", "servers", "restart", ""]), ["search"]);
        assert_eq!(complete(&["patterm", "hooks", "test", ""]), ["phone"]);
    }
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "no server was started");
}

#[test]
fn a_server_that_hangs_is_reported_and_the_verb_gives_up() {
    let place = Place::new();
    let server = place.serve();
    let process = server.process();
    process.signal(rustix::process::Signal::STOP);
    let began = std::time::Instant::now();
    let output = place.patterm(&["ps"]).output().unwrap();
    let took = began.elapsed();
    let [ls, doctor] = [&["ls"][..], &["doctor"]].map(|verb| {
        let output = place.patterm(verb).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    });
    process.signal(rustix::process::Signal::CONT);
    let resume = format!("`kill -CONT {}` resumes it", server.pid());
    assert!(ls.1.contains("! the server does not answer: ") && ls.1.contains(&resume), "{ls:?}");
    assert_eq!(doctor.0, Some(1));
    let broken: Vec<_> = doctor.1.lines().filter(|line| line.starts_with("broken")).collect();
    let expected =
        format!("broken  server         running, pid {}, but it does not answer", server.pid());
    assert_eq!(broken, [expected], "{}", doctor.1);
    assert!(doctor.1.contains(&resume), "{}", doctor.1);
    let message = String::from_utf8(output.stderr).unwrap();
    let advice = format!("it is suspended (pid {0}); `kill -CONT {0}` resumes it\n", server.pid());
    let lines = [
        format!("patterm: the server does not answer, still waiting: {advice}"),
        format!("patterm: the server does not answer: {advice}"),
    ];
    assert_eq!((output.status.code(), message), (Some(1), lines.concat()));
    assert!((10..30).contains(&took.as_secs()), "{took:?}");
    // A call that takes long does not mean that the server hangs. On a busy machine it may look so for a while, which
    // is reported on standard error.
    place.run(&["run", "--name", "slow", "--", "sh", "-c", "sleep 4; echo late; cat"]);
    let output = place.patterm(&["wait", "slow", "late"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"late\n".to_vec()));
}
