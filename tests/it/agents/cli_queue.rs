//! Messages to an agent during a turn: some CLIs accept them into a queue of their own. After an
//! interrupted turn, a receipt must not claim more than what the model received.

use serde_json::json;

use super::bench::Bench;
use super::cli::Cli;
use super::report::row;
use super::truth::times;

/// A turn that continues until it is interrupted.
fn endless(name: &str, round: usize) -> String {
    format!(r"mock: say partly {name} {round}\n\nand then\n\n ;; wait 600 ;; say never")
}

/// Sends a message during a turn; returns its number and its text as the model sees it.
fn send_in_a_turn(bench: &mut Bench, id: &str, turn: &str, message: &str) -> (u64, String) {
    bench.send(id, turn);
    bench.until_turn("the turn", |seen| seen.text == format!("[external] {turn}"));
    // Some CLIs withdraw a turn that was not answered at all.
    let answer = turn.split_once("mock: say ").unwrap().1.split_once(r"\n").unwrap().0;
    bench.tools.wait(id, &format!(r"^\W*{answer}"));
    bench.until_state(id, "working");
    let receipt = bench.send(id, message);
    (receipt.message, format!("[external] {message}"))
}

/// Waits until the receipt of a message agrees with what the model received, and the agent is idle.
#[track_caller]
fn until_true(bench: &mut Bench, id: &str, message: u64, text: &str) -> bool {
    bench.until(&format!("the truth about {text:?}"), |bench| {
        let receipt = bench.receipt(message);
        let count = bench.arrived().iter().filter(|arrived| arrived.contains(text)).count();
        let rests = bench.activity(id)["state"] == "idle";
        match (receipt.state.as_str(), count) {
            ("delivered", 1) if rests => Ok(true),
            ("stalled", 0) if rests => Ok(false),
            _ => Err(format!("{receipt:?}, {count} times at the model, rests: {rests}")),
        }
    })
}

/// Turns that end by Escape, by a restart, and normally.
pub(super) fn cut_short(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let rounds = times(1, 5);
    let mut lost = 0;
    for round in 0..rounds {
        let after = format!("mock: say before a restart {round}");
        let (message, text) = send_in_a_turn(&mut bench, &id, &endless("one", round), &after);
        bench.tools.ok("restart_process", json!({"process_id": id}));
        lost += usize::from(!until_true(&mut bench, &id, message, &text));

        let after = format!("mock: say before escape {round}");
        let (message, text) = send_in_a_turn(&mut bench, &id, &endless("two", round), &after);
        for _ in 0..cli.escapes {
            bench.key(&id, "escape");
        }
        if !until_true(&mut bench, &id, message, &text) {
            lost += 1;
            bench.key(&id, &cli.clear);
        }

        let turn = format!(r"mock: say partly three {round}\n\nand then\n\n ;; wait 4 ;; say done");
        let after = format!("mock: say after its turn {round}");
        let (message, text) = send_in_a_turn(&mut bench, &id, &turn, &after);
        assert!(until_true(&mut bench, &id, message, &text), "{}", bench.story());
        // Idle is confirmed after a second.
        bench.stays_away(&id, "never shown", 2.0);
        bench.tools.ok("restart_process", json!({"process_id": id}));
        bench.until_state(&id, "idle");
        let receipt = bench.receipt(message);
        assert_eq!(receipt.state, "delivered", "it was read before: {receipt:?}");
    }
    let all = 2 * rounds;
    let arrived = all - lost;
    row(
        cli,
        "messages in turns cut short",
        &format!("{arrived} arrived, {lost} stalled, 0 untrue"),
    );
}
