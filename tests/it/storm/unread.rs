//! Clients that request much and read slowly or not at all: each costs the server a bounded amount
//! of memory, and the others nothing.

use patterm_wire::Framing;
use serde_json::json;

use super::{MIB, ping, turns_until};
use crate::support::{Baseline, Peer, Place, ProcessStats, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

/// The memory that a client that does not read may cost the server (design/bars.md).
const UNREAD_MEMORY: u64 = 8 * MIB;

/// The noise of measuring a whole process, for any number of clients: pages that the allocator
/// keeps for small blocks.
const PROCESS_SLACK: u64 = 2 * MIB;

/// Just under the server's limit for one response, with room for what surrounds the text.
const LARGEST: u64 = 8 * MIB - (64 << 10) - 1024;

/// Requests for responses of this size, in one piece: a socket accepts all of it, however little of
/// it the server reads.
fn requests(groups: &[(usize, u64)]) -> Vec<u8> {
    let sizes = groups.iter().flat_map(|(count, size)| std::iter::repeat_n(size, *count));
    let ask = |(id, bytes): (usize, &u64)| {
        let params = json!({"bytes": bytes});
        json!({"jsonrpc": "2.0", "id": id, "method": "test_large", "params": params}).to_string()
    };
    sizes.enumerate().flat_map(|request| (ask(request) + "\n").into_bytes()).collect()
}

#[test]
fn clients_that_never_read_cost_a_bounded_amount_and_others_nothing() {
    // So many that half a mebibyte too much for each exceeds the slack.
    const CLIENTS: u64 = 8;
    let place = Place::new();
    let server = place.serve_in_process();
    let mut other = server.connect(SOCKET);
    // One warm-up round, so that the permanent cost of the first response of its size is not
    // counted.
    let at_rest = Baseline::after(&ProcessStats::own(), || {
        other.answer(1, "test_large", json!({"bytes": LARGEST}));
        ping(&mut other, 2);
    });
    // Small responses that just fill a client's buffer, or not, or nearly, before large ones.
    for small in [0, 50, 100, 110, 120, 130, 140, 400, 600] {
        let mut unread: Vec<_> = (0..CLIENTS).map(|_| server.connect(SOCKET)).collect();
        let connected = Baseline::after(&ProcessStats::own(), || {
            unread.iter_mut().for_each(|peer| ping(peer, 0));
        });
        for peer in &mut unread {
            peer.send(&requests(&[(small, 2000), (400, LARGEST)]));
            peer.until_readable();
        }
        for n in 0..200 {
            ping(&mut other, n);
        }
        let cost = connected.more_resident();
        assert!(
            cost <= CLIENTS * UNREAD_MEMORY + PROCESS_SLACK,
            "{small} small answers: each client costs {} KiB",
            cost / CLIENTS / 1024
        );
        drop(unread);
        turns_until(&mut other, "they are gone", || at_rest.more_descriptors().is_none());
        // A connection's memory is released a moment after its descriptor.
        turns_until(&mut other, "their memory is back", || {
            at_rest.more_resident() <= PROCESS_SLACK
        });
    }
}

/// The real server, whose memory contains nothing of the test.
#[test]
fn a_client_that_never_reads_lists_costs_a_bounded_amount() {
    let place = Place::new();
    let server = place.serve();
    let mut other = Peer::connect(SOCKET, &server.socket());
    let process_stats = ProcessStats::of(server.pid());
    let at_rest = Baseline::after(&process_stats, || {
        other.answer(1, "tools/list", json!({}));
    });
    process_stats.forget_peak();
    let mut unread = Peer::connect(SOCKET, &server.socket());
    let list = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
    unread.send((0..2000).map(list).collect::<String>().as_bytes());
    unread.until_readable();
    for n in 0..1000 {
        ping(&mut other, n);
    }
    let cost = at_rest.higher_peak();
    assert!(cost <= UNREAD_MEMORY, "{} KiB", cost / 1024);
    // It is not disconnected: once it reads, everything is answered.
    for id in 0..2000 {
        assert_eq!(unread.receive()["id"], id);
    }
}

/// A client that reads slower than the server responds never lets its outbox run empty.
#[test]
fn messages_that_a_slow_client_has_read_are_not_kept() {
    /// The data that waits for it in the server and the proxy, and some responses in preparation.
    const UNDER_WAY: u64 = 32 * MIB;
    const ANSWERS: usize = 400;
    const ANSWER: u64 = MIB / 4;
    let place = Place::new();
    let server = place.serve_in_process();
    for transport in [SOCKET, Transport::Proxy(Framing::Newline)] {
        let mut other = server.connect(SOCKET);
        let mut slow = server.connect(transport);
        let processes: Vec<_> =
            slow.pid().map(ProcessStats::of).into_iter().chain([ProcessStats::own()]).collect();
        let answer = || {
            slow.answer("first", "test_large", json!({"bytes": ANSWER}));
        };
        let at_rest = Baseline::of_each_after(&processes, answer);
        processes.iter().for_each(ProcessStats::forget_peak);
        slow.send(&requests(&[(ANSWERS, ANSWER)]));
        let mut read = 0;
        while read < ANSWERS {
            // Little at a time, so that the server can send more in between.
            assert!(slow.read(8 << 10));
            ping(&mut other, read);
            while let Some(body) = slow.whole() {
                let start = format!(r#"{{"jsonrpc":"2.0","id":{read},"result":"#);
                assert!(body.starts_with(start.as_bytes()));
                read += 1;
            }
        }
        for process in &at_rest {
            let cost = process.higher_peak();
            assert!(cost <= UNDER_WAY, "{transport:?} {process:?}: {} MiB", cost / MIB);
        }
    }
}
