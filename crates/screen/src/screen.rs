//! The public screen: bytes in, rows out.

use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use alacritty_terminal::term::cell::{Cell, Flags};

use crate::bulk::{Bypassed, KeptRows, Then};
use crate::colours::Colours;
use crate::emulator::Emulator;
use crate::frame;
use crate::history::{self, History, Line, RowText};
use crate::modes::Modes;
use crate::notice::{Notice, ProgressReport};
use crate::page::Page;
use crate::parser::Parser;
use crate::resize;
use crate::row_record;
use crate::size::{Cursor, Size};
use crate::snapshot;
use crate::style::{Span, Style};
use crate::terminal_name::TerminalName;
use crate::wrap::StyledRow;

/// A terminal's screen and the history above it.
#[derive(Debug)]
pub struct Screen {
    parser: Parser,
    emulator: Emulator,
    version: u64,
    failures: u64,
    /// Lines at the end of a flood that are not parsed yet.
    deferred: Vec<u8>,
    /// The rows of these lines.
    kept: KeptRows,
}

/// A chunk that is at least this large may be part of a flood. A smaller one would not be worth it: the deferred lines
/// are copied with each.
const FLOOD_BYTES: usize = 256;

/// More than this is not deferred: it is memory that each screen needs.
const MAX_DEFERRED: usize = 16 << 10;

