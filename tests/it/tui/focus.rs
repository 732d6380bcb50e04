//! The person decides where the keyboard input goes, whatever agents request.

use patterm_wire::view::FromView;
use serde_json::{Value, json};

use super::Screen;
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};
use crate::view::View;

fn select(place: &Place, id: &str) -> Value {
    let arguments = json!({"process_id": id}).to_string();
    serde_json::from_str(&place.run(&["call", "select_process", &arguments])).unwrap()
}

/// Two programs that show their input; their ids are p1 and p2.
fn start_two(place: &Place) {
    for name in ["one", "two"] {
        place.run(&["run", "--name", name, "--", "cat"]);
    }
}

#[test]
fn select_process_does_not_move_the_keyboard_in_the_middle_of_a_word() {
    let place = Place::new();
    start_two(&place);
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.until("two");
    let shown = select(&place, "p1");
    screen.until("1 one");
    screen.type_in("hunter");
    screen.until("hunter");
    let marked = select(&place, "p2");
    screen.line("2");
    let output = |id: &str| place.run(&["logs", id]);
    until("it arrives", || (output("p1") + &output("p2")).contains('2').then_some(()));
    assert_eq!(output("p2"), "", "the rest of a password");
    assert_eq!(shown, json!({"outcome": "shown", "shown_in": 1}));
    assert_eq!(marked, json!({"outcome": "marked", "marked_in": 1}));
    screen.until("→ two (ctrl+b g)");
    screen.lead("g");
    screen.until("2 two");
    screen.until_it(|shown| !shown.contains("→ two"));
}

#[test]
fn select_process_reports_the_effect_on_each_view_and_the_absence_of_views() {
    let place = Place::new();
    start_two(&place);
    assert_eq!(select(&place, "p1"), json!({"outcome": "nobody_watching"}));
    let mut typing = Screen::with_patterm(&place, 80, 24);
    assert_eq!(select(&place, "p1")["outcome"], "shown");
    typing.until("1 one");
    typing.type_in("hunter");
    typing.until("hunter");
    let mut other = Screen::with_patterm(&place, 80, 24);
    other.until("hunter");
    let both = json!({"outcome": "marked", "marked_in": 2});
    assert_eq!(select(&place, "p2"), both, "the same draft is in front of both");
    other.lead("F2");
    other.until("2 two");
    let shown = json!({"outcome": "shown", "shown_in": 1, "marked_in": 1});
    assert_eq!(select(&place, "p2"), shown);
    typing.until("→ two");
}

#[test]
fn focus_mouse_and_replies_of_a_terminal_do_not_count_as_typing() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.run(&["cat"]);
    let asks = |tools: &mut ToolClient| {
        let listed = tools.ok("list_processes", json!({}));
        listed["processes"][0]["attention"]["reason"].as_str().map(str::to_owned)
    };
    let reason = json!({"process_id": id, "reason": "may I push?"});
    tools.ok("request_human_attention", reason);
    let mut view = View::attach_at(&server.socket(), &id, 24, 80);
    for report in ["\x1b[I", "\x1b[O", "\x1b[<0;3;3M", "\x1b[<0;3;3m", "\x1b[?62;4c", "\x1b[5;5R"] {
        view.send(&FromView::Input(report.as_bytes().to_vec()));
    }
    // Echoed input has been classified correctly.
    view.until(|view| view.shows("^[[5;5R"));
    assert_eq!(asks(&mut tools).as_deref(), Some("may I push?"));
    view.send(&FromView::Input(b"\x15yes".to_vec()));
    view.until(|view| view.shows("yes"));
    until("the request is withdrawn", || asks(&mut tools).is_none().then_some(()));
}
