//! The support code itself: every door answers a ping.

use serde_json::json;

use crate::support::{Door, Place};

#[test]
fn every_door_answers_a_ping() {
    let place = Place::new();
    let server = place.serve_in_process();
    for door in Door::ALL {
        let mut peer = server.connect(door);
        peer.ask(1, "ping", json!({}));
        assert_eq!(peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}), "{door:?}");
        assert_eq!(peer.finish(), Vec::<serde_json::Value>::new(), "{door:?}");
    }
}
