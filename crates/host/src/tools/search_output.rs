//! `search_output`: lines of a process's output that match.

use patterm_screen::Line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::life;
use super::tool::{Call, Effect, Tool};
use super::{pattern, raw_search};
use crate::plane::Live;

pub(super) struct SearchOutput;

/// Matches returned unless more are asked for.
const MATCHES: u64 = 20;

/// Matches returned at the most; more than anybody reads.
const MOST_MATCHES: u64 = 10_000;

/// Lines around a match at the most.
const MOST_CONTEXT: u64 = 50;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SearchKind {
    #[default]
    Rendered,
    Raw,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The process.
    process_id: String,
    /// A regular expression (Rust syntax; no look-around, no back-references).
    pattern: String,
    /// `rendered` (default): lines as the screen showed them. `raw`: the bytes as they came.
    #[serde(default)]
    kind: SearchKind,
    /// How many matches at the most; 20 by default. The first ones are returned.
    limit: Option<u64>,
    /// How many lines before and after each match.
    context: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The matching lines, oldest first.
    matches: Vec<Match>,
    /// How many there are in all.
    total: u64,
    /// There are more than were returned.
    truncated: bool,
}

/// A line that matches.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Match {
    /// Its number.
    pub(super) line: u64,
    /// Where in the output it begins.
    pub(super) offset: u64,
    /// The line, with its context if that was asked for.
    pub(super) text: String,
}

impl Tool for SearchOutput {
    const NAME: &'static str = "search_output";
    const TITLE: &'static str = "Search output";
    const DESCRIPTION: &'static str = "Finds lines in all a process printed, those that scrolled \
        away included, by a regular expression: line number, offset and text of each, and how many \
        there are in all. Better than reading everything.";
    const HELP: &'static str = "Lines that the terminal wrapped are one line. With kind raw the \
        bytes are searched as they came, escape sequences included; `^` and `$` are line ends.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, live) = life(&call, &args.process_id)?;
        let limit = args.limit.unwrap_or(MATCHES).min(MOST_MATCHES);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let context = args.context.unwrap_or(0).min(MOST_CONTEXT);
        let context = usize::try_from(context).unwrap_or(0);
        // Megabytes are looked through: not on the thread that answers everybody.
        let work: Box<dyn FnOnce() -> (Vec<Match>, u64) + Send> = match args.kind {
            SearchKind::Rendered => {
                let pattern = pattern::compile(&args.pattern)?;
                Box::new(move || rendered(&live, &pattern, limit, context))
            }
            SearchKind::Raw => {
                let pattern = pattern::compile_bytes(&args.pattern)?;
                Box::new(move || raw_search::search(&live.log, &pattern, limit, context))
            }
        };
        let (matches, total) = call.blocking(work).await?;
        let truncated = total > matches.len() as u64;
        Ok(Answer { matches, total, truncated })
    }
}

fn rendered(
    live: &Live,
    pattern: &regex::Regex,
    limit: usize,
    context: usize,
) -> (Vec<Match>, u64) {
    let screen = live.screen();
    let lines: Vec<Line<'_>> = screen.lines(0).collect();
    let mut found = Vec::new();
    let mut total = 0;
    for (at, line) in lines.iter().enumerate() {
        if !pattern.is_match(&line.text) {
            continue;
        }
        total += 1;
        if found.len() < limit {
            let around = at.saturating_sub(context)..(at + context + 1).min(lines.len());
            let text: Vec<_> = lines[around].iter().map(|line| line.text.trim_end()).collect();
            found.push(Match { line: line.number, offset: line.offset, text: text.join("\n") });
        }
    }
    (found, total)
}
