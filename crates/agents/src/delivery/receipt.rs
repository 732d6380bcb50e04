//! What became of a text that was to be put into a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptState {
    /// It was seen to be taken.
    Delivered,
    /// It waits, and will be typed in.
    Queued,
    /// It was begun or given up, and nobody will try again.
    Stalled,
}

/// How far it came, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// `delivered`, `queued` or `stalled`.
    pub state: ReceiptState,
    /// What that is concluded from.
    pub evidence: String,
}

impl Receipt {
    /// A receipt.
    pub fn new(state: ReceiptState, evidence: impl Into<String>) -> Self {
        Self { state, evidence: evidence.into() }
    }
}
