//! Events and their effects.

use patterm_wire::follow::{ProcessInfo, ProcessStatus, ProjectSnapshot};
use serde_json::json;

use super::*;
use crate::model::{AgentToStart, ListKind, Mode, Question};
use crate::sample::{Sample, project};

/// The leader.
const LEAD: &str = "\x02";

pub(super) fn attached(effects: &[Effect]) -> Vec<&str> {
    let processes = effects.iter().filter_map(|effect| match effect {
        Effect::Attach { process, .. } => Some(process.as_str()),
        _ => None,
    });
    processes.collect()
}

pub(super) fn sent(effects: &[Effect]) -> String {
    let bytes = effects.iter().filter_map(|effect| match effect {
        Effect::Send(_, bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    String::from_utf8(bytes.flatten().copied().collect()).unwrap()
}

fn called(effects: &[Effect]) -> Vec<(&str, Value)> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { method, params, .. } => Some((*method, params.clone())),
        _ => None,
    });
    calls.collect()
}

pub(super) fn selected(sample: &Sample) -> &str {
    &sample.model.selected().unwrap().id
}

#[test]
fn everything_typed_goes_to_the_pane_except_after_the_leader() {
    let mut sample = Sample::new(80, 24);
    assert_eq!(sent(sample.type_in("ls\r\x03\x1b[A")), "ls\r\x03\x1b[A");
    assert_eq!(sent(sample.type_in("\x02\x02")), "\x02", "twice is the key itself");
    assert_eq!(sent(sample.type_in("\x02y")), "", "an unassigned key does nothing");
    let notice = sample.model.notice.as_ref().map(|notice| notice.text.clone());
    assert_eq!(notice.as_deref(), Some("ctrl+b y does nothing; ctrl+b ? shows all keys"));
    assert_eq!(sent(sample.type_in("x")), "x");
    assert_eq!(sample.type_in("\x02d"), [Effect::Quit(None)]);
}

#[test]
fn the_leader_works_in_every_encoding_and_its_release_is_not_sent() {
    let mut sample = Sample::new(80, 24);
    let pane = sample.model.focus;
    sample.show(pane, "\x1b[>11u");
    assert_eq!(sent(sample.type_in("\x1b[98;5u\x1b[98;5:3u\x1b[98;5u\x1b[98;5:3u")), "\x1b[98;5u");
    assert_eq!(sent(sample.type_in("\x1b[97u\x1b[97;1:3u")), "\x1b[97u\x1b[97;1:3u");
    assert_eq!(sample.type_in("\x1b[98;5u\x1b[100;1u"), [Effect::Quit(None)]);
}

#[test]
fn a_paste_is_bracketed_on_request_and_never_a_command() {
    let mut sample = Sample::new(80, 24);
    assert_eq!(sent(sample.type_in("\x1b[200~a\x02d\x1b[201~")), "a\x02d");
    let pane = sample.model.focus;
    sample.show(pane, "\x1b[?2004h");
    assert_eq!(sent(sample.type_in("\x1b[200~a\x1b[201~")), "\x1b[200~a\x1b[201~");
}

#[test]
fn a_prompt_of_many_lines_is_pasted_completely() {
    let mut sample = Sample::new(80, 24);
    sample.model.mode = Mode::Line {
        question: Question::Prompt(AgentToStart {
            preset: "claude".into(),
            ..AgentToStart::default()
        }),
        text: String::new(),
    };
    let effects = sample.type_in("\x1b[200~one\r\ntwo\rthree\x1b[201~\r").to_vec();
    let arguments = json!({"agent": "claude", "agent_instructions": "one\ntwo\nthree"});
    assert_eq!(called(&effects), [("spawn_agent", arguments)]);
}

