//! Tens of thousands of requests over many connections at once, with cancellations and clients that
//! disconnect in the middle: every id is answered exactly once, or was cancelled, or its connection
//! is gone. Nothing is left over.

use std::collections::HashSet;

use patterm_wire::Framing;

use super::ledger::Ledger;
use super::{ping, scaled, turns_until};
use crate::support::{Baseline, Peer, Place, ProcessStats, Rng, Serving, Transport, tools};

/// The number of concurrent connections, each on its own thread.
const CONNECTIONS: usize = 64;

const SEED: u64 = 20_261_101;

/// Requests that are answered at once, whatever they are.
const QUICK: [&str; 7] = [
    r#""method":"ping""#,
    r#""method":"tools/list""#,
    r#""method":"tools/call","params":{"name":"whoami"}"#,
    r#""method":"whoami","params":{}"#,
    r#""method":"no/such""#,
    r#""method":"tools/call","params":{}"#,
    r#""method":"test_large","params":{"bytes":3000}"#,
];

/// One more of these, kept rare: each prints its backtrace.
const PANIC: &str = r#""method":"tools/call","params":{"name":"test_panic"}"#;

/// One connection from its beginning to its end.
struct Life {
    peer: Peer,
    transport: Transport,
    ledger: Ledger,
    next: usize,
    /// Calls that wait until they are cancelled or the connection ends.
    waiting: Vec<String>,
    /// Quick requests that are not answered yet.
    due: HashSet<String>,
}

impl Life {
    fn begin(server: &Serving, transport: Transport) -> Self {
        Self {
            peer: server.connect(transport),
            transport,
            ledger: Ledger::default(),
            next: 0,
            waiting: Vec::new(),
            due: HashSet::new(),
        }
    }

    fn id(&mut self) -> String {
        self.next += 1;
        match self.next % 3 {
            0 => format!("{}", self.next),
            1 => format!("\"{}\"", self.next),
            _ => format!("{}.0", self.next),
        }
    }

    /// Sends this many requests at once, including calls that wait, and cancellations of earlier
    /// ones.
    fn send(&mut self, rng: &mut Rng, requests: usize) {
        let mut bytes = Vec::new();
        for _ in 0..requests {
            let id = self.id();
            let rest = if rng.once_in(5) {
                self.waiting.push(id.clone());
                r#""method":"tools/call","params":{"name":"test_wait"}"#
            } else {
                self.due.insert(id.clone());
                if rng.once_in(500) { PANIC } else { rng.pick(&QUICK) }
            };
            self.ledger.ask(&id);
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
            self.transport.framing().encode(body.as_bytes(), &mut bytes);
            if !self.waiting.is_empty() && rng.once_in(6) {
                let id = self.waiting.swap_remove(rng.within(0..self.waiting.len()));
                self.cancel(&id, &mut bytes);
            }
            if rng.once_in(20) {
                // Too late or too early: it may still be answered, but only once.
                self.due.remove(&id);
                self.cancel(&id, &mut bytes);
            }
        }
        self.peer.send(&bytes);
    }

    fn cancel(&mut self, id: &str, bytes: &mut Vec<u8>) {
        self.ledger.cancel(id);
        let params = format!(r#"{{"requestId":{id}}}"#);
        let method = "notifications/cancelled";
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        self.transport.framing().encode(body.as_bytes(), bytes);
    }

    /// Reads until no quick request is due.
    fn read(&mut self) {
        while !self.due.is_empty() {
            let body = self.peer.try_receive_raw().expect("answers, not the end");
            let id = self.ledger.answered(&body);
            self.due.remove(&id);
        }
    }

    /// Closes its side, and receives all remaining responses.
    fn end(mut self) {
        self.peer.end();
        while let Some(body) = self.peer.try_receive_raw() {
            self.ledger.answered(&body);
        }
        if let Some(status) = self.peer.wait() {
            assert!(status.success(), "{status}");
        }
        self.ledger.close();
    }

    /// Disconnects abruptly, perhaps in the middle of a message, and without reading.
    fn vanish(mut self, rng: &mut Rng) {
        self.send(rng, 8);
        if rng.once_in(2) {
            self.peer.send(b"{\"jsonrpc\":\"2.0\",\"id\":");
        }
    }
}

/// Runs one connection after the other, until this many requests were sent.
fn live(server: &Serving, transport: Transport, seed: u64, requests: usize) -> usize {
    let mut rng = Rng::new(seed);
    let mut asked = 0;
    while asked < requests {
        let mut life = Life::begin(server, transport);
        for _ in 0..rng.within(1..8) {
            let at_once = rng.within(1..60);
            life.send(&mut rng, at_once);
            life.read();
        }
        asked += life.ledger.asked();
        if rng.once_in(2) {
            life.vanish(&mut rng);
        } else {
            life.end();
        }
    }
    asked
}

#[test]
fn every_id_is_answered_exactly_once_or_its_connection_is_gone() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut watcher = server.connect(Transport::Socket(Framing::Newline));
    ping(&mut watcher, 0);
    // Each transport's first connection may open descriptors that stay open.
    let at_rest = Baseline::after(&ProcessStats::own(), || {
        for transport in Transport::ALL {
            live(&server, transport, SEED, 1);
        }
        turns_until(&mut watcher, "no call is in flight", || tools::waiting() == 0);
    });
    let requests = scaled(50_000, 1_000_000);
    let asked: usize = std::thread::scope(|scope| {
        let server = &server;
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|n| {
                let transport = Transport::ALL[n % Transport::ALL.len()];
                let seed = SEED + n as u64;
                let share = requests.div_ceil(CONNECTIONS);
                let name = format!("{transport:?}, seed {seed}");
                std::thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || live(server, transport, seed, share))
                    .unwrap()
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(asked >= requests);
    turns_until(&mut watcher, "no call is in flight", || tools::waiting() == 0);
    turns_until(&mut watcher, "no descriptor is left open", || {
        at_rest.more_descriptors().is_none()
    });
}
