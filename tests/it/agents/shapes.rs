//! Turns of many shapes: idle timers fire when a turn is over, and not before.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, Cli};
use super::mock::Turn;
use super::quoted::{all_screens, said};
use super::report::row;
use crate::support::tool_client::long;

/// How long after a turn its idle timer may fire.
const IDLE_PATIENCE: Duration = Duration::from_secs(3);

/// A timer that has not fired by this time never will.
const MISSED: f64 = 30.0;

/// What a model does in a turn.
struct Shape {
    said: String,
    /// How many turns there are: background work that ends begins a turn of its own.
    finals: usize,
    /// A file that the last of the work creates, if that continues after the model's last message.
    makes: Option<&'static str>,
}

fn plain(said: &str) -> Shape {
    Shape { said: said.to_owned(), finals: 1, makes: None }
}

/// Background work if the CLI supports it, otherwise a slow tool.
fn background(cli: Cli) -> Shape {
    match cli {
        CLAUDE => Shape {
            said: "mock: call Bash {\"command\": \"sleep 8; touch made\", \"description\": \"Wait\", \
                   \"run_in_background\": true} ;; say it runs"
                .to_owned(),
            finals: 2,
            makes: Some("made"),
        },
        CODEX => Shape {
            said: "mock: call exec_command {\"cmd\": \"sleep 8; touch made\", \"yield_time_ms\": 500} ;; \
                   say it runs"
                .to_owned(),
            finals: 1,
            makes: Some("made"),
        },
        _ => slow_tool(8),
    }
}

fn slow_tool(seconds: u64) -> Shape {
    plain(&format!(
        "mock: call timer_list {{}} ;; call wait_for_agents {{\"process_ids\": [\"CAT\"], \"until\": \
         \"exited\", \"timeout_seconds\": {seconds}}} ;; say it was slow"
    ))
}

/// All shapes, those of the short form first.
fn shapes(cli: Cli) -> Vec<Shape> {
    let imitating = format!("{} ;; wait 8 ;; say done", said(&all_screens()));
    let mut shapes = vec![
        plain("mock: say first ;; wait 8 ;; say second"),
        background(cli),
        plain("mock: error 500 2 ;; say recovered"),
    ];
    shapes.extend(
        [
            "mock: say quick",
            "mock: wait 4 ;; say after a pause",
            "mock: slow 6 5",
            "mock: call whoami {} ;; wait 4 ;; say done",
            "mock: think hmm ;; wait 4 ;; say done",
            "mock: say a ;; wait 3 ;; call list_processes {} ;; wait 3 ;; say b",
        ]
        .map(plain),
    );
    if !long() {
        return shapes;
    }
    shapes.push(slow_tool(15));
    shapes.push(plain(&imitating));
    shapes.extend(
        [
            "mock: wait 8 ;; say after a pause",
            "mock: wait 20 ;; say after a long pause",
            "mock: say first ;; wait 15 ;; say second",
            "mock: slow 6 12",
            "mock: call whoami {} ;; wait 10 ;; say done",
            "mock: think hmm ;; wait 8 ;; say done",
            "mock: error 529 2 ;; say recovered",
            "mock: limit rate 3 2 ;; say after the limit",
            "mock: say the last word ;; wait 8",
            "mock: say a ;; wait 8 ;; call list_processes {} ;; wait 8 ;; say b",
        ]
        .map(plain),
    );
    shapes
}

/// The results of the timers of all turns.
#[derive(Default)]
struct Counts {
    early: Vec<String>,
    late: Vec<String>,
    missed: Vec<String>,
    slowest: Duration,
}

