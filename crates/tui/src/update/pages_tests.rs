//! Pages, and the arrangement of their panes.

use patterm_wire::follow::{ProcessInfo, ProjectSnapshot};
use serde_json::json;

use super::tests::{attached, selected, sent};
use super::*;
use crate::layout::Layout;
use crate::sample::{Sample, project};
use crate::view::view;

/// The processes on the current page, in reading order.
fn shown(sample: &Sample) -> Vec<&str> {
    let order = sample.model.layout.as_ref().map(Layout::panes).unwrap_or_default();
    order.iter().map(|id| sample.model.panes[id].process.as_str()).collect()
}

fn left(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Leave(_))).count()
}

fn titles(sample: &Sample) -> String {
    let titles = sample.model.page_titles().into_iter();
    let titles = titles.map(|(number, title, is_current)| {
        format!("{number}:{title}{}", if is_current { "*" } else { "" })
    });
    titles.collect::<Vec<_>>().join(" ")
}

fn notice(sample: &Sample) -> &str {
    sample.model.notice.as_ref().map_or("", |notice| &notice.text)
}

/// The server started a shell for a pane.
fn shell_started(sample: &mut Sample, id: &str) -> Vec<Effect> {
    let pane = sample.effects.iter().find_map(|effect| match effect {
        Effect::Call { purpose: CallPurpose::Start(Some(pane)), .. } => Some(*pane),
        _ => None,
    });
    let started = json!({"process_id": id});
    sample.handle(Event::Answer(CallPurpose::Start(pane), Ok(started)));
    let mut next = sample.model.snapshot.clone();
    let shell = ProcessInfo {
        id: id.into(),
        name: format!("sh-{id}"),
        runs: 1,
        ..project().processes.remove(4)
    };
    next.processes.push(shell);
    sample.handle(Event::Snapshot(next)).to_vec()
}

#[test]
fn a_new_page_has_a_shell_and_only_the_current_page_is_attached() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    let effects = sample.type_in("\x02c").to_vec();
    assert_eq!(left(&effects), 2, "the panes of the first page are detached");
    assert_eq!(attached(&shell_started(&mut sample, "p6")), ["p6"]);
    assert_eq!((shown(&sample), titles(&sample).as_str()), (vec!["p6"], "0:helper 1:sh-p6*"));
    assert_eq!(sent(sample.type_in("ls")), "ls");
    let effects = sample.type_in("\x02p").to_vec();
    assert_eq!((attached(&effects), left(&effects)), (vec!["p1", "p2"], 1));
    assert_eq!(selected(&sample), "p2", "with the focus where it was");
    sample.type_in("\x02n\x02n\x02n");
    assert_eq!(titles(&sample), "0:helper 1:sh-p6*");
    sample.type_in("\x02l");
    assert_eq!(titles(&sample), "0:helper* 1:sh-p6");
    sample.type_in("\x021\x027");
    assert_eq!(
        (titles(&sample).as_str(), notice(&sample)),
        ("0:helper 1:sh-p6*", "there is no page 7")
    );
}

#[test]
fn a_shell_for_a_page_that_the_user_left_is_shown_there() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02c");
    let call = sample.effects.clone();
    sample.type_in("\x020");
    sample.effects = call;
    assert_eq!(attached(&shell_started(&mut sample, "p6")), [""; 0]);
    assert_eq!(titles(&sample), "0:lead* 1:sh-p6");
    assert_eq!(attached(sample.type_in("\x021")), ["p6"]);
    sample.type_in("\x02c");
    let pane = sample.model.focus;
    sample.type_in("\x020");
    sample.handle(Event::Answer(CallPurpose::Start(Some(pane)), Err(local_error("no room"))));
    assert_eq!(titles(&sample), "0:lead* 1:sh-p6", "a failed start leaves no page");
}

#[test]
fn numbers_of_pages_do_not_move() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02|3\r\x02!\x020\x02!");
    assert_eq!(titles(&sample), "0:lead 1:tests 2:helper*");
    sample.type_in("\x021\x02&y");
    assert_eq!(titles(&sample), "0:lead 2:helper*", "back to the one before");
    sample.type_in("\x02,build\r");
    assert_eq!(titles(&sample), "0:lead 2:build*");
    sample.type_in("\x02,\x15\r");
    assert_eq!(titles(&sample), "0:lead 2:helper*");
    sample.type_in("\x02|3\r\x02!");
    assert_eq!(titles(&sample), "0:lead 1:tests* 2:helper", "the first free number");
    sample.type_in("\x02&n\x02&y\x02&y\x02&");
    assert_eq!(
        (titles(&sample).as_str(), notice(&sample)),
        ("0:lead*", "the only page cannot be closed")
    );
    assert_eq!(sample.model.snapshot.processes.len(), 5, "no process was ended");
}

