//! Hashes that identify content.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use patterm_store::hex;

/// The hash of some content, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(String);

/// Digits of the hash in a revision: enough that no two versions of a pad share them by chance.
const SHORT: usize = 8;

impl Digest {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(hex::encode(&Sha256::digest(content)))
    }

    /// The digest of a file that is too large to read: of its beginning and its size.
    pub(crate) fn of_beginning(beginning: &[u8], size: u64) -> Self {
        let hash = Sha256::new().chain_update(beginning).chain_update(size.to_le_bytes());
        Self(hex::encode(&hash.finalize()))
    }

    pub(crate) fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}
