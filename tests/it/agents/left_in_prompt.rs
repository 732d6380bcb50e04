//! Texts that cannot be submitted, with a fake agent: patterm erases its own text or reports that
//! it is left in the prompt, and later evidence corrects the receipt.

use patterm_wire::view::FromView;
use serde_json::{Value, json};

use super::fake::Fake;
use crate::support::tool_client::ToolClient;
use crate::view::View;

#[test]
fn a_text_that_enter_does_not_submit_is_erased_and_the_queue_continues() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    for (text, after) in [("this is deaf", "first"), ("see @README", "second")] {
        let stalled = fake.send(&id, text).message;
        let next = fake.send(&id, after).message;
        fake.until_receipt(stalled, "stalled", "erased from the prompt");
        fake.until_receipt(next, "delivered", "");
        assert_eq!(attention(&mut fake, &id), None, "no person is needed");
    }
    assert_eq!(fake.turns(), ["[external] first", "[external] second"]);
}

#[test]
fn attention_is_requested_for_a_text_left_in_a_prompt_and_the_queue_names_it() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let stuck = fake.send(&id, "this is stuck").message;
    fake.until_receipt(stuck, "stalled", "is still in the prompt");
    let stalled = json!({"since": 1, "types": ["message.stalled"]});
    let events = fake.tools.ok("get_events", stalled)["events"].take();
    let is_about = |event: &Value| event["data"]["message_id"] == stuck;
    assert!(events.as_array().unwrap().iter().any(is_about), "{events}");
    let next = fake.send(&id, "the next one").message;
    let own =
        format!("message {stuck}, which patterm typed and could not submit, is in its prompt");
    let waits = fake.until_receipt(next, "queued", &own);
    assert!(waits.evidence.contains("`[external] this is stuck`"), "{waits:?}");
    let called = attention(&mut fake, &id).unwrap();
    assert!(called.starts_with(&own) && called.contains("empty the prompt"), "{called}");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.send(&FromView::Input(b"\x03".to_vec()));
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), ["[external] the next one"]);
    assert_eq!(attention(&mut fake, &id), None, "a person was there, and is not called again");
}

#[test]
fn a_text_that_is_accepted_late_becomes_delivered_when_a_hook_reports_it() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let text = format!("later {}", fake.place.path("go").display());
    let message = fake.send(&id, &text).message;
    fake.until_receipt(message, "stalled", "is still in the prompt");
    std::fs::write(fake.place.path("go"), "").unwrap();
    let receipt =
        fake.until_receipt(message, "delivered", "a hook of its CLI reported the same text");
    assert!(receipt.evidence.contains("recorded as stalled before"), "{receipt:?}");
    assert_eq!(attention(&mut fake, &id), None, "nothing is left to be done");
    assert_eq!(fake.turns(), [format!("[external] {text}")]);
}

#[test]
fn a_text_that_is_accepted_after_the_server_was_killed_is_recorded_as_delivered_by_the_next_one() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let text = format!("later {}", fake.place.path("go").display());
    let message = fake.send(&id, &text).message;
    fake.until_receipt(message, "stalled", "is still in the prompt");
    fake.server.kill();
    let server = fake.place.serve();
    fake.tools = ToolClient::at(&server.socket());
    let own = format!("message {message}, which patterm typed and could not submit");
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "queued", &own);
    std::fs::write(fake.place.path("go"), "").unwrap();
    fake.until_receipt(message, "delivered", "a hook of its CLI reported the same text");
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), [format!("[external] {text}"), "[external] the next one".into()]);
}

#[test]
fn a_text_that_a_dialog_swallowed_is_typed_again_after_its_answer() {
    let mut fake = Fake::new();
    let id = fake.spawn("interrupts");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "are you there?").message;
    fake.until_state(&id, "blocked");
    fake.until_receipt(message, "queued", "the prompt does not show it yet");
    assert_eq!(fake.turns(), Vec::<String>::new());
    fake.tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "y"}));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?"]);
}

/// A CLI that works while a dialog replaces its prompt has not accepted the text in the prompt.
#[test]
fn a_text_that_a_dialog_covers_is_submitted_after_its_answer_and_not_delivered_before() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let message = fake.send(&id, "this is covered").message;
    fake.until_state(&id, "blocked");
    fake.until_receipt(message, "queued", "Enter was pressed while a dialog opened");
    assert_eq!(fake.turns(), Vec::<String>::new());
    fake.tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "y"}));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] this is covered"]);
}

/// A prompt that contains only whitespace looks empty; a text typed there would begin with it.
#[test]
fn a_draft_of_only_whitespace_is_left_alone() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.send(&FromView::Input(b"  ".to_vec()));
    let message = fake.send(&id, "hello").message;
    fake.until_receipt(message, "queued", "a draft of only whitespace");
    view.send(&FromView::Input(b"\x7f\x7f".to_vec()));
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] hello"]);
}

/// The reason why a process needs attention.
fn attention(fake: &mut Fake, id: &str) -> Option<String> {
    fake.tools.status(id)["attention"]["reason"].as_str().map(str::to_owned)
}