thread_local! {
    /// Deferred lines with the chunk that follows them. Per thread, since a server has hundreds of screens.
    static JOINED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Screen {
    /// An empty screen.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let size = Size::new(size.rows, size.columns);
        let (parser, emulator) = (Parser::new(), Emulator::new(size));
        Self {
            parser,
            emulator,
            version: 0,
            failures: 0,
            deferred: Vec::new(),
            kept: KeptRows::default(),
        }
    }

    /// Parses output of the program, in chunks of any size.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.settle();
        let end = self.emulator.base_offset + bytes.len() as u64;
        self.guarded(|parser, emulator| {
            read(parser, emulator, bytes, Flood::default(), &mut KeptRows::default());
        });
        self.emulator.base_offset = end;
        self.emulator.offset = end;
        self.note_change();
    }

    /// The same for output that nobody may look at before more follows: of a flood of lines, those that would stay on
    /// the screen may be left for later, since most will have scrolled off by then. Call [`Screen::settle`] before
    /// looking at the screen.
    pub fn feed_flood(&mut self, bytes: &[u8]) {
        if bytes.len() < FLOOD_BYTES {
            return self.feed(bytes);
        }
        let end = self.emulator.offset + bytes.len() as u64;
        let flood = Flood { is_begun: !self.deferred.is_empty(), may_defer: true };
        let mut joined = JOINED.take();
        let bytes = match flood.is_begun {
            true => {
                joined.clear();
                joined.extend_from_slice(&self.deferred);
                joined.extend_from_slice(bytes);
                &joined
            }
            false => bytes,
        };
        let (mut left, mut kept) = (0, std::mem::take(&mut self.kept));
        self.guarded(|parser, emulator| left = read(parser, emulator, bytes, flood, &mut kept));
        if left > 0 {
            self.kept = kept;
        }
        self.deferred.clear();
        self.deferred.extend_from_slice(&bytes[bytes.len() - left..]);
        JOINED.replace(joined);
        self.emulator.base_offset = end - left as u64;
        self.emulator.offset = end;
        self.note_change();
    }

    /// Parses what [`Screen::feed_flood`] has left.
    pub fn settle(&mut self) {
        if self.deferred.is_empty() {
            return;
        }
        let (bytes, end) = (std::mem::take(&mut self.deferred), self.emulator.offset);
        self.kept = KeptRows::default();
        self.guarded(|parser, emulator| parser.advance(&bytes, emulator));
        self.emulator.base_offset = end;
        self.emulator.offset = end;
        // It was noted when the lines were fed.
        self.emulator.changed = false;
    }

    /// The state that callers see.
    fn shown(&self) -> &Emulator {
        debug_assert!(self.deferred.is_empty(), "`settle` comes before looking at a screen");
        &self.emulator
    }

    /// Changes the size. Lines are wrapped again, and a screen that grows gets rows back from the history.
    pub fn resize(&mut self, size: Size) {
        self.settle();
        let size = Size::new(size.rows, size.columns);
        if size != self.size() {
            let mut done = false;
            self.guarded(|_, emulator| {
                resize::resize(emulator, size);
                done = true;
            });
            if !done {
                self.restart(size);
            }
            self.emulator.changed = true;
            self.note_change();
        }
    }

    /// Runs code that may panic inside alacritty. After a panic the screen is empty, with the same size
    /// and history; a caller with a log sees [`Screen::failures`] grow and can replay the log.
    fn guarded(&mut self, work: impl FnOnce(&mut Parser, &mut Emulator)) {
        let size = self.size();
        let (parser, emulator) = (&mut self.parser, &mut self.emulator);
        if catch_unwind(AssertUnwindSafe(|| work(parser, emulator))).is_err() {
            self.restart(size);
            self.failures += 1;
        }
    }

    fn restart(&mut self, size: Size) {
        let old = std::mem::replace(&mut self.emulator, Emulator::new(size));
        self.emulator.history = old.history;
        self.emulator.title = old.title;
        (self.emulator.report, self.emulator.reports) = (old.report, old.reports);
        self.emulator.progress = old.progress;
        self.emulator.base_offset = old.base_offset;
        self.emulator.offset = old.offset;
        self.emulator.terminal_name = old.terminal_name;
        self.emulator.replay = old.replay;
        self.parser = Parser::new();
        self.emulator.changed = true;
    }

    fn note_change(&mut self) {
        self.version += u64::from(std::mem::take(&mut self.emulator.changed));
    }

    /// A number that grows whenever the visible screen or its cursor changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Continues from a higher version, that of an earlier screen of the same program.
    pub fn raise_version(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// How often alacritty panicked and the screen had to start empty.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// The offset in the program's output: bytes fed up to now, plus [`Screen::set_offset`].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.emulator.offset
    }

    /// Sets the offset of the next byte, for a screen that does not start at the beginning of the
    /// output.
    pub fn set_offset(&mut self, offset: u64) {
        self.settle();
        self.emulator.base_offset = offset;
        self.emulator.offset = offset;
        let row = self.emulator.page.row();
        let info = &mut self.emulator.page.info[row];
        if info.extent == 0 {
            info.offset = offset;
        }
    }

    /// Continues at a later offset: the output up to there is lost. An unfinished sequence is dropped, so
    /// that it does not swallow the text that follows.
    pub fn skip_to(&mut self, offset: u64) {
        if offset > self.offset() {
            self.settle();
            self.parser = Parser::new();
            self.set_offset(offset);
        }
    }

    /// What the terminal calls itself; without this, patterm's own name.
    pub fn set_terminal_name(&mut self, name: TerminalName) {
        self.emulator.terminal_name = name;
    }

    /// Whether an old log is being replayed: no replies, no notices.
    pub fn set_replay(&mut self, replay: bool) {
        self.emulator.replay = replay;
    }

    /// The size.
    #[must_use]
    pub fn size(&self) -> Size {
        self.emulator.size()
    }

    /// The cursor.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let emulator = self.shown();
        Cursor {
            row: emulator.page.row() as u16,
            column: emulator.page.column() as u16,
            visible: emulator.modes.cursor_visible,
            shape: emulator.shape,
            blinking: emulator.blinking,
        }
    }

    /// The title that the program set, without control characters.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.emulator.title.text
    }

    /// The program's last status report (OSC 7501, like `state=working:app=codex`), without control
    /// characters.
    #[must_use]
    pub fn report(&self) -> &str {
        &self.emulator.report
    }

    /// The number of status reports.
    #[must_use]
    pub fn reports(&self) -> u64 {
        self.emulator.reports
    }

    /// The program's last progress report (OSC 9;4).
    #[must_use]
    pub fn progress(&self) -> Option<ProgressReport> {
        self.emulator.progress
    }

    /// The modes that the program has set.
    #[must_use]
    pub fn modes(&self) -> Modes {
        Modes { kitty_keyboard: self.emulator.keyboard.flags(), ..self.emulator.modes }
    }

    /// The visible rows as text, without trailing blanks; a row that wraps keeps them.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        let page = &self.shown().page;
        (0..page.rows()).map(|row| page.text(row)).collect()
    }

    /// One visible row as text, without blanks at its end unless it wraps; empty if there is no such row.
    #[must_use]
    pub fn row(&self, row: u16) -> String {
        let (page, row) = (&self.shown().page, usize::from(row));
        if row < page.rows() { page.text(row) } else { String::new() }
    }

    /// Whether the terminal wrapped a row: its line continues in the next row.
    #[must_use]
    pub fn wraps(&self, row: u16) -> bool {
        let (page, row) = (&self.shown().page, usize::from(row));
        row < page.rows() && page.wraps(row)
    }

    /// One visible row with its styles; empty if there is no such row.
    #[must_use]
    pub fn styled_row(&self, row: u16) -> StyledRow {
        let (page, row) = (&self.shown().page, usize::from(row));
        if row < page.rows() { styled(page, row) } else { StyledRow::default() }
    }

    /// The colours that the program has changed. Rows name colours as the program does; drawing applies these.
    #[must_use]
    pub fn colours(&self) -> &Colours {
        &self.shown().colours
    }

    /// The cells of a visible row up to the last that is not blank.
    pub(crate) fn visible_cells(&self, row: u16) -> &[Cell] {
        self.emulator.page.visible_cells(usize::from(row))
    }

    /// The main page, and the alternate one if that is shown.
    pub(crate) fn pages(&self) -> (&Page, Option<&Page>) {
        let emulator = self.shown();
        (emulator.main(), emulator.hidden_main.is_some().then_some(&emulator.page))
    }

    /// The rows above the screen.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.emulator.history
    }

    /// The rows above the screen, to stamp or drop them.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.emulator.history
    }

    /// All lines from number `from` on, oldest first: the history, the main screen, and the alternate
    /// screen if it is shown. Rows that the terminal wrapped are one line; a very long line comes in several
    /// parts with the same number. Lines still on the screen have the numbers that they will have in the
    /// history.
    pub fn lines(&self, from: u64) -> impl Iterator<Item = Line<'_>> {
        let history = self.history();
        let first = history.next_line() - u64::from(history.is_open());
        let (main, alternate) = self.pages();
        let after_main = first + line_count(main);
        let screen = screen_rows(main, first)
            .chain(alternate.into_iter().flat_map(move |page| screen_rows(page, after_main)));
        history::join(history.rows(from).chain(screen.skip_while(move |row| row.number < from)))
    }

    /// The last `count` lines, joined where the terminal wrapped them, oldest first.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<Line<'_>> {
        let history = &self.emulator.history;
        let older = history.tail(count).first().map_or(history.next_line(), |line| line.number);
        let mut lines: Vec<_> = self.lines(older).collect();
        lines.split_off(lines.len().saturating_sub(count))
    }

    /// Bytes that make a fresh screen of the same size, or a terminal, show the same: both screens,
    /// cursor, modes, margins, tab stops, title. If the output ends in the middle of a sequence, so does
    /// the snapshot, so that the bytes from [`Screen::offset`] on can follow it.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        [snapshot::snapshot(self.shown()), self.parser.pending()].concat()
    }

    /// All state of the screen, exactly, for [`Screen::from_frame`]; only the rows above it are not in it. `None` in the
    /// middle of a sequence, and for a huge screen.
    #[must_use]
    pub fn frame(&self) -> Option<Vec<u8>> {
        let emulator = self.shown();
        self.parser.is_ground().then(|| frame::encode(emulator)).flatten()
    }

    /// The screen of a frame. Its history is empty, and incomplete if there were rows above the screen. `None` if the
    /// frame is damaged, or of another version of this crate.
    #[must_use]
    pub fn from_frame(frame: &[u8]) -> Option<Self> {
        let emulator = frame::decode(frame)?;
        Some(Self { emulator, ..Self::new(Size::new(1, 1)) })
    }

    /// Whether a resize gives the same screen as with a complete history.
    #[must_use]
    pub fn has_history_for(&self, size: Size) -> bool {
        let size = Size::new(size.rows, size.columns);
        size == self.size() || resize::has_history_for(self.shown(), size)
    }

    /// The rows above the screen, for another screen that continues this one's output.
    #[must_use]
    pub fn into_history(self) -> History {
        self.emulator.history
    }

    /// Answers queries for checksums of the screen (DECRQCRA) and for titles. Only tests use it: a program could read
    /// what others have printed, or have text of its choice typed into another.
    pub fn answer_checksums(&mut self) {
        self.emulator.checksums = true;
    }

    /// Replies to the program's queries, to be written to it.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.emulator.replies.take()
    }

    /// Notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.emulator.notices.take()
    }
}