#[test]
fn processes_are_reached_by_step_number_and_name() {
    let mut sample = Sample::new(80, 24);
    assert_eq!(attached(sample.type_in("\x02j")), ["p2"]);
    assert_eq!(attached(sample.type_in("\x02k\x02k")), ["p1", "p5"], "and wraps around");
    assert_eq!(attached(sample.type_in("\x02\x1b[15~")), [""; 0], "it is already shown");
    assert_eq!(attached(sample.type_in("\x02\x1bOS")), ["p4"], "the fourth function key");
    sample.type_in("\x02\x1b[20~");
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "there is no process 9");
    assert_eq!(attached(sample.type_in("\x02:show help\r")), ["p2"]);
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn a_split_asks_what_to_show_and_enter_is_a_new_shell() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|");
    assert_eq!(sample.model.panes.len(), 1, "not before something was chosen");
    assert_eq!(attached(sample.type_in("helper\r")), ["p2"]);
    assert_eq!(sample.model.panes.len(), 2);
    assert_eq!(attached(sample.type_in("\x02-3\r\x02-4\r\x02-5\r")), ["p3", "p4", "p5"]);
    sample.type_in("\x02-");
    let effects = sample.type_in("\r").to_vec();
    assert_eq!(called(&effects), [("spawn_process", json!({"kind": "terminal"}))]);
    let waiting = sample.model.focus;
    let started = json!({"process_id": "p6", "name": "bash"});
    sample.handle(Event::Answer(CallPurpose::Start(Some(waiting)), Ok(started)));
    let mut next = project();
    next.processes.push(ProcessInfo { id: "p6".into(), runs: 1, ..ProcessInfo::default() });
    assert_eq!(attached(sample.handle(Event::Snapshot(next))), ["p6"]);
    assert_eq!(selected(&sample), "p6");
    sample.type_in("\x02o");
    assert_eq!(selected(&sample), "p1", "after the last comes the first");
    sample.type_in("\x02z");
    assert_eq!(sample.model.places().0.len(), 1);
    sample.type_in("\x02z\x02Q");
    assert_eq!(sample.model.panes.len(), 5);
}

#[test]
fn a_shell_that_cannot_be_started_leaves_no_pane() {
    let mut sample = Sample::empty(80, 24);
    sample.handle(Event::Snapshot(ProjectSnapshot {
        processes: vec![project().processes.remove(4)],
        ..project()
    }));
    sample.type_in("\x02|\r");
    assert_eq!(sample.model.panes.len(), 2);
    let waiting = sample.model.focus;
    sample.handle(Event::Answer(
        CallPurpose::Start(Some(waiting)),
        Err(local_error("the disk is full")),
    ));
    assert_eq!(sample.model.panes.len(), 1);
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "the disk is full");
}

#[test]
fn closed_panes_are_removed_and_restarted_ones_attached_again() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    let mut next = project();
    next.processes[0].status = ProcessStatus::Starting;
    next.processes[0].runs = 2;
    assert_eq!(
        attached(sample.handle(Event::Snapshot(next.clone()))),
        [""; 0],
        "not before it is running"
    );
    next.processes[0].status = ProcessStatus::Running;
    assert_eq!(attached(sample.handle(Event::Snapshot(next.clone()))), ["p1"]);
    next.processes.remove(1);
    let effects = sample.handle(Event::Snapshot(next)).to_vec();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Leave(_))));
    assert_eq!(sample.model.panes.len(), 1);
    sample.handle(Event::Snapshot(ProjectSnapshot::default()));
    assert!(sample.model.panes.is_empty() && sample.model.layout.is_none());
}

#[test]
fn all_panes_are_attached_again_after_the_server_was_replaced() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    sample.handle(Event::Lost);
    assert!(!sample.model.connected);
    assert_eq!(attached(sample.handle(Event::Snapshot(project()))), ["p1", "p2"]);
}

#[test]
fn a_selected_process_is_shown() {
    let mut sample = Sample::new(80, 24);
    let next = ProjectSnapshot { selected: Some("p5".to_owned()), selections: 1, ..project() };
    assert_eq!(attached(sample.handle(Event::Snapshot(next.clone()))), ["p5"]);
    sample.type_in("\x02k");
    assert_eq!(attached(sample.handle(Event::Snapshot(next))), [""; 0], "only once");
}

#[test]
fn only_the_requested_process_is_shown_at_first() {
    let mut sample = Sample::empty(80, 24);
    sample.model.to_show = Some("p4".to_owned());
    assert_eq!(attached(sample.handle(Event::Snapshot(project()))), ["p4"]);
    assert_eq!(selected(&sample), "p4");
}

#[test]
fn a_running_process_is_shown_before_an_ended_one() {
    let mut sample = Sample::empty(80, 24);
    let mut snapshot = project();
    snapshot.processes[4].status = ProcessStatus::Stopped;
    assert_eq!(attached(sample.handle(Event::Snapshot(snapshot.clone()))), ["p3"]);
    sample.type_in("\x02\x1b[15~k");
    assert!(sample.model.notice.as_ref().unwrap().text.starts_with("bash has ended"));
}

