//! `get_process_output`: the screen, the output or the scrollback of a process.

use patterm_keeper::log::Reader;
use patterm_screen::{Cursor, Screen, Size, Stripper, TAIL_BYTES, partial_prefix, strip_complete};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::moment::{Moment, gone};
use super::paging::{Order, Part, Wanted};
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::Offset;
use patterm_panes::data_plane::ProcessRun;

pub(super) struct GetProcessOutput;

/// Default lines of `scrollback`: a few screens.
const LINES: u64 = 200;

/// The minimum size of a row in an answer: two quotes and a comma.
const ROW_BYTES: u64 = 3;

/// Default bytes of `stream`.
pub(super) const STREAM_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Grid,
    Stream,
    Scrollback,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// What to read.
    #[serde(default)]
    mode: Mode,
    /// stream: the last next_offset; grid: the last screen_version.
    since_offset: Option<u64>,
    /// grid: a past offset or time.
    at: Option<Moment>,
    /// stream: oldest (default) or newest.
    #[serde(default)]
    order: Order,
    /// order last: the last answer's offset.
    until_offset: Option<u64>,
    /// Of scrollback; default 200.
    lines: Option<u64>,
    /// Of stream; default 65536.
    max_bytes: Option<u64>,
}

/// The members depend on the mode.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Visible rows, or lines of the scrollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<String>>,
    /// Blank rows at the end, which `rows` omits.
    #[serde(skip_serializing_if = "Option::is_none")]
    blank_rows: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<CursorAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<SizeAnswer>,
    /// Grows with every change.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_version: Option<u64>,
    /// Not changed since since_offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    /// Printed since the offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Of the text, or the past screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// For the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Lost bytes before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    /// There is more: continue at next_offset, or with order last, before offset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// since_offset was beyond the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clamped: bool,
}

