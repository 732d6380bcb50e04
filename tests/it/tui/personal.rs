//! The user's keys and colours, the saved layout, and the terminal's title.

use super::Screen;
use crate::support::Place;

/// Writes the settings as an editor does: a new file replaces the old one.
fn set(place: &Place, text: &str) {
    let folder = place.path("home").join(".config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("new"), text).unwrap();
    std::fs::rename(folder.join("new"), folder.join("tui.toml")).unwrap();
}

#[test]
fn keys_and_colours_change_when_the_file_is_saved() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    set(&place, "leader = \"ctrl+a\"\n[keys]\nhelp = \"h\"\n[theme]\nbar = { background = 52 }\n");
    screen.until("ctrl+a: keys");
    assert!(screen.styled().contains("48;5;52m"), "{:?}", screen.styled());
    screen.press(&["C-a"]);
    let shown = screen.until("ctrl+a, then");
    assert!(shown.contains("h           help") && !shown.contains("ctrl+b"), "{shown}");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("ctrl+a, then"));
    set(&place, "leader = \"x\"\n");
    screen.until("✗ tui.toml:1:10: programs could no longer get `x`");
    screen.line("echo still$((1 + 1))");
    screen.until("still2");
    screen.until("✗ tui.toml");
    screen.press(&["C-a", "h"]);
    screen.until("Keys go to the pane, except after ctrl+a:");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("Keys go to the pane"));
    std::fs::remove_file(place.path("home").join(".config/patterm/tui.toml")).unwrap();
    screen.until("tui.toml is in effect");
    screen.lead("d");
    screen.until("detached; everything keeps running");
}

#[test]
fn the_layout_of_the_panes_is_restored() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 120, 30);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.lead("|");
    screen.until("new shell");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.matches("prompt$").count() >= 2 && shown.contains("sh-2"));
    screen.line("echo right$((1 + 1))");
    screen.until("right2");
    screen.lead("b");
    screen.lead("d");
    screen.until("detached; everything keeps running");
    screen.line("clear");
    screen.patterm("");
    let both = |shown: &str| {
        shown.contains("─ sh ") && shown.contains("─ sh-2 ") && shown.contains("right2")
    };
    let shown = screen.until_it(both);
    assert!(!shown.contains("1 ○"), "the tree stays hidden\n{shown}");
    // Closing the terminal also detaches; the next one is smaller.
    let patterm = crate::support::Running::of(screen.front_pid("patterm"));
    drop(screen);
    patterm.wait();
    place.run(&["close", "sh"]);
    let mut screen = Screen::with_patterm(&place, 60, 12);
    screen.until("right2");
    screen.until("2 sh-2");
    screen.lead("d");
    screen.until("detached; everything keeps running");
    std::fs::write(place.state().file("layout.json"), "{garbage").unwrap();
    screen.line("clear");
    screen.patterm("");
    screen.until("2 sh-2");
}

#[test]
fn the_title_follows_the_focus_and_is_restored() {
    let place = Place::new();
    let mut screen = Screen::new(&place, 80, 24);
    screen.line("printf '\\033]2;mine\\007'");
    screen.line("echo named$((1 + 1))");
    screen.until("named2");
    assert_eq!(screen.title(), "mine");
    screen.patterm("");
    screen.until("Nothing is running in this project yet.");
    assert_eq!(screen.title(), "patterm – project");
    screen.press(&["c"]);
    screen.until("prompt$");
    assert_eq!(screen.title(), "sh – project");
    screen.lead("d");
    screen.until("detached; everything keeps running");
    assert_eq!(screen.title(), "mine");
}
