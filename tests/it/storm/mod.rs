//! Load and abuse: malformed frames, endless lines, slow senders, clients that disconnect or do not
//! read. Other clients are served, and nothing is kept.

mod giant_line;
mod leaving;
mod ledger;
mod malformed;
mod slow_sender;
mod stalled;
mod traffic;
mod typing;
mod unread;

use serde_json::json;

use crate::support::Peer;

const MIB: u64 = 1 << 20;

/// The short form of a number, or with `PATTERM_LONG=1` the long one.
fn scaled(short: usize, long: usize) -> usize {
    let is_long = std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1");
    if is_long { long } else { short }
}

/// Sends a ping; its response must be the next message.
#[track_caller]
fn ping(peer: &mut Peer, id: usize) {
    let answer = peer.answer(id, "ping", json!({}));
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// Pings the server until a condition holds. A ping takes one turn of the server's loop, so this
/// many are more than it needs for anything but a wait that never ends.
#[track_caller]
fn turns_until(peer: &mut Peer, what: &str, holds: impl Fn() -> bool) {
    for turn in 0..100_000 {
        if holds() {
            return;
        }
        ping(peer, turn);
    }
    panic!("still not: {what}");
}