#[test]
fn panes_are_broken_out_joined_and_moved_with_their_processes() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02!");
    assert_eq!(notice(&sample), "this pane is alone on its page");
    sample.type_in("\x02|2\r\x02-3\r");
    let pane = sample.model.focus;
    let effects = sample.type_in("\x02!").to_vec();
    assert!(
        !effects.contains(&Effect::Leave(pane)) && attached(&effects).is_empty(),
        "{effects:?}"
    );
    assert_eq!(shown(&sample), ["p3"]);
    let effects = sample.type_in("\x02Jhelper\r").to_vec();
    assert_eq!(attached(&effects), ["p2"]);
    assert_eq!((shown(&sample), titles(&sample).as_str()), (vec!["p3", "p2"], "0:lead 1:helper*"));
    let effects = sample.type_in("\x02.lead\r").to_vec();
    assert_eq!(attached(&effects), ["p1", "p2"]);
    assert_eq!((shown(&sample), titles(&sample).as_str()), (vec!["p1", "p2"], "0:helper* 1:tests"));
    sample.type_in("\x02Jtests\r");
    assert_eq!(titles(&sample), "0:tests*", "a page ends with its last pane");
    sample.type_in("\x02J");
    assert!(notice(&sample).starts_with("there is only this page"));
}

#[test]
fn a_process_is_found_on_its_page_and_can_be_shown_on_others() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02!");
    sample.type_in("\x02\x1bOP");
    assert_eq!((selected(&sample), titles(&sample).as_str()), ("p1", "0:lead* 1:helper"));
    sample.type_in("\x02s2\r");
    assert_eq!(titles(&sample), "0:helper* 1:helper", "here too");
    sample.type_in("\x021\x02k");
    assert_eq!(titles(&sample), "0:helper 1:lead*", "a walk stays on its page");
    let mut next = project();
    next.processes.remove(1);
    sample.handle(Event::Snapshot(next));
    assert_eq!(titles(&sample), "1:lead*", "closed processes leave every page");
}

#[test]
fn pages_survive_and_older_layouts_are_read() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02-3\r\x02|5\r\x02!\x02,logs\r\x020\x02z");
    let saved = sample.model.layout_to_save().unwrap();
    let text = serde_json::to_string(&saved).unwrap();
    let mut back = Sample::empty(120, 40);
    back.model.saved_layout = serde_json::from_str(&text).unwrap();
    assert_eq!(attached(back.handle(Event::Snapshot(project()))), ["p1", "p2", "p3"]);
    assert_eq!(titles(&back), titles(&sample));
    assert_eq!(back.model.layout_to_save().unwrap(), saved);
    assert!(back.model.zoomed);
    // What 0.1 reads of it is the current page.
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json.as_object_mut().unwrap().retain(|key, _| key != "pages" && key != "page");
    back = Sample::empty(120, 40);
    back.model.saved_layout = serde_json::from_value(json).unwrap();
    assert_eq!(attached(back.handle(Event::Snapshot(project()))), ["p1", "p2", "p3"]);
    assert_eq!(titles(&back), "0:tests*");
    let mut gone = project();
    gone.processes.truncate(3);
    back = Sample::empty(120, 40);
    back.model.saved_layout = serde_json::from_str(&text).unwrap();
    back.handle(Event::Snapshot(gone));
    assert_eq!(titles(&back), "0:tests*", "a page without processes is not restored");
}

#[test]
fn invalid_saved_pages_are_ignored() {
    let page =
        |number: u32| json!({"number": number, "panes": {"process": "p1"}, "name": "\u{1b}[2J\n"});
    let all: Vec<Value> = (0..200).chain([3, 3]).map(page).collect();
    let mut back = Sample::empty(80, 24);
    back.model.saved_layout = serde_json::from_value(json!({"pages": all, "page": 999})).unwrap();
    back.handle(Event::Snapshot(project()));
    assert_eq!(back.model.pages.len(), 64);
    assert!(!view(&back.model).text().contains('\u{1b}'));
    assert_eq!(selected(&back), "p1");
}

#[test]
fn the_focus_moves_by_direction_order_and_label() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02-3\r");
    // 1 | 2
    //   | 3
    for (keys, expected) in [
        ("\x02\x1b[A", "p2"),
        ("\x02\x1b[D", "p1"),
        ("\x02\x1b[C", "p2"),
        ("\x02;", "p1"),
        ("\x02\x1b[D", "p2"),
        ("\x02o", "p3"),
        ("\x02O", "p2"),
        ("\x02q2", "p3"),
        ("\x02q0", "p1"),
        ("\x02q\x1b", "p1"),
        ("\x02q9", "p1"),
    ] {
        sample.type_in(keys);
        assert_eq!(selected(&sample), expected, "{keys:?}");
        assert_eq!(sample.model.mode, crate::model::Mode::Typing);
    }
    assert_eq!(sent(sample.type_in("x")), "x");
}

