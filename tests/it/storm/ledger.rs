//! Counts requests and responses.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The state of an unanswered request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// It must be answered.
    Owed,
    /// It was cancelled: it may be answered once, or never.
    Cancelled,
}

/// The requests of one connection, by the text of their ids. Each id is used once.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: HashMap<String, Fate>,
    asked: usize,
}

impl Ledger {
    pub(super) fn ask(&mut self, id: &str) {
        self.asked += 1;
        let before = self.open.insert(id.to_owned(), Fate::Owed);
        assert_eq!(before, None, "{id} is asked twice: a fault of the test");
    }

    pub(super) fn cancel(&mut self, id: &str) {
        if let Some(fate) = self.open.get_mut(id) {
            *fate = Fate::Cancelled;
        }
    }

    /// Records a response; it must be the first to this id.
    #[track_caller]
    pub(super) fn answered(&mut self, body: &[u8]) -> String {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let answer: Answer<'_> = serde_json::from_slice(body).unwrap();
        let id = answer.id.get().to_owned();
        let fate = self.open.remove(&id);
        assert!(fate.is_some(), "answered twice, or never asked: {}", body.escape_ascii());
        id
    }

    /// Checks a connection that ended cleanly: everything that was not cancelled must have been
    /// answered.
    #[track_caller]
    pub(super) fn close(self) {
        let owed: Vec<_> = self.open.iter().filter(|(_, fate)| **fate == Fate::Owed).collect();
        assert!(owed.is_empty(), "never answered: {owed:?}");
    }

    pub(super) fn asked(&self) -> usize {
        self.asked
    }
}
