//! `wait_for_pattern`: waits until a line matches.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::error::{ErrorKind, ToolError};
use super::next_run;
use super::pattern;
use super::process::{find, find_run, no_output};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::Offset;
use patterm_panes::data_plane::{MatchOutcome, ProcessRun, visible_lines};
use patterm_panes::process::Exit;

pub(super) struct WaitForPattern;

const TIMEOUT_SECONDS: f64 = 30.0;

/// The longest wait: one day is more than anyone waits for a line.
const MOST_SECONDS: f64 = 86_400.0;

/// How often a caller that asked for progress gets it.
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
    /// `scrollback`: also lines that scrolled away.
    #[serde(default)]
    scope: Scope,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Whether a line matched.
    matched: bool,
    /// The matching line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// How long it took.
    elapsed_ms: u64,
    /// The timeout passed first.
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
    const DESCRIPTION: &'static str = "Waits for a matching line (a server's \"ready\", a test's \
        summary); text on the screen matches at once. Not for another agent's answer: that arrives \
        in your own pane, so set an idle timer.";
    const HELP: &'static str = "A timeout is an answer, not an error; so is the end of the \
        process. No line is missed, however fast it scrolls by; wrapped lines are one line. With \
        scope scrollback, lines that scrolled away before the call count too. Of a process that \
        is about to be started or restarted (it waits for others, or for its next try), only the \
        next run counts. Cancel the call to stop waiting.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("wait until a server is ready or a test is done");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let began = Instant::now();
        let process = find(&call, &args.process_id)?;
        pattern::check_one_line(&args.pattern)?;
        let pattern = pattern::compile(&args.pattern)?;
        let time = timeout(args.timeout_seconds)?;
        let elapsed_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let timed_out =
            || Answer { timed_out: true, elapsed_ms: elapsed_ms(), ..Answer::default() };
        let exited = |exit: Option<Exit>| Answer {
            exited: true,
            exit,
            elapsed_ms: elapsed_ms(),
            ..Answer::default()
        };
        let matched = |line: String| Answer {
            matched: true,
            line: Some(line),
            elapsed_ms: elapsed_ms(),
            ..Answer::default()
        };
        let mut wait = Wait { call: &call, began, time, reports: reports() };
        let (run, scope) = match next_run::is_to_come(&call.host, &process) {
            false => (find_run(&call, &args.process_id).await?.1, args.scope),
            // Output of earlier runs does not count, and all output of that one does.
            true => match wait.until(next_run::begin(&call.host, &process)).await? {
                None => return Ok(timed_out()),
                Some(Some(run)) => (run, Scope::Scrollback),
                Some(None) => {
                    let process = find(&call, process.id.as_str())?;
                    let has_run = call.host.panes.run_of(&process.id).is_some();
                    let never = || no_output(&process, &call.host);
                    return has_run.then(|| exited(process.exit)).ok_or_else(never);
                }
            },
        };
        let most = call.host.limits.waiters;
        if run.waiter_count() >= most {
            let message = format!(
                "the limit of {most} calls waiting for {} has been reached; wait for one to finish",
                process.id
            );
            return Err(ToolError::new(ErrorKind::Limit, message));
        }
        // The wait begins where the screen that is checked ends: no line is missed, and none counts that scrolled
        // away before.
        let (shown, from) = visible_part(&run);
        let mut waiting = call.host.panes.data_plane.wait(&run, pattern.clone(), from);
        let mut found = newest_visible_match(&shown, &pattern);
        if found.is_none() && scope == Scope::Scrollback {
            let (run, pattern) = (run.clone(), pattern.clone());
            found = call.blocking(move || newest_match(&run, &pattern)).await?;
        }
        if let Some(line) = found {
            return Ok(matched(line));
        }
        match wait.until(&mut waiting.found).await? {
            None => Ok(timed_out()),
            Some(Ok(MatchOutcome::Line(line))) => Ok(matched(line)),
            Some(_) => {
                run.noted().await;
                let ended = call.host.panes.processes.get(&process.id);
                Ok(exited(ended.and_then(|process| process.exit)))
            }
        }
    }
}

/// A wait of a caller, which gets progress if it asked for it.
struct Wait<'c> {
    call: &'c Call,
    began: Instant,
    time: Duration,
    reports: Interval,
}

fn reports() -> Interval {
    let mut reports = interval(REPORT_EVERY);
    reports.set_missed_tick_behavior(MissedTickBehavior::Skip);
    reports
}

impl Wait<'_> {
    /// Waits for something; `None` if the time is over first.
    async fn until<T>(&mut self, awaited: impl Future<Output = T>) -> Result<Option<T>, ToolError> {
        let Self { call, began, time, reports } = self;
        let over = sleep_until(*began + *time);
        tokio::pin!(awaited, over);
        loop {
            tokio::select! {
                biased;
                done = &mut awaited => return Ok(Some(done)),
                () = &mut over => return Ok(None),
                () = call.ending.cancelled() => {
                    return Err(ToolError::interrupted(call.host.end(), "no line has matched so far"));
                }
                _ = reports.tick(), if call.progress.is_wanted() => {
                    let (waited, most) = (began.elapsed().as_secs_f64(), time.as_secs_f64());
                    call.progress.report(waited, Some(most), "waiting for the pattern");
                }
            }
        }
    }
}

/// Checks a timeout argument.
pub(super) fn timeout(seconds: Option<f64>) -> Result<Duration, ToolError> {
    let seconds = seconds.unwrap_or(TIMEOUT_SECONDS);
    if (0.0..=MOST_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let why = format_args!("takes 0 to {MOST_SECONDS} seconds, not {seconds}");
    Err(ToolError::invalid("timeout_seconds", why))
}

/// The lines on the screen, and the offset of the output that follows.
fn visible_part(run: &ProcessRun) -> (Vec<String>, Offset) {
    let screen = run.screen();
    (visible_lines(&screen), Offset::new(screen.offset()))
}

/// The newest matching line on the screen.
fn newest_visible_match(shown: &[String], pattern: &regex::Regex) -> Option<String> {
    let line = shown.iter().rev().find(|line| pattern.is_match(line));
    line.map(|line| line.trim_end().to_owned())
}

/// The newest matching line in the stored output.
fn newest_match(run: &ProcessRun, pattern: &regex::Regex) -> Option<String> {
    let mut newest = None;
    run.visit_lines(0, |line| {
        if pattern.is_match(&line.text) {
            newest = Some(line.text.trim_end().to_owned());
        }
        true
    });
    newest
}
