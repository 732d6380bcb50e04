//! Batches in flight. A server refuses a batch with an error without an id, so each batch is followed by a
//! ping: a refusal that arrives before the response to that ping belongs to the batch, and frees its ids.

use std::collections::VecDeque;

use patterm_wire::Id;

/// The batches whose ping has no response yet, in the order they were sent.
#[derive(Debug, Default)]
pub(super) struct Batches {
    waiting: VecDeque<Batch>,
    /// The server's refusal of the first of them. It is passed on when the ids are free.
    refusal: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Batch {
    ping: Id,
    ids: Vec<Id>,
}

/// A batch that the server refused.
#[derive(Debug, PartialEq)]
pub(super) struct RefusedBatch {
    /// Its requests.
    pub(super) ids: Vec<Id>,
    /// The error for the client.
    pub(super) body: Vec<u8>,
}

impl Batches {
    /// Records a batch with these requests and the ping after it.
    pub(super) fn sent(&mut self, ids: Vec<Id>, ping: Id) {
        self.waiting.push_back(Batch { ping, ids });
    }

    /// Takes an error of the server without an id; returns it if no batch is in flight.
    pub(super) fn refused(&mut self, body: Vec<u8>) -> Option<Vec<u8>> {
        if self.waiting.is_empty() {
            return Some(body);
        }
        self.refusal.replace(body)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether this is the id of a ping.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.waiting.iter().any(|batch| batch.ping == *id)
    }

    /// The server has answered the first ping, or died: the outcome of its batch is known.
    pub(super) fn settle_first(&mut self) -> Option<RefusedBatch> {
        let batch = self.waiting.pop_front()?;
        self.refusal.take().map(|body| RefusedBatch { ids: batch.ids, body })
    }

    /// The connection is lost: keeps only the batches whose ping has not been sent.
    pub(super) fn lost(&mut self, is_queued: impl Fn(&Id) -> bool) -> Option<RefusedBatch> {
        let refused = self.refusal.is_some().then(|| self.settle_first()).flatten();
        self.waiting.retain(|batch| is_queued(&batch.ping));
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_belongs_to_the_batch_before_the_next_ping() {
        let mut batches = Batches::default();
        assert_eq!(batches.refused(b"x".to_vec()), Some(b"x".to_vec()), "no batch, not ours");
        let id = Id::from_number;
        batches.sent(vec![id(1)], id(101));
        batches.sent(vec![id(2), id(3)], id(102));
        batches.sent(vec![id(4)], id(103));
        assert!(batches.has(&id(102)) && !batches.has(&id(2)));
        assert_eq!(batches.settle_first(), None, "the first was served");
        assert_eq!(batches.refused(b"no".to_vec()), None);
        let refused = RefusedBatch { ids: vec![id(2), id(3)], body: b"no".to_vec() };
        assert_eq!(batches.settle_first(), Some(refused));
        assert_eq!(batches.settle_first(), None);
        assert_eq!(batches.settle_first(), None, "nothing left");
    }

    #[test]
    fn a_refusal_survives_the_death_of_the_server() {
        let mut batches = Batches::default();
        let id = Id::from_number;
        for n in 1..4 {
            batches.sent(vec![id(n)], id(100 + n));
        }
        batches.refused(b"no".to_vec());
        let refused = RefusedBatch { ids: vec![id(1)], body: b"no".to_vec() };
        assert_eq!(batches.lost(|ping| *ping == id(103)), Some(refused));
        assert!(!batches.has(&id(102)) && batches.has(&id(103)));
        assert_eq!(batches.lost(|_| false), None);
        assert!(!batches.has(&id(103)));
    }
}
