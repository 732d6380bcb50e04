//! Leaving the TUI: by key, by closing the terminal, by a signal; and returning.

use rustix::process::Signal;

use super::Screen;
use crate::support::{Place, Running};

#[test]
fn detaching_leaves_everything_running_and_restores_the_terminal() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.line("stty -g > before");
    screen.patterm("");
    screen.until("Nothing is running in this project yet.");
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("echo kept$((1 + 1))");
    screen.until("kept2");
    screen.lead("d");
    screen.until("detached; everything keeps running, and `patterm` attaches again");
    screen.line("stty -g > after; echo told$((1 + 1))");
    screen.until("told2");
    let read = |name: &str| std::fs::read_to_string(place.path("project").join(name)).unwrap();
    assert_eq!(read("before"), read("after"));
    assert!(place.run(&["ps"]).contains("running"));
    place.run(&["run", "--name", "later", "--", "cat"]);
    screen.line("clear");
    screen.patterm("");
    screen.until("kept2");
    screen.lead("d");
    screen.until("detached; everything keeps running");
    screen.line("clear");
    screen.patterm("attach later");
    screen.until("2 later");
}

#[test]
fn closing_the_terminal_detaches() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("echo kept$((1 + 1))");
    screen.until("kept2");
    let patterm = Running::of(screen.front_pid("patterm"));
    drop(screen);
    patterm.wait();
    let mut screen = Screen::with_patterm(&place, 120, 40);
    screen.until("kept2");
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_restored() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let place = Place::new();
        let mut screen = Screen::new(&place, 80, 24);
        screen.line("stty -g > before");
        screen.patterm("");
        screen.until("Nothing is running in this project yet.");
        Running::of(screen.front_pid("patterm")).signal(signal);
        screen.until_it(|shown| !shown.contains("Nothing is running"));
        screen.line("stty -g > after; echo told$((1 + 1))");
        screen.until("told2");
        let read = |name: &str| std::fs::read_to_string(place.path("project").join(name)).unwrap();
        assert_eq!(read("before"), read("after"));
    }
}

#[test]
fn a_crash_restores_the_terminal() {
    for signal in [Signal::ABORT, Signal::SEGV, Signal::BUS] {
        for verb in ["", "attach --raw p1"] {
            let place = Place::new();
            place.run(&["run", "--", "sh", "-c", "printf 'lo%s\\n' ok; exec cat"]);
            let mut screen = Screen::new(&place, 80, 24);
            screen.line("ulimit -c 0; stty -g > before");
            screen.patterm(verb);
            screen.until("look");
            assert!(screen.is_alternate());
            Running::of(screen.front_pid("patterm")).signal(signal);
            screen.until_it(|shown| !shown.contains("look"));
            screen.line("stty -g > after; echo told$((1 + 1))");
            screen.until("told2");
            assert!(!screen.is_alternate(), "{signal:?} {verb}");
            let read =
                |name: &str| std::fs::read_to_string(place.path("project").join(name)).unwrap();
            assert_eq!(read("before"), read("after"), "{signal:?} {verb}");
        }
    }
}

#[test]
fn a_terminal_left_raw_by_a_killed_tui_is_fixed_by_the_next() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.patterm("; stty raw -echo; clear; echo so$((1 + 1))");
    screen.until("Nothing is running in this project yet.");
    Running::of(screen.front_pid("patterm")).signal(Signal::KILL);
    screen.until("so2");
    // Enter does not end a line there.
    screen.type_in(&place.binary().display().to_string());
    screen.press(&["C-j"]);
    screen.until("Nothing is running in this project yet.");
    screen.press(&["d"]);
    screen.until("detached; everything keeps running");
    screen.line("echo told$((1 + 1))");
    screen.until("told2");
}

#[test]
fn a_panic_restores_the_terminal_and_is_reported() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.line("stty -g > before; export PATTERM_BREAK=1");
    screen.patterm("; stty -g > after; echo told$((1 + 1))");
    let shown = screen.until("told2");
    assert!(shown.contains("the TUI crashed, which is a bug in patterm"), "{shown}");
    assert!(shown.contains("asked to break"), "{shown}");
    let read = |name: &str| std::fs::read_to_string(place.path("project").join(name)).unwrap();
    assert_eq!(read("before"), read("after"));
}

#[test]
fn a_terminal_without_cursor_positioning_is_pointed_to_the_verbs() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.line("export TERM=dumb");
    screen.patterm("; echo code $?");
    let shown = screen.until("code 1");
    assert!(shown.contains("this terminal cannot show the project"), "{shown}");
}

#[test]
fn without_colours_it_is_equally_usable() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.line("export NO_COLOR=1");
    screen.patterm("");
    screen.until("Nothing is running in this project yet.");
    screen.press(&["C-b"]);
    screen.until("ctrl+b, then");
    let coloured = |look: &str| look.split(';').any(|number| matches!(number.len(), 2 | 3));
    let styled = screen.styled();
    let looks = styled.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m'));
    for (look, _) in looks {
        assert!(!coloured(look) || look == "39" || look == "49", "{look}");
    }
}

#[test]
fn without_a_terminal_it_prints_where_the_server_is() {
    let place = Place::new();
    let printed = place.run(&[]);
    assert!(
        printed.contains("server   pid ") && printed.contains("patterm mcp-stdio"),
        "{printed}"
    );
}
