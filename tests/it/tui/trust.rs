//! A cloned repository with a malicious project file: the person sees all of it, and decides.

use std::path::PathBuf;

use rustix::event::{Timespec, poll};

use super::Screen;
use crate::support::Place;

/// The number of lines of its command: more than anybody would scroll through by accident.
const LINES: usize = 500;

fn write(place: &Place, extra: &str) {
    let lines: String = (1..=LINES).map(|n| format!("true line {n}.\n")).collect();
    let text = format!(
        "[processes.dev]\n\
         command = '''\ntouch marker\necho it runs\n{lines}cat\n'''\n\
         autostart = true\n\
         [processes.dev.environment]\n\
         \"A\\u001b[2J\\u001b[H\" = \"\\u202etsurt t\\u202c\"\n\
         [processes.other]\n\
         command = \"{} # patterm.toml is trusted \\u001b]52;c;aGk=\\u0007{extra}\"\n",
        "x".repeat(200)
    );
    std::fs::write(place.path("project/patterm.toml"), text).unwrap();
}

fn marker(place: &Place) -> PathBuf {
    place.path("project/marker")
}

#[test]
fn a_hostile_project_file_is_shown_completely_and_runs_nothing_before_it_is_trusted() {
    let place = Place::new();
    write(&place, "");
    let mut screen = Screen::new(&place, 80, 24);
    screen.patterm("");
    let mut shown = screen.until("page down for more");
    assert!(shown.starts_with("┌─ patterm.toml is not trusted ─"), "{shown}");
    assert!(shown.contains("process dev, started at once"), "{shown}");
    assert!(shown.contains("runs         sh -c 'touch marker"), "{shown}");
    // It cannot be trusted before all of it was shown.
    screen.type_in("t");
    screen.until("there is more below");
    let mut all = shown.clone();
    while !shown.contains("t trust exactly this") {
        let before = place_of(&shown);
        screen.press(&["NPage"]);
        shown = screen.until_it(|now| place_of(now) != before);
        all.push_str(&shown);
    }
    for n in 1..=LINES {
        assert!(all.contains(&format!("| true line {n}.")), "line {n}");
    }
    for part in [
        "with         A\\u{1b}[2J\\u{1b}[H=\\u{202e}tsurt t\\u{202c}",
        "process other",
        "\\u{1b}]52;c;aGk=\\u{7}'",
    ] {
        assert!(all.contains(part), "{part} in\n{shown}");
    }
    let rows = shown.lines().filter(|row| row.starts_with("│↪ xxx")).count();
    assert!(rows >= 2, "a long line is folded, with a mark of ours: {shown}");
    // If it is declined, that is reported and nothing runs.
    screen.press(&["Escape"]);
    screen.until("! patterm.toml not trusted (ctrl+b T)");
    screen.until("Nothing is running in this project yet.");
    assert!(!marker(&place).exists());

    screen.lead("T");
    screen.until("page down for more");
    // A change meanwhile is shown again; it is not what was reviewed.
    write(&place, " and more");
    screen.until("It changed while you were reading.");
    screen.press(&["End"]);
    screen.until_it(|shown| shown.contains("and more'") && shown.contains("t trust exactly"));
    assert!(!marker(&place).exists());
    trust(&mut screen);
    screen.until("$ dev");
    screen.lead("F1");
    screen.until("it runs");
    assert!(marker(&place).exists());

    write(&place, " and yet more");
    screen.until("patterm.toml has changed; the trusted version stays");
    screen.type_in("heard");
    screen.until_it(|shown| {
        shown.contains("heard") && shown.contains("! patterm.toml has changed (ctrl+b T)")
    });
}

/// Waits longer than keys are ignored, without pressing one.
fn look() {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 1, tv_nsec: 200_000_000 }));
}

/// Presses the key until it counts: a dialog that appears by itself ignores keys for a moment.
fn trust(screen: &mut Screen<'_>) {
    let is_open = |shown: &str| shown.contains("─ patterm.toml is not trusted ─");
    let only_just = |shown: &str| shown.contains("this has only just appeared");
    while is_open(&screen.until_it(|shown| !is_open(shown) || only_just(shown) || asks(shown))) {
        look();
        screen.type_in("t");
    }
}

fn asks(shown: &str) -> bool {
    shown.contains("t trust exactly this")
}

/// The visible rows of the sheet.
fn place_of(shown: &str) -> Option<String> {
    let row = shown.lines().find(|row| row.starts_with('└'))?;
    Some(row.trim_matches(['└', '─', '┘', ' ']).to_owned())
}

#[test]
fn a_project_file_with_errors_shows_them_and_is_trusted_once_fixed() {
    let place = Place::new();
    let file = place.path("project/patterm.toml");
    std::fs::write(&file, "[processes.\"a\\u001b[2J\"]\ncommand = \"cat\"\n").unwrap();
    let mut screen = Screen::new(&place, 80, 24);
    screen.patterm("");
    screen.until("! patterm.toml has errors (ctrl+b T)");
    screen.lead("T");
    let shown = screen.until("a\\u{1b}[2J");
    assert!(shown.contains("It does not take effect until these are fixed"), "{shown}");
    let fixed = "[processes.a]\ncommand = \"cat\"\nautostart = true\ndirectory = \"nowhere\"\n";
    std::fs::write(&file, fixed).unwrap();
    screen.until("t trust exactly this");
    trust(&mut screen);
    // It cannot run, and its pane says why.
    screen.until_it(|shown| shown.contains("$ a") && shown.contains("has no output: the working"));
}
