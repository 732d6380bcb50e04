//! A line of 1 GiB: it is refused once, memory stays near the limit of one message, and others are
//! served meanwhile.

use patterm_wire::{DEFAULT_MESSAGE_LIMIT, Framing};

use super::{MIB, ping};
use crate::support::{Baseline, Peer, Place, ProcessStats, Transport, account};

const LINE: usize = 1 << 30;

/// The memory that a line may add to its reader: one message of the limit's size, which is kept
/// until it turns out too long, and some for the buffers around it.
const LINE_MEMORY: u64 = DEFAULT_MESSAGE_LIMIT as u64 + 8 * MIB;

/// The memory that may remain afterwards: buffers, and what the allocator keeps for the next time.
const LEFT_MEMORY: u64 = 4 * MIB;

/// Far fewer pings than an unobstructed server answers while it reads a gibibyte.
const PINGS_MEANWHILE: usize = 100;

/// Sends the line, or the body that a header announces.
fn send_line(peer: &mut Peer, framing: Framing) {
    let start = br#"{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":""#;
    if framing == Framing::Headers {
        peer.send(format!("Content-Length: {LINE}\r\n\r\n").as_bytes());
    }
    peer.send(start);
    let chunk = vec![b'x'; MIB as usize];
    let mut left = LINE - start.len();
    while left > 0 {
        let bytes = left.min(chunk.len());
        peer.send(&chunk[..bytes]);
        left -= bytes;
    }
    if framing == Framing::Newline {
        peer.send(b"\n");
    }
}

#[track_caller]
fn check(transport: Transport, expected: &str) {
    let place = Place::new();
    let server = place.serve();
    let mut other = Peer::connect(Transport::Socket(Framing::Newline), &server.socket());
    let mut peer = Peer::connect(transport, &server.socket());
    // The server, and the proxy if there is one.
    let readers: Vec<_> =
        [Some(server.pid()), peer.pid()].into_iter().flatten().map(ProcessStats::of).collect();
    let at_rest = Baseline::of_each_after(&readers, || {
        ping(&mut other, 1);
        ping(&mut peer, 1);
    });
    readers.iter().for_each(ProcessStats::forget_peak);
    let sender = std::thread::spawn(move || {
        send_line(&mut peer, transport.framing());
        peer
    });
    let mut pings = 0;
    while !sender.is_finished() {
        pings += 1;
        ping(&mut other, pings);
    }
    let mut peer = sender.join().unwrap();
    assert!(pings >= PINGS_MEANWHILE, "{transport:?}: only {pings} pings were answered meanwhile");
    peer.send_body(br#"{"jsonrpc":"2.0","id":"after","method":"ping"}"#);
    for answer in [expected, "\"after\" {}"] {
        let heard = peer.try_receive_raw().map(|body| account(&body));
        assert_eq!(heard.as_deref(), Some(answer), "{transport:?}");
    }
    for reader in &at_rest {
        let (peak, left) = (reader.higher_peak(), reader.more_resident());
        assert!(peak <= LINE_MEMORY, "{transport:?} {reader:?}: {} MiB at most", peak / MIB);
        assert!(left <= LEFT_MEMORY, "{transport:?} {reader:?}: {} MiB left", left / MIB);
    }
}

#[test]
fn over_the_socket() {
    check(Transport::Socket(Framing::Newline), "9 -32700");
}

#[test]
fn over_the_socket_with_a_header() {
    check(Transport::Socket(Framing::Headers), "null -32700");
}

#[test]
fn through_the_proxy() {
    check(Transport::Proxy(Framing::Newline), "9 -32700");
}

#[test]
fn through_the_proxy_with_a_header() {
    check(Transport::Proxy(Framing::Headers), "null -32700");
}