/// Each shape, watched by a timer on any and by one on all.
pub(super) fn idle_timers(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let cat = bench.tools.run(&["cat"]);
    let shapes = shapes(cli);
    let mut counts = Counts::default();
    for (number, shape) in shapes.iter().enumerate() {
        let bodies = ["any", "all"].map(|mode| format!("{mode} {number}."));
        for (mode, body) in ["any", "all"].iter().zip(&bodies) {
            let timer = json!({"watched": [id], "body": body, "owner_process_id": cat});
            // `all` would fire at once while it is still idle.
            if *mode == "any" {
                bench.tools.ok("timer_fire_when_idle_any", timer);
            } else {
                let said = format!("{}\nturn {number}", shape.said.replace("CAT", &cat));
                bench.send(&id, &said);
                // opencode adds a blank to a paste of more than 150 characters.
                let is_it = |turn: &Turn| turn.text.trim_end() == format!("[external] {said}");
                bench.until_turn("the turn", is_it);
                bench.tools.ok("timer_fire_when_idle_all", timer);
            }
        }
        watch(&mut bench, &cat, shape, number, &bodies, &mut counts);
    }
    let Counts { early, late, missed, slowest } = counts;
    let found = format!(
        "{} turns, any and all: {} early, {} late, {} missed, slowest {:.1} s after the end",
        shapes.len(),
        early.len(),
        late.len(),
        missed.len(),
        slowest.as_secs_f64()
    );
    row(cli, "idle timers", &found);
    let is_right = early.is_empty() && late.is_empty() && missed.is_empty();
    assert!(is_right, "early: {early:?}\nlate: {late:?}\nmissed: {missed:?}");
}

/// Waits until a turn is over, and until its timers have fired.
fn watch(
    bench: &mut Bench,
    cat: &str,
    shape: &Shape,
    number: usize,
    bodies: &[String; 2],
    counts: &mut Counts,
) {
    let said = format!("[external] {}\nturn {number}", shape.said.replace("CAT", cat));
    let made = shape.makes.map(|name| bench.place.path(&format!("project/{name}")));
    let mut early: Vec<&String> = Vec::new();
    let over = bench.until(&format!("the end of {said}"), |bench| {
        // In this order: a timer that has fired now for a turn that is not over by then has fired
        // too early.
        let rows = bench.tools.rows(cat);
        let end = end_of(bench, &said, shape.finals).filter(|_| is_made(made.as_ref()));
        let fired = bodies.iter().filter(|body| rows.iter().any(|row| row.contains(*body)));
        let new: Vec<_> = fired.filter(|body| end.is_none() && !early.contains(body)).collect();
        early.extend(new);
        end.ok_or_else(|| format!("fired: {early:?}"))
    });
    // Background work creates its file after the model's last message.
    let over = if made.is_some() { Instant::now() } else { over };
    made.iter().for_each(|made| std::fs::remove_file(made).unwrap());
    for body in bodies {
        if early.contains(&body) {
            counts.early.push(format!("{body} {}\n{}", shape.said, bench.story()));
            continue;
        }
        let pattern = body.replace('.', "\\.");
        let wait = json!({"process_id": cat, "pattern": pattern, "timeout_seconds": MISSED});
        if bench.tools.ok("wait_for_pattern", wait)["matched"] != true {
            counts.missed.push(format!("{body} {}\n{}", shape.said, bench.story()));
            continue;
        }
        let after = over.elapsed();
        counts.slowest = counts.slowest.max(after);
        if after > IDLE_PATIENCE {
            counts.late.push(format!("{body} {}: {after:?}", shape.said));
        }
    }
}

fn is_made(file: Option<&PathBuf>) -> bool {
    file.is_none_or(|file| file.exists())
}

/// When the model finished its answer to a text.
fn end_of(bench: &Bench, said: &str, finals: usize) -> Option<Instant> {
    let turns = bench.mock.turns().into_iter();
    let of_it = turns.filter(|turn| turn.api == bench.cli.api && turn.text.trim_end() == said);
    let mut ends = of_it.filter(|turn| turn.is_final()).filter_map(|turn| Some(turn.ended?.0));
    ends.nth(finals - 1)
}
