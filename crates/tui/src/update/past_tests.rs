//! The time bar: what is requested, and that nothing reaches a program.

use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::follow::ProjectSnapshot;
use patterm_wire::past::{EventGroup, PastDirection, PastRequest, PastResult, PastStep, ReadPast};
use patterm_wire::{ErrorObject, Method};

use super::{CallPurpose, Effect, Event};
use crate::model::Mode;
use crate::sample::{Sample, project};

/// The requests among the effects.
fn requests(effects: &[Effect]) -> Vec<PastRequest> {
    let request = |effect: &Effect| match effect {
        Effect::Call { method, params, .. } if *method == ReadPast::NAME => {
            Some(serde_json::from_value(params.clone()).unwrap())
        }
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

/// Answers the request that is under way; returns the next one.
fn answer(sample: &mut Sample, result: &PastResult) -> Vec<PastRequest> {
    let purpose = CallPurpose::Past(sample.model.last_time_bar);
    let result = serde_json::to_value(result).unwrap();
    requests(sample.handle(Event::Answer(purpose, Ok(result))))
}

fn at(at_ms: u64) -> PastResult {
    PastResult { at_ms, now_ms: 900, first_ms: 10, ..PastResult::default() }
}

#[test]
fn keys_become_steps_and_those_that_come_too_fast_are_one_request() {
    let mut sample = Sample::new(100, 30);
    let opened = requests(sample.type_in("\x02h"));
    assert_eq!(opened, [PastRequest { processes: vec!["p1".into()], ..PastRequest::default() }]);
    assert_eq!(requests(sample.type_in("\x1b[D\x1b[D\x1b[A\x1b[5~")), [], "one is under way");
    let next = answer(&mut sample, &at(900));
    assert_eq!(
        (next[0].from_ms, &next[0].steps[..]),
        (Some(900), &[PastStep::By { ms: -72_000 }][..])
    );
    assert_eq!(answer(&mut sample, &at(500)), []);
    let (back, forward) = (PastDirection::Back, PastDirection::Forward);
    let event = |group, direction| PastStep::Event { group, direction };
    let text = || "Error".to_owned();
    for (keys, step) in [
        ("\x1b[C", PastStep::By { ms: 1_000 }),
        ("g", PastStep::Beginning),
        ("G", PastStep::Now),
        (",", PastStep::Change { direction: back }),
        (".", PastStep::Change { direction: forward }),
        ("e", event(EventGroup::All, back)),
        ("M", event(EventGroup::Messages, forward)),
        ("s", event(EventGroup::States, back)),
        ("A", event(EventGroup::Attention, forward)),
        ("/Error\r", PastStep::Search { text: text(), direction: back }),
        ("N", PastStep::Search { text: text(), direction: forward }),
        ("\x1b[<64;40;3M", PastStep::Change { direction: back }),
    ] {
        let sent = requests(sample.type_in(keys));
        assert_eq!(sent[0].steps, [step], "{keys:?}");
        assert_eq!(answer(&mut sample, &at(500)), []);
    }
    assert_eq!(sample.type_in("9:12\r"), [Effect::ReadTime("9:12".to_owned())]);
    let sent = requests(sample.handle(Event::TimeRead(Ok(77))));
    assert_eq!(sent[0].steps, [PastStep::To { at_ms: 77 }]);
    sample.handle(Event::TimeRead(Err("it is not a time".to_owned())));
    assert!(sample.model.notice.as_ref().unwrap().text.contains("not a time"));
}

#[test]
fn nothing_that_is_typed_reaches_the_program_until_the_bar_is_closed() {
    let mut sample = Sample::new(100, 30);
    sample.type_in("\x02h");
    for keys in ["x", "y\r", "\x1b[200~rm -rf\r\x1b[201~", "z", "/a\x1b", "t1\x1b", "\x1b[<0;50;5M"]
    {
        let effects = sample.type_in(keys);
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send(..))), "{keys:?}");
        assert_eq!(sample.model.mode, Mode::Past, "{keys:?}");
    }
    sample.type_in("\x1b");
    assert!(sample.model.mode == Mode::Typing && sample.model.past.is_none());
    let pane = sample.model.focus;
    assert_eq!(sample.type_in("x"), [Effect::Send(pane, b"x".to_vec())]);
    // An answer that was on its way.
    assert_eq!(answer(&mut sample, &at(5)), []);
    assert!(sample.model.past.is_none());
    // The leader works as everywhere, and ends it.
    sample.type_in("\x02h\x02?");
    assert!(matches!(sample.model.mode, Mode::Help { .. }) && sample.model.past.is_none());
}

#[test]
fn all_panes_of_the_page_are_requested_together_and_tab_switches() {
    let mut sample = Sample::new(100, 30);
    sample.type_in("\x02|2\r");
    let sent = requests(sample.type_in("\x02H"));
    assert_eq!(sent[0].processes, ["p1", "p2"]);
    answer(&mut sample, &at(500));
    let sent = requests(sample.type_in("\t"));
    assert_eq!((sent[0].from_ms, &sent[0].processes[..]), (Some(500), &["p2".to_owned()][..]));
    // Its pane goes.
    let mut next = project();
    next.processes.retain(|process| process.id != "p2");
    sample.handle(Event::Snapshot(ProjectSnapshot { ..next }));
    assert!(sample.model.past.is_none() && sample.model.mode != Mode::Past);
}

#[test]
fn what_was_not_found_and_what_the_server_cannot_do_is_reported() {
    let mut sample = Sample::new(100, 30);
    sample.type_in("\x02h");
    answer(&mut sample, &at(900));
    let notice = |sample: &Sample| sample.model.notice.as_ref().unwrap().text.clone();
    for (keys, expected) in [
        ("m", "no message before this"),
        ("A", "no request for attention after this"),
        ("/zz\r", "no line with `zz` before this"),
    ] {
        sample.type_in(keys);
        answer(&mut sample, &PastResult { is_missed: true, ..at(900) });
        assert_eq!(notice(&sample), expected);
    }
    sample.type_in("g");
    answer(&mut sample, &PastResult { again_ms: Some(60_000), ..at(10) });
    assert!(notice(&sample).contains("showed this time again"));
    let fail = |sample: &mut Sample, code| {
        sample.type_in("g");
        let purpose = CallPurpose::Past(sample.model.last_time_bar);
        sample.handle(Event::Answer(purpose, Err(ErrorObject::new(code, "it broke"))));
    };
    fail(&mut sample, -1);
    assert_eq!((notice(&sample), sample.model.mode.clone()), ("it broke".to_owned(), Mode::Past));
    assert_eq!(requests(sample.type_in("g")).len(), 1, "the next step is sent again");
    answer(&mut sample, &at(10));
    fail(&mut sample, METHOD_NOT_FOUND);
    assert!(notice(&sample).contains("`patterm upgrade`") && sample.model.past.is_none());
}
