//! The evidence for receipts, with a fake agent: nothing from before the text counts, and nothing
//! that a person may have done with it.

use patterm_wire::view::FromView;
use serde_json::json;

use super::fake::Fake;
use crate::view::View;

/// A person sent the same text before; the message is lost.
#[test]
fn a_turn_before_a_message_is_not_evidence_that_the_message_was_accepted() {
    let mut fake = Fake::new();
    let id = fake.spawn("hooked");
    fake.until_state(&id, "idle");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.send(&FromView::Input(b"\x1b[200~[external] say it once\x1b[201~\r".to_vec()));
    assert_eq!(fake.until_turns(1), ["[external] say it once"]);
    let lost = fake.send(&id, "say it once").message;
    fake.until_receipt(lost, "stalled", "erased from the prompt");
    // Follow-up happens again before the next text is typed.
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "delivered", "");
    fake.until_receipt(lost, "stalled", "erased from the prompt");
    assert_eq!(fake.turns(), ["[external] say it once", "[external] the next one"]);
}

#[test]
fn a_text_that_a_person_submits_after_a_dialog_is_not_typed_again() {
    let mut fake = Fake::new();
    let id = fake.spawn("keeps");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "are you there?").message;
    fake.until_receipt(message, "queued", "the prompt does not show it yet");
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.send(&FromView::Input(b"y".to_vec()));
    view.until(|view| view.shows("[external] are you there?"));
    view.send(&FromView::Input(b"\r".to_vec()));
    fake.until_receipt(message, "stalled", "it is not known whether the text was accepted");
    let next = fake.send(&id, "the next one").message;
    fake.until_receipt(next, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?", "[external] the next one"]);
}

/// After the first Enter it counts as working, and in that state another key submits a text.
#[test]
fn the_second_attempt_to_submit_uses_the_same_key() {
    let mut fake = Fake::new();
    let id = fake.spawn("tabbed");
    fake.until_state(&id, "idle");
    let message = fake.send(&id, "this is slow").message;
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] this is slow"]);
}

/// Neither a person who answers a dialog nor the sender is kept waiting.
#[test]
fn the_sender_of_a_message_that_waits_for_a_person_is_told_why() {
    let mut fake = Fake::new();
    let id = fake.spawn("keeps");
    fake.until_state(&id, "idle");
    let receipt = fake.send(&id, "are you there?");
    assert_eq!(receipt.state, "queued", "{receipt:?}");
    assert!(
        receipt.evidence.starts_with("the text was pasted, but the prompt does not show it yet")
    );
    let mut view = View::attach_at(&fake.server.socket(), &id, 24, 80);
    view.send(&FromView::Input(b"y".to_vec()));
    fake.until_receipt(receipt.message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] are you there?"]);
}

#[test]
fn input_over_the_limit_of_one_call_is_refused_for_agents_too() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let text = "x".repeat(2_000_000);
    let long = json!({"process_id": id, "kind": "text", "text": text, "submit": true});
    let message = fake.tools.refused("limit", "send_input", long);
    assert!(message.starts_with("2000001 bytes are more than the "), "{message}");
    assert_eq!(fake.send(&id, "nothing of it was typed").state, "delivered");
    assert_eq!(fake.turns(), ["[external] nothing of it was typed"]);
}
