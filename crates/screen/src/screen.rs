//! A terminal's screen: bytes go in, rows come out.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use alacritty_terminal::term::cell::Flags;

use crate::emulator::Emulator;
use crate::history::{self, History, Line, RowText};
use crate::modes::Modes;
use crate::notice::{Notice, ProgressReport};
use crate::page::Page;
use crate::parser::Parser;
use crate::resize;
use crate::row_record;
use crate::size::{Cursor, Size};
use crate::snapshot;
use crate::style::{Span, Style, same_style};
use crate::wrap::StyledRow;

/// A terminal's screen and the history above it.
#[derive(Debug)]
pub struct Screen {
    parser: Parser,
    emulator: Emulator,
    version: u64,
    failures: u64,
}

impl Screen {
    /// An empty screen.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let size = Size::new(size.rows, size.columns);
        Self { parser: Parser::new(), emulator: Emulator::new(size), version: 0, failures: 0 }
    }

    /// Reads output of the program: any bytes, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let end = self.emulator.base_offset + bytes.len() as u64;
        self.guarded(|parser, emulator| read(parser, emulator, bytes));
        self.emulator.base_offset = end;
        self.emulator.offset = end;
        self.note_change();
    }

    /// Changes the size. Lines are wrapped anew, and a screen that grows takes rows back from the
    /// history.
    pub fn resize(&mut self, size: Size) {
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

    /// Runs what may panic inside the engine. A pane that met such a fault shows an empty screen
    /// of the same size and keeps its history; [`Screen::failures`] tells whoever has a log to
    /// read it again.
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
        self.emulator.replay = old.replay;
        self.parser = Parser::new();
        self.emulator.changed = true;
    }

    fn note_change(&mut self) {
        self.version += u64::from(std::mem::take(&mut self.emulator.changed));
    }

    /// A number that grows whenever the visible screen or its cursor changed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Has versions go on from a higher number: what an earlier screen of the same program was at.
    pub fn raise_version(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// How often the engine failed and the screen had to start empty.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Bytes fed up to now, plus what [`Screen::set_offset`] said.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.emulator.offset
    }

    /// Says where in the program's output the next byte stands, for a screen that does not begin
    /// at its beginning.
    pub fn set_offset(&mut self, offset: u64) {
        self.emulator.base_offset = offset;
        self.emulator.offset = offset;
        let row = self.emulator.page.row();
        let info = &mut self.emulator.page.info[row];
        if info.extent == 0 {
            info.offset = offset;
        }
    }

    /// Goes on at a later offset: what the program printed up to there is lost. A sequence that was
    /// begun before is given up, so that it does not swallow what comes next.
    pub fn skip_to(&mut self, offset: u64) {
        if offset > self.offset() {
            self.parser = Parser::new();
            self.set_offset(offset);
        }
    }

    /// Reads an old log from now on: no query is answered and nothing is noticed.
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
        Cursor {
            row: self.emulator.page.row() as u16,
            column: self.emulator.page.column() as u16,
            visible: self.emulator.modes.cursor_visible,
            shape: self.emulator.shape,
            blinking: self.emulator.blinking,
        }
    }

    /// The title that the program gave itself, free of control characters.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.emulator.title.text
    }

    /// What the program last said of its own state (OSC 7501, like `state=working:app=codex`), free
    /// of control characters.
    #[must_use]
    pub fn report(&self) -> &str {
        &self.emulator.report
    }

    /// How often it said something of its own state.
    #[must_use]
    pub fn reports(&self) -> u64 {
        self.emulator.reports
    }

    /// How far the program last said to be (OSC 9;4).
    #[must_use]
    pub fn progress(&self) -> Option<ProgressReport> {
        self.emulator.progress
    }

    /// What the program has switched on.
    #[must_use]
    pub fn modes(&self) -> Modes {
        Modes { kitty_keyboard: self.emulator.keyboard.flags(), ..self.emulator.modes }
    }

    /// The visible rows as text, without blanks at their ends; a row that wraps keeps them.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        (0..self.emulator.page.rows()).map(|row| self.emulator.page.text(row)).collect()
    }

    /// One visible row as text; empty where there is none.
    #[must_use]
    pub fn row(&self, row: u16) -> String {
        let row = usize::from(row);
        if row < self.emulator.page.rows() { self.emulator.page.text(row) } else { String::new() }
    }

    /// Whether the terminal wrapped a row: its line goes on in the next.
    #[must_use]
    pub fn wraps(&self, row: u16) -> bool {
        usize::from(row) < self.emulator.page.rows() && self.emulator.page.wraps(usize::from(row))
    }

    /// One visible row with its styles; empty where there is none.
    #[must_use]
    pub fn styled_row(&self, row: u16) -> StyledRow {
        let (page, row) = (&self.emulator.page, usize::from(row));
        if row < page.rows() { styled(page, row) } else { StyledRow::default() }
    }

    /// The rows above the screen.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.emulator.history
    }

    /// The rows above the screen, to stamp or to drop them.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.emulator.history
    }

    /// All lines from the number `from` on, oldest first: the history, the main screen, and the
    /// alternate screen where one is shown. Rows that the terminal wrapped are one line. Numbers
    /// of lines still on the screen are the ones they will have in the history.
    pub fn lines(&self, from: u64) -> impl Iterator<Item = Line<'_>> {
        let history = &self.emulator.history;
        let first = history.next_line() - u64::from(history.is_open());
        let main = self.emulator.main();
        let alternate = self.emulator.hidden_main.is_some().then_some(&self.emulator.page);
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

    /// Bytes that make a fresh screen of the same size, or a terminal, show the same: both
    /// screens, cursor, modes, margins, tab stops, title. It ends in the middle of a sequence where
    /// the output does, so that the bytes from [`Screen::offset`] on can follow it.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        [snapshot::snapshot(&self.emulator), self.parser.pending()].concat()
    }

    /// Answers to the program's queries, to be written to it.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.emulator.replies.take()
    }

    /// What the program told its terminal since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.emulator.notices.take()
    }
}

/// Reads a piece, plain lines in bulk where there are many.
fn read(parser: &mut Parser, emulator: &mut Emulator, bytes: &[u8]) {
    // A piece mostly begins inside a line.
    let (head, rest) = match memchr::memchr(b'\n', bytes) {
        Some(end) => bytes.split_at(end + 1),
        None => (bytes, &[][..]),
    };
    let mut rest = rest;
    parser.advance(head, emulator);
    emulator.base_offset += head.len() as u64;
    if parser.is_ground() {
        let used = emulator.feed_plain_lines(rest);
        emulator.base_offset += used as u64;
        rest = &rest[used..];
    }
    parser.advance(rest, emulator);
}

/// Lines that end on a page, its blank rows at the end left out.
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

/// A row of a page in pieces of one style each.
pub(crate) fn styled(page: &Page, row: usize) -> StyledRow {
    let mut rest = page.visible_cells(row);
    let mut spans = Vec::new();
    while let Some(first) = rest.first() {
        let length = rest.iter().position(|cell| !same_style(first, cell)).unwrap_or(rest.len());
        let mut text = String::new();
        row_record::push_text(&mut text, &rest[..length]);
        // Left out of a line's text, but a column of its row.
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
