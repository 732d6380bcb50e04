//! Events about texts on their way: after each write, the deliveries are compared with what was recorded.

use std::collections::BTreeMap;

use patterm_events::{About, EventLog, current_actor};
use patterm_wire::events::{Actor, Fact};

use super::receipt::ReceiptState;
use super::record::{Delivery, DeliveryStage, Pending, Source};

/// What has been recorded about deliveries.
#[derive(Debug, Default)]
pub(super) struct DeliveryRecorder {
    events: EventLog,
    /// The highest number so far.
    last: u64,
    /// Those that are known now, or were open when the last server died.
    known: BTreeMap<u64, Recorded>,
}

/// The last event about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Accepted,
    Queued,
    Stalled,
    Delivered,
    Dropped,
}

impl DeliveryRecorder {
    /// Continues after the events of earlier servers.
    pub(super) fn new(events: EventLog) -> Self {
        let state_before = events.known_state();
        let state = |stalled| if stalled { Recorded::Stalled } else { Recorded::Accepted };
        let known =
            state_before.open_messages.into_iter().map(|(id, stalled)| (id, state(stalled)));
        Self { last: state_before.last_message, known: known.collect(), events }
    }

    /// Records what has changed. `recovered` changes are those that an earlier server did not
    /// record.
    pub(super) fn compare(&mut self, deliveries: &[Delivery], recovered: bool) {
        for delivery in deliveries {
            self.compare_one(delivery, recovered);
        }
        let is_gone = |id: &u64| deliveries.iter().all(|delivery| delivery.id != *id);
        let gone: Vec<_> = self.known.keys().copied().filter(is_gone).collect();
        for message_id in gone {
            let state = self.known.remove(&message_id);
            if matches!(state, Some(Recorded::Accepted | Recorded::Queued)) {
                let reason = "its record was lost".to_owned();
                let fact = Fact::MessageDropped { message_id, reason };
                self.events.record_recovered(About::project(), fact);
            }
        }
    }

    fn compare_one(&mut self, delivery: &Delivery, recovered: bool) {
        let before = match self.known.get(&delivery.id) {
            Some(state) => *state,
            None if delivery.id > self.last => {
                self.last = delivery.id;
                self.accepted(delivery, recovered);
                Recorded::Accepted
            }
            // What the events still report as open, but no longer is, is missing in them.
            None => state_of(delivery),
        };
        let now = match state_of(delivery) {
            // A wait is recorded once, until something else happens.
            Recorded::Accepted if before == Recorded::Queued => before,
            now => now,
        };
        self.known.insert(delivery.id, now);
        if now != before {
            self.changed(delivery, now, recovered);
        }
    }

    fn accepted(&self, delivery: &Delivery, recovered: bool) {
        let (kind, actor) = match &delivery.source {
            Source::FirstPrompt { .. } => ("first_prompt", current_actor()),
            Source::Message { .. } => ("message", current_actor()),
            Source::Timer { timer_id } => ("timer", Actor::Timer { timer_id: timer_id.clone() }),
        };
        let length = u64::try_from(delivery.bytes).unwrap_or(u64::MAX);
        let (message_id, kind) = (delivery.id, kind.to_owned());
        let fact = Fact::MessageAccepted { message_id, kind, length, text: None };
        self.record(actor, delivery, fact, recovered);
    }

    fn changed(&self, delivery: &Delivery, now: Recorded, recovered: bool) {
        let (message_id, evidence) = (delivery.id, delivery.receipt.evidence.clone());
        let (actor, fact) = match now {
            Recorded::Accepted => return,
            Recorded::Queued => (Actor::System, Fact::MessageQueued { message_id, evidence }),
            Recorded::Stalled => (Actor::System, Fact::MessageStalled { message_id, evidence }),
            Recorded::Delivered => (Actor::System, Fact::MessageDelivered { message_id, evidence }),
            // Its sender may have withdrawn it.
            Recorded::Dropped => {
                (current_actor(), Fact::MessageDropped { message_id, reason: evidence })
            }
        };
        self.record(actor, delivery, fact, recovered);
    }

    fn record(&self, actor: Actor, delivery: &Delivery, fact: Fact, recovered: bool) {
        let about = About::process(&delivery.to);
        match recovered {
            true => self.events.record_recovered(about, fact),
            false => self.events.record_by(actor, about, fact),
        }
    }
}

fn state_of(delivery: &Delivery) -> Recorded {
    match (delivery.stage, delivery.receipt.state) {
        (DeliveryStage::Waiting, _) if delivery.pending == Pending::Gate => Recorded::Queued,
        (DeliveryStage::Waiting | DeliveryStage::Begun, _) => Recorded::Accepted,
        (DeliveryStage::Done, ReceiptState::Delivered) => Recorded::Delivered,
        // A text that was typed, or that the CLI gave back, keeps what is known of it.
        (DeliveryStage::Done, _) if delivery.was_typed() => Recorded::Stalled,
        (DeliveryStage::Done, _) => Recorded::Dropped,
    }
}