#[test]
fn attention_is_listed_and_notified_without_focus() {
    let mut sample = Sample::new(80, 24);
    assert_eq!(attached(sample.type_in("\x02u")), Vec::<&str>::new(), "not before it is chosen");
    assert!(matches!(sample.model.mode, Mode::List { kind: ListKind::Attention, .. }));
    assert_eq!(attached(sample.type_in("\r")), ["p3"]);
    sample.type_in("\x1b[O");
    let mut next = project();
    next.processes[4].attention = Some("look".to_owned());
    let effects = sample.handle(Event::Snapshot(next)).to_vec();
    assert!(effects.contains(&Effect::Notify("bash: look".to_owned())), "{effects:?}");
    sample.type_in("\x02u");
    assert!(matches!(sample.model.mode, Mode::List { kind: ListKind::Attention, .. }));
}

#[test]
fn an_agent_is_started_with_its_first_prompt() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02a");
    sample.type_in("\r");
    let effects = sample.type_in("fix the lexer\r").to_vec();
    let arguments = json!({"agent": "claude", "agent_instructions": "fix the lexer"});
    assert_eq!(called(&effects), [("spawn_agent", arguments)]);
    // Behind "more".
    sample.type_in("\x02acodex\r\r");
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "`codex` is not in PATH");
}

#[test]
fn ending_a_process_asks_first_unless_it_has_ended() {
    let mut sample = Sample::new(80, 24);
    assert_eq!(called(sample.type_in("\x02xn")), []);
    assert_eq!(called(sample.type_in("\x02xy")), [("close_process", json!({"process_id": "p1"}))]);
    sample.type_in("\x02\x1bOS");
    assert_eq!(called(sample.type_in("\x02x")), [("close_process", json!({"process_id": "p4"}))]);
    assert_eq!(called(sample.type_in("\x02R")), [("restart_process", json!({"process_id": "p4"}))]);
    assert_eq!(called(sample.type_in("\x02X")), []);
    assert_eq!(
        sample.model.notice.as_ref().unwrap().text,
        "dev is not running; ctrl+b R starts it"
    );
    sample.type_in("\x02\x1bOP");
    let mut next = project();
    next.processes[0].status = ProcessStatus::Exited;
    sample.handle(Event::Snapshot(next));
    assert_eq!(called(sample.type_in("\x02xn")), [], "its helpers run, and would end with it");
    let renamed = json!({"process_id": "p1", "name": "lead2"});
    assert_eq!(called(sample.type_in("\x02r2\r")), [("rename_process", renamed)]);
}

#[test]
fn scrolling_searching_and_copying() {
    let mut sample = Sample::new(80, 24);
    let effects = sample.type_in("\x02[").to_vec();
    assert_eq!(called(&effects)[0].0, "get_process_raw_output");
    assert_eq!(sent(sample.type_in("/HELLO\r")), "", "nothing goes to the program");
    let scroll = sample.model.focused_pane().unwrap().scroll.as_ref().unwrap();
    assert_eq!(scroll.cursor, (0, 10));
    assert_eq!(sample.type_in("v\x1b[C\x1b[Cy"), [Effect::Copy("hel".to_owned())]);
    assert!(sample.model.focused_pane().unwrap().scroll.is_none());
    assert_eq!(sent(sample.type_in("q")), "q");
}

#[test]
fn mouse_events_go_to_the_tui_unless_the_program_requests_them() {
    let mut sample = Sample::new(80, 24);
    // The tree: its fifth row is the fourth process.
    assert_eq!(attached(sample.type_in("\x1b[<0;3;5M\x1b[<0;3;5m")), ["p4"]);
    let pane = sample.model.focus;
    sample.show(pane, "some text");
    let effects = sample.type_in("\x1b[<0;26;1M\x1b[<32;29;1M\x1b[<0;29;1m").to_vec();
    assert!(effects.contains(&Effect::Copy("some".to_owned())), "{effects:?}");
    sample.show(pane, "\x1b[?1000h\x1b[?1006h");
    assert_eq!(sent(sample.type_in("\x1b[<0;26;1M\x1b[<0;26;1m")), "\x1b[<0;1;1M\x1b[<0;1;1m");
    sample.show(pane, "\x1b[?1049h");
    assert_eq!(sent(sample.type_in("\x1b[<64;26;1M")), "\x1b[A\x1b[A\x1b[A");
}

#[test]
fn dividers_and_the_edge_of_the_tree_can_be_dragged() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    let before = sample.model.places().0[0].1.width;
    let line = sample.model.places().1[0].line;
    let (x, y) = (line.x + 1, line.y + 3);
    let drag = format!("\x1b[<0;{x};{y}M\x1b[<32;{};{y}M\x1b[<0;{};{y}m", x + 10, x + 10);
    let effects = sample.type_in(&drag).to_vec();
    assert_eq!(effects.iter().filter(|e| matches!(e, Effect::Size(..))).count(), 2);
    assert_eq!(sample.model.places().0[0].1.width, before + 10);
    sample.type_in("\x1b[<0;31;9M\x1b[<32;41;9M\x1b[<0;41;9m");
    assert_eq!(sample.model.tree_columns(), 40);
}

