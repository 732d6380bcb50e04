//! The ids under which requests are sent to a server. They are unpredictable, so that no client can
//! forge or divert the response to another client's request.

use sha2::{Digest, Sha256};

use super::UpstreamId;

/// The largest id: every language reads it as a number without loss.
const LARGEST: u64 = (1 << 53) - 1;

/// A sequence of unpredictable ids.
pub(crate) struct Ids(Box<dyn FnMut() -> u64 + Send>);

impl Ids {
    /// Ids from a source.
    pub(crate) fn of(source: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Ids derived from a secret.
    pub(crate) fn of_secret(secret: [u8; 32]) -> Self {
        let (mut block, mut ids) = (0u64, Vec::new());
        Self::of(move || {
            loop {
                if let Some(id) = ids.pop() {
                    return id;
                }
                let hash = Sha256::new().chain_update(secret).chain_update(block.to_le_bytes());
                block += 1;
                let hash: [u8; 32] = hash.finalize().into();
                let (parts, _) = hash.as_chunks::<8>();
                ids.extend(parts.iter().map(|part| u64::from_le_bytes(*part) & LARGEST));
            }
        })
    }

    /// The next id that is not in use.
    pub(super) fn next(&mut self, is_taken: impl Fn(UpstreamId) -> bool) -> UpstreamId {
        loop {
            let id = UpstreamId((self.0)());
            if !is_taken(id) {
                return id;
            }
        }
    }
}

impl std::fmt::Debug for Ids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ids")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_cover_the_whole_range() {
        let draw = |secret: u8| {
            let mut ids = Ids::of_secret([secret; 32]);
            (0..1_000).map(|_| ids.next(|_| false).0).collect::<BTreeSet<_>>()
        };
        let ids = draw(1);
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| *id <= 9_007_199_254_740_991));
        assert!(ids.first().unwrap() < &(1 << 46) && ids.last().unwrap() > &(1 << 52));
        assert!(ids.is_disjoint(&draw(2)));
    }

    #[test]
    fn an_id_in_use_is_skipped() {
        let mut count = 0..;
        let mut ids = Ids::of(move || count.next().unwrap());
        assert_eq!((ids.next(|id| id.0 < 3).0, ids.next(|_| false).0), (3, 4));
    }
}
