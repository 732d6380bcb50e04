//! What is kept of a text on its way into a process.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::receipt::{Receipt, ReceiptState};
use patterm_panes::process::ProcessId;

/// Characters of a text that lists show.
const EXCERPT_CHARS: usize = 80;

/// The evidence of a receipt while the text is being typed.
pub(super) const SUBMITTING: &str = "it is being typed";

/// Whose words they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Source {
    /// The instructions that an agent was started with.
    FirstPrompt {
        /// Who started it; `None` outside the project.
        from: Option<ProcessId>,
    },
    /// A message.
    Message {
        /// The agent that sent it; `None` for a person or a program outside.
        from: Option<ProcessId>,
        /// The tag it carries, like `orchestrator` or `sub-agent:NAME`.
        tag: String,
    },
    /// A timer that fired.
    Timer {
        /// Which.
        timer_id: String,
    },
}

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStage {
    /// Nothing of it was written yet.
    Waiting,
    /// Writing has begun. It is written again only where the server that began it saw that nothing of
    /// it came to its process: then it waits as before.
    Begun,
    /// Delivered or stalled.
    Done,
}

/// What an open delivery is waiting for, as far as this server knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pending {
    /// It was queued, and no worker has tried it yet.
    #[default]
    Worker,
    /// The gate is closed, or other texts are before it.
    Gate,
    /// It is being typed.
    Typing,
    /// Typing has begun, and a dialog waits for a person.
    Person,
}

/// How a delivery ended.
#[derive(Debug)]
pub struct Ending {
    pub receipt: Receipt,
    /// What of it stands in the prompt.
    pub left: Option<String>,
    /// See [`Delivery::unread`].
    pub unread: bool,
}

impl From<Receipt> for Ending {
    fn from(receipt: Receipt) -> Self {
        Self { receipt, left: None, unread: false }
    }
}

/// A text to be put into a process.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// Whom it is for.
    pub to: ProcessId,
    /// Who sends it.
    pub source: Source,
    /// Handed in a second time under the same key, it is the same delivery: whoever hands in may die
    /// before noting that it did.
    pub key: Option<String>,
    /// The whole text, tags included.
    pub text: String,
}

/// A delivery as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its number.
    pub id: u64,
    /// Whom it is for.
    pub to: ProcessId,
    /// Who sends it.
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// Names the text: one with the same key is queued only once.
    pub key: Option<String>,
    /// The text, until it is done; of the last ones that stalled, for as long as it may still be
    /// seen that they were taken.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the prompt showed of it when it was left there, not entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// When this server began to write it; `None` for one that an earlier server began.
    #[serde(skip)]
    pub begun_at: Option<Instant>,
    /// Whether the conversation showed the same text when writing began: then it says nothing of this
    /// one. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_before: Option<bool>,
    /// The agent was in a turn when its CLI accepted the text, and has not been seen to rest since: the text may
    /// still be in the CLI's own queue, which ends with the CLI.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// A person was called to it.
    #[serde(skip)]
    pub called: bool,
    /// Its beginning, for lists.
    pub excerpt: String,
    /// How long it is.
    pub bytes: usize,
    /// When it was queued, in milliseconds since 1970.
    pub at: u64,
    /// How far it is.
    pub stage: DeliveryStage,
    /// What it is waiting for.
    #[serde(skip)]
    pub pending: Pending,
    /// What its sender is told.
    pub receipt: Receipt,
}

impl Delivery {
    /// It is being typed, and no dialog waits for a person.
    pub(crate) fn is_being_typed(&self) -> bool {
        self.stage == DeliveryStage::Begun && self.pending == Pending::Typing
    }

    /// Its receipt will change within seconds.
    pub(crate) fn is_in_motion(&self) -> bool {
        let is_new = self.stage == DeliveryStage::Waiting && self.pending == Pending::Worker;
        is_new || self.is_being_typed()
    }

    /// It stalled, and may yet be seen to have been taken.
    pub(crate) fn is_watched(&self) -> bool {
        let is_stalled = self.receipt.state == ReceiptState::Stalled;
        self.stage == DeliveryStage::Done && is_stalled && !self.text.is_empty()
    }

    /// What is known of its text: all of it, or its beginning.
    pub(super) fn known_text(&self) -> &str {
        match self.text.is_empty() {
            true => self.excerpt.trim_end_matches('…'),
            false => &self.text,
        }
    }
}

/// The beginning of a text on one line.
pub(super) fn excerpt(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(EXCERPT_CHARS + 1)
        .collect();
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
