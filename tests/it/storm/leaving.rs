//! Clients that ask for the tools and leave: nothing of them is kept, though the list of tools, of
//! which they would have been told, stays as it is for ever.

use patterm_wire::Framing;
use serde_json::json;

use super::MIB;
use crate::support::{Baseline, Door, Peer, Place, ProcessStats};

/// What each left behind once was nearly a kilobyte.
const CLIENTS: usize = 2_000;

#[test]
fn clients_that_listed_the_tools_and_left_are_forgotten() {
    let place = Place::new();
    let server = place.serve();
    let come_and_go = |clients| {
        for _ in 0..clients {
            let list = Peer::connect(Door::Socket(Framing::Newline), &server.socket()).answer(
                1,
                "tools/list",
                json!({}),
            );
            assert!(list["result"]["tools"].is_array(), "{list}");
        }
    };
    // What there is only once, however many come.
    let at_rest = Baseline::after(&ProcessStats::of(server.pid()), || come_and_go(CLIENTS / 4));
    come_and_go(CLIENTS);
    let left = at_rest.more_resident();
    assert!(left <= MIB, "{} KiB are left", left / 1024);
}
