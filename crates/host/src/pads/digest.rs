//! What tells one content from another.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use patterm_store::hex;

/// A content's hash, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest(String);

/// Digits of it in a revision: enough that no two contents of a pad share them by chance.
const SHORT: usize = 8;

impl Digest {
    pub(super) fn of(content: &[u8]) -> Self {
        Self(hex::encode(&Sha256::digest(content)))
    }

    /// Of a file that is too large to be read: its beginning and its size.
    pub(super) fn of_beginning(beginning: &[u8], size: u64) -> Self {
        let hash = Sha256::new().chain_update(beginning).chain_update(size.to_le_bytes());
        Self(hex::encode(&hash.finalize()))
    }

    pub(super) fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}
