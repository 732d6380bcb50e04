//! The user's settings, layout, bells and notifications.

use crate::model::Mode;
use patterm_wire::follow::{NotificationInfo, ProjectSnapshot};

use super::tests::{attached, selected, sent};
use super::*;
use crate::sample::{Sample, project};

fn prints(sample: &mut Sample, pane: PaneId, bytes: &[u8]) -> Vec<Effect> {
    let frame = ToView::Output { offset: 0, bytes: bytes.to_vec() };
    sample.handle(Event::Frame(pane, frame)).to_vec()
}

#[test]
fn the_bell_of_the_focused_pane_rings_and_others_are_marked() {
    let mut sample = Sample::new(120, 40);
    let first = sample.model.focus;
    assert_eq!(prints(&mut sample, first, b"a\x07\x07"), [Effect::Ring]);
    assert_eq!(prints(&mut sample, first, b"\x07"), [], "at a limited rate");
    sample.model.now += 1_000;
    assert_eq!(prints(&mut sample, first, b"\x07"), [Effect::Ring]);
    sample.show(first, "\x07");
    assert_eq!(sample.effects, [], "a snapshot is silent");
    sample.type_in("\x02|2\r");
    sample.model.now += 1_000;
    assert_eq!(prints(&mut sample, first, b"\x07"), []);
    assert!(crate::view::view(&sample.model).text().contains("1*● @ lead"));
    sample.type_in("\x02O");
    assert!(crate::view::view(&sample.model).text().contains("1 ● @ lead"));
}

/// The project after a process has notified for the n-th time.
fn notifying(process: usize, number: u64, text: &str) -> ProjectSnapshot {
    let mut next = project();
    let text = text.to_owned();
    next.processes[process].notification = Some(NotificationInfo { number, text });
    next
}

#[test]
fn programs_notify_without_focus_by_name_and_at_a_limited_rate() {
    let mut sample = Sample::new(80, 24);
    let pane = sample.model.focus;
    let asks = b"\x1b]9;tests are green\x07\x1b]777;notify;cargo;done\x07\x1b]52;c;eA==\x07\x1b[6n";
    assert_eq!(
        prints(&mut sample, pane, asks),
        [],
        "the server sends them, and the clipboard stays"
    );
    sample.type_in("\x1b[O");
    sample.model.now += 5_000;
    let mut says = |number: u64, text: &str| {
        sample.model.now += 1_500;
        sample.handle(Event::Snapshot(notifying(0, number, text))).to_vec()
    };
    assert_eq!(says(1, "green"), [Effect::Notify("lead: green".to_owned())]);
    assert_eq!(says(1, "green"), [], "it is the same");
    assert_eq!(says(2, "green"), [Effect::Notify("lead: green".to_owned())]);
    assert_eq!(says(3, "red"), [], "too soon");
    assert_eq!(says(1, "blue"), [Effect::Notify("lead: blue".to_owned())], "after a restart");
    // What was notified before this terminal was attached is old.
    let mut late = Sample::empty(80, 24);
    late.model.has_snapshot = false;
    late.type_in("\x1b[O");
    let effects = late.handle(Event::Snapshot(notifying(0, 7, "old"))).to_vec();
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Notify(_))), "{effects:?}");
}

#[test]
fn with_the_focus_a_notification_of_another_program_is_shown_below_and_marked() {
    let mut sample = Sample::new(80, 24);
    sample.model.now += 5_000;
    assert_eq!(sample.handle(Event::Snapshot(notifying(0, 1, "in front"))), []);
    assert_eq!(sample.model.notice, None, "the user sees this program");
    sample.model.now += 5_000;
    assert_eq!(sample.handle(Event::Snapshot(notifying(1, 1, "a\u{202e}b\x1b[2J"))), []);
    let frame = crate::view::view(&sample.model).text();
    assert!(frame.contains("2 helper notifies you: a"), "{frame}");
    assert!(frame.contains("2*"), "{frame}");
    assert!(!frame.contains(['\u{202e}', '\x1b']), "{frame}");
    sample.type_in("x");
    assert_eq!(sample.model.notice, None, "until the next key");
    // Another text at the bottom is not replaced.
    notify(&mut sample.model, "the disk is full", true);
    sample.model.now += 5_000;
    sample.handle(Event::Snapshot(notifying(1, 2, "ready")));
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "the disk is full");
}

