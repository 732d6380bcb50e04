//! `search_output`: matching lines of a process's output.

use std::collections::VecDeque;

use patterm_screen::Line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::paging::Order;
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use super::{pattern, raw_search};
use patterm_panes::data_plane::ProcessRun;

pub(super) struct SearchOutput;

/// The default number of matches.
const MATCHES: u64 = 20;

/// The maximum number of matches: more than anybody reads.
const MOST_MATCHES: u64 = 10_000;

/// The maximum number of lines around a match.
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
    /// Id or name.
    process_id: String,
    /// A Rust regex.
    pattern: String,
    /// `raw`: with escape sequences.
    #[serde(default)]
    kind: SearchKind,
    /// Default 20.
    limit: Option<u64>,
    /// Oldest (default) or newest.
    #[serde(default)]
    order: Order,
    /// `next` of the last answer.
    from: Option<u64>,
    /// Lines before and after each match.
    context: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The matching lines: oldest first, or newest first with order last.
    matches: Vec<Match>,
    /// How many there are in total.
    total: u64,
    /// There are more than these; the same as `more`.
    truncated: bool,
    /// There are more: call again with `from` = `next`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// The start of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A line that matches.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Match {
    /// Its number, from 1.
    pub(super) line: u64,
    /// Its offset in the output.
    pub(super) offset: u64,
    /// The line, with its context if requested.
    pub(super) text: String,
}

impl Tool for SearchOutput {
    const NAME: &'static str = "search_output";
    const TITLE: &'static str = "Search output";
    const DESCRIPTION: &'static str = "Finds lines of output with a regular expression.";
    const HELP: &'static str = "Searches the current run, including lines that scrolled away; a line \
        that the terminal wrapped is one line. kind raw searches the unprocessed bytes of all runs, \
        including escape sequences; `^` and `$` match at line ends. If output was dropped, line numbers \
        begin with the oldest output left. `more` means that there are more matches: call again with \
        from = `next`.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("grep a process's output");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, run) = find_run(&call, &args.process_id).await?;
        let limit = args.limit.unwrap_or(MATCHES).min(MOST_MATCHES);
        if limit == 0 {
            let why = "is 0, and a page without matches has no next page; use 1: `total` counts all \
                matches whatever the limit";
            return Err(ToolError::invalid("limit", why));
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let context = args.context.unwrap_or(0).min(MOST_CONTEXT);
        let context = usize::try_from(context).unwrap_or(0);
        let page = Page { from: args.from, order: args.order, limit };
        // The output can be megabytes long: do not search it on the thread that serves all
        // connections.
        pattern::check_one_line(&args.pattern)?;
        let work: Box<dyn FnOnce() -> Hits + Send> = match args.kind {
            SearchKind::Rendered => {
                let pattern = pattern::compile(&args.pattern)?;
                Box::new(move || rendered(&run, &pattern, page, context))
            }
            SearchKind::Raw => {
                let pattern = pattern::compile_bytes(&args.pattern)?;
                Box::new(move || raw_search::search(&run.log, &pattern, page, context))
            }
        };
        let hits = call.large(work).await?;
        let (more, next) = (hits.more, hits.next());
        let matches = hits.matches.into_iter().map(|(_, found)| found);
        let matches: Vec<_> = match args.order {
            Order::First => matches.collect(),
            Order::Last => matches.rev().collect(),
        };
        Ok(Answer { matches, total: hits.total, truncated: more, more, next })
    }
}

/// The requested matches: how many, and from which position of the last page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) from: Option<u64>,
    pub(super) order: Order,
    pub(super) limit: usize,
}

/// The matches of a page, oldest first. Each has an increasing position: the line's number when
/// lines are searched, because a program may print them in any order, and the offset when bytes
/// are searched.
#[derive(Debug)]
pub(super) struct Hits {
    page: Page,
    pub(super) matches: VecDeque<(u64, Match)>,
    /// How many there are in total.
    pub(super) total: u64,
    /// Whether there are more after the page, or before it with order last.
    more: bool,
}

impl Hits {
    pub(super) fn of(page: Page) -> Self {
        Self { page, matches: VecDeque::new(), total: 0, more: false }
    }

    /// Counts a matching line, and adds it if it belongs to the page.
    pub(super) fn hit(&mut self, position: u64, take: impl FnOnce() -> Match) {
        let Page { from, order, limit } = self.page;
        self.total += 1;
        let full = self.matches.len() >= limit;
        match order {
            Order::First if from.is_some_and(|from| position < from) => return,
            Order::Last if from.is_some_and(|from| position >= from) => return,
            Order::First if full => {
                self.more = true;
                return;
            }
            Order::Last if full => {
                self.more = true;
                self.matches.pop_front();
            }
            Order::First | Order::Last => {}
        }
        self.matches.push_back((position, take()));
    }

    /// The start of the next page, if there is one.
    fn next(&self) -> Option<u64> {
        let position = match self.page.order {
            Order::First => self.matches.back().map(|(position, _)| position + 1),
            Order::Last => self.matches.front().map(|(position, _)| *position),
        };
        position.filter(|_| self.more)
    }
}

/// A sliding window over the lines of a screen, for the context of matches.
struct Window<'a> {
    pattern: &'a regex::Regex,
    context: usize,
    lines: VecDeque<Line<'static>>,
    /// The index of the next line to match.
    next: usize,
    hits: Hits,
}

impl Window<'_> {
    /// Adds a line, and matches the line whose context it completes.
    fn take(&mut self, line: Line<'static>) {
        self.lines.push_back(line);
        if self.lines.len() - self.next > self.context {
            self.match_next();
        }
    }

    fn match_next(&mut self) {
        let (lines, at) = (&self.lines, self.next);
        let line = &lines[at];
        if self.pattern.is_match(&line.text) {
            self.hits.hit(line.number, || {
                let around =
                    at.saturating_sub(self.context)..(at + self.context + 1).min(lines.len());
                let text: Vec<_> = lines.range(around).map(|line| line.text.trim_end()).collect();
                Match { line: line.number + 1, offset: line.offset, text: text.join("\n") }
            });
        }
        self.next += 1;
        if self.next > self.context {
            self.lines.pop_front();
            self.next -= 1;
        }
    }

    /// Matches the last lines, whose context ends with the output.
    fn end(mut self) -> Hits {
        while self.next < self.lines.len() {
            self.match_next();
        }
        self.hits
    }
}

fn rendered(run: &ProcessRun, pattern: &regex::Regex, page: Page, context: usize) -> Hits {
    let (lines, hits) = (VecDeque::new(), Hits::of(page));
    let mut window = Window { pattern, context, lines, next: 0, hits };
    run.visit_lines(0, |line| {
        window.take(line);
        true
    });
    window.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_has_its_context_at_both_ends_and_in_between() {
        let texts: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        let pattern = regex::Regex::new("line (0|9|10|19)$").unwrap();
        for context in [0, 1, 3, 50] {
            let page = Page { from: None, order: Order::First, limit: 100 };
            let (lines, hits) = (VecDeque::new(), Hits::of(page));
            let mut window = Window { pattern: &pattern, context, lines, next: 0, hits };
            for (number, text) in (0..).zip(&texts) {
                window.take(Line { number, offset: 0, text: text.clone().into() });
            }
            let found: Vec<_> = window.end().matches.into_iter().map(|(_, m)| m.text).collect();
            let around = |at: usize| {
                texts[at.saturating_sub(context)..(at + context + 1).min(texts.len())].join("\n")
            };
            assert_eq!(found, [0, 9, 10, 19].map(around), "context {context}");
        }
    }
}
