//! Nothing moves the keyboard focus while the user is typing.

use patterm_wire::follow::{ProcessStatus, ProjectSnapshot, Selection};
use serde_json::json;

use super::keyboard::TYPING_MS;
use super::tests::{attached, selected, sent};
use super::*;
use crate::model::{AgentToStart, Mode, Question};
use crate::sample::{Sample, ended, project};

fn selection(number: u64, process: &str) -> Selection {
    Selection { number, process: process.to_owned(), ..Selection::default() }
}

fn select(sample: &mut Sample, selection: Selection) -> bool {
    let number = selection.number;
    let snapshot = ProjectSnapshot { to_select: vec![selection], ..project() };
    let effects = sample.handle(Event::Snapshot(snapshot));
    let answer = effects.iter().find_map(|effect| match effect {
        Effect::AnswerSelection { number: answered, shown } if *answered == number => Some(*shown),
        _ => None,
    });
    answer.expect("an answer")
}

#[test]
fn a_selected_process_is_shown_or_marked_while_the_user_types() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x1b[O\x1b[I\x1b[<35;40;3M\x1b[?1;2c");
    assert!(select(&mut sample, selection(1, "p5")), "reports of the terminal are not typing");
    assert_eq!(selected(&sample), "p5");
    sample.type_in("hunter");
    assert!(!select(&mut sample, selection(2, "p4")));
    assert_eq!(selected(&sample), "p5");
    let pane = sample.model.focus;
    assert_eq!(sample.type_in("2\r"), [b"2", b"\r"].map(|key| Effect::Send(pane, key.to_vec())));
    assert!(select(&mut sample, selection(3, "p5")), "it already has the focus");
    sample.model.now += TYPING_MS - 1;
    assert!(!select(&mut sample, selection(4, "p2")));
    assert_eq!(sample.model.marked, ["p4", "p2"]);
    sample.type_in("\x02g");
    assert_eq!(selected(&sample), "p2");
    sample.type_in("\x02g");
    assert_eq!((selected(&sample), sample.model.marked.len()), ("p4", 0));
    sample.model.now += TYPING_MS;
    assert!(select(&mut sample, selection(5, "p1")));
    let others = Selection { mark_only: true, ..selection(6, "p2") };
    assert!(!select(&mut sample, others), "not the caller's own");
    let drafts = vec!["p1".to_owned()];
    assert!(!select(&mut sample, Selection { drafts, ..selection(7, "p5") }), "there is a draft");
    assert!(!select(&mut sample, selection(8, "p9")), "there is no such process");
    assert_eq!(selected(&sample), "p1");
}

#[test]
fn an_open_dialog_keeps_the_keyboard() {
    for keys in ["\x02", "\x02:", "\x02a", "\x02a\rfix", "\x02rx", "\x02x", "\x02?", "\x02["] {
        let mut sample = Sample::new(80, 24);
        sample.type_in(keys);
        sample.model.now += 100 * TYPING_MS;
        let mode = sample.model.mode.clone();
        assert!(!select(&mut sample, selection(1, "p5")), "{keys:?}");
        assert_eq!((selected(&sample), &sample.model.mode), ("p1", &mode), "{keys:?}");
    }
}

#[test]
fn an_older_server_cannot_move_the_focus_either() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("hunter");
    let next = ProjectSnapshot { selected: Some("p5".to_owned()), selections: 1, ..project() };
    assert_eq!(attached(sample.handle(Event::Snapshot(next))), [""; 0]);
    assert_eq!(sample.model.marked, ["p5"]);
}

#[test]
fn input_for_a_closed_process_goes_nowhere_else() {
    for split in ["", "\x02|2\r\x02O"] {
        let mut sample = Sample::new(120, 24);
        sample.type_in(split);
        assert_eq!(selected(&sample), "p1");
        sample.type_in("hunter");
        let mut next = project();
        next.processes.remove(0);
        sample.handle(Event::Snapshot(next));
        assert_ne!(selected(&sample), "p1");
        assert_eq!(sent(sample.type_in("2\rrm -rf x\r\x1b[200~y\x1b[201~")), "");
        let shown = crate::view::view(&sample.model).text();
        assert!(shown.contains("lead was closed while you were typing"), "{shown}");
        sample.type_in("\x1b");
        assert_eq!(sent(sample.type_in("x")), "x");
    }
}

#[test]
fn typing_continues_if_the_user_closed_the_process() {
    for keys in ["ls\r\x02xy", ""] {
        let mut sample = Sample::new(120, 24);
        sample.type_in(keys);
        let mut next = project();
        next.processes.remove(0);
        sample.handle(Event::Snapshot(next));
        assert_eq!(sent(sample.type_in("x")), "x", "{keys:?}");
    }
}

#[test]
fn a_prompt_stays_open_when_another_pane_is_removed() {
    let mut sample = Sample::new(120, 24);
    sample.type_in("\x02|2\r\x02a\rfix the");
    let mut next = project();
    next.processes.remove(1);
    sample.handle(Event::Snapshot(next));
    assert_eq!(sent(sample.type_in(" lexer")), "");
    let question =
        Question::Prompt(AgentToStart { preset: "claude".to_owned(), ..AgentToStart::default() });
    assert_eq!(sample.model.mode, Mode::Line { question, text: "fix the lexer".to_owned() });
}

#[test]
fn a_search_stays_open_when_its_process_restarts() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02[/hel");
    let mut next = project();
    next.processes[0].runs = 2;
    assert_eq!(attached(sample.handle(Event::Snapshot(next))), ["p1"]);
    assert_eq!(sent(sample.type_in("lo")), "");
}

#[test]
fn a_late_result_is_marked_if_the_user_typed_since() {
    let started = || Event::Answer(CallPurpose::Start(None), Ok(json!({"process_id": "p5"})));
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02Cls");
    assert_eq!(attached(sample.handle(started())), ["p5"], "it is immediate");
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02C");
    sample.model.now += 3_000;
    sample.type_in("hunter");
    assert_eq!(attached(sample.handle(started())), [""; 0]);
    assert_eq!(sample.model.marked, ["p5"]);
    sample.model.requested_at = Some(1);
    let content = json!({"content": "text"});
    sample.handle(Event::Answer(CallPurpose::Pad("plan".to_owned()), Ok(content)));
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn keys_do_not_go_to_the_previous_process_of_a_pane() {
    let mut sample = Sample::new(80, 24);
    let mut next = project();
    next.processes[4].status = ProcessStatus::Starting;
    sample.handle(Event::Snapshot(next));
    let pane = sample.model.focus;
    assert_eq!(sample.type_in("\x02\x1b[15~"), [Effect::Leave(pane)]);
}

#[test]
fn no_dialog_opens_or_vanishes_while_the_user_types() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("hunter");
    sample.handle(Event::Lost);
    sample.handle(Event::Snapshot(ended()));
    assert_eq!(sample.model.mode, Mode::Typing);
    let mut sample = Sample::after_the_end(80, 24);
    assert!(matches!(sample.model.mode, Mode::Restore { .. }));
    sample.handle(Event::Snapshot(project()));
    assert_eq!(sent(sample.type_in("y")), "", "somebody else has decided");
    assert_eq!(sent(sample.type_in("y")), "y");
}

#[test]
fn keys_that_went_nowhere_are_counted_and_a_pause_ends_it() {
    let mut sample = Sample::new(120, 24);
    sample.type_in("hunter");
    let mut next = project();
    next.processes.remove(0);
    sample.handle(Event::Snapshot(next));
    assert_eq!(sent(sample.type_in("2\r")), "");
    let shown = crate::view::view(&sample.model).text();
    assert!(shown.contains("2 keys went nowhere"), "{shown}");
    sample.model.now += TYPING_MS;
    assert_eq!(sent(sample.type_in("ls")), "ls", "meant for the pane that has the focus now");
}

#[test]
fn control_held_from_the_leader_ends_nothing() {
    let mut sample = Sample::new(120, 24);
    let effects = sample.type_in("\x02\x04");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Quit(_))), "ctrl+d");
    let notice = sample.model.notice.as_ref().unwrap().text.clone();
    assert!(notice.contains("ctrl+b ctrl+d does nothing"), "{notice}");
    sample.type_in("\x02\x15");
    assert!(matches!(sample.model.mode, Mode::List { .. }), "ctrl+u is u");
}

#[test]
fn the_palette_knows_the_names_of_tmux() {
    let found = |words: &str| -> Vec<String> {
        let sample = Sample::new(120, 24);
        let items = crate::list::items(&sample.model, crate::model::ListKind::Palette, words);
        items.into_iter().map(|item| item.detail).collect()
    };
    assert_eq!(found("split-window"), ["split-right", "split-down"]);
    assert_eq!(found("split-window -v"), ["split-down"]);
    for (tmux, own) in [
        ("new-window", "new-page"),
        ("copy-mode", "scroll"),
        ("detach", "detach"),
        ("select-layout", "layout"),
        ("resize-pane", "zoom"),
        ("resize-pane", "resize-pane"),
        ("kill-pane", "close"),
        ("kill-pane", "unsplit"),
        ("choose-tree", "overview"),
    ] {
        assert!(found(tmux).contains(&own.to_owned()), "{tmux}: {:?}", found(tmux));
    }
    // What has a key for each side is explained.
    let mut sample = Sample::new(120, 24);
    sample.type_in("\x02:select-layout\r");
    let notice = sample.model.notice.as_ref().unwrap().text.clone();
    assert!(notice.starts_with("ctrl+b and alt+1"), "{notice}");
}
