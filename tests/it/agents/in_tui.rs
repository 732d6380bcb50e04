//! A real CLI in the TUI, as a person uses it: started from the list, typed into, left, and
//! restored with its conversation.

use super::bench::Bench;
use super::cli;
use crate::tui::Screen;

#[test]
fn a_person_starts_an_agent_types_to_it_detaches_and_restores_it() {
    let bench = Bench::new(cli::CLAUDE);
    let mut screen = Screen::with_patterm(&bench.place, 110, 32);
    screen.until("Claude Code");
    screen.press(&["a"]);
    screen.until("● Claude Code");
    screen.type_in("claude");
    screen.until_it(|shown| !shown.contains("Codex"));
    screen.press(&["Enter"]);
    screen.until("first prompt for claude");
    screen.line("mock: say the model was here");
    screen.until("● the model was here");
    screen.until("○ @ claude");
    // Keys go to it, as to any program.
    tell(&mut screen, "mock: say typed by a person");
    screen.until("● typed by a person");
    screen.until("○ @ claude");
    screen.lead("d");
    screen.until("prompt$");
    screen.patterm("kill");
    screen.until("ended the server");
    screen.patterm("");
    screen.until("resumes its conversation");
    screen.press(&["Enter"]);
    // Its own text, which it had not printed before.
    screen.until("idle: it reports");
    screen.until("● typed by a person");
    tell(&mut screen, "mock: say after the end");
    screen.until("● after the end");
    let messages = bench.arrived();
    let wanted = ["the model was here", "typed by a person", "after the end"];
    assert_eq!(messages, wanted.map(|text| format!("mock: say {text}")), "each came once");
}

/// Types a turn into its prompt and submits it.
fn tell(screen: &mut Screen<'_>, text: &str) {
    let in_prompt = |line: &str| line.contains('❯') && line.contains(text);
    screen.type_in(text);
    screen.until_it(|shown| shown.lines().any(in_prompt));
    screen.press(&["Enter"]);
}
