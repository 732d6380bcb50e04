//! `get_process_output`: what a process shows, printed, or has in its history.

use patterm_screen::{Cursor, Size, Stripper, strip_whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::life;
use super::tool::{Call, Effect, Tool};
use crate::plane::Live;

pub(super) struct GetProcessOutput;

/// Lines of `scrollback` unless more are asked for: a few screens.
const LINES: u64 = 200;

/// Bytes of `stream` unless more are asked for.
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
    /// The process.
    process_id: String,
    /// `grid`: the screen now. `stream`: the text printed since an offset. `scrollback`: the last
    /// lines, those that scrolled away included.
    #[serde(default)]
    mode: Mode,
    /// For `stream`, the next_offset of the last answer; for `grid`, its screen_version.
    since_offset: Option<u64>,
    /// How many lines of scrollback; 200 by default.
    lines: Option<u64>,
    /// How many bytes of the stream at the most; 65536 by default.
    max_bytes: Option<u64>,
}

/// The members that the mode asks for.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The visible rows, or the lines of the scrollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<String>>,
    /// Where the cursor stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<CursorAnswer>,
    /// The size of the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<SizeAnswer>,
    /// Raised by every change of the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_version: Option<u64>,
    /// The screen is as it was at since_offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    /// The text printed since the offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where the text begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// Where the next call goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Bytes before the text that are gone for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CursorAnswer {
    /// Its row, from 0.
    row: u16,
    /// Its column, from 0.
    column: u16,
    /// Whether it is shown.
    visible: bool,
}

impl From<Cursor> for CursorAnswer {
    fn from(cursor: Cursor) -> Self {
        Self { row: cursor.row, column: cursor.column, visible: cursor.visible }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SizeAnswer {
    /// Its height.
    rows: u16,
    /// Its width.
    columns: u16,
}

impl From<Size> for SizeAnswer {
    fn from(size: Size) -> Self {
        Self { rows: size.rows, columns: size.columns }
    }
}

impl Answer {
    /// The screen as it is now.
    pub(super) fn grid(live: &Live, seen: Option<u64>) -> Self {
        let screen = live.screen();
        let version = screen.version();
        if seen == Some(version) {
            return Self {
                screen_version: Some(version),
                unchanged: Some(true),
                ..Self::default()
            };
        }
        let rows = screen.rows().into_iter().map(|row| row.trim_end().to_owned()).collect();
        Self {
            rows: Some(rows),
            cursor: Some(screen.cursor().into()),
            size: Some(screen.size().into()),
            screen_version: Some(version),
            ..Self::default()
        }
    }

    /// The text printed since an offset.
    pub(super) fn stream(live: &Live, since: u64, most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let copied = live.log.copy(since, most);
        // Half a sequence must not look like text to whoever reads on from its middle. The rest of
        // one that ends at a gap never comes.
        let (text, whole) = match strip_whole(&copied.bytes) {
            (_, 0) if copied.bytes.len() == most || copied.ends_at_gap => {
                (Stripper::default().feed(&copied.bytes), copied.bytes.len())
            }
            whole => whole,
        };
        let next = copied.offset + whole as u64;
        let dropped = copied.offset.saturating_sub(since);
        Self {
            text: Some(text),
            offset: Some(copied.offset),
            next_offset: Some(next),
            dropped: (dropped > 0).then_some(dropped),
            ..Self::default()
        }
    }

    fn scrollback(live: &Live, lines: u64) -> Self {
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        let screen = live.screen();
        let rows: Vec<_> =
            screen.tail(lines).into_iter().map(|line| line.text.into_owned()).collect();
        Self {
            rows: Some(rows),
            screen_version: Some(screen.version()),
            next_offset: Some(live.log.end()),
            ..Self::default()
        }
    }
}

impl Tool for GetProcessOutput {
    const NAME: &'static str = "get_process_output";
    const TITLE: &'static str = "Output of a process";
    const DESCRIPTION: &'static str = "What a process shows: `grid` (default), the rows on its \
        screen now; `stream`, the text it printed since an offset, free of escape sequences, with \
        next_offset to go on from; `scrollback`, the last lines including those that scrolled away. \
        To wait for something use wait_for_pattern; never poll this in a loop.";
    const HELP: &'static str = "With mode grid and since_offset set to the last screen_version, an \
        unchanged screen answers {unchanged: true}. dropped says how many bytes before the text are \
        gone: the log was full, or could not be kept.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (process, live) = life(&call, &args.process_id)?;
        Ok(match args.mode {
            Mode::Grid => Answer::grid(&live, args.since_offset),
            Mode::Stream => {
                let since = args.since_offset.unwrap_or(process.run_offset);
                Answer::stream(&live, since, args.max_bytes.unwrap_or(STREAM_BYTES))
            }
            Mode::Scrollback => Answer::scrollback(&live, args.lines.unwrap_or(LINES)),
        })
    }
}
