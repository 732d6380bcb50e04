//! `patterm replay` on a terminal.

use super::screen::Screen;
use crate::processes::survival::desk_of;
use crate::support::Place;

#[test]
fn a_replay_shows_it_again_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let (mut tools, _) = desk_of(&place);
    let id = tools
        .sh("echo first-moment; read go; echo second-moment; read go; echo third-moment; exec cat");
    tools.wait(&id, "first-moment");
    tools.line(&id, "go");
    tools.wait(&id, "second-moment");
    tools.line(&id, "go");
    tools.wait(&id, "third-moment");
    let mut terminal = Screen::new(&place, 100, 20);
    terminal.patterm(&format!("replay {id} --speed 100"));
    terminal.until("third-moment");
    terminal.until(" end 100x");
    terminal.press(&["0"]);
    terminal.until("first-moment");
    terminal.until(" end 100x");
    terminal.press(&["q"]);
    terminal.until("prompt$");
    assert!(!terminal.text().contains("first-moment"));
}
