//! One connection of the socket: concurrent calls, complete responses.

use std::collections::HashMap;

use patterm_wire::Framing;
use serde_json::json;

use crate::support::{Place, Transport};

#[test]
fn a_slow_call_delays_no_other() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Socket(framing));
        for id in 0..100 {
            peer.ask(format!("wait {id}"), "test_wait", json!({}));
        }
        for id in 0..10 {
            assert_eq!(peer.answer(id, "ping", json!({}))["result"], json!({}));
        }
        let answers = peer.finish();
        assert_eq!(answers.len(), 100);
        assert!(answers.iter().all(|answer| answer["result"] == json!({"ok": true})));
    }
}

#[test]
fn answers_are_complete_however_many_are_written_at_once() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Socket(framing));
        // More than the socket's buffer holds, so that each answer is written in many pieces
        // while others are ready.
        let sizes: HashMap<u64, usize> =
            (0..40).map(|n| (n, 1_000 + 20_011 * n as usize)).collect();
        for (&id, &bytes) in &sizes {
            peer.ask(id, "test_large", json!({"bytes": bytes}));
            peer.ask(format!("wait {id}"), "test_wait", json!({"reports": 3, "once": true}));
        }
        let answers = peer.finish();
        assert_eq!(answers.len(), 2 * sizes.len());
        for answer in answers {
            match answer["id"].as_u64() {
                Some(id) => assert_eq!(answer["result"]["text"], "x".repeat(sizes[&id])),
                None => assert_eq!(answer["result"], json!({"ok": true})),
            }
        }
    }
}
