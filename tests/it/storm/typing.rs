//! Keys, one after the other: each is sent when the echo of the one before has come. A wake-up that is lost anywhere on
//! the way is an echo that never comes, since nothing else happens.

use std::time::Duration;

use patterm_wire::view::FromView;
use serde_json::json;

use super::scaled;
use crate::support::{Peer, Place, Serving, Transport};
use crate::view::View;
use patterm_wire::Framing;

/// Far longer than an echo takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Echoes each byte.
const ECHO: &str = "stty raw -echo; printf ready; exec cat";

/// Prints more than is parsed at once, and then nothing for a moment, over and over.
const BURSTS: &str = "while :; do head -c 150000 /dev/zero | tr '\\0' x; sleep 0.02; done";

fn spawn(peer: &mut Peer, script: &str) -> String {
    let answer = peer.answer(1, "spawn_process", json!({"argv": ["sh", "-c", script]}));
    answer["result"]["process_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Types this many keys into a process of its own.
fn type_keys(server: &Serving, id: &str, keys: usize) {
    let mut view = View::attach_at(server.socket(), id, 24, 80);
    view.until(|view| view.shows("ready"));
    view.set_patience(PATIENCE);
    let begin = view.screen.offset();
    for key in 0..keys as u64 {
        // The last column is not reached: the screen always shows the last key.
        let letter = b'a' + (key % 26) as u8;
        view.send(&FromView::Input(vec![b'\r', letter]));
        let end = begin + 2 * (key + 1);
        view.until(|view| view.screen.offset() >= end);
        assert_eq!(view.screen.offset(), end, "more than the echo of key {key}");
        assert_eq!(view.screen.row(0).as_bytes()[0], letter, "key {key}");
    }
}

#[test]
fn every_key_has_its_echo_with_nothing_else_that_could_wake_anybody_up() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let id = spawn(&mut peer, ECHO);
    type_keys(&server, &id, scaled(5_000, 50_000));
}

#[test]
fn every_key_has_its_echo_between_the_bursts_of_others() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let ids = [ECHO, ECHO].map(|script| spawn(&mut peer, script));
    spawn(&mut peer, BURSTS);
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| type_keys(&server, id, scaled(2_500, 25_000)));
        }
    });
}
