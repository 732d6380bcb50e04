//! A message to a CLI that is just starting, without first instructions.

use super::bench::Bench;
use super::cli::Cli;
use super::report::row;
use crate::support::tool_client::long;

pub(super) fn messages(cli: Cli) {
    let mut bench = Bench::new(cli);
    let trials = if long() { 24 } else { 1 };
    let mut wrong = Vec::new();
    for trial in 0..trials {
        let id = bench.spawn(None);
        let message = format!("right after the start {trial}");
        let receipt = bench.send(&id, &message);
        let receipt = bench.until_done(receipt.message);
        if receipt.state != "delivered" {
            wrong.push(format!("{receipt:?}\n{}", bench.story()));
        } else {
            bench.until_arrived(&format!("[external] {message}"));
            bench.until_state(&id, "idle");
        }
        bench.tools.close(&id);
    }
    let whole = trials - wrong.len();
    row(cli, "right after the start", &format!("{whole} of {trials} once"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let sent = (0..trials).map(|trial| format!("[external] right after the start {trial}"));
    assert_eq!(bench.arrived(), sent.collect::<Vec<_>>(), "each once");
}
