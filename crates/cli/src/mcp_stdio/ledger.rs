//! The client's unanswered requests and its handshake: what must be repeated or failed when the server dies.

use std::collections::HashMap;

use patterm_wire::{Id, Message};

/// Requests that only read and can be repeated with a new server. Others may have been carried out already.
const SAFE_TO_REPEAT: [&str; 9] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "subscriptions/listen",
];

#[derive(Debug)]
struct Pending {
    /// Its position among all requests.
    number: u64,
    /// The whole request, if it can be repeated.
    repeat: Option<Vec<u8>>,
    /// The server has it.
    sent: bool,
    is_initialize: bool,
}

/// The requests in flight and the handshake.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pending: HashMap<Id, Pending>,
    /// The number of requests so far.
    asked: u64,
    /// The parameters of the answered `initialize`.
    initialize: Option<String>,
    /// Those of an unanswered one.
    initializing: Option<String>,
    initialized: bool,
}

/// What to do after a server has died.
#[derive(Debug, PartialEq)]
pub(super) struct LostRequests {
    /// Requests to repeat, in their order.
    pub(super) repeat: Vec<(Id, Vec<u8>)>,
    /// Which of them is the client's `initialize`, if `initialized` followed it, which must then be repeated,
    /// too.
    pub(super) initialized_after: Option<Id>,
    /// Requests that may or may not have been carried out, in their order.
    pub(super) failed: Vec<Id>,
}

impl Ledger {
    /// Records a message of the client. `false` if its id is still in use.
    pub(super) fn asked(&mut self, message: &Message<'_>, body: &[u8]) -> bool {
        match message {
            Message::Request { id, method, params } => {
                if self.pending.contains_key(id) {
                    return false;
                }
                let is_initialize = method == "initialize";
                if is_initialize {
                    self.initializing = Some(params.map_or("{}", |p| p.get()).to_owned());
                }
                let repeat = SAFE_TO_REPEAT.contains(&&**method).then(|| body.to_vec());
                self.insert(id, repeat, is_initialize);
            }
            Message::Notification { method, params } => match &**method {
                "notifications/initialized" => self.initialized = true,
                "notifications/cancelled" => {
                    if let Some(id) = params.and_then(|params| cancelled(params.get())) {
                        self.pending.remove(&id);
                    }
                }
                _ => {}
            },
            Message::Response { .. } => {}
        }
        true
    }

    /// The whole request was sent.
    pub(super) fn sent(&mut self, id: &Id) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.sent = true;
        }
    }

    /// The server has answered.
    pub(super) fn answered(&mut self, id: &Id, succeeded: bool) {
        if self.pending.remove(id).is_some_and(|pending| pending.is_initialize && succeeded) {
            self.initialize = self.initializing.take();
        }
    }

    /// Whether everything is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Records a request in a batch, which is never repeated. `false` if its id is still in use: the server
    /// will refuse it.
    pub(super) fn asked_in_batch(&mut self, id: &Id) -> bool {
        let fresh = !self.pending.contains_key(id);
        if fresh {
            self.insert(id, None, false);
        }
        fresh
    }

    fn insert(&mut self, id: &Id, repeat: Option<Vec<u8>>, is_initialize: bool) {
        self.asked += 1;
        let pending = Pending { number: self.asked, repeat, sent: false, is_initialize };
        self.pending.insert(id.clone(), pending);
    }

    /// Forgets a request that the server will not answer under its id.
    pub(super) fn forget(&mut self, id: &Id) {
        self.pending.remove(id);
    }

    /// An unused id for a request of our own.
    pub(super) fn free_id(&self, last: &mut u64) -> Id {
        loop {
            *last += 1;
            let id = Id::from_text(&format!("patterm-mcp-stdio-{last}"));
            if !self.pending.contains_key(&id) {
                return id;
            }
        }
    }

    /// The server died: requests that it may have carried out fail, those that only read are repeated.
    pub(super) fn lost(&mut self) -> LostRequests {
        let mut lost =
            LostRequests { repeat: Vec::new(), initialized_after: None, failed: Vec::new() };
        let sent = self.pending.iter().filter(|(_, pending)| pending.sent);
        let mut sent: Vec<_> = sent.map(|(id, pending)| (pending.number, id.clone())).collect();
        sent.sort_unstable();
        for (_, id) in sent {
            match self.pending.get_mut(&id) {
                Some(Pending { repeat: Some(body), sent, is_initialize, .. }) => {
                    *sent = false;
                    if *is_initialize && self.initialized {
                        lost.initialized_after = Some(id.clone());
                    }
                    lost.repeat.push((id, body.clone()));
                }
                _ => {
                    self.pending.remove(&id);
                    lost.failed.push(id);
                }
            }
        }
        lost
    }

    /// Gives up all unanswered requests, in their order.
    pub(super) fn give_up(&mut self) -> Vec<Id> {
        let mut pending: Vec<_> = self.pending.drain().map(|(id, p)| (p.number, id)).collect();
        pending.sort_unstable();
        pending.into_iter().map(|(_, id)| id).collect()
    }

    /// The handshake to repeat with a new server: the parameters of the client's `initialize`, and whether
    /// `initialized` followed it.
    pub(super) fn handshake(&self) -> Option<(&str, bool)> {
        self.initialize.as_deref().map(|params| (params, self.initialized))
    }
}

