//! Frames of the time bar.

use patterm_wire::base64;
use patterm_wire::past::{PastPlace, PastResult, PastScreen, PastState};
use serde_json::to_value;

use super::tests::check;
use super::view;
use crate::sample::Sample;
use crate::update::{CallPurpose, Event};

const MINUTE_MS: u64 = 60_000;

fn shown(id: &str, columns: u16, text: &str) -> PastScreen {
    let bytes = base64::encode(text.as_bytes());
    let state = PastState::Shown { rows: 20, columns, offset: 99, bytes };
    PastScreen { process_id: id.to_owned(), state }
}

/// What the server answers five minutes later, of twenty.
fn result(sample: &Sample, screens: Vec<PastScreen>) -> PastResult {
    let now = sample.model.now;
    PastResult {
        at_ms: now - 5 * MINUTE_MS - 340,
        now_ms: now,
        first_ms: now - 20 * MINUTE_MS,
        screens,
        ..PastResult::default()
    }
}

fn answer(sample: &mut Sample, result: &PastResult) {
    let purpose = CallPurpose::Past(sample.model.last_time_bar);
    sample.handle(Event::Answer(purpose, Ok(to_value(result).unwrap())));
}

fn one_pane(sample: &mut Sample) {
    sample.type_in("\x02h");
    let screen = shown("p1", 50, "lead says\r\n\x1b[31mit was like this\x1b[m\r\n漢字 e\u{301} 🙂");
    let result = result(sample, vec![screen]);
    answer(sample, &result);
}

#[test]
fn one_pane_in_the_past() {
    check("past", one_pane);
}

#[test]
fn a_pane_in_the_past_at_an_event() {
    check("past-event", |sample| {
        one_pane(sample);
        sample.type_in("e");
        let found = PastPlace {
            process_id: Some("p1".to_owned()),
            kind: Some("agent.blocked".to_owned()),
            text: "may I push the branch to origin, and delete the old one there?".to_owned(),
            offset: None,
        };
        let screens = vec![shown("p1", 50, "Push?\r\n1. Yes\r\n2. No")];
        let result = PastResult { found: Some(found), ..result(sample, screens) };
        answer(sample, &result);
    });
}

#[test]
fn all_panes_at_one_moment() {
    check("past-all", |sample| {
        sample.type_in("\x02|2\r");
        sample.type_in("\x02-4\r");
        sample.type_in("\x02H");
        let state = |id: &str, state| PastScreen { process_id: id.to_owned(), state };
        let began = sample.model.now - MINUTE_MS;
        let screens = vec![
            shown("p1", 30, "lead said this"),
            state("p2", PastState::NotStarted { started_ms: Some(began) }),
            state("p4", PastState::Dropped { first_ms: Some(began) }),
        ];
        let result = result(sample, screens);
        answer(sample, &result);
    });
}

#[test]
fn a_time_that_is_typed() {
    check("past-time", |sample| {
        one_pane(sample);
        sample.type_in("09:12");
    });
}

#[test]
fn another_day_has_its_date_and_the_bar_says_how_long_ago_it_was() {
    let mut sample = Sample::new(120, 30);
    one_pane(&mut sample);
    let text = view(&sample.model).text();
    assert!(text.contains("it was like this") && text.contains("5m00s ago"), "{text}");
    sample.model.now += 26 * 60 * MINUTE_MS;
    let text = view(&sample.model).text();
    assert!(text.contains("1970-01-12 13:41:39.6 · 1d02h ago"), "{text}");
    // The program goes on behind it, and its pane shows that only afterwards.
    let pane = sample.model.focus;
    sample.show(pane, "something new");
    assert!(!view(&sample.model).text().contains("something new"));
    sample.type_in("q");
    let text = view(&sample.model).text();
    assert!(text.contains("something new") && !text.contains("it was like this"), "{text}");
}
