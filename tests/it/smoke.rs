//! The support code itself: a ping is answered over every transport.

use serde_json::json;

use crate::support::{Place, Transport};

#[test]
fn every_transport_answers_a_ping() {
    let place = Place::new();
    let server = place.serve_in_process();
    for transport in Transport::ALL {
        let mut peer = server.connect(transport);
        peer.ask(1, "ping", json!({}));
        assert_eq!(
            peer.receive(),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            "{transport:?}"
        );
        assert_eq!(peer.finish(), Vec::<serde_json::Value>::new(), "{transport:?}");
    }
}
