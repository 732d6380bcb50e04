//! Returning after everything was ended: the processes are offered, and one key restores them.

use super::Screen;
use crate::support::Place;

/// Two shells with input, after everything was ended.
fn ended(screen: &mut Screen<'_>, place: &Place) {
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("echo one$((1 + 1))");
    screen.until("one2");
    screen.lead("c");
    screen.until("2 ○ > sh-2");
    screen.line("echo two$((1 + 1))");
    screen.until("two2");
    place.run(&["kill"]);
    screen.until("the server has ended; `patterm` starts it again");
    screen.line("clear");
}

#[test]
fn processes_are_offered_and_enter_restores_them() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    ended(&mut screen, &place);
    screen.patterm("");
    let shown = screen.until("restore processes?");
    assert!(shown.contains("`patterm kill` ended everything just now"), "{shown}");
    assert!(shown.contains("[x] > sh ") && shown.contains("[x] > sh-2 "), "{shown}");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.contains("○ > sh ") && shown.contains("○ > sh-2"));
    screen.until_it(|shown| shown.contains("prompt$") && !shown.contains("restore processes?"));
    // Keys go to the visible shell, and no offer is left.
    screen.line("echo again$((1 + 1))");
    screen.until("again2");
    assert!(!place.run(&["ps"]).contains("running when everything was ended"));
}

#[test]
fn a_restore_can_be_postponed_and_a_process_left_out() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    ended(&mut screen, &place);
    screen.patterm("");
    screen.until("restore processes?");
    screen.press(&["Escape"]);
    screen.until_it(|shown| shown.contains("postponed;") && !shown.contains("restore processes?"));
    screen.lead(":");
    screen.until("› ");
    screen.type_in("restore");
    screen.until_it(|shown| !shown.contains("start an agent"));
    screen.press(&["Enter"]);
    screen.until("restore processes?");
    screen.press(&["Space"]);
    screen.until("[ ] > sh ");
    screen.press(&["y"]);
    screen.until_it(|shown| shown.contains("1 · > sh ") && shown.contains("2 ○ > sh-2"));
    screen.lead("d");
    screen.until("detached; everything keeps running");
    screen.line("clear");
    screen.patterm("");
    screen.until_it(|shown| shown.contains("ctrl+b: keys") && shown.contains("prompt$"));
    assert!(!screen.text().contains("restore"), "{}", screen.text());
}
