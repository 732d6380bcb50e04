//! What a person may decide about what ran when everything was ended.

use patterm_wire::restore::METHOD;
use serde_json::{Value, json};

use super::{Asked, Effect, Event};
use crate::model::Mode;
use crate::sample::{Sample, ended};

fn asked(effects: &[Effect]) -> Vec<Value> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { tool, arguments, .. } if *tool == METHOD => Some(arguments.clone()),
        _ => None,
    });
    calls.collect()
}

fn is_open(sample: &Sample) -> bool {
    matches!(sample.model.mode, Mode::Restore { .. })
}

#[test]
fn enter_brings_back_all_that_can_be_started() {
    for key in ["\r", "y"] {
        let mut sample = Sample::after_the_end(80, 24);
        assert!(is_open(&sample));
        let wish = json!({"ids": ["p1", "p2", "p5"], "decline": false});
        assert_eq!(asked(sample.type_in(key)), [wish]);
        assert_eq!(sample.model.mode, Mode::Typing);
    }
}

#[test]
fn what_is_left_out_is_not_asked_about_again() {
    let mut sample = Sample::after_the_end(80, 24);
    // The second; the third cannot be started, so that there is nothing to choose.
    sample.type_in("j j ");
    let (left, back) =
        (json!({"ids": ["p2"], "decline": true}), json!({"ids": ["p1", "p5"], "decline": false}));
    assert_eq!(asked(sample.type_in("\r")), [left, back]);
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("j  ");
    assert_eq!(asked(sample.type_in("y"))[0]["ids"], json!(["p1", "p2", "p5"]), "and back again");
}

#[test]
fn never_declines_all_and_later_nothing() {
    let mut sample = Sample::after_the_end(80, 24);
    let wish = json!({"ids": ["p1", "p2", "p3", "p5"], "decline": true});
    assert_eq!(asked(sample.type_in("N")), [wish]);
    for key in ["n", "\x1b", "\x03"] {
        let mut sample = Sample::after_the_end(80, 24);
        assert_eq!(asked(sample.type_in(key)), [Value::Null; 0]);
        assert_eq!(sample.model.mode, Mode::Typing);
    }
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("n");
    sample.happen(Event::Lost);
    sample.happen(Event::Snapshot(ended()));
    assert!(!is_open(&sample), "the same server's next life does not ask again");
    sample.type_in("\x02:restore\r");
    assert!(is_open(&sample), "the palette has it");
}

#[test]
fn it_follows_what_others_decide_and_never_comes_between_keys() {
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("\x1b[A");
    let mut next = ended();
    next.offers.truncate(1);
    sample.happen(Event::Snapshot(next.clone()));
    assert_eq!(asked(sample.type_in("y"))[0]["ids"], json!(["p1"]));
    let mut sample = Sample::after_the_end(80, 24);
    next.offers.clear();
    sample.happen(Event::Snapshot(next));
    assert!(
        matches!(sample.model.mode, Mode::Text { .. }),
        "a key that was meant for it closes this"
    );
    sample.type_in("y");
    assert_eq!(sample.model.mode, Mode::Typing);
    sample.happen(Event::Snapshot(ended()));
    assert!(!is_open(&sample), "a person types; only a new beginning asks");
}

#[test]
fn a_click_chooses_and_decides_nothing() {
    let mut sample = Sample::after_the_end(80, 24);
    let y = (0..24).find(|y| crate::view::offer_row(&sample.model, 20, *y) == Some(3)).unwrap();
    sample.type_in(&format!("\x1b[<0;21;{}M", y + 1));
    sample.type_in("\x1b[<0;1;1M");
    assert!(is_open(&sample));
    assert_eq!(asked(sample.type_in("\r"))[0], json!({"ids": ["p5"], "decline": true}));
}

#[test]
fn what_is_back_is_shown() {
    let mut sample = Sample::after_the_end(80, 24);
    sample.type_in("\r");
    let answer = json!({"processes": [{"process_id": "p1", "name": "lead", "how": "resumed"}]});
    let effects = sample.happen(Event::Answer(Asked::Restore, Ok(answer))).to_vec();
    assert!(matches!(&effects[..], [Effect::Attach { process, .. }] if process == "p1"));
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "1 is back");
    let anew = json!({"processes": [
        {"process_id": "p1", "name": "lead", "how": "resumed"},
        {"process_id": "p2", "name": "helper", "how": "anew", "reason": "so"},
    ]});
    sample.happen(Event::Answer(Asked::Restore, Ok(anew)));
    let text = &sample.model.notice.as_ref().unwrap().text;
    assert_eq!(text, "2 are back, 1 with a new conversation");
    assert_eq!(sample.model.mode, Mode::Typing, "as it was said before");
    let failed = json!({"processes": [
        {"process_id": "p2", "name": "helper", "how": "not", "reason": "so"},
    ]});
    sample.happen(Event::Answer(Asked::Restore, Ok(failed)));
    let sheet = |mode: &Mode| matches!(mode, Mode::Text { text, .. } if text.contains("so"));
    assert!(sheet(&sample.model.mode), "{:?}", sample.model.mode);
}