impl Part {
    /// Drops the rest of a character or escape sequence that began before this part. If the
    /// whole part is inside one sequence, it keeps its offset and has no bytes.
    fn begin_outside_sequences(&mut self, log: &Reader) {
        let from = self.offset.saturating_sub(TAIL_BYTES as u64);
        let before = log.copy(from, usize::try_from(self.offset - from).unwrap_or(TAIL_BYTES));
        if before.end() != self.offset {
            return;
        }
        let begun = partial_prefix(&before.bytes, &self.bytes);
        if begun < self.bytes.len() {
            self.offset += begun as u64;
        }
        self.bytes.drain(..begun);
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CursorAnswer {
    /// From 0.
    row: u16,
    /// From 0.
    column: u16,
    visible: bool,
}

impl From<Cursor> for CursorAnswer {
    fn from(cursor: Cursor) -> Self {
        Self { row: cursor.row, column: cursor.column, visible: cursor.visible }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SizeAnswer {
    rows: u16,
    columns: u16,
}

impl From<Size> for SizeAnswer {
    fn from(size: Size) -> Self {
        Self { rows: size.rows, columns: size.columns }
    }
}

impl Answer {
    /// The current screen.
    pub(super) fn grid(run: &ProcessRun, seen: Option<u64>) -> Self {
        let screen = run.screen();
        let version = screen.version();
        if seen == Some(version) {
            return Self {
                screen_version: Some(version),
                unchanged: Some(true),
                ..Self::default()
            };
        }
        let (rows, blank_rows) = rows(&screen);
        Self {
            blank_rows,
            rows: Some(rows),
            cursor: Some(screen.cursor().into()),
            size: Some(screen.size().into()),
            screen_version: Some(version),
            ..Self::default()
        }
    }

    /// A screen that was shown in the past, when the output before `offset` was on it.
    fn past(screen: &Screen, offset: Offset) -> Self {
        let (rows, blank_rows) = rows(screen);
        Self {
            blank_rows,
            rows: Some(rows),
            cursor: Some(screen.cursor().into()),
            size: Some(screen.size().into()),
            offset: Some(offset.get()),
            ..Self::default()
        }
    }

    /// A part of the printed text.
    pub(super) fn stream(run: &ProcessRun, wanted: Wanted) -> Self {
        let most = usize::try_from(wanted.most).unwrap_or(usize::MAX);
        let mut part = wanted.take(&run.log);
        if wanted.order == Order::Last && part.offset > wanted.since {
            part.begin_outside_sequences(&run.log);
        }
        let Part { offset, bytes, dropped, clamped, more, ends_at_gap } = part;
        // An incomplete sequence must not look like text when reading continues in the middle
        // of it. If a gap follows, the rest never comes.
        let (text, whole) = match strip_complete(&bytes) {
            (_, 0) if bytes.len() == most || ends_at_gap => {
                (Stripper::default().feed(&bytes), bytes.len())
            }
            whole => whole,
        };
        Self {
            text: Some(text),
            offset: Some(offset),
            next_offset: Some(offset + whole as u64),
            dropped: (dropped > 0).then_some(dropped),
            more,
            clamped,
            ..Self::default()
        }
    }

    fn scrollback(run: &ProcessRun, lines: u64) -> Self {
        let version = run.screen().version();
        let next_offset = run.log.end();
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        // One more line shows whether there are more.
        let mut rows = run.last_lines(lines.saturating_add(1));
        let more = rows.len() > lines;
        if more {
            rows.pop_front();
        }
        Self {
            more,
            rows: Some(rows.into()),
            screen_version: Some(version),
            next_offset: Some(next_offset),
            ..Self::default()
        }
    }
}

/// The visible rows, and how many blank ones follow.
fn rows(screen: &Screen) -> (Vec<String>, Option<usize>) {
    let mut rows: Vec<_> = screen.rows().into_iter().map(|row| row.trim_end().to_owned()).collect();
    let all = rows.len();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    let blank = all - rows.len();
    (rows, Some(blank).filter(|blank| *blank > 0))
}

impl Tool for GetProcessOutput {
    const NAME: &'static str = "get_process_output";
    const TITLE: &'static str = "Output of a process";
    const DESCRIPTION: &'static str = "Reads a process: `grid` (default), its current screen; \
        `stream`, text since an offset; `scrollback`, its last lines. To wait for something use \
        wait_for_pattern; never poll.";
    const HELP: &'static str = "With mode grid and since_offset = the last screen_version, an \
        unchanged screen returns {unchanged: true}. With `at`, the screen is that of an earlier \
        moment of the current run: an offset (such as one of an event), or a time like \
        2026-11-16T09:12:03Z. Without since_offset, a stream begins at the \
        start of the current run. `more` means that the answer was truncated: continue with \
        since_offset = next_offset, or with order last, which begins at the end, with \
        until_offset = offset. An offset beyond the end is set to the end, and `clamped` is true. \
        dropped is the number of lost bytes before the text: the log was full, or could not be written.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (process, run) = find_run(&call, &args.process_id).await?;
        // Do not copy more than fits into an answer.
        let answer_bytes = call.host.limits.answer_bytes as u64;
        if let Some(moment) = args.at {
            if args.mode != Mode::Grid {
                return Err(ToolError::invalid(
                    "at",
                    "is for mode grid; for text, use since_offset",
                ));
            }
            let (events, begin) = (call.host.events.clone(), process.run_offset);
            let past = move || -> Result<Answer, ToolError> {
                let offset = moment.offset("at", &run, begin, &events)?;
                let screen = run.screen_at(begin, offset).ok_or_else(|| gone(&run, begin))?;
                Ok(Answer::past(&screen, offset))
            };
            return call.large(past).await?;
        }
        match args.mode {
            Mode::Grid => Ok(Answer::grid(&run, args.since_offset)),
            Mode::Stream => {
                let wanted = Wanted {
                    since: args.since_offset.unwrap_or(process.run_offset.get()),
                    until: args.until_offset,
                    most: args.max_bytes.unwrap_or(STREAM_BYTES).min(answer_bytes),
                    order: args.order,
                };
                call.large(move || Answer::stream(&run, wanted)).await
            }
            Mode::Scrollback => {
                let lines = args.lines.unwrap_or(LINES).min(answer_bytes / ROW_BYTES);
                call.large(move || Answer::scrollback(&run, lines)).await
            }
        }
    }
}
