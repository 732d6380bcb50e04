//! Commands of the project file that call patterm: they act as the process that they run beside.

use super::write;
use crate::support::Place;

#[test]
fn check_and_stop_commands_may_call_patterm() {
    let place = Place::new();
    let patterm = place.binary().display().to_string();
    // It is ready once it was sent a line, and writes down the next one.
    let file = format!(
        "[processes.web]\ncommand = 'read line; echo \"$line\"; read line; echo \"$line\" >got'\n\
         ready = {{ command = \"{patterm} send web hello && {patterm} logs web | grep hello\" }}\n\
         stop = {{ command = '{patterm} send web bye', grace_seconds = 60 }}\n"
    );
    write(&place, &file);
    place.run(&["trust", "--yes"]);
    place.run(&["up", "--wait"]);
    place.run(&["stop", "web"]);
    assert_eq!(std::fs::read_to_string(place.path("project/got")).unwrap(), "bye\n");
}

#[test]
fn a_check_command_may_not_do_what_only_a_person_may() {
    let place = Place::new();
    let patterm = place.binary().display().to_string();
    let file = format!(
        "[processes.web]\ncommand = 'cat'\n\
         ready = {{ command = '{patterm} token new stolen', timeout_seconds = 3 }}\n"
    );
    write(&place, &file);
    place.run(&["trust", "--yes"]);
    let output = place.patterm(&["up", "--wait"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("only a person may"), "{printed}");
    assert!(!place.run(&["token", "ls"]).contains("stolen"));
}
