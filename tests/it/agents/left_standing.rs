//! Texts that cannot be entered, on a tiny agent: patterm takes its own text out again or says that
//! it stands there, and what is seen later corrects what was said.

use patterm_wire::view::FromView;
use serde_json::json;

use super::fake::Fake;
use crate::support::tool_client::ToolClient;
use crate::view::View;

#[test]
fn a_text_that_enter_does_not_send_is_taken_out_and_the_queue_goes_on() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    for (text, after) in [("this is deaf", "first"), ("see @README", "second")] {
        let stalled = fake.send(&id, text).message;
        let next = fake.send(&id, after).message;
        fake.until_receipt(stalled, "stalled", "taken out of the prompt again");
        fake.until_receipt(next, "delivered", "");
        assert_eq!(attention(&mut fake, &id), None, "no person is needed");
    }
    assert_eq!(fake.turns(), ["[external] first", "[external] second"]);
}

#[test]
fn a_person_is_called_to_a_text_that_stands_in_a_prompt_and_the_queue_says_so() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let stuck = fake.send(&id, "this is stuck").message;
    fake.until_receipt(stuck, "stalled", "still stands in its prompt");
    let next = fake.send(&id, "the next one").message;
    let own =
        format!("message {stuck}, which patterm typed and could not enter, stands in its prompt");
    let waits = fake.until_receipt(next, "queued", &own);
    assert!(waits.evidence.contains("`[external] this is stuck`"), "{waits:?}");
    let called = attention(&mut fake, &id).unwrap();
    assert!(called.starts_with(&own) && called.contains("empty the prompt"), "{called}");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.say(&FromView::Input(b"\x03".to_vec()));
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), ["[external] the next one"]);
    assert_eq!(attention(&mut fake, &id), None, "a person was there, and is not called again");
}

#[test]
fn what_is_taken_late_is_called_delivered_when_a_hook_tells_it() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let text = format!("later {}", fake.place.path("go").display());
    let message = fake.send(&id, &text).message;
    fake.until_receipt(message, "stalled", "still stands in its prompt");
    std::fs::write(fake.place.path("go"), "").unwrap();
    let receipt =
        fake.until_receipt(message, "delivered", "a hook of its CLI reported the same text");
    assert!(receipt.evidence.contains("called stalled before"), "{receipt:?}");
    assert_eq!(attention(&mut fake, &id), None, "nothing is left to be done");
    assert_eq!(fake.turns(), [format!("[external] {text}")]);
}

#[test]
fn what_is_taken_after_the_server_was_killed_is_called_delivered_by_the_next_one() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let text = format!("later {}", fake.place.path("go").display());
    let message = fake.send(&id, &text).message;
    fake.until_receipt(message, "stalled", "still stands in its prompt");
    fake.server.kill();
    let server = fake.place.serve();
    fake.tools = ToolClient::at(&server.socket());
    let own = format!("message {message}, which patterm typed and could not enter");
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "queued", &own);
    std::fs::write(fake.place.path("go"), "").unwrap();
    fake.until_receipt(message, "delivered", "a hook of its CLI reported the same text");
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), [format!("[external] {text}"), "[external] the next one".into()]);
}

#[test]
fn what_a_question_swallowed_is_put_in_again_after_its_answer() {
    let mut fake = Fake::new();
    let id = fake.spawn("interrupts");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "are you there?").message;
    fake.until_state(&id, "blocked");
    fake.until_receipt(message, "queued", "its prompt did not show it yet");
    assert_eq!(fake.turns(), Vec::<String>::new());
    fake.tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "y"}));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?"]);
}

/// A CLI that works, and asks in the place of its prompt, has not taken what stands there.
#[test]
fn what_a_question_covers_is_entered_after_its_answer_and_not_called_delivered_before() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let message = fake.send(&id, "this is covered").message;
    fake.until_state(&id, "blocked");
    fake.until_receipt(message, "queued", "Enter was pressed as a person was asked something");
    assert_eq!(fake.turns(), Vec::<String>::new());
    fake.tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "y"}));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] this is covered"]);
}

/// A prompt of blanks looks empty; a text behind them would have them before it.
#[test]
fn a_draft_of_blanks_is_left_alone() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.say(&FromView::Input(b"  ".to_vec()));
    let message = fake.send(&id, "hello").message;
    fake.until_receipt(message, "queued", "a draft of blanks");
    view.say(&FromView::Input(b"\x7f\x7f".to_vec()));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] hello"]);
}

/// What a person is called to a process for.
fn attention(fake: &mut Fake, id: &str) -> Option<String> {
    fake.tools.status(id)["attention"]["reason"].as_str().map(str::to_owned)
}
