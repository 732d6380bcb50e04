//! Batches on their way. A server that refuses one says so under no id, so each batch is followed
//! by a ping of ours: a refusal that comes before that ping's answer is the batch's, and its ids
//! are free again.

use std::collections::VecDeque;

use patterm_wire::Id;

/// The batches whose ping is not answered yet, in the order they were sent.
#[derive(Debug, Default)]
pub(super) struct Batches {
    waiting: VecDeque<Batch>,
    /// What the server said of the first of them. The client hears it when its ids are free.
    refusal: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Batch {
    ping: Id,
    ids: Vec<Id>,
}

/// A batch that the server did not serve.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    /// Its requests.
    pub(super) ids: Vec<Id>,
    /// What the client is told.
    pub(super) body: Vec<u8>,
}

impl Batches {
    /// Notes a batch with these requests, that is followed by this ping.
    pub(super) fn sent(&mut self, ids: Vec<Id>, ping: Id) {
        self.waiting.push_back(Batch { ping, ids });
    }

    /// Takes an error of the server that is about no request; gives it back if no batch waits.
    pub(super) fn refused(&mut self, body: Vec<u8>) -> Option<Vec<u8>> {
        if self.waiting.is_empty() {
            return Some(body);
        }
        self.refusal.replace(body)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether this is the id of one of the pings.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.waiting.iter().any(|batch| batch.ping == *id)
    }

    /// The server answered the first ping, or died: what became of its batch is decided.
    pub(super) fn decide(&mut self) -> Option<Refused> {
        let batch = self.waiting.pop_front()?;
        self.refusal.take().map(|body| Refused { ids: batch.ids, body })
    }

    /// Keeps only the batches whose ping is still to be sent: no other will be answered.
    pub(super) fn lost(&mut self, is_queued: impl Fn(&Id) -> bool) -> Option<Refused> {
        let refused = self.refusal.is_some().then(|| self.decide()).flatten();
        self.waiting.retain(|batch| is_queued(&batch.ping));
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_belongs_to_the_batch_whose_ping_comes_next() {
        let mut batches = Batches::default();
        assert_eq!(batches.refused(b"x".to_vec()), Some(b"x".to_vec()), "no batch, not ours");
        let id = Id::from_number;
        batches.sent(vec![id(1)], id(101));
        batches.sent(vec![id(2), id(3)], id(102));
        batches.sent(vec![id(4)], id(103));
        assert!(batches.has(&id(102)) && !batches.has(&id(2)));
        assert_eq!(batches.decide(), None, "the first was served");
        assert_eq!(batches.refused(b"no".to_vec()), None);
        let refused = Refused { ids: vec![id(2), id(3)], body: b"no".to_vec() };
        assert_eq!(batches.decide(), Some(refused));
        assert_eq!(batches.decide(), None);
        assert_eq!(batches.decide(), None, "nothing left");
    }

    #[test]
    fn a_server_that_dies_answers_no_ping_but_what_it_refused_is_refused() {
        let mut batches = Batches::default();
        let id = Id::from_number;
        for n in 1..4 {
            batches.sent(vec![id(n)], id(100 + n));
        }
        batches.refused(b"no".to_vec());
        let refused = Refused { ids: vec![id(1)], body: b"no".to_vec() };
        assert_eq!(batches.lost(|ping| *ping == id(103)), Some(refused));
        assert!(!batches.has(&id(102)) && batches.has(&id(103)));
        assert_eq!(batches.lost(|_| false), None);
        assert!(!batches.has(&id(103)));
    }
}
