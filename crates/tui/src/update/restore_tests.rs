//! The user's decisions about restoring processes.

use patterm_wire::Method;
use patterm_wire::restore::Restore;
use serde_json::{Value, json};

use super::{CallPurpose, Effect, Event};
use crate::model::Mode;
use crate::sample::{Sample, ended};

fn requested(effects: &[Effect]) -> Vec<Value> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { method, params, .. } if *method == Restore::NAME => Some(params.clone()),
        _ => None,
    });
    calls.collect()
}

fn is_open(sample: &Sample) -> bool {
    matches!(sample.model.mode, Mode::Restore { .. })
}

#[test]
fn enter_restores_all_that_can_be_started() {
    for key in ["\r", "y"] {
        let mut sample = Sample::after_the_end(80, 24);
        assert!(is_open(&sample));
        let request = json!({"ids": ["p1", "p2", "p5"], "decline": false});
        assert_eq!(requested(sample.type_in(key)), [request]);
        assert_eq!(sample.model.mode, Mode::Typing);
    }
}

#[test]
fn processes_that_are_left_out_are_declined() {
    let mut sample = Sample::after_the_end(80, 24);
    // The second; the third cannot be started, so it cannot be chosen.
    sample.type_in("j j ");
    let (left, back) =
        (json!({"ids": ["p2"], "decline": true}), json!({"ids": ["p1", "p5"], "decline": false}));
    assert_eq!(requested(sample.type_in("\r")), [left, back]);
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("j  ");
    assert_eq!(
        requested(sample.type_in("y"))[0]["ids"],
        json!(["p1", "p2", "p5"]),
        "and chosen again"
    );
}

#[test]
fn never_declines_all_and_later_declines_nothing() {
    let mut sample = Sample::after_the_end(80, 24);
    let request = json!({"ids": ["p1", "p2", "p3", "p5"], "decline": true});
    assert_eq!(requested(sample.type_in("N")), [request]);
    for key in ["n", "\x1b", "\x03"] {
        let mut sample = Sample::after_the_end(80, 24);
        assert_eq!(requested(sample.type_in(key)), [Value::Null; 0]);
        assert_eq!(sample.model.mode, Mode::Typing);
    }
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("n");
    sample.handle(Event::Lost);
    sample.handle(Event::Snapshot(ended()));
    assert!(!is_open(&sample), "it does not ask again after a reconnect");
    sample.type_in("\x02:restore\r");
    assert!(is_open(&sample), "it is in the palette");
}

#[test]
fn the_list_follows_the_decisions_of_others() {
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("\x1b[A");
    let mut next = ended();
    next.offers.truncate(1);
    sample.handle(Event::Snapshot(next.clone()));
    assert_eq!(requested(sample.type_in("y"))[0]["ids"], json!(["p1"]));
    let mut sample = Sample::after_the_end(80, 24);
    next.offers.clear();
    sample.handle(Event::Snapshot(next));
    assert!(
        matches!(sample.model.mode, Mode::Text { .. }),
        "a key that was meant for the list closes this"
    );
    sample.type_in("y");
    assert_eq!(sample.model.mode, Mode::Typing);
    sample.handle(Event::Snapshot(ended()));
    assert!(!is_open(&sample), "the user is typing; only a new connection asks");
}

#[test]
fn a_click_chooses_without_deciding() {
    let mut sample = Sample::after_the_end(80, 24);
    let y = (0..24).find(|y| crate::view::offer_row(&sample.model, 20, *y) == Some(3)).unwrap();
    sample.type_in(&format!("\x1b[<0;21;{}M", y + 1));
    sample.type_in("\x1b[<0;1;1M");
    assert!(is_open(&sample));
    assert_eq!(requested(sample.type_in("\r"))[0], json!({"ids": ["p5"], "decline": true}));
}

#[test]
fn a_restored_process_is_shown() {
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("\r");
    let answer = json!({"processes": [{"process_id": "p1", "name": "lead", "how": "resumed"}]});
    let effects = sample.handle(Event::Answer(CallPurpose::Restore, Ok(answer))).to_vec();
    assert!(matches!(&effects[..], [Effect::Attach { process, .. }] if process == "p1"));
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "restored 1 process");
    let restored = json!({"processes": [
        {"process_id": "p1", "name": "lead", "how": "resumed"},
        {"process_id": "p2", "name": "helper", "how": "anew", "reason": "so"},
    ]});
    sample.handle(Event::Answer(CallPurpose::Restore, Ok(restored)));
    let text = &sample.model.notice.as_ref().unwrap().text;
    assert_eq!(text, "restored 2 processes, 1 with a new conversation");
    assert_eq!(sample.model.mode, Mode::Typing, "the offer has said so");
    let failed = json!({"processes": [
        {"process_id": "p2", "name": "helper", "how": "not", "reason": "so"},
    ]});
    sample.handle(Event::Answer(CallPurpose::Restore, Ok(failed)));
    let sheet = |mode: &Mode| matches!(mode, Mode::Text { text, .. } if text.contains("so"));
    assert!(sheet(&sample.model.mode), "{:?}", sample.model.mode);
}
