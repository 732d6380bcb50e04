//! Messages and what became of them.

use std::collections::BTreeMap;

use patterm_wire::digest::{DigestEntry, MessageCounts};
use patterm_wire::events::{EventRecord, Fact};

use super::text::{actor_name, entry, short};

/// Messages that are remembered at once: those before the oldest of them count no more.
const MOST_MESSAGES: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Waiting,
    Stalled,
    Delivered,
    Dropped,
}

#[derive(Debug)]
struct MessageTrack {
    to: Option<String>,
    from: Option<patterm_wire::events::Actor>,
    state: MessageState,
    /// The event that says so, with the evidence as its text.
    last: DigestEntry,
    /// Something happened to it within the window.
    touched: bool,
}

/// The messages that were read of.
#[derive(Debug, Default)]
pub(super) struct MessageBook(BTreeMap<u64, MessageTrack>);

/// The messages to a process.
#[derive(Debug, Default)]
pub(super) struct MessagesTo {
    pub(super) counts: MessageCounts,
    /// Those that did not arrive.
    pub(super) open: Vec<(bool, DigestEntry)>,
}

impl MessageBook {
    pub(super) fn feed(&mut self, event: &EventRecord, fact: &Fact, inside: bool) {
        let (id, state, evidence) = match fact {
            Fact::MessageAccepted { message_id, .. } => (*message_id, MessageState::Waiting, ""),
            Fact::MessageQueued { message_id, evidence } => {
                (*message_id, MessageState::Waiting, evidence.as_str())
            }
            Fact::MessageStalled { message_id, evidence } => {
                (*message_id, MessageState::Stalled, evidence.as_str())
            }
            Fact::MessageDelivered { message_id, evidence } => {
                (*message_id, MessageState::Delivered, evidence.as_str())
            }
            Fact::MessageDropped { message_id, reason } => {
                (*message_id, MessageState::Dropped, reason.as_str())
            }
            _ => return,
        };
        let known = self.0.entry(id).or_insert_with(|| MessageTrack {
            to: None,
            from: None,
            state,
            last: DigestEntry::default(),
            touched: false,
        });
        if known.to.is_none() {
            known.to.clone_from(&event.process_id);
        }
        if matches!(fact, Fact::MessageAccepted { .. }) {
            known.from = Some(event.actor.clone());
        }
        known.touched |= inside;
        // After a delivery there may be a late doubt, which does not open the message again.
        if known.state != MessageState::Delivered || known.last.seq == 0 {
            (known.state, known.last) = (state, entry(event, short(evidence)));
        }
        while self.0.len() > MOST_MESSAGES {
            self.0.pop_first();
        }
    }

    /// By process: its messages. A message that still waits is in every digest.
    pub(super) fn finish(self, names: &BTreeMap<String, String>) -> BTreeMap<String, MessagesTo> {
        let mut all: BTreeMap<String, MessagesTo> = BTreeMap::new();
        for (id, message) in self.0 {
            let is_open = message.state == MessageState::Waiting;
            let Some(to) = message.to.filter(|_| message.touched || is_open) else { continue };
            let of = all.entry(to).or_default();
            let counts = &mut of.counts;
            let (counter, what) = match message.state {
                MessageState::Delivered => (&mut counts.delivered, None),
                MessageState::Waiting => (&mut counts.waiting, Some("waits")),
                MessageState::Stalled => (&mut counts.stalled, Some("may not have arrived")),
                MessageState::Dropped => (&mut counts.dropped, Some("was dropped")),
            };
            *counter += 1;
            let Some(what) = what else { continue };
            let name_of = |id: &str| names.get(id).cloned().unwrap_or_else(|| id.to_owned());
            let from = message.from.map(|from| format!(" from {}", actor_name(&from, name_of)));
            let why = match message.last.text.as_str() {
                "" => String::new(),
                why => format!(": {why}"),
            };
            let text = format!("message {id}{} {what}{why}", from.unwrap_or_default());
            let has_stalled = message.state == MessageState::Stalled;
            let mut entry = DigestEntry { text, ..message.last };
            entry.process_id = None;
            of.open.push((has_stalled, entry));
        }
        for (id, of) in &mut all {
            for (_, entry) in &mut of.open {
                entry.process_id = Some(id.clone());
            }
        }
        all
    }
}
