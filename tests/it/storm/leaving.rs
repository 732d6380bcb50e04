//! Clients that list the tools and leave: nothing is kept about them, although the list of tools,
//! whose changes they would have been notified of, never changes.

use patterm_wire::Framing;
use serde_json::json;

use super::MIB;
use crate::support::{Baseline, Peer, Place, ProcessStats, Transport};

/// Each client once left nearly a kilobyte behind.
const CLIENTS: usize = 2_000;

#[test]
fn clients_that_listed_the_tools_and_left_are_forgotten() {
    let place = Place::new();
    let server = place.serve();
    let come_and_go =
        |clients| {
            for _ in 0..clients {
                let list = Peer::connect(Transport::Socket(Framing::Newline), &server.socket())
                    .answer(1, "tools/list", json!({}));
                assert!(list["result"]["tools"].is_array(), "{list}");
            }
        };
    // One-time costs, whatever the number of clients.
    let at_rest = Baseline::after(&ProcessStats::of(server.pid()), || come_and_go(CLIENTS / 4));
    come_and_go(CLIENTS);
    let left = at_rest.more_resident();
    assert!(left <= MIB, "{} KiB are left", left / 1024);
}