#[test]
fn a_bell_that_nobody_has_seen_is_marked() {
    let mut sample = Sample::new(80, 24);
    let mut next = project();
    next.processes[4].rang = true;
    sample.handle(Event::Snapshot(next));
    assert!(crate::view::view(&sample.model).text().contains("5*"));
}

#[test]
fn the_leader_leaves_a_question_and_stays_the_leader() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02X");
    assert!(matches!(sample.model.mode, Mode::Confirm(_)), "{:?}", sample.model.mode);
    assert_eq!(sample.type_in("\x02"), []);
    assert_eq!(sample.model.mode, Mode::Leader);
}

#[test]
fn a_blocked_agent_is_notified_once() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x1b[O");
    let mut next = project();
    next.processes[1].activity = patterm_wire::follow::ActivityState::Blocked;
    next.processes[1].reason = "Push to main? (y | n)".to_owned();
    next.processes[2].attention = None;
    let notified = [Effect::Notify("helper: Push to main? (y | n)".to_owned())];
    assert_eq!(sample.handle(Event::Snapshot(next.clone())), notified);
    assert_eq!(sample.handle(Event::Snapshot(next)), []);
}

/// The same project in another attachment.
fn attach_again(saved: &str, size: (u16, u16), snapshot: ProjectSnapshot) -> (Sample, Vec<String>) {
    let mut sample = Sample::empty(size.0, size.1);
    sample.model.saved_layout = serde_json::from_str(saved).ok();
    let effects = sample.handle(Event::Snapshot(snapshot)).to_vec();
    let processes = attached(&effects).into_iter().map(str::to_owned).collect();
    (sample, processes)
}

#[test]
fn the_saved_layout_is_restored_at_any_size() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02-3\r");
    let line = sample.model.places().1[0].line;
    let (x, y) = (line.x + 1, line.y + 3);
    sample.type_in(&format!("\x1b[<0;{x};{y}M\x1b[<32;{};{y}M\x1b[<0;{};{y}m", x + 10, x + 10));
    sample.type_in("\x02O\x02z");
    let saved = sample.model.layout_to_save().unwrap();
    let text = serde_json::to_string(&saved).unwrap();
    for size in [(120, 40), (20, 5), (300, 100)] {
        let (mut back, processes) = attach_again(&text, size, project());
        assert_eq!(processes, ["p1", "p2", "p3"]);
        assert_eq!(selected(&back), "p2");
        assert!(back.model.zoomed);
        assert_eq!(back.model.layout_to_save().unwrap(), saved, "and is saved again");
        back.type_in("\x02z");
        crate::view::view(&back.model);
    }
    let (mut back, _) = attach_again(&text, (120, 40), project());
    back.type_in("\x02z");
    sample.type_in("\x02z");
    assert_eq!(back.model.places().0, sample.model.places().0);
}

#[test]
fn missing_processes_leave_their_space_to_the_others() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r\x02-3\r");
    let saved = serde_json::to_string(&sample.model.layout_to_save()).unwrap();
    let mut snapshot = project();
    snapshot.processes.remove(2);
    let (back, processes) = attach_again(&saved, (120, 40), snapshot);
    assert_eq!(processes, ["p1", "p2"]);
    assert_eq!(selected(&back), "p1", "the focused process is gone");
    let (back, _) = attach_again(&saved, (120, 40), ProjectSnapshot::default());
    assert!(back.model.layout.is_none());
    let snapshot = ProjectSnapshot { processes: vec![project().processes.remove(4)], ..project() };
    assert_eq!(
        attach_again(&saved, (120, 40), snapshot).1,
        ["p5"],
        "nothing of the layout is left"
    );
}

