//! First start, shells, splits, scrollback, palette, attention.

use serde_json::json;

use super::Screen;
use crate::support::Place;

#[test]
fn the_first_start_explains_itself_and_leads_to_a_shell() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let shown = screen.until("`patterm agents` says why");
    assert!(shown.contains("Nothing is running in this project yet."), "{shown}");
    assert!(shown.contains("d  leave; everything keeps running"), "{shown}");
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("echo $((40 + 2)) it is");
    screen.until("42 it is");
    let shown = screen.until_it(|shown| shown.contains("1 ○ > sh") && shown.contains("idle"));
    assert!(shown.contains("ctrl+b: keys"), "{shown}");
}

#[test]
fn it_is_not_shown_within_itself() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.patterm("attach");
    screen.until("this is already pane p1 of this project");
}

#[test]
fn the_leader_alone_shows_what_it_can_do() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["C-b"]);
    let shown = screen.until("ctrl+b, then");
    for words in ["c   new shell", "|   split right", "d   detach", "?   help"] {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("ctrl+b, then"));
}

#[test]
fn panes_stand_side_by_side_and_what_is_typed_goes_to_one() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.lead("|");
    screen.until_it(|shown| shown.matches("prompt$").count() >= 2 && shown.contains("sh-2"));
    screen.line("echo right$((1 + 1))");
    screen.until("right2");
    screen.lead("o");
    screen.line("echo left$((1 + 1))");
    let shown = screen.until("left2");
    let row = shown.lines().find(|line| line.contains("left2")).unwrap();
    assert!(row.find("left2") < row.rfind('│'), "{shown}");
    screen.lead("z");
    let shown = screen.until_it(|shown| shown.contains("zoomed"));
    assert!(!shown.contains("right2") && shown.contains("left2"), "{shown}");
    screen.lead("z");
    screen.until("right2");
    screen.resize(60, 12);
    screen.until_it(|shown| shown.lines().count() == 12 && shown.contains("ctrl+b: keys"));
    screen.lead("q");
    screen.until_it(|shown| !shown.contains("─ sh"));
}

#[test]
fn output_is_scrolled_back_searched_and_copied() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("seq 1 300 | sed s/$/./");
    screen.until("300.");
    // Away and back: what scrolled off is then only with the server.
    screen.lead("d");
    screen.until("detached; everything keeps running");
    screen.line("clear");
    screen.patterm("attach");
    screen.until("300.");
    screen.lead("[");
    screen.until("/30");
    screen.type_in("/23.");
    screen.until("search: 23.");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.contains("223.") && !shown.contains("search:"));
    screen.type_in("n");
    screen.until_it(|shown| shown.contains("123.") && !shown.contains("223."));
    screen.type_in("Vjy");
    screen.until("copied 2 lines");
    assert_eq!(screen.clipboard(), "123.\n124.");
    screen.until("300.");
}

#[test]
fn the_palette_finds_every_action_by_typing() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.lead(":");
    screen.until("add a pane to the right of this one");
    screen.type_in("start shell");
    screen.until_it(|shown| !shown.contains("add a pane"));
    screen.press(&["Enter"]);
    screen.until("prompt$");
    screen.lead(":");
    screen.type_in("rename");
    screen.until_it(|shown| !shown.contains("add a pane"));
    screen.press(&["Enter"]);
    screen.until("new name: sh");
    screen.type_in("ell");
    screen.press(&["Enter"]);
    screen.until("> shell");
}

#[test]
fn who_asks_for_the_person_is_shown_and_jumped_to() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let asks = place.run(&["run", "--name", "asks", "--", "sh", "-c", "echo here I am; cat"]);
    place.run(&["run", "--name", "other", "--", "cat"]);
    screen.until("other");
    place.run(&["call", "select_process", r#"{"process_id": "p2"}"#]);
    screen.until("p2 other");
    let attention = json!({"process_id": asks.trim(), "reason": "may I push?"}).to_string();
    place.run(&["call", "request_human_attention", &attention]);
    screen.until("! asks (ctrl+b !)");
    screen.lead("!");
    screen.until("may I push?");
    screen.press(&["Enter"]);
    screen.until("here I am");
    screen.until_it(|shown| !shown.contains("! asks"));
}

#[test]
fn notes_timers_messages_and_ports_have_views() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let pad = json!({"name": "plan", "content": "# The plan\n\nfirst this"}).to_string();
    place.run(&["call", "scratchpad_write", &pad]);
    screen.press(&["s"]);
    screen.until("plan");
    screen.press(&["Enter"]);
    screen.until("first this");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("first this"));
    screen.press(&["m"]);
    screen.until("no messages between agents yet");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("no messages"));
    screen.press(&["t"]);
    screen.until("no timers");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("no timers"));
    screen.press(&["P"]);
    screen.until("no process has printed an address");
}

#[test]
fn an_agent_is_started_from_the_list_with_what_it_is_to_do() {
    let place = Place::new();
    let settings = place.path("home").join(".config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let preset = "[agents.parrot]\nlike = \"generic\"\ntitle = \"Parrot\"\nprogram = \"cat\"\n";
    std::fs::write(settings.join("config.toml"), preset).unwrap();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.until("Agents found: Parrot");
    screen.press(&["a"]);
    screen.until("● Parrot");
    screen.type_in("parrot");
    screen.until_it(|shown| !shown.contains("Claude"));
    screen.press(&["Enter"]);
    screen.until("first prompt for parrot");
    screen.type_in("say hello");
    screen.press(&["Enter"]);
    // It shows nothing, so it cannot be told yet; and that is what is said of it.
    screen.until("1 ● @ parrot");
    screen.until("working: its first");
}