/// The id that a cancellation names.
fn cancelled(params: &str) -> Option<Id> {
    let params: HashMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(params).ok()?;
    Id::from_raw(params.get("requestId")?)
}

#[cfg(test)]
mod tests {
    use patterm_wire::Incoming;

    use super::*;

    fn ask(ledger: &mut Ledger, body: &str) -> bool {
        let Ok(Incoming::One(message)) = Incoming::parse(body.as_bytes()) else {
            panic!("one message")
        };
        ledger.asked(&message, body.as_bytes())
    }

    fn request(id: u64, method: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
    }

    #[test]
    fn an_id_is_in_use_until_it_is_answered_or_cancelled() {
        let mut ledger = Ledger::default();
        assert!(ask(&mut ledger, &request(1, "tools/call")));
        assert!(!ask(&mut ledger, &request(1, "ping")));
        ledger.answered(&Id::from_number(1), true);
        assert!(ask(&mut ledger, &request(1, "tools/call")));
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId": 1}}"#;
        assert!(ask(&mut ledger, cancel));
        assert!(ledger.is_empty());
    }

    #[test]
    fn after_a_crash_reads_are_repeated_and_calls_fail() {
        let mut ledger = Ledger::default();
        for (id, method, sent) in
            [(1, "tools/list", true), (2, "tools/call", true), (3, "tools/call", false)]
        {
            assert!(ask(&mut ledger, &request(id, method)));
            if sent {
                ledger.sent(&Id::from_number(id));
            }
        }
        let again = (Id::from_number(1), request(1, "tools/list").into_bytes());
        let failed = vec![Id::from_number(2)];
        let expected = LostRequests { repeat: vec![again], initialized_after: None, failed };
        assert_eq!(ledger.lost(), expected);
        let nothing = LostRequests { repeat: vec![], initialized_after: None, failed: vec![] };
        assert_eq!(ledger.lost(), nothing, "nothing was sent since");
        assert_eq!(ledger.give_up(), [1, 3].map(Id::from_number));
    }

    #[test]
    fn repeated_requests_keep_their_order() {
        let mut ledger = Ledger::default();
        let ids = || (1..=20).map(Id::from_number);
        for id in 1..=20 {
            let method = if id == 1 { "initialize" } else { "ping" };
            assert!(ask(&mut ledger, &request(id, method)));
        }
        assert!(ask(&mut ledger, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        ids().for_each(|id| ledger.sent(&id));
        let lost = ledger.lost();
        assert!(lost.repeat.iter().map(|(id, _)| id.clone()).eq(ids()));
        assert_eq!(lost.initialized_after, Some(Id::from_number(1)));
    }

    #[test]
    fn a_successful_handshake_is_remembered() {
        let mut ledger = Ledger::default();
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":1}}"#;
        assert!(ask(&mut ledger, initialize));
        assert_eq!(ledger.handshake(), None);
        ledger.answered(&Id::from_number(1), true);
        assert_eq!(ledger.handshake(), Some((r#"{"a":1}"#, false)));
        let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(ask(&mut ledger, done));
        assert_eq!(ledger.handshake(), Some((r#"{"a":1}"#, true)));
    }
}
