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
fn the_tui_does_not_run_inside_itself() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.patterm("attach");
    screen.until("this is already pane p1 of this project");
}

#[test]
fn the_leader_alone_shows_its_keys() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.press(&["C-b"]);
    let shown = screen.until("ctrl+b, then");
    for words in [
        "c           new page",
        "|           split right",
        "d           detach",
        "?           help",
    ] {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("ctrl+b, then"));
}

#[test]
fn panes_are_shown_side_by_side_and_keys_go_to_one() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.lead("|");
    screen.until("new shell");
    screen.press(&["Enter"]);
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
    screen.lead("Q");
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
    // Switch away and back: only the server has the lines that scrolled away.
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
    screen.until("add a pane to the right of");
    screen.type_in("start shell this");
    screen.until_it(|shown| !shown.contains("add a pane"));
    screen.press(&["Enter"]);
    screen.until("prompt$");
    screen.lead(":");
    screen.type_in("rename this process");
    screen.until_it(|shown| !shown.contains("add a pane"));
    screen.press(&["Enter"]);
    screen.until("new name: sh");
    screen.type_in("ell");
    screen.press(&["Enter"]);
    screen.until("> shell");
}

#[test]
fn a_process_that_needs_attention_is_shown_and_can_be_jumped_to() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let asks = place.run(&["run", "--name", "asks", "--", "sh", "-c", "echo here I am; cat"]);
    place.run(&["run", "--name", "other", "--", "cat"]);
    screen.until("other");
    place.run(&["call", "select_process", r#"{"process_id": "p2"}"#]);
    screen.until("2 other");
    let attention = json!({"process_id": asks.trim(), "reason": "may I push?"}).to_string();
    place.run(&["call", "request_human_attention", &attention]);
    screen.until("! asks: may I push? (ctrl+b u)");
    screen.lead("u");
    screen.until("agents that need you");
    screen.press(&["Enter"]);
    screen.until("here I am");
    // Looking does not answer it, and neither does attaching with it in front.
    screen.lead("d");
    screen.until("detached");
    let mut again = Screen::with_patterm(&place, 80, 24);
    again.until("here I am");
    again.until("! asks: may I push?");
    let listed = || place.run(&["ps"]);
    assert!(listed().contains("asks  ! may I push?"), "{}", listed());
    again.lead("i");
    again.until_it(|shown| !shown.contains("! asks"));
    assert!(!listed().contains("may I push?"), "{}", listed());
    // Typing there answers it as well.
    place.run(&["call", "request_human_attention", &attention]);
    again.until("! asks: may I push?");
    again.press(&["y"]);
    again.until_it(|shown| !shown.contains("! asks"));
}

#[test]
fn notes_timers_messages_and_ports_have_views() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let pad = json!({"name": "plan", "content": "# The plan\n\nfirst this"}).to_string();
    place.run(&["call", "scratchpad_write", &pad]);
    screen.press(&["S"]);
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
fn an_agent_is_started_from_the_list_with_its_instructions() {
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
    // It shows nothing, so its activity is unknown; and that is reported.
    screen.until("1 ● @ parrot");
    screen.until("working: it has not");
}

#[test]
fn a_notification_of_a_program_that_no_pane_shows_is_shown_with_its_name() {
    let place = Place::new();
    let script = "read line; printf '\\033]777;notify;cargo;tests are green\\007'; \
        read line; printf '\\007'; exec cat";
    place.run(&["run", "--name", "tests", "--", "sh", "-c", script]);
    place.run(&["run", "--name", "front", "--", "cat"]);
    let mut screen = Screen::new(&place, 80, 24);
    screen.patterm("attach front");
    screen.until("2 front");
    place.run(&["send", "tests", "go"]);
    let shown = screen.until("1 tests notifies you: cargo: tests are green");
    assert!(shown.contains("1*"), "{shown}");
    // It stays until the next key.
    screen.press(&["x"]);
    screen.until_it(|shown| !shown.contains("notifies you"));
    // The mark goes away when the process is shown, and comes again with a bell that nobody sees.
    screen.lead("F1");
    screen.until("1 tests ");
    screen.lead("F2");
    screen.until_it(|shown| shown.contains("2 front") && !shown.contains("1*"));
    place.run(&["send", "tests", "go"]);
    screen.until("1*");
}
