//! What is known about a delivery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptState {
    /// It was verified that the process accepted it.
    Delivered,
    /// It is waiting and will be typed.
    Queued,
    /// Typing began without a confirmed result, or was given up; it will not be tried again.
    Stalled,
}

/// The state of a delivery, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// `delivered`, `queued` or `stalled`.
    pub state: ReceiptState,
    /// The evidence for it.
    pub evidence: String,
}

impl Receipt {
    /// A receipt.
    pub fn new(state: ReceiptState, evidence: impl Into<String>) -> Self {
        Self { state, evidence: evidence.into() }
    }
}
