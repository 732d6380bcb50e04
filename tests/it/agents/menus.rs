//! Menus, searches and other modes over an agent's prompt: it is blocked, reports why, and gets its
//! texts once they are closed.

use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, Cli, GEMINI, OPENCODE};
use super::report::row;
use crate::support::tool_client::long;

/// The keys that open something over the prompt, and those that close it.
fn covers(cli: Cli) -> &'static [(&'static str, &'static str)] {
    match cli {
        CLAUDE => &[("ctrl+r", "escape"), ("!", "backspace")],
        CODEX => &[("ctrl+r", "escape"), ("!", "backspace")],
        OPENCODE => &[("ctrl+p", "escape"), ("!", "escape")],
        GEMINI => &[("ctrl+r", "escape"), ("!", "escape")],
        other => panic!("{other:?}"),
    }
}

/// Each of them, with a message that arrives meanwhile.
pub(super) fn over_the_prompt(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let rounds = if long() { 5 } else { 1 };
    for round in 0..rounds {
        for (open, close) in covers(cli) {
            bench.key(&id, open);
            let blocked = bench.until_state(&id, "blocked");
            let reason = blocked["reason"].as_str().unwrap();
            let says = ["menu", "search", "mode"].iter().any(|word| reason.contains(word));
            assert!(says, "{blocked}");
            let message = format!("meanwhile {open} {round}");
            let receipt = bench.send(&id, &message);
            assert_eq!(receipt.state, "queued", "{receipt:?}");
            bench.until_queued_because(receipt.message, "waiting for a person");
            bench.key(&id, close);
            let done = bench.until_done(receipt.message);
            assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
            bench.until_arrived(&format!("[external] {message}"));
            bench.until_state(&id, "idle");
        }
    }
    let all = rounds * covers(cli).len();
    row(cli, "menus over the prompt", &format!("{all} of {all} blocked, and delivered afterwards"));
}
