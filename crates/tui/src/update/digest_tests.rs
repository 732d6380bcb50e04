//! The digest of an absence: when it opens, which keys it takes, and where it leads.

use patterm_wire::digest::{Digest, LookedRequest, NoteLooked, ReadDigest, Viewer};
use patterm_wire::events::format_time;
use patterm_wire::method::Method;
use patterm_wire::view::{ToView, ViewSize};
use serde_json::{json, to_value};

use super::digest::answered;
use super::{CallPurpose, Effect, Event};
use crate::away::Absence;
use crate::model::{Mode, Model};
use crate::sample::{Sample, digest};

const HOUR: u64 = 3_600_000;

fn answer(sample: &mut Sample, by_user: bool) {
    let digest = to_value(digest(sample.model.now)).unwrap();
    sample.handle(Event::Answer(CallPurpose::Digest { by_user }, Ok(digest)));
}

fn is_open(model: &Model) -> bool {
    matches!(model.mode, Mode::Digest(_))
}

/// The calls of a method among the effects.
fn calls<M: Method>(effects: &[Effect]) -> usize {
    let is_it =
        |effect: &&Effect| matches!(effect, Effect::Call { method, .. } if *method == M::NAME);
    effects.iter().filter(is_it).count()
}

fn looked(shown: Option<(u64, String)>) -> Effect {
    let request = LookedRequest { viewer: Viewer::Tui, shown };
    Effect::call::<NoteLooked>(&request, CallPurpose::Looked)
}

/// The TUI after an attachment that showed a digest by itself.
fn shown() -> Sample {
    let mut sample = Sample::new(80, 24);
    answer(&mut sample, false);
    assert!(is_open(&sample.model));
    sample
}

#[test]
fn it_opens_after_an_attachment_and_closes_as_seen() {
    let mut sample = shown();
    sample.model.now += 1_000;
    let until = format_time(sample.model.now - 1_000);
    assert_eq!(sample.type_in("\x1b"), [looked(Some((99, until)))]);
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn it_never_takes_a_key_that_was_meant_for_a_pane() {
    // Letters at any time, and its own keys as long as nobody can have seen it.
    for (after, keys) in [(0, "\r"), (999, "\x1b[B"), (60_000, "y"), (60_000, "\x03"), (0, "\x1b")]
    {
        let mut sample = shown();
        sample.model.now += after;
        let pane = sample.model.focus;
        let effects = sample.type_in(keys).to_vec();
        assert!(!is_open(&sample.model), "{keys:?}");
        let sent =
            effects.iter().any(|effect| matches!(effect, Effect::Send(id, _) if *id == pane));
        assert!(sent, "{keys:?}: {effects:?}");
        assert!(sample.model.notice.as_ref().unwrap().text.contains("ctrl+b W shows again"));
    }
    let mut sample = shown();
    let effects = sample.type_in("\x1b[200~pasted\x1b[201~").to_vec();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Send(..))), "{effects:?}");
    let mut sample = shown();
    sample.type_in("\x02");
    assert_eq!(sample.model.mode, Mode::Leader, "the leader works as everywhere");
}

#[test]
fn it_does_not_open_while_the_user_types() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("x");
    answer(&mut sample, false);
    assert!(!is_open(&sample.model));
    assert!(sample.model.notice.as_ref().unwrap().text.contains("1 thing needs you (ctrl+b W)"));
    for _ in 0..3 {
        sample.model.now += 4_000;
        sample.type_in("x");
        sample.handle(Event::DigestDue);
        assert!(!is_open(&sample.model));
    }
    assert!(sample.model.away.absence != Absence::Over);
    sample.model.now += 5_000;
    sample.handle(Event::DigestDue);
    assert!(is_open(&sample.model), "after a pause");
}

#[test]
fn it_is_requested_when_the_user_returns_and_only_then() {
    let mut sample = shown();
    sample.model.now += 2_000;
    sample.type_in("\x1b");
    let focus = "\x1b[I";
    sample.model.now += 4 * 60_000;
    let effects = sample.type_in(focus).to_vec();
    assert_eq!((calls::<ReadDigest>(&effects), calls::<NoteLooked>(&effects)), (0, 1));
    sample.model.now += 5 * 60_000;
    let effects = sample.type_in(focus).to_vec();
    assert_eq!((calls::<ReadDigest>(&effects), calls::<NoteLooked>(&effects)), (1, 0));
    // Nothing is noted as seen until the digest was shown.
    sample.model.now += 2 * 60_000;
    assert_eq!(calls::<NoteLooked>(sample.type_in("x")), 0);
    sample.model.now += 6_000;
    answer(&mut sample, false);
    assert!(is_open(&sample.model));
    sample.model.now += 2_000;
    sample.type_in("\x1b");
    sample.handle(Event::Settings(Ok("digest_minutes = 0".to_owned())));
    sample.model.now += 24 * HOUR;
    let effects = sample.type_in(focus).to_vec();
    assert_eq!(calls::<ReadDigest>(&effects), 0, "it is off");
}

