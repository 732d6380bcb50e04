//! Frames of a server that does not answer, of an agent that was interrupted, and of starting an agent beside a pane.

use patterm_wire::follow::ProjectSnapshot;

use super::tests::check;
use super::view;
use crate::sample::{Sample, project};
use crate::update::Event;

const ADVICE: &str = "it is suspended (pid 4242); `kill -CONT 4242` resumes it";

/// The lead was interrupted, and something waits for it.
fn interrupted() -> ProjectSnapshot {
    let mut snapshot = project();
    let text = "interrupted by a reboot; waiting for it: 2 queued texts, 1 timer; it had asked: may I push?";
    snapshot.processes[0].interrupted = Some(text.to_owned());
    snapshot
}

#[test]
fn a_server_that_does_not_answer() {
    check("hung", |sample| {
        sample.handle(Event::Hung(ADVICE.to_owned()));
    });
}

#[test]
fn the_notice_stays_over_everything_until_the_server_answers() {
    let mut sample = Sample::new(100, 30);
    sample.handle(Event::Hung(ADVICE.to_owned()));
    for keys in ["a", "\x02:", "\x1b", "\x02D", "\x1b", "\x02r"] {
        sample.type_in(keys);
        let text = view(&sample.model).text();
        assert!(text.contains("kill -CONT 4242"), "{keys:?}:\n{text}");
    }
    sample.handle(Event::Answers);
    assert!(!view(&sample.model).text().contains("does not answer"));
}

#[test]
fn a_server_that_ends_while_it_does_not_answer_is_reported() {
    let mut sample = Sample::new(100, 30);
    sample.handle(Event::Lost);
    assert_eq!(sample.model.notice, None, "it had answered");
    sample.handle(Event::Hung(ADVICE.to_owned()));
    sample.handle(Event::Lost);
    let text = view(&sample.model).text();
    assert!(text.contains("may be lost") && !text.contains("4242"), "{text}");
}

#[test]
fn input_that_is_not_sent_is_reported() {
    let mut sample = Sample::new(100, 30);
    sample.handle(Event::NotSent(70_000));
    assert!(view(&sample.model).text().contains("✗ 70000 bytes that you typed were not sent"));
}

#[test]
fn an_interrupted_agent() {
    check("interrupted", |sample| {
        sample.handle(Event::Snapshot(interrupted()));
    });
}

#[test]
fn it_can_be_dismissed() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02i");
    assert!(sample.effects.is_empty(), "there is nothing to dismiss");
    sample.handle(Event::Snapshot(interrupted()));
    sample.type_in("\x02i");
    assert_eq!(sample.effects.len(), 1, "{:?}", sample.effects);
}

#[test]
fn an_agent_beside_this_pane() {
    check("agents-beside", |sample| {
        sample.type_in("\x02A");
    });
    check("prompt-of-several-lines", |sample| {
        sample.type_in("\x02A\r");
        sample.type_in("fix the lexer:\x0a\x0a- numbers with underscores\x1b\r- nested comments");
    });
}