#[test]
fn panes_are_arranged_swapped_and_rotated() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02-3\r");
    let sizes =
        |effects: &[Effect]| effects.iter().filter(|e| matches!(e, Effect::Size(..))).count();
    assert_eq!(sizes(sample.type_in("\x02 ")), 3);
    assert_eq!(notice(&sample), "even-horizontal");
    sample.type_in("\x02 ");
    assert_eq!(notice(&sample), "even-vertical");
    sample.type_in("\x02\x1b4");
    assert_eq!(notice(&sample), "main-vertical");
    sample.type_in("\x02{");
    assert_eq!((shown(&sample), selected(&sample)), (vec!["p1", "p3", "p2"], "p3"));
    sample.type_in("\x02}\x02}");
    assert_eq!((shown(&sample), selected(&sample)), (vec!["p3", "p2", "p1"], "p3"));
    sample.type_in("\x02\x0f");
    assert_eq!((shown(&sample), selected(&sample)), (vec!["p2", "p1", "p3"], "p2"));
    sample.type_in("\x02s1\r");
    assert_eq!((shown(&sample), selected(&sample)), (vec!["p1", "p2", "p3"], "p1"), "exchanged");
}

#[test]
fn resizing_repeats_without_the_leader_for_a_moment() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    let width = |sample: &Sample| sample.model.places().0[0].1.width;
    let before = width(&sample);
    sample.type_in("\x02\x1b[1;5D");
    assert_eq!(width(&sample), before - 1);
    assert_eq!(sent(sample.type_in("\x1b[1;5D\x1b[1;5D")), "");
    assert_eq!(width(&sample), before - 3);
    sample.type_in("\x1b[1;3C");
    assert_eq!(width(&sample), before + 2, "five cells");
    sample.model.now += 1_000;
    assert_eq!(sent(sample.type_in("\x1b[1;5D")), "\x1b[1;5D", "it is the program's again");
    sample.type_in("\x02\x1b[1;5D");
    assert_eq!(sent(sample.type_in("x\x1b[1;5D")), "x\x1b[1;5D", "any other key ends it");
}

#[test]
fn keys_and_pastes_go_to_all_panes_on_request() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02B");
    assert!(!sample.model.broadcast, "there is only one pane");
    sample.type_in("\x02|4\r\x02-5\r");
    let last = sample.model.focus;
    sample.show(last, "\x1b[?2004h");
    sample.type_in("\x02B");
    assert_eq!(sent(sample.type_in("l")), "ll", "dev has ended and gets nothing");
    assert_eq!(sent(sample.type_in("\x1b[200~x\x1b[201~")), "x\x1b[200~x\x1b[201~");
    sample.type_in("\x02!");
    assert_eq!(sent(sample.type_in("l")), "l", "another page");
    sample.type_in("\x020\x02B");
    assert_eq!(sent(sample.type_in("l")), "l");
}

#[test]
fn pages_are_switched_with_the_mouse() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02|2\r\x02!");
    let row = view(&sample.model).text().lines().last().unwrap().to_owned();
    assert!(row.starts_with(" 0:lead 1:helper*"), "{row}");
    sample.type_in("\x1b[<0;3;24M\x1b[<0;3;24m");
    assert_eq!(titles(&sample), "0:lead* 1:helper");
    sample.type_in("\x1b[<0;12;24M");
    assert_eq!(titles(&sample), "0:lead 1:helper*");
    sample.type_in("\x1b[<0;60;24M");
    assert_eq!(titles(&sample), "0:lead 1:helper*");
}

#[test]
fn an_agent_is_started_in_a_new_pane() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|new claude\r");
    let effects = sample.type_in("fix it\r").to_vec();
    let waiting = sample.model.focus;
    let call = effects.iter().find_map(|effect| match effect {
        Effect::Call { method, purpose, .. } => Some((*method, purpose.clone())),
        _ => None,
    });
    assert_eq!(call, Some(("spawn_agent", CallPurpose::Start(Some(waiting)))));
    assert_eq!(shown(&sample), ["p1", ""]);
    sample.handle(Event::Snapshot(ProjectSnapshot { ..project() }));
    assert_eq!(shown(&sample), ["p1", ""], "it still waits");
}