#[test]
fn programs_get_focus_reports_on_request() {
    let mut sample = Sample::new(120, 40);
    let first = sample.model.focus;
    sample.show(first, "\x1b[?1004h");
    assert_eq!(sent(sample.type_in("\x1b[O\x1b[I")), "\x1b[O\x1b[I");
    assert_eq!(sent(sample.type_in("\x02|2\r")), "\x1b[O");
    assert_eq!(sent(sample.type_in(&format!("{LEAD}o"))), "\x1b[I");
}

#[test]
fn a_resize_reaches_every_pane() {
    let mut sample = Sample::new(120, 40);
    let effects = sample.handle(Event::Resized(80, 24)).to_vec();
    assert_eq!(effects, [Effect::Size(sample.model.focus, Size::new(23, 55))]);
    assert_eq!(sample.handle(Event::Resized(80, 24)), []);
    sample.handle(Event::Resized(20, 5));
    assert_eq!(sample.model.tree_columns(), 0, "the pane needs the space");
}

#[test]
fn a_text_scrolls_with_keys_and_wheel_up_to_its_end() {
    let mut sample = Sample::new(80, 24);
    let content: String = (1..=60).map(|n| format!("{n}. line\n")).collect();
    let pad = json!({"content": content});
    sample.handle(Event::Answer(CallPurpose::Pad("plan".to_owned()), Ok(pad)));
    let shows = |sample: &Sample, words: &str| {
        let text = crate::view::view(&sample.model).text();
        assert!(text.contains(words), "no {words} in\n{text}");
    };
    shows(&sample, "39 more ↓");
    sample.type_in("\x1b[<65;40;10M");
    shows(&sample, "36 more ↓");
    sample.type_in("G");
    shows(&sample, "60. line");
    sample.type_in("\x1b[B\x1b[B\x1b[A");
    shows(&sample, "1 more ↓");
    sample.type_in("g");
    shows(&sample, "39 more ↓");
    sample.type_in("q");
    assert_eq!(sample.model.mode, Mode::Typing);
}

/// Input, in any order.
const PIECES: [&str; 46] = [
    "\x02",
    "\x02c",
    "\x02|\r",
    "\x02-2\r",
    "\x02!",
    "\x02J\r",
    "\x02.\r",
    "\x02&y",
    "\x02 ",
    "\x02}",
    "\x02\x0f",
    "\x02\x1b[D",
    "\x02\x1b[1;5A",
    "\x02q1",
    "\x02s3\r",
    "c",
    "a",
    "x",
    "y",
    "n",
    "p",
    "|",
    "-",
    "o",
    "z",
    "q",
    "b",
    "[",
    "/",
    "5",
    "V",
    "m",
    "t",
    ":",
    "?",
    "!",
    "\r",
    "\x1b[A",
    "\x1b[B",
    "\x1b[5~",
    "\x1b[<0;30;5M",
    "\x1b[<32;60;9M",
    "\x1b[<0;70;2m",
    "\x1b[<64;40;3M",
    "\x1b[200~x\x1b[201~",
    "\x1b[O",
];

#[test]
fn no_sequence_of_events_makes_it_panic() {
    arbtest::arbtest(|u| {
        let mut sample = Sample::new(u.int_in_range(1..=120)?, u.int_in_range(1..=40)?);
        while !u.is_empty() {
            match u.int_in_range(0..=9)? {
                0 => {
                    let size = (u.int_in_range(1..=200)?, u.int_in_range(1..=60)?);
                    sample.handle(Event::Resized(size.0, size.1));
                }
                1 => {
                    let mut snapshot = project();
                    snapshot.processes.truncate(u.int_in_range(0..=5)?);
                    sample.handle(Event::Snapshot(snapshot));
                }
                2 => {
                    let panes: Vec<_> = sample.model.panes.keys().copied().collect();
                    let bytes: Vec<u8> = u.arbitrary()?;
                    for pane in panes {
                        let frame = ToView::Output { offset: 0, bytes: bytes.clone() };
                        sample.handle(Event::Frame(pane, frame));
                    }
                }
                3 => {
                    sample.handle(Event::Lost);
                }
                _ => {
                    let piece = *u.choose(&PIECES)?;
                    sample.type_in(piece);
                }
            }
            crate::view::view(&sample.model);
        }
        Ok(())
    });
}
