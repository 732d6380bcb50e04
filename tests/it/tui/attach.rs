//! A program that is started with `--attach` is shown at once.

use super::Screen;
use crate::support::Place;

#[test]
fn a_program_started_with_attach_is_shown_and_keeps_running_after_a_detach() {
    let place = Place::new();
    place.run(&["run", "--name", "other", "--", "cat"]);
    let mut screen = Screen::new(&place, 80, 24);
    screen.patterm("run --attach --name mine -- sh -c 'echo here it is; cat'");
    screen.until_it(|shown| shown.contains("here it is") && shown.contains("ctrl+b: keys"));
    screen.lead("d");
    screen.until("detached; everything keeps running");
    screen.line("clear");
    screen.patterm("shell --attach");
    screen.until_it(|shown| shown.contains("3 ○ > sh") && shown.contains("3 sh"));
    let listed = place.run(&["ps"]);
    assert_eq!(listed.matches("running").count(), 3, "{listed}");
}