#[test]
fn an_invalid_saved_layout_is_ignored() {
    let twice = r#"{"panes":{"below":true,"share":60000,"parts":[{"process":"p1"},{"process":"p1"}]},
        "focus":"p9","zoomed":true,"tree_width":65535}"#;
    let (back, processes) = attach_again(twice, (80, 24), project());
    assert_eq!(processes, ["p1"]);
    assert!(!back.model.zoomed);
    for text in ["", "null", "[]", r#"{"panes":7}"#, r#"{"panes":{"below":1}}"#, "{}"] {
        let (back, processes) = attach_again(text, (80, 24), project());
        assert_eq!(processes, ["p5"], "{text}");
        crate::view::view(&back.model);
    }
}

#[test]
fn a_requested_process_is_added_to_the_saved_layout() {
    let mut sample = Sample::new(120, 40);
    sample.type_in("\x02|2\r");
    let saved = serde_json::to_string(&sample.model.layout_to_save()).unwrap();
    let mut back = Sample::empty(120, 40);
    back.model.saved_layout = serde_json::from_str(&saved).unwrap();
    back.model.to_show = Some("p5".to_owned());
    back.handle(Event::Snapshot(project()));
    assert_eq!(selected(&back), "p5");
    assert_eq!(back.model.panes.len(), 2);
}

#[test]
fn new_keys_work_at_once_and_are_shown() {
    let mut sample = Sample::new(80, 24);
    let text = "leader = \"ctrl+a\"\n[keys]\nzoom = \"f\"\n[direct]\nf5 = \"split-right\"\n";
    sample.handle(Event::Settings(Ok(text.to_owned())));
    assert_eq!(sent(sample.type_in("\x02d")), "\x02d", "the old leader is an ordinary key");
    assert_eq!(attached(sample.type_in("\x1b[15~2\r")), ["p2"]);
    sample.type_in("\x01f");
    assert!(sample.model.zoomed);
    assert_eq!(sent(sample.type_in("\x01\x01")), "\x01");
    sample.type_in("\x01");
    sample.handle(Event::LeaderWaited);
    let shown = crate::view::view(&sample.model).text();
    assert!(shown.contains("ctrl+a, then") && shown.contains(" f           zoom"), "{shown}");
    assert!(!shown.contains("ctrl+b"), "{shown}");
    assert_eq!(sample.type_in("d"), [Effect::Quit(None)]);
}

#[test]
fn panes_are_attached_again_when_the_size_policy_changes() {
    let mut sample = Sample::new(80, 24);
    let smallest = || Event::Settings(Ok("sizes = \"smallest\"".to_owned()));
    assert_eq!(attached(sample.handle(smallest())), ["p1"]);
    assert_eq!(attached(sample.handle(smallest())), [""; 0]);
}

#[test]
fn a_settings_file_with_errors_is_reported_and_not_applied() {
    let mut sample = Sample::new(80, 24);
    sample.handle(Event::Settings(Ok("leader = \"ctrl+a\"".to_owned())));
    sample.handle(Event::Settings(Ok("leader = \"ctrl+x\"\n[keys]\nzoom = 1\nx = 1".to_owned())));
    let notice = sample.model.notice.clone().unwrap();
    assert!(notice.is_error && notice.text.starts_with("tui.toml:3:8: `zoom` takes a key"));
    assert!(notice.text.ends_with("(and 1 more error)"), "{}", notice.text);
    assert_eq!(sample.model.settings.keys.leader_name(), "ctrl+a");
    assert!(crate::view::view(&sample.model).text().contains("a list of keys, or false"));
    sample.type_in("x");
    assert!(crate::view::view(&sample.model).text().contains("✗ tui.toml"));
    sample.handle(Event::Settings(Ok(String::new())));
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "tui.toml is in effect");
    assert_eq!(sample.model.settings.keys.leader_name(), "ctrl+b");
}
