//! A sender of one byte at a time keeps half a message open: it delays nobody, and gets its
//! response when the message is complete.

use patterm_host::tools::ErrorKind;
use patterm_store::limits::Limits;
use patterm_wire::Framing;

use super::ping;
use crate::support::{Place, Transport, account};

/// The number of pings on another connection while the message is being sent.
const PINGS: usize = 1000;

#[test]
fn delays_nobody_else() {
    let place = Place::new();
    let server = place.serve_in_process();
    for transport in Transport::ALL {
        let mut slow = server.connect(transport);
        let mut other = server.connect(Transport::Socket(Framing::Newline));
        let mut message = Vec::new();
        let body = br#"{"jsonrpc":"2.0","id":"slow","method":"ping"}"#;
        transport.framing().encode(body, &mut message);
        let mut pings = 0;
        for (at, byte) in message.iter().enumerate() {
            slow.send(&[*byte]);
            while pings < PINGS * (at + 1) / message.len() {
                pings += 1;
                ping(&mut other, pings);
            }
        }
        assert_eq!(pings, PINGS);
        let answer = slow.try_receive_raw().map(|body| account(&body));
        assert_eq!(answer.as_deref(), Some("\"slow\" {}"), "{transport:?}");
    }
}

#[test]
fn as_many_half_messages_as_there_is_room_for_delay_nobody_else() {
    let place = Place::new();
    // Both ends of each are in this process, which may have no more than 1024 descriptors.
    let server = place.serve_with(Limits { connections: 300, ..Limits::default() });
    let mut other = server.connect(Transport::Socket(Framing::Newline));
    let halves = ["{", "{\"jsonrpc\":\"2.0\",\"id\":1", "Content-Le", "Content-Length: 9\r\n\r\n{"];
    let mut open = Vec::new();
    // `other` uses one place.
    for n in 1..server.host().limits.connections {
        let half = halves[n % halves.len()];
        let framing = if half.starts_with('{') { Framing::Newline } else { Framing::Headers };
        let mut peer = server.connect(Transport::Socket(framing));
        peer.send(half.as_bytes());
        open.push(peer);
    }
    for n in 0..PINGS {
        ping(&mut other, n);
    }
    // All of them are kept open: the next one is refused for lack of room.
    let mut one_more = server.connect(Transport::Socket(Framing::Newline));
    assert_eq!(one_more.receive()["error"]["code"], ErrorKind::Limit.code());
    for peer in open {
        // Each is truncated by its own end, and told so.
        assert_eq!(peer.finish().len(), 1);
    }
}
