//! The server crashes, is replaced or is shut down, or a process is restarted: the TUI shows the
//! same.

use rustix::process::Signal;
use serde_json::Value;

use super::Screen;
use crate::processes::survival::moment;
use crate::support::tool_client::{long, until};
use crate::support::{Place, Rng, Running};

pub(super) fn server_pid(place: &Place) -> u32 {
    let listed: Value = serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
    u32::try_from(listed[0]["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn the_tui_waits_for_a_killed_server_and_shows_the_same() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    for round in 1..=3 {
        screen.line(&format!("echo before$(({round} + 1))"));
        screen.until(&format!("before{}", round + 1));
        let server = Running::of(server_pid(&place));
        server.signal(Signal::KILL);
        server.wait();
        // Typed while no server runs: it waits and arrives.
        screen.line(&format!("echo after$(({round} + 1))"));
        screen.until(&format!("after{}", round + 1));
    }
}

#[test]
fn the_tui_reconnects_to_an_upgraded_server() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    place.run(&["upgrade"]);
    screen.line("echo after$((1 + 1))");
    screen.until("after2");
}

#[test]
fn a_restarted_process_is_shown_again() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let id = place.run(&["run", "--", "sh", "-c", "echo life $$; read end; exit 7"]);
    let first = screen.until("life ");
    screen.press(&["Enter"]);
    screen.until("exit 7 · ctrl+b R restarts it");
    place.run(&["restart", id.trim()]);
    screen.until_it(|shown| shown.contains("life ") && shown != first && !shown.contains("exit 7"));
    screen.lead("x");
    screen.until("close sh and everything it started? y/n");
    screen.press(&["y"]);
    screen.until("Nothing is running in this project yet.");
}

#[test]
fn the_tui_exits_when_the_server_was_ended() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    place.run(&["kill"]);
    screen.until("the server has ended; `patterm` starts it again");
}

/// The TUI is killed while it starts, while it draws, while it is typed into: the program lives,
/// and the next TUI shows the same.
#[test]
fn the_next_tui_shows_the_same_after_a_kill() {
    let place = Place::new();
    let mut rng = Rng::new(17);
    place.run(&["run", "--", "sh", "-c", "seq 1 12; exec cat"]);
    let program = |place: &Place| {
        let listed: Value = serde_json::from_str(&place.run(&["ps", "--json"])).unwrap();
        (listed[0]["pid"].clone(), listed[0]["status"].clone())
    };
    let (before, server) = (program(&place), server_pid(&place));
    let mut screen = Screen::new(&place, 80, 24);
    screen.line(&format!("while :; do {}; stty sane; done", place.binary().display()));
    // Without the list of processes, which after a while shows that it is idle.
    let pane = |shown: &str| -> Vec<String> {
        shown.lines().filter_map(|line| Some(line.split_once('│')?.1.to_owned())).collect()
    };
    let shown = screen.until_it(|shown| shown.contains("12") && shown.contains("ctrl+b: keys"));
    assert_eq!(pane(&shown)[11], "12", "{shown}");
    let times = if long() { 60 } else { 30 };
    let mut last = None;
    for _ in 0..times {
        let pid =
            until("the next one", || screen.front("patterm").filter(|pid| Some(*pid) != last));
        moment(&mut rng);
        // Between two checks it may have been the shell's fork that only then became patterm.
        let Some(killed) = Running::find(pid) else { continue };
        killed.signal(Signal::KILL);
        killed.wait();
        last = Some(pid);
    }
    screen.until_it(|now| pane(now) == pane(&shown));
    assert_eq!(program(&place), before, "the same program, which runs");
    assert_eq!(server_pid(&place), server, "the same server");
}
