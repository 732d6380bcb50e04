//! Restarted agents: the model sees the same conversation as before, whatever ended the agent and
//! whatever the person did meanwhile.

use patterm_wire::Method;
use patterm_wire::restore::Restore;
use patterm_wire::view::FromView;
use serde_json::{Value, json};

use super::bench::{Bench, type_by_hand};
use super::cli::{CODEX, Cli, GEMINI, OPENCODE};
use super::mock::Turn;
use super::report::row;
use super::truth::times;
use crate::support::tool_client::{id_of, long};

/// Restarts an agent that resumes its conversation, and waits until it is idle.
#[track_caller]
fn restart(bench: &mut Bench, id: &str) {
    let answer = bench.tools.ok("restart_process", json!({"process_id": id}));
    assert_eq!(answer.get("began_anew"), None, "{answer}\n{}", bench.story());
    until_it_rests(bench, id);
}

/// Waits until an agent is idle; an ended one does not count.
#[track_caller]
fn until_it_rests(bench: &mut Bench, id: &str) {
    bench.until_state(id, "idle");
    let status = bench.tools.status(id);
    assert_eq!(status["status"], "running", "{status}\n{}", bench.story());
}

/// Restarts an agent without turns, and waits until it is idle.
#[track_caller]
fn restart_with_new_conversation(bench: &mut Bench, id: &str) {
    let answer = bench.tools.ok("restart_process", json!({"process_id": id}));
    let why = answer["began_anew"].as_str().unwrap_or_default();
    assert!(why.contains("has no turns yet"), "{answer}");
    until_it_rests(bench, id);
}

/// An agent that is restarted before it accepts its first instructions gets them again.
pub(super) fn before_the_first_turn(cli: Cli) {
    let mut bench = Bench::new(cli);
    let instructions = "mock: say begun";
    let id = bench.spawn(Some(instructions));
    let answer = bench.tools.ok("restart_process", json!({"process_id": id}));
    assert!(answer["began_anew"].is_string(), "{answer}");
    bench.until_arrived(instructions);
    until_it_rests(&mut bench, &id);
    assert_eq!(bench.count(instructions), 1, "{}", bench.story());
    let messages = bench.tools.ok("get_project_status", json!({}))["messages"].take();
    let states: Vec<_> =
        messages.as_array().unwrap().iter().map(|m| &m["receipt"]["state"]).collect();
    assert_eq!(states, ["stalled", "delivered"], "{messages}");
    row(cli, "restarted at its start", "its first instructions arrived once");
}

/// opencode takes more than ten seconds of CPU to start: the short form starts it less often.
fn is_brief(cli: Cli) -> bool {
    cli == OPENCODE && !long()
}

/// Sends a text and waits until the model has answered; returns the turn.
#[track_caller]
fn say(bench: &mut Bench, id: &str, text: &str) -> Turn {
    bench.send(id, text);
    let turn = bench.until_said(&format!("[external] {text}"));
    bench.until_state(id, "idle");
    turn
}

/// Sends a text; the model must have seen exactly `before` in front of it.
#[track_caller]
fn say_after(bench: &mut Bench, id: &str, text: &str, before: &mut Vec<String>) {
    before.push(format!("[external] {text}"));
    let mut turn = say(bench, id, text);
    // claude records that the person cleared the conversation before this one.
    turn.said.retain(|said| !said.starts_with("<command-name>"));
    assert_eq!(&turn.said, before, "{}", bench.story());
}

/// Types one of the CLI's own commands as a person.
fn command(bench: &mut Bench, id: &str, command: &str) {
    let mut view = bench.view(id);
    type_by_hand(&mut view, "", command);
    // No person types faster, and some CLIs show a letter that they only suggest.
    bench.stays_away(id, "never shown", 0.5);
    view.send(&FromView::Input(b"\r".to_vec()));
}

/// One conversation through every kind of exit. Before the first of them the agent has not called a
/// tool, and its CLI has never been in this home.
pub(super) fn resumes_after_every_exit(cli: Cli) {
    let mut bench = Bench::new(cli);
    if cli == GEMINI {
        assert!(!bench.place.path("home/.gemini/tmp").exists(), "it was never here");
    }
    let id = bench.spawn_ready();
    let mut said = vec!["mock: say ready".to_owned()];
    let rounds = times(1, 3);
    for round in 0..rounds {
        if !is_brief(cli) {
            // Twice: the second time without a turn since the first.
            restart(&mut bench, &id);
            restart(&mut bench, &id);
            say_after(&mut bench, &id, &format!("after a restart {round}"), &mut said);
        }
        bench.kill_server();
        if !is_brief(cli) {
            restart(&mut bench, &id);
            say_after(&mut bench, &id, &format!("after kill -9 {round}"), &mut said);
        }
        // During a turn.
        let cut = format!("mock: say partly ;; wait 600 ;; say never {round}");
        bench.send(&id, &cut);
        bench.until_turn("the turn that is cut", |turn| turn.text == format!("[external] {cut}"));
        bench.until_state(&id, "working");
        restart(&mut bench, &id);
        let turn = say(&mut bench, &id, &format!("after a cut {round}"));
        let before: Vec<_> = turn.said.iter().take(said.len()).cloned().collect();
        assert_eq!(before, said, "{:?}\n{}", turn.said, bench.story());
        said = turn.said;
        bench.end_everything();
        let back = bench.tools.ok(Restore::NAME, json!({}));
        assert_eq!(back["processes"][0]["how"], "resumed", "{back}\n{}", bench.story());
        bench.until_state(&id, "idle");
        say_after(&mut bench, &id, &format!("after a reboot {round}"), &mut said);
    }
    let restarts = if is_brief(cli) { 2 } else { 5 * rounds };
    row(cli, "conversation after restarts", &format!("{restarts} of {restarts} the same"));
}

