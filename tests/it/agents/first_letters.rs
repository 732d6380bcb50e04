//! A person begins to type while a message arrives: the two texts stay separate.

use std::time::Duration;

use patterm_wire::view::FromView;
use serde_json::json;

use super::bench::Bench;
use super::cli::Cli;
use super::report::row;
use crate::support::Rng;
use crate::support::tool_client::{ToolClient, long};

/// The time between the first letter and the message, in milliseconds.
const APART: std::ops::Range<usize> = 0..150;

/// The shortest time between a person's letter and Enter. gemini registers its key handler after it
/// has drawn a letter, and submits the text without the letter if Enter comes within a millisecond.
pub(super) const BEFORE_ENTER: Duration = Duration::from_millis(100);

pub(super) fn races(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let mut view = bench.view(&id);
    let mut rng = Rng::new(36);
    let trials = if long() { 36 } else { 3 };
    let mut first = 0;
    for trial in 0..trials {
        let letters = format!("qz{trial}wv");
        let message = format!("at the first letters {trial}");
        let mut sender = ToolClient::at(&bench.server.socket);
        let arguments = json!({"target_process_id": id, "message": message});
        let apart = Duration::from_millis(rng.within(APART) as u64);
        let key = |letter: &str| FromView::Input(letter.as_bytes().to_vec());
        let (begin, rest) = letters.split_at(1);
        if trial % 2 == 0 {
            view.send(&key(begin));
            bench.mock.more_than(usize::MAX, apart);
            sender.ask("send_message", arguments);
        } else {
            sender.ask("send_message", arguments);
            bench.mock.more_than(usize::MAX, apart);
            view.send(&key(begin));
        }
        let answer = sender.receive().unwrap();
        let number = answer["message_id"].as_u64().unwrap();
        first += usize::from(answer["receipt"]["state"] == "delivered");
        let typed = begin.to_owned();
        super::bench::type_by_hand(&mut view, &typed, rest);
        // Before Enter, one of the two texts is complete.
        bench.until("the message is there, or waits for the draft", |bench| {
            let receipt = bench.receipt(number);
            let waits = receipt.evidence.contains("its prompt contains a draft: `qz");
            let is_there = receipt.state == "delivered";
            (waits || is_there).then_some(()).ok_or_else(|| format!("{receipt:?}"))
        });
        bench.until_state(&id, "idle");
        bench.mock.more_than(usize::MAX, BEFORE_ENTER);
        view.send(&FromView::Input(b"\r".to_vec()));
        bench.until_arrived(&letters);
        let done = bench.until_done(number);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
        let text = format!("[external] {message}");
        bench.until_arrived(&text);
        bench.until_state(&id, "idle");
        assert_eq!((bench.count(&text), bench.count(&letters)), (1, 1), "{}", bench.story());
    }
    assert_eq!(bench.arrived().len(), 1 + 2 * trials, "{}", bench.story());
    let found = format!("{trials} of {trials} apart, {first} messages before the letters");
    row(cli, "a person's first letters", &found);
}
