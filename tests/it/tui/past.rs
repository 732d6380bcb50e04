//! Back in time: one pane and all panes, while the programs go on.

use super::Screen;
use crate::support::Place;

/// Shows each line that it reads on an empty screen, with one write, and each in a moment of its own.
const PARROT: &str = "stty -echo; sleep 0.1; echo ready; while read line; do sleep 0.1; printf '\\033[2J\\033[Hnow %s\\n' \"$line\"; done";

fn run(place: &Place, name: &str) {
    place.run(&["run", "--name", name, "--", "sh", "-c", PARROT]);
    place.run(&["wait", name, "ready"]);
}

fn say(place: &Place, screen: &mut Screen<'_>, name: &str, word: &str) {
    place.run(&["send", name, word]);
    screen.until(&format!("now {word}"));
}

#[test]
fn a_pane_goes_back_and_forth_while_its_program_goes_on() {
    let place = Place::new();
    run(&place, "api");
    let mut screen = Screen::with_patterm(&place, 120, 30);
    screen.until("ready");
    say(&place, &mut screen, "api", "one");
    say(&place, &mut screen, "api", "two");
    screen.lead("h");
    screen.until_it(|shown| shown.contains("now two") && shown.contains("esc now"));
    screen.type_in(",");
    screen.until_it(|shown| shown.contains("now one") && shown.contains(" ago"));
    screen.type_in(",");
    screen.until("ready");
    screen.type_in(".");
    screen.until("now one");
    // It goes on, and gets nothing of what is typed here.
    place.run(&["send", "api", "three"]);
    place.run(&["wait", "api", "now three"]);
    screen.type_in("zz");
    screen.press(&["Enter"]);
    screen.type_in("/TWO");
    screen.until("search back: TWO");
    screen.press(&["Enter"]);
    let shown = screen.until("no line with `TWO` before this");
    assert!(shown.contains("now one") && !shown.contains("now three"), "{shown}");
    screen.type_in("N");
    screen.until("no line with `TWO` after this");
    screen.type_in("/two");
    screen.until("search back: two");
    screen.press(&["Enter"]);
    screen.until("no line with `two` before this");
    screen.type_in("N");
    screen.until("api: now two");
    // A time, and the states of the process.
    screen.type_in("t1d");
    screen.until("as 10m): 1d");
    screen.press(&["Enter"]);
    screen.until_it(|shown| !shown.contains("now two") && shown.contains('●'));
    screen.type_in("GS");
    screen.until("no change of a state after this");
    screen.type_in("s");
    screen.until("api: process started");
    screen.type_in("tsoon");
    screen.press(&["Enter"]);
    screen.until("it is not a time");
    screen.press(&["Escape"]);
    let shown = screen.until_it(|shown| shown.contains("now three") && !shown.contains("esc now"));
    assert!(!shown.contains("zz"), "{shown}");
    say(&place, &mut screen, "api", "four");
}

#[test]
fn all_panes_show_the_same_moment_with_their_sizes_and_runs_of_then() {
    let place = Place::new();
    run(&place, "api");
    let mut screen = Screen::with_patterm(&place, 100, 30);
    screen.until("ready");
    say(&place, &mut screen, "api", "narrow");
    say(&place, &mut screen, "api", "again");
    // The size of a pane that is alone, and then half of it.
    run(&place, "late");
    screen.lead("|");
    screen.until("new shell");
    screen.type_in("late");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.contains("now again") && shown.contains("ready"));
    say(&place, &mut screen, "late", "beside");
    place.run(&["restart", "api"]);
    screen.until_it(|shown| !shown.contains("now again"));
    screen.lead("H");
    screen.until_it(|shown| shown.contains("all panes") && shown.contains("now beside"));
    screen.type_in(",");
    // Its run before the restart.
    let shown = screen.until("now again");
    assert!(shown.contains("now beside"), "{shown}");
    screen.type_in(",");
    screen.until_it(|shown| shown.contains("now again") && !shown.contains("now beside"));
    screen.type_in("/narrow");
    screen.until("search back: narrow");
    screen.press(&["Enter"]);
    let shown = screen.until_it(|shown| {
        shown.contains("now narrow") && shown.contains("did not") && shown.contains("it was 69×29")
    });
    assert!(shown.contains("api: now narrow"), "{shown}");
    // Only this pane, and now again.
    screen.press(&["Tab"]);
    screen.until_it(|shown| shown.contains("did not") && !shown.contains("now narrow"));
    screen.type_in("q");
    screen.until_it(|shown| shown.contains("now beside") && shown.contains("ctrl+b: keys"));
}
