//! Messages at the moment when a permission dialog appears: none is lost or duplicated, and none
//! answers the dialog. claude and codex get them while they work, so that a text is typed as the
//! dialog appears. opencode and gemini get messages only when they are idle: for these the test
//! shows that every message waits for the end of the turn, whatever the moment.

use std::time::{Duration, Instant};

use serde_json::json;

use super::bench::Bench;
use super::cli::{Cli, GEMINI, OPENCODE};
use super::report::row;
use crate::support::Rng;
use crate::support::tool_client::{ToolClient, long};

/// How long the model waits before it calls the tool, and the latest time after the beginning of
/// its turn at which a message is sent: a dialog is drawn in between.
const BEFORE_THE_CALL: f64 = 0.6;
const LATEST_MS: usize = 1_600;

/// How long a person waits before pressing a key again that had no effect.
const ANSWER_AGAIN: Duration = Duration::from_secs(5);

/// A pattern that no screen matches.
const NEVER: &str = r"[^\s\S]";

pub(super) fn races(cli: Cli) {
    let mut bench = Bench::with_settings(cli, &cli.asking);
    let id = bench.spawn_ready();
    let file = bench.place.path("project/made");
    let mut rng = Rng::new(14);
    let trials = if long() { 20 } else { 3 };
    let (mut before, mut at_gate) = (0, 0);
    for trial in 0..trials {
        let call = cli.ask.strip_prefix("mock: ").unwrap();
        let ask = format!("mock: wait {BEFORE_THE_CALL} ;; {call}\ntrial {trial}");
        bench.send(&id, &ask);
        let ask = format!("[external] {ask}");
        bench.until_turn("the turn that asks", |turn| turn.text == ask);
        let moment = Duration::from_millis(rng.within(0..LATEST_MS) as u64);
        bench.mock.more_than(usize::MAX, moment);
        let message = format!("at the moment of a dialog {trial}");
        let mut sender = ToolClient::at(&bench.server.socket);
        sender.ask("send_message", json!({"target_process_id": id, "message": message}));
        bench.until_state(&id, "blocked");
        // By then, the message has had its effect on the dialog, if any.
        let answer = sender.receive().unwrap();
        bench.stays_away(&id, NEVER, 1.0);
        assert_eq!(bench.activity(&id)["state"], "blocked", "{}", bench.story());
        assert!(!file.exists(), "the tool was not approved\n{}", bench.story());
        let number = answer["message_id"].as_u64().unwrap();
        before += usize::from(answer["receipt"]["state"] == "delivered");
        let evidence = answer["receipt"]["evidence"].as_str().unwrap();
        let is_typed =
            ["the text was pasted", "the text is in", "it is being typed", "Enter was pressed"]
                .iter()
                .any(|begin| evidence.starts_with(begin));
        at_gate += usize::from(answer["receipt"]["state"] == "queued" && !is_typed);
        let mut answered: Option<Instant> = None;
        bench.until("the tool ran", |bench| {
            // A dialog that has just appeared ignores keys; claude's does if something was just
            // typed.
            let again = answered.is_none_or(|at| at.elapsed() >= ANSWER_AGAIN);
            if again && bench.activity(&id)["state"] == "blocked" {
                answered = Some(Instant::now());
                bench.key(&id, &cli.yes);
            }
            file.exists().then_some(()).ok_or(String::new())
        });
        let done = bench.until_done(number);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
        let text = format!("[external] {message}");
        bench.until_arrived(&text);
        bench.until_state(&id, "idle");
        assert_eq!(bench.count(&text), 1, "{}", bench.story());
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(bench.arrived().len(), 1 + 2 * trials, "{}", bench.story());
    if [GEMINI, OPENCODE].contains(&cli) {
        assert_eq!(at_gate, trials, "none is typed while it works");
    }
    let found = format!(
        "{trials} of {trials} once, {before} before the dialog, {at_gate} waited before they were typed; \
         none approved"
    );
    row(cli, "around a permission dialog", &found);
}
