//! The logs of all processes as a view.

use rustix::process::Signal;

use super::Screen;
use crate::support::Place;
use crate::support::Running;

/// Prints each line it reads.
const PARROT: &str = "stty -echo; echo ready; while read line; do echo \"said $line\"; done";

fn run(place: &Place, name: &str) {
    place.run(&["run", "--name", name, "--", "sh", "-c", PARROT]);
    place.run(&["wait", name, "ready"]);
}

fn server(place: &Place) -> Running {
    let listed = place.run(&["ls", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    Running::of(listed[0]["pid"].as_u64().unwrap().try_into().unwrap())
}

#[test]
fn all_logs_are_followed_filtered_and_searched() {
    let place = Place::new();
    run(&place, "api");
    run(&place, "web");
    let mut screen = Screen::with_patterm(&place, 100, 30);
    screen.until("ready");
    screen.lead("v");
    let shown = screen.until_it(|shown| shown.matches("│ ready").count() == 2);
    assert!(shown.contains("logs of all processes") && shown.contains("following"), "{shown}");
    place.run(&["send", "api", "one"]);
    screen.until("api │ said one");
    // A process that starts later, and another server.
    run(&place, "job");
    screen.until("job │ ready");
    let killed = server(&place);
    killed.signal(Signal::KILL);
    killed.wait();
    place.run(&["send", "job", "two"]);
    let shown = screen.until("job │ said two");
    assert_eq!(shown.matches("said one").count(), 1, "{shown}");
    // By text, then by process.
    screen.type_in("fone");
    screen.until_it(|shown| shown.contains("api │ said one") && !shown.contains("said two"));
    screen.press(&["Escape"]);
    screen.until("job │ said two");
    screen.press(&["Tab"]);
    screen.until_it(|shown| shown.contains("logs of api") && !shown.contains("said two"));
    screen.press(&["BTab"]);
    screen.type_in("/said");
    screen.until("search: said");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.lines().any(|l| l.starts_with('▸') && l.contains("said two")));
    screen.type_in("n");
    screen.until_it(|shown| shown.lines().any(|l| l.starts_with('▸') && l.contains("said one")));
    // The pane is back, and gets the keys again.
    screen.type_in("q");
    screen.until_it(|shown| !shown.contains("logs of"));
}
