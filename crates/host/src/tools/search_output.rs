//! `search_output`: lines of a process's output that match.

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
    /// Id or name.
    process_id: String,
    /// A Rust regex.
    pattern: String,
    /// `raw`: the bytes with their escape sequences.
    #[serde(default)]
    kind: SearchKind,
    /// Default 20.
    limit: Option<u64>,
    /// The oldest (default) or newest matches.
    #[serde(default)]
    order: Order,
    /// `next` of the last answer.
    from: Option<u64>,
    /// Lines before and after each.
    context: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The matching lines: oldest first, or newest first with order last.
    matches: Vec<Match>,
    /// How many there are in all.
    total: u64,
    /// There are more than were returned; the same as `more`.
    truncated: bool,
    /// There are more: call again with `from` = `next`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A line that matches.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Match {
    /// Its number, from 1.
    pub(super) line: u64,
    /// Where in the output it begins.
    pub(super) offset: u64,
    /// The line, with its context if that was asked for.
    pub(super) text: String,
}

impl Tool for SearchOutput {
    const NAME: &'static str = "search_output";
    const TITLE: &'static str = "Search output";
    const DESCRIPTION: &'static str = "Finds lines by a regular expression in what a process \
        printed.";
    const HELP: &'static str = "Searches the present run, lines that scrolled away included; a line that \
        the terminal wrapped is one line. kind raw searches the bytes of all runs as they came, escape \
        sequences included; `^` and `$` are line ends. Once output was dropped, lines are numbered from \
        what is left. `more` says that there are more matches: \
        call again with from set to `next`.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("grep a process's output");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, run) = find_run(&call, &args.process_id)?;
        let limit = args.limit.unwrap_or(MATCHES).min(MOST_MATCHES);
        if limit == 0 {
            let why = "is 0, and a page without matches has no next one; take 1: `total` counts all \
                matches whatever the limit";
            return Err(ToolError::invalid("limit", why));
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let context = args.context.unwrap_or(0).min(MOST_CONTEXT);
        let context = usize::try_from(context).unwrap_or(0);
        let page = Page { from: args.from, order: args.order, limit };
        // Megabytes are looked through: not on the thread that answers everybody.
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

/// Which matches are wanted: so many, from a position that the last page told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) from: Option<u64>,
    pub(super) order: Order,
    pub(super) limit: usize,
}

/// The matches of a page, oldest first, as they are found. Each has a position that only grows: the
/// line's number where lines are searched, since a program may print them in any order, and the
/// offset where bytes are.
#[derive(Debug)]
pub(super) struct Hits {
    page: Page,
    pub(super) matches: VecDeque<(u64, Match)>,
    /// How many there are in all.
    pub(super) total: u64,
    /// There are more behind the page, or before it with order last.
    more: bool,
}

impl Hits {
    pub(super) fn of(page: Page) -> Self {
        Self { page, matches: VecDeque::new(), total: 0, more: false }
    }

    /// Counts a matching line, and takes it if it belongs to the page.
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

    /// Where the next page begins, if there is one.
    fn next(&self) -> Option<u64> {
        let position = match self.page.order {
            Order::First => self.matches.back().map(|(position, _)| position + 1),
            Order::Last => self.matches.front().map(|(position, _)| *position),
        };
        position.filter(|_| self.more)
    }
}

/// Lines of a screen in slices, with those around the one that is looked at.
struct Window<'a> {
    pattern: &'a regex::Regex,
    context: usize,
    lines: VecDeque<Line<'static>>,
    /// The line in the window that is looked at next: all before it were.
    next: usize,
    hits: Hits,
}

impl Window<'_> {
    /// Takes one more line, and looks at the one for which that is the last of its context.
    fn take(&mut self, line: Line<'static>) {
        self.lines.push_back(line);
        if self.lines.len() - self.next > self.context {
            self.look();
        }
    }

    fn look(&mut self) {
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

    /// Looks at the last lines, behind which nothing more comes.
    fn end(mut self) -> Hits {
        while self.next < self.lines.len() {
            self.look();
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
    fn a_match_has_the_lines_around_it_at_both_ends_and_in_between() {
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
            assert_eq!(found, [0, 9, 10, 19].map(around), "{context} around");
        }
    }
}