/// How a chunk relates to a flood of lines.
#[derive(Debug, Clone, Copy, Default)]
struct Flood {
    /// The chunk begins with deferred lines.
    is_begun: bool,
    /// Lines that would stay on the screen may be left.
    may_defer: bool,
}

/// Parses a chunk; floods of lines bypass the grid. Returns the number of bytes at the end that are left.
fn read(
    parser: &mut Parser,
    emulator: &mut Emulator,
    bytes: &[u8],
    flood: Flood,
    kept_rows: &mut KeptRows,
) -> usize {
    let (mut rest, mut may_bypass) = (bytes, true);
    // A chunk usually begins inside a line.
    let mut parsed = if flood.is_begun { 0 } else { line_end(rest) };
    loop {
        let (now, after) = rest.split_at(parsed);
        if !now.is_empty() {
            parser.advance(now, emulator);
            kept_rows.clear();
        }
        emulator.base_offset += now.len() as u64;
        rest = after;
        if rest.is_empty() {
            return 0;
        }
        parsed = rest.len();
        let is_blank = kept_rows.is_blank;
        if may_bypass && (is_blank || parser.is_ground() && emulator.can_bypass_grid()) {
            let Bypassed { used, kept, then } = emulator.bypass_grid(rest, kept_rows);
            emulator.base_offset += used as u64;
            rest = &rest[used..];
            let may_defer = flood.may_defer && rest.len() <= MAX_DEFERRED;
            match then {
                Then::End if may_defer && (kept > 0 || kept_rows.is_blank) => {
                    emulator.changed = true;
                    return rest.len();
                }
                Then::End => parsed = rest.len(),
                Then::More if used > 0 => parsed = 0,
                Then::More | Then::Unsupported => parsed = kept + line_end(&rest[kept..]),
            }
            // Where it did not pay off, it is not tried again in the same chunk.
            may_bypass = used > 0;
        }
    }
}

