//! What a receipt is concluded from, on a tiny agent: nothing that was there before the text, and nothing
//! that a person may have done with it.

use patterm_wire::view::FromView;
use serde_json::json;

use super::fake::Fake;
use crate::view::View;

/// A person said the same before; the message is lost.
#[test]
fn a_turn_from_before_a_message_does_not_show_that_the_message_was_taken() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.say(&FromView::Input(b"\x1b[200~[external] say it once\x1b[201~\r".to_vec()));
    assert_eq!(fake.until_turns(1), ["[external] say it once"]);
    let lost = fake.send(&id, "say it once").message;
    fake.until_receipt(lost, "stalled", "taken out of the prompt again");
    // It is looked after again before the next one is put in.
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "delivered", "");
    fake.until_receipt(lost, "stalled", "taken out of the prompt again");
    assert_eq!(fake.turns(), ["[external] say it once", "[external] the next one"]);
}

#[test]
fn what_a_person_enters_after_a_question_is_not_put_in_again() {
    let mut fake = Fake::new();
    let id = fake.spawn("keeps");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "are you there?").message;
    fake.until_receipt(message, "queued", "its prompt did not show it yet");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.say(&FromView::Input(b"y".to_vec()));
    view.until(|view| view.shows("[external] are you there?"));
    view.say(&FromView::Input(b"\r".to_vec()));
    fake.until_receipt(message, "stalled", "whether it was taken is not known");
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?", "[external] the next one"]);
}

/// After the first Enter it counts as at work, in which state another key enters a text.
#[test]
fn the_same_key_enters_a_text_the_second_time() {
    let mut fake = Fake::new();
    let id = fake.spawn("tabbed");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "this is slow").message;
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] this is slow"]);
}

/// A person who answers a question of the CLI is not kept waiting, and neither is the sender.
#[test]
fn a_message_that_waits_for_a_person_is_answered_with_the_reason() {
    let mut fake = Fake::new();
    let id = fake.spawn("keeps");
    fake.until_state(&id, "idle");
    let receipt = fake.send(&id, "are you there?");
    assert_eq!(receipt.state, "queued", "{receipt:?}");
    assert!(receipt.evidence.starts_with("it was pasted, and its prompt did not show it yet"));
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.say(&FromView::Input(b"y".to_vec()));
    fake.until_receipt(receipt.message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?"]);
}

#[test]
fn more_than_one_call_types_is_refused_with_the_limit_also_for_an_agent() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let text = "x".repeat(2_000_000);
    let long = json!({"process_id": id, "kind": "text", "text": text, "submit": true});
    let message = fake.tools.refused("limit", "send_input", long);
    assert!(message.starts_with("2000001 bytes are more than one call types"), "{message}");
    assert_eq!(fake.send(&id, "nothing of it was typed").state, "delivered");
    assert_eq!(fake.turns(), ["[external] nothing of it was typed"]);
}
