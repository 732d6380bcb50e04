//! The record of a delivery.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::receipt::{Receipt, ReceiptState};
use patterm_panes::process::ProcessId;

/// How many characters of a text lists show.
const EXCERPT_CHARS: usize = 80;

/// The evidence of a receipt while the text is being typed.
pub(super) const SUBMITTING: &str = "it is being typed";

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Source {
    /// The instructions that an agent was started with.
    FirstPrompt {
        /// The process that started it; `None` for a person or an external program.
        from: Option<ProcessId>,
        /// The tag of a sender that is not a process, such as `human`. Prompts stored by 0.1 have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// A message.
    Message {
        /// The agent that sent it; `None` for a person or an external program.
        from: Option<ProcessId>,
        /// The tag it carries, such as `orchestrator` or `sub-agent:NAME`.
        tag: String,
    },
    /// A timer that fired.
    Timer {
        /// The timer's id.
        timer_id: String,
    },
}

/// The stage of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStage {
    /// Nothing of it has been written.
    Waiting,
    /// Writing has begun. It is written again only if the server that began it saw that nothing of
    /// it reached its process: then it returns to `Waiting`.
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
    /// The gate is closed, or other texts are ahead of it.
    Gate,
    /// It is being typed.
    Typing,
    /// Typing has begun, and a dialog is waiting for a person.
    Person,
}

/// How a delivery ended.
#[derive(Debug)]
pub struct Ending {
    pub receipt: Receipt,
    /// What is left of it in the prompt.
    pub left: Option<String>,
    /// See [`Delivery::unread`].
    pub unread: bool,
}

impl From<Receipt> for Ending {
    fn from(receipt: Receipt) -> Self {
        Self { receipt, left: None, unread: false }
    }
}

/// A text to be typed into a process.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// The process it is for.
    pub to: ProcessId,
    /// Its sender.
    pub source: Source,
    /// A text with the same key is queued only once: its sender may die before recording that it
    /// sent it.
    pub key: Option<String>,
    /// The whole text, including tags.
    pub text: String,
}

/// A delivery as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its number.
    pub id: u64,
    /// The process it is for.
    pub to: ProcessId,
    /// Its sender.
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// See [`NewDelivery::key`].
    pub key: Option<String>,
    /// The text, until it is done. The last stalled deliveries keep it for as long as it may turn
    /// out that they were accepted after all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the prompt showed of it when it was left there without being submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// When this server began to write it; `None` if an earlier server began.
    #[serde(skip)]
    pub begun_at: Option<Instant>,
    /// Whether the conversation already showed the same text when writing began: then the screen
    /// does not prove that this one was accepted. `None` if that is not known.
    #[serde(default, rename = "said_before", skip_serializing_if = "Option::is_none")]
    pub shown_before: Option<bool>,
    /// The agent was in a turn when its CLI accepted the text, and has not been idle since: the
    /// text may still be in the CLI's own queue, which ends with the CLI.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// Attention was requested for it.
    #[serde(skip)]
    pub called: bool,
    /// The beginning of the text, for lists.
    pub excerpt: String,
    /// The length of the text.
    pub bytes: usize,
    /// When it was queued, in milliseconds since 1970.
    pub at: u64,
    /// Its stage.
    pub stage: DeliveryStage,
    /// What it is waiting for.
    #[serde(skip)]
    pub pending: Pending,
    /// The receipt that its sender gets.
    pub receipt: Receipt,
}

impl Delivery {
    /// It is being typed, and no dialog is waiting for a person.
    pub(crate) fn is_being_typed(&self) -> bool {
        self.stage == DeliveryStage::Begun && self.pending == Pending::Typing
    }

    /// Its receipt will change within seconds.
    pub(crate) fn is_in_motion(&self) -> bool {
        let is_new = self.stage == DeliveryStage::Waiting && self.pending == Pending::Worker;
        is_new || self.is_being_typed()
    }

    /// It stalled, and it may still turn out that it was accepted.
    pub(crate) fn is_watched(&self) -> bool {
        let is_stalled = self.receipt.state == ReceiptState::Stalled;
        self.stage == DeliveryStage::Done && is_stalled && !self.text.is_empty()
    }

    /// Writing has begun at some time.
    pub(super) fn was_typed(&self) -> bool {
        self.shown_before.is_some()
    }

    /// The part of its text that is still stored: all of it, or its beginning.
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