/// The number of bytes up to the end of the first line.
fn line_end(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

/// Lines that end on a page, without its trailing blank rows.
fn line_count(page: &Page) -> u64 {
    (0..page.used_rows()).filter(|&row| !page.wraps(row)).count() as u64
}

fn screen_rows(page: &Page, first: u64) -> impl Iterator<Item = RowText<'_>> {
    let mut number = first;
    (0..page.used_rows()).map(move |row| {
        let wraps = page.wraps(row);
        let text = Cow::Owned(page.text(row));
        let row = RowText { number, offset: page.info[row].offset, text, wraps };
        number += u64::from(!wraps);
        row
    })
}

/// A row of a page as spans of one style each.
pub(crate) fn styled(page: &Page, row: usize) -> StyledRow {
    let mut rest = page.visible_cells(row);
    let mut spans = Vec::new();
    while let Some(first) = rest.first() {
        let length = row_record::span_length(rest);
        let mut text = String::new();
        row_record::push_text(&mut text, &rest[..length]);
        // Not part of the line's text, but a column of its row.
        if rest[length - 1].flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            text.push(' ');
        }
        if !text.is_empty() {
            spans.push(Span { text, style: Style::from(first) });
        }
        rest = &rest[length..];
    }
    StyledRow { spans, wraps: page.wraps(row) }
}