#[test]
fn a_short_absence_a_quiet_one_and_an_older_server_show_nothing() {
    let mut sample = Sample::new(80, 24);
    let now = sample.model.now;
    let short = Digest { from: Some(format_time(now - 1_000)), ..digest(now) };
    answered(&mut sample.model, false, short);
    let quiet = Digest {
        from: Some(format_time(now - HOUR)),
        until: format_time(now),
        ..Digest::default()
    };
    answered(&mut sample.model, false, quiet);
    assert_eq!(sample.model.away.absence, Absence::Over);
    let unknown = patterm_wire::ErrorObject::method_not_found("patterm/digest");
    sample.handle(Event::Answer(CallPurpose::Digest { by_user: false }, Err(unknown)));
    assert_eq!(sample.model.notice, None);
    assert_eq!(sample.model.away.absence, Absence::Unknown);
    sample.model.now += HOUR;
    assert_eq!(sample.type_in("\x1b[I"), []);
}

#[test]
fn a_digest_that_a_dying_server_did_not_send_is_requested_again() {
    let mut sample = Sample::new(80, 24);
    let lost = super::local_error("the server ended before it answered");
    sample.handle(Event::Answer(CallPurpose::Digest { by_user: false }, Err(lost)));
    assert_eq!(calls::<NoteLooked>(sample.type_in("x")), 0, "nothing was seen");
    sample.handle(Event::Lost);
    let effects = sample.handle(Event::Snapshot(crate::sample::project())).to_vec();
    assert_eq!(calls::<ReadDigest>(&effects), 1);
    sample.handle(Event::Lost);
    let effects = sample.handle(Event::Snapshot(crate::sample::project())).to_vec();
    assert_eq!(calls::<ReadDigest>(&effects), 0, "once");
}

#[test]
fn enter_goes_to_the_process_and_to_the_place_in_its_output() {
    let mut sample = shown();
    sample.model.now += 2_000;
    sample.type_in("\r");
    assert_eq!(sample.model.selected().unwrap().id, "p3");
    let pane = sample.model.focus;
    assert!(sample.model.panes[&pane].scroll.is_none(), "its screen is not known yet");
    let lines = |from: u64| (from..=300).map(|n| format!("line {n:03}\r\n")).collect::<String>();
    let size = sample.model.panes[&pane].requested.unwrap();
    let size = ViewSize { rows: size.rows, columns: size.columns };
    // Each line has ten bytes: offset 2,000 is before line 201.
    let bytes = lines(280).into_bytes();
    sample.handle(Event::Frame(pane, ToView::Snapshot { offset: 3_000, size, bytes }));
    assert!(sample.model.panes[&pane].scroll.is_some());
    let older = json!({"text": lines(1), "offset": 0, "next_offset": 3_000});
    sample.handle(Event::Answer(CallPurpose::Older(pane), Ok(older)));
    let scroll = sample.model.panes[&pane].scroll.as_ref().unwrap();
    let (row, _) = scroll.cursor;
    assert_eq!(scroll.rows[row].text().trim_end(), "line 201");
    assert!(scroll.top < row);
}

#[test]
fn a_closed_process_and_another_run_are_not_mistaken() {
    let mut sample = Sample::new(80, 24);
    let mut gone = digest(sample.model.now);
    gone.needs_you[0].process_id = Some("p77".into());
    gone.agents[0].entries[0].run = Some(9);
    sample
        .handle(Event::Answer(CallPurpose::Digest { by_user: true }, Ok(to_value(gone).unwrap())));
    assert!(is_open(&sample.model), "it was asked for");
    let again = sample.model.mode.clone();
    sample.type_in("\r");
    assert!(sample.model.notice.as_ref().unwrap().text.contains("p77 was closed"));
    sample.model.mode = again;
    // The agent's line, then what happened to it.
    sample.type_in("\x1b[B\x1b[B\r");
    assert_eq!(sample.model.selected().unwrap().id, "p1");
    assert_eq!(sample.model.away.jump, None, "another run has other output");
}

#[test]
fn the_action_opens_it_again() {
    let mut sample = shown();
    sample.model.now += 60_000;
    sample.type_in("x");
    let effects = sample.type_in("\x02W").to_vec();
    let since = sample.model.away.began_ms.unwrap();
    let params = json!({ "since_ms": since });
    let purpose = CallPurpose::Digest { by_user: true };
    assert_eq!(effects, [Effect::Call { method: "patterm/digest", params, purpose }]);
    answer(&mut sample, true);
    assert!(is_open(&sample.model));
    sample.type_in("z");
    assert!(is_open(&sample.model), "who asked for it does not type into a pane");
    sample.type_in("q");
    assert!(!is_open(&sample.model));
}
