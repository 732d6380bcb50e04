//! `wait_for_pattern`: until a line appears.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};

use super::error::{ErrorKind, ToolError};
use super::pattern;
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::data_plane::{MatchOutcome, ProcessRun, visible_lines};
use patterm_panes::process::Exit;

pub(super) struct WaitForPattern;

const TIMEOUT_SECONDS: f64 = 30.0;

/// The longest wait: nobody waits a day for one line.
const MOST_SECONDS: f64 = 86_400.0;

/// How often a caller that asked for it hears that the wait goes on.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    Grid,
    Scrollback,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// A Rust regex.
    pattern: String,
    /// Default 30.
    timeout_seconds: Option<f64>,
    /// `scrollback` also searches what scrolled away before.
    #[serde(default)]
    scope: Scope,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Whether the pattern was seen.
    matched: bool,
    /// The line it was seen in.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// How long it took.
    elapsed_ms: u64,
    /// The time was over first.
    timed_out: bool,
    /// The process ended first.
    exited: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
}

impl Tool for WaitForPattern {
    const NAME: &'static str = "wait_for_pattern";
    const TITLE: &'static str = "Wait for a line";
    const DESCRIPTION: &'static str = "Waits for a line that matches (a server's \"ready\", a \
        test's summary). Text already on the screen matches at once. Not for another agent's \
        answer: that arrives in your own pane, so set an idle timer.";
    const HELP: &'static str = "A timeout is an answer, not an error; so is the end of the \
        process. Nothing is missed, however fast it scrolls by; wrapped lines are one line. With \
        scope scrollback, what scrolled away before the call counts too. Cancel the call to stop \
        waiting.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading =
        Loading::OnSearch("wait until a server is ready or a test prints its result");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let began = Instant::now();
        let (process, run) = find_run(&call, &args.process_id)?;
        pattern::check_one_line(&args.pattern)?;
        let pattern = pattern::compile(&args.pattern)?;
        let time = timeout(args.timeout_seconds)?;
        let most = call.host.limits.waiters;
        if run.waiter_count() >= most {
            let message = format!("{most} calls wait for {} already", process.id);
            return Err(ToolError::new(ErrorKind::Limit, message));
        }
        let elapsed_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let matched = |line: String| Answer {
            matched: true,
            line: Some(line),
            elapsed_ms: elapsed_ms(),
            ..Answer::default()
        };
        // In line first, so that nothing falls between the look and the wait.
        let from = run.watch().borrow().parsed;
        let mut waiting = call.host.panes.data_plane.wait(&run, pattern.clone(), from);
        let mut there = shown(&run, &pattern);
        if there.is_none() && args.scope == Scope::Scrollback {
            let (run, pattern) = (run.clone(), pattern.clone());
            there = call.blocking(move || kept(&run, &pattern)).await?;
        }
        if let Some(line) = there {
            return Ok(matched(line));
        }
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        let mut reports = interval(REPORT_EVERY);
        reports.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                found = &mut waiting.found => {
                    if let Ok(MatchOutcome::Line(line)) = found {
                        return Ok(matched(line));
                    }
                    run.noted().await;
                    let ended = call.host.panes.processes.get(&process.id);
                    return Ok(Answer {
                        exited: true,
                        exit: ended.and_then(|process| process.exit),
                        elapsed_ms: elapsed_ms(),
                        ..Answer::default()
                    });
                }
                () = &mut over => {
                    return Ok(Answer { timed_out: true, elapsed_ms: elapsed_ms(), ..Answer::default() });
                }
                () = call.ending.cancelled() => {
                    let message = "the connection ends, by the client or with the server; nothing was seen so far";
                    return Err(ToolError::new(ErrorKind::Unavailable, message));
                }
                _ = reports.tick(), if call.progress.is_wanted() => {
                    let waited = began.elapsed().as_secs_f64();
                    call.progress.report(waited, Some(time.as_secs_f64()), "waiting for the pattern");
                }
            }
        }
    }
}

/// How long to wait, as callers give it.
pub(super) fn timeout(seconds: Option<f64>) -> Result<Duration, ToolError> {
    let seconds = seconds.unwrap_or(TIMEOUT_SECONDS);
    if (0.0..=MOST_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let why = format_args!("takes 0 to {MOST_SECONDS} seconds, not {seconds}");
    Err(ToolError::invalid("timeout_seconds", why))
}

/// A matching line on the screen; the newest.
fn shown(run: &ProcessRun, pattern: &regex::Regex) -> Option<String> {
    let shown = visible_lines(&run.screen());
    let line = shown.iter().rev().find(|line| pattern.is_match(line));
    line.map(|line| line.trim_end().to_owned())
}

/// A matching line in all that is kept of the output; the newest.
fn kept(run: &ProcessRun, pattern: &regex::Regex) -> Option<String> {
    let mut newest = None;
    run.visit_lines(0, |line| {
        if pattern.is_match(&line.text) {
            newest = Some(line.text.trim_end().to_owned());
        }
        true
    });
    newest
}