/// A conversation that the person left for a new one, and an agent without turns.
pub(super) fn turns_to_another(cli: Cli) {
    let mut bench = Bench::new(cli);
    let silent = bench.spawn(None);
    bench.until_state(&silent, "idle");
    let mut said = Vec::new();
    if !is_brief(cli) {
        restart_with_new_conversation(&mut bench, &silent);
        say_after(&mut bench, &silent, "the first words", &mut said);
        // Another agent in the same folder.
        let other = bench.spawn_ready();
        let mut others = vec!["mock: say ready".to_owned()];
        restart(&mut bench, &silent);
        restart(&mut bench, &other);
        say_after(&mut bench, &other, "to the other", &mut others);
    }
    say_after(&mut bench, &silent, "to the first", &mut said);
    // The person begins a new conversation inside the CLI.
    let clear = if cli == CODEX || cli == OPENCODE { "/new" } else { "/clear" };
    let begin_anew = |bench: &mut Bench, last: &str| {
        command(bench, &silent, clear);
        bench.until("an empty conversation", |bench| {
            let screen = bench.tools.rows(&silent).join("\n");
            (!screen.contains(last)).then_some(()).ok_or(screen)
        });
        bench.until_state(&silent, "idle");
    };
    begin_anew(&mut bench, "to the first");
    let mut new = Vec::new();
    say_after(&mut bench, &silent, "in a new conversation", &mut new);
    restart(&mut bench, &silent);
    say_after(&mut bench, &silent, "in the new one again", &mut new);
    row(cli, "conversation of the person's", "the conversation used last");
    // And once more, without a turn: there is nothing to resume, which codex and opencode do not
    // report, so they resume the one before.
    if is_brief(cli) {
        return;
    }
    begin_anew(&mut bench, "in the new one again");
    if cli == CODEX || cli == OPENCODE {
        restart(&mut bench, &silent);
        say_after(&mut bench, &silent, "in the same", &mut new);
    } else {
        let file = bench.place.state().file("processes.json");
        bench.until("the new conversation is known", |_| {
            let kept = std::fs::read_to_string(&file).unwrap();
            kept.contains("\"spoken\": false").then_some(()).ok_or(kept)
        });
        restart_with_new_conversation(&mut bench, &silent);
        say_after(&mut bench, &silent, "in the newest", &mut Vec::new());
    }
}

/// Codex's own subagents have conversations too, and call tools on behalf of those.
#[test]
fn a_codex_with_a_subagent_resumes_its_own_conversation() {
    let mut bench = Bench::new(CODEX);
    let first = concat!(
        r#"mock: call multi_agent_v1__spawn_agent {"agent_type": "default", "message": "#,
        r#""mock: call whoami {} ;; say the helper called"} ;; wait 3 ;; say it has a helper"#
    );
    let id = bench.spawn(Some(first));
    bench.until_said(first);
    bench.until_turn("the helper's call", |turn| {
        turn.text == "mock: call whoami {} ;; say the helper called" && turn.is_final()
    });
    bench.until_state(&id, "idle");
    restart(&mut bench, &id);
    let mut said = vec![first.to_owned()];
    say_after(&mut bench, &id, "to the one above", &mut said);
}

/// Files that a CLI wrote into its overlay, not through its links, belong to the user.
#[test]
fn files_that_gemini_writes_into_its_home_are_in_the_users_after_its_close() {
    let mut bench = Bench::new(GEMINI);
    let id = bench.spawn_ready();
    let home = bench.place.path("home/.gemini");
    let agents = bench.place.state().file("agents");
    let overlay = agents.join(&id).join("home/.gemini");
    assert!(overlay.join("tmp").is_symlink(), "its conversations are the user's at once");
    assert!(home.join("tmp").is_dir());
    std::fs::create_dir(overlay.join("made-by-the-cli")).unwrap();
    let settings = overlay.join("settings.json");
    let mut changed: Value =
        serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    changed["ui"]["theme"] = "ANSI".into();
    std::fs::write(&settings, changed.to_string()).unwrap();
    bench.tools.close(&id);
    assert!(home.join("made-by-the-cli").is_dir());
    let text = std::fs::read_to_string(home.join("settings.json")).unwrap();
    let own: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(own["ui"]["theme"], "ANSI");
    assert!(own.get("mcpServers").is_none() && own.get("hooks").is_none(), "not ours: {own}");
    assert!(!agents.join(&id).exists());
    let again = json!({"agent": "gemini"});
    assert_eq!(id_of(&bench.tools.ok("spawn_agent", again)), "p2");
}
