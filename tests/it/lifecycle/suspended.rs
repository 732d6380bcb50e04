//! Ending, replacing and starting a server that is suspended.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use rustix::process::Signal;

use crate::support::tool_client::alive;
use crate::support::{Place, Spawned};

/// A suspended server with a program, and the program's process.
fn suspended(place: &Place) -> (Spawned, u32) {
    let server = place.serve();
    let id = place.run(&["run", "--", "sh", "-c", "echo pid $$; exec cat"]);
    let printed = place.run(&["wait", id.trim(), "^pid [0-9]+"]);
    let pid = printed.trim().trim_start_matches("pid ").parse().unwrap();
    server.process().signal(Signal::STOP);
    (server, pid)
}

/// Runs a verb that fails, and returns its errors.
#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = place.patterm(arguments).output().unwrap();
    let errors = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}: {errors}");
    errors
}

#[test]
fn kill_says_that_the_server_is_suspended_and_ends_it_once_it_is_resumed() {
    let place = Place::new();
    let (server, program) = suspended(&place);
    let mut kill = place.patterm(&["kill"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(kill.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("the server does not answer, still waiting"), "{line}");
    assert!(line.contains(&format!("`kill -CONT {}`", server.pid())), "{line}");
    let process = server.process();
    process.signal(Signal::CONT);
    assert!(kill.wait().unwrap().success());
    process.wait();
    assert!(!alive(program));
}

#[test]
fn kill_now_ends_a_suspended_server_and_its_programs() {
    let place = Place::new();
    let (server, program) = suspended(&place);
    let process = server.process();
    let printed = place.run(&["kill", "--now"]);
    assert!(printed.contains("ended the server of "), "{printed}");
    process.wait();
    assert!(!alive(program));
    assert_eq!(place.run(&["ls", "--json"]).trim(), "[]");
}

#[test]
fn upgrade_and_serve_say_that_a_suspended_server_does_not_answer() {
    let place = Place::new();
    let (server, program) = suspended(&place);
    for (verb, what) in [("upgrade", "cannot end the server"), ("serve", "is already running")] {
        let errors = fails(&place, &[verb]);
        let (waiting, failed) = errors.split_once('\n').unwrap();
        assert!(waiting.contains("still waiting"), "{errors}");
        assert!(failed.contains(what) && failed.contains("does not answer"), "{errors}");
        assert!(failed.contains(&format!("`kill -CONT {}`", server.pid())), "{errors}");
    }
    server.process().signal(Signal::CONT);
    assert!(place.run(&["serve"]).contains("serving"));
    assert!(alive(program));
}
