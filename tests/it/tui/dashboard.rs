//! The dashboard with real processes: what they use, their ports, and actions on the chosen row.

use super::Screen;
use crate::support::Place;

/// The rows of the table that contain a text.
fn row<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown.lines().skip(2).find(|row| row.contains(name))
}

/// The CPU usage in a row, in percent.
fn percent(row: &str) -> Option<u32> {
    // Number, kind, name, sign, state, percent.
    row.split_whitespace().nth(5)?.parse().ok()
}

#[test]
fn the_dashboard_measures_sorts_and_acts() {
    let place = Place::new();
    place.run(&["run", "--name", "quiet", "--", "sh", "-c", "echo all is quiet; exec cat"]);
    let serve = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler); \
        print('port', s.server_port, flush=True); s.serve_forever()";
    place.run(&["run", "--name", "web", "--", "python3", "-c", serve]);
    place.run(&["run", "--name", "burner", "--", "sh", "-c", "while :; do :; done"]);
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.lead("D");
    // The second measurement knows how much CPU time was used in between.
    screen.until_it(|shown| row(shown, "burner").and_then(percent).is_some_and(|cpu| cpu >= 5));
    let shown = screen.until_it(|shown| {
        let web = row(shown, "web").unwrap_or_default();
        let port = web.rsplit("port ").next().unwrap_or_default().trim().to_owned();
        // Once as its last line, and once because it listens there.
        !port.is_empty() && web.matches(&port).count() == 2
    });
    assert!(row(&shown, "quiet").unwrap().contains("all is quiet"), "{shown}");
    assert!(shown.contains("3 running"), "{shown}");
    // By name: the burner is first; by CPU usage, too.
    screen.press(&["Right"]);
    screen.until_it(|shown| shown.lines().nth(2).is_some_and(|row| row.contains("burner")));
    screen.press(&["r"]);
    screen.until_it(|shown| shown.lines().nth(2).is_some_and(|row| row.contains("web")));
    screen.press(&["Right", "Right"]);
    screen.until_it(|shown| shown.lines().nth(2).is_some_and(|row| row.contains("burner")));
    screen.press(&["Home", "X"]);
    screen.until("stop burner? y/n");
    screen.press(&["y"]);
    screen.until_it(|shown| row(shown, "burner").is_some_and(|row| row.contains("stopped")));
    // It uses nothing any more, so its row is the last one.
    screen.until_it(|shown| shown.lines().nth(4).is_some_and(|row| row.contains("burner")));
    // Without a question, since it is not running.
    screen.press(&["End", "R"]);
    screen.until("3 running");
    screen.until_it(|shown| row(shown, "burner").and_then(percent).is_some_and(|cpu| cpu >= 5));
    screen.press(&["Left", "Left"]);
    screen.until("name▲");
    screen.press(&["Home", "Down", "Enter"]);
    screen.until_it(|shown| {
        shown.contains("ctrl+b: keys")
            && shown.contains("all is quiet")
            && !shown.contains("last line")
    });
    screen.line("typed into cat");
    screen.until_it(|shown| shown.matches("typed into cat").count() == 2);
}

#[test]
fn the_dashboard_shows_the_health_of_what_is_checked() {
    let place = Place::new();
    let file = "[processes.api]\ncommand = 'cat'\nautostart = true\n\
        healthy = { command = 'test ! -e sick', every_seconds = 0.1, failures = 1 }\n\
        [processes.web]\ncommand = 'cat'\nautostart = true\n";
    std::fs::write(place.path("project/patterm.toml"), file).unwrap();
    place.run(&["trust", "--yes"]);
    place.run(&["up", "--wait"]);
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.lead("D");
    let has = |shown: &str, name, word| row(shown, name).is_some_and(|row| row.contains(word));
    screen.press(&["Home"]);
    screen.until_it(|shown| has(shown, "api", "● healthy ") && has(shown, "web", " ready "));
    std::fs::write(place.path("project/sick"), "").unwrap();
    let shown = screen.until_it(|shown| has(shown, "api", "✗ unhealthy "));
    assert!(shown.contains("api: it is unhealthy: "), "{shown}");
}
