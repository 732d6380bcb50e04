//! A server that does not answer: the TUI says so, keeps what is typed, and can be left.

use rustix::process::Signal;

use super::Screen;
use super::survival::server_pid;
use crate::support::{Place, Running};

const HUNG: &str = "The server does not answer";

/// A shell whose server was suspended; a key has been typed since.
fn suspended(place: &Place) -> (Screen<'_>, Running, u32) {
    let (mut screen, server, pid) = suspended_at_rest(place);
    screen.type_in("echo");
    (screen, server, pid)
}

/// A shell whose server was suspended; nothing has happened since.
fn suspended_at_rest(place: &Place) -> (Screen<'_>, Running, u32) {
    let mut screen = Screen::with_patterm(place, 160, 40);
    screen.press(&["c"]);
    screen.until("prompt$");
    let pid = server_pid(place);
    let server = Running::of(pid);
    server.signal(Signal::STOP);
    (screen, server, pid)
}

#[test]
fn a_server_that_hangs_while_nothing_happens_is_reported_without_a_key() {
    let place = Place::new();
    let (mut screen, server, _) = suspended_at_rest(&place);
    screen.until(HUNG);
    server.signal(Signal::CONT);
    screen.until_it(|shown| !shown.contains(HUNG));
    // And again, after it has answered.
    server.signal(Signal::STOP);
    screen.until(HUNG);
    server.signal(Signal::CONT);
    screen.until_it(|shown| !shown.contains(HUNG));
}

#[test]
fn a_server_that_hangs_while_another_window_has_the_focus_is_reported_when_the_focus_returns() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 160, 40);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.type_in("\x1b[O");
    let server = Running::of(server_pid(&place));
    server.signal(Signal::STOP);
    screen.type_in("\x1b[I");
    screen.until(HUNG);
    server.signal(Signal::CONT);
    screen.until_it(|shown| !shown.contains(HUNG));
}

#[test]
fn a_suspended_server_is_reported_until_it_answers_and_no_key_is_lost() {
    let place = Place::new();
    let (mut screen, server, pid) = suspended(&place);
    let shown = screen.until(HUNG);
    let advice = format!("it is suspended (pid {pid}); `kill -CONT {pid}` resumes it");
    assert!(shown.contains(&advice) && shown.contains("ctrl+b d leaves"), "{shown}");
    screen.line(" kept$((2 + 2))");
    server.signal(Signal::CONT);
    screen.until_it(|shown| shown.contains("kept4") && !shown.contains(HUNG));
    screen.line("echo after$((3 + 3))");
    screen.until("after6");
}

#[test]
fn what_was_typed_meanwhile_reaches_the_next_server_if_the_hung_one_is_killed() {
    let place = Place::new();
    let (mut screen, server, _) = suspended(&place);
    screen.until(HUNG);
    screen.press(&["C-u"]);
    screen.line("echo later$((4 + 4))");
    server.signal(Signal::KILL);
    server.wait();
    screen.until_it(|shown| shown.contains("later8") && !shown.contains(HUNG));
}

#[test]
fn the_tui_of_a_suspended_server_can_be_left() {
    let place = Place::new();
    let (mut screen, server, _) = suspended(&place);
    screen.until(HUNG);
    screen.lead("d");
    screen.until("detached; everything keeps running");
    server.signal(Signal::CONT);
    assert!(place.run(&["ps"]).contains("running"));
}
