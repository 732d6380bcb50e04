//! Bypasses the grid for floods of lines. If a chunk has more rows of text than the screen, most of them scroll off
//! before anyone could see them, so they go straight into the history. This handles lines of text with colours,
//! attributes and tabs, which is what programs print in floods; the resulting screen and history are the same as
//! without this file.

use std::cell::RefCell;

use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::cluster::{self, JOINER, MAX_MARKS};
use crate::emulator::{CHARSETS, Emulator};
use crate::history::History;
use crate::parser::{Csi, printable_ascii};
use crate::row_record;
use crate::sgr;
use crate::style::{DEFAULT_BACKGROUND, SimpleStyle};
use crate::tabs::Tabs;

const LINE_END: &[u8] = b"\r\n";

/// Rows beyond a screenful from which the bypass pays off.
const MIN_EXTRA_ROWS: usize = 4;

/// Bytes that are read at once. It bounds the scratch.
const WINDOW_BYTES: usize = 32 << 10;

thread_local! {
    /// Per thread and not per screen: a server has hundreds of screens and feeds one at a time.
    static SCRATCH: RefCell<Rows> = RefCell::new(Rows::default());
}

/// What happened to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bypassed {
    /// Bytes that are in the history now. The page is blank, and what follows begins at its top.
    pub(crate) used: usize,
    /// Bytes after these in lines that would stay on the screen.
    pub(crate) kept: usize,
    /// What follows them.
    pub(crate) then: Then,
}

/// Why a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The end of the chunk, perhaps within a line.
    End,
    /// More lines, which are not read yet.
    More,
    /// A line that only the grid can show.
    Unsupported,
}

impl Emulator {
    /// Moves the lines at the start of `bytes` into the history, except those that stay on the screen. The caller
    /// parses the rest as usual. `kept`: the lines at the start of `bytes` that were read before, and are not read
    /// again. If there are none, the cursor is in a blank last row.
    pub(crate) fn bypass_grid(&mut self, bytes: &[u8], kept: &mut KeptRows) -> Bypassed {
        let mut rows = SCRATCH.take();
        rows.clone_from_rows(&kept.rows, 0, 0);
        let window = &bytes[kept.end..bytes.len().min(kept.end + WINDOW_BYTES)];
        let is_whole = kept.end + window.len() == bytes.len();
        let (text, is_broken) = utf8_prefix(window);
        let mut scan = Scan::new(self, text, kept, &mut rows);
        let mut then = scan.lines();
        let (end, style) = (scan.base + scan.at, scan.style);
        kept.has_wide |= scan.has_wide;
        kept.may_join |= scan.may_join;
        if is_broken {
            then = Then::Unsupported;
        } else if then == Then::End && !is_whole {
            then = Then::More;
        }
        // The last row stays blank for the cursor.
        let height = self.page.rows();
        let staying = height - 1;
        let least = if kept.is_blank { height } else { height + MIN_EXTRA_ROWS };
        let (mut used, mut moved) = (0, 0);
        if rows.rows.len() >= least {
            self.wide |= kept.has_wide;
            self.history.may_join |= kept.may_join;
            if !kept.is_blank {
                self.push_to_history(staying);
            }
            moved = rows.rows.len() - staying;
            rows.push_to(&mut self.history, (bytes, text, kept.end), moved, self.base_offset);
            let first = rows.rows.get(moved);
            used = first.map_or(end, |row| row.begin as usize);
            self.page.blank_rows(0..height);
            self.page.go(0, 0);
            let style = first.map_or(style, |row| row.style);
            self.page.grid.cursor.template = style.template();
            self.page.info[0].offset = self.base_offset + used as u64;
            (self.changed, self.last_character) = (true, None);
        }
        kept.rows.clone_from_rows(&rows, moved, used);
        (kept.end, kept.style) = (end - used, Some(style));
        kept.is_blank |= used > 0;
        SCRATCH.replace(rows);
        Bypassed { used, kept: end - used, then }
    }

    /// Whether each line would be printed into a blank last row and then scroll up.
    pub(crate) fn can_bypass_grid(&self) -> bool {
        let (cursor, last) = (&self.page.grid.cursor, self.page.rows() - 1);
        (self.page.row(), self.page.column()) == (last, 0)
            && self.hidden_main.is_none()
            && (self.top, self.bottom) == (0, last)
            && self.is_full_width()
            && self.page.info[last].extent == 0
            && !self.page.wraps(last)
            && !cursor.input_needs_wrap
            && SimpleStyle::of(&cursor.template).is_some_and(|it| it.bg == DEFAULT_BACKGROUND)
            && cursor.charsets[CHARSETS[self.charset]] == StandardCharset::Ascii
            && self.modes.wrap
            && !self.modes.insert
            && !self.modes.tab_wraps
    }
}

/// Rows at the end of a flood that stay on the screen, for the next chunk of it.
#[derive(Debug, Default)]
pub(crate) struct KeptRows {
    rows: Rows,
    /// The length of their lines.
    end: usize,
    /// The page is blank, and they begin at its top; otherwise in its last row.
    pub(crate) is_blank: bool,
    /// The style of what follows them; `None`: that of the cursor.
    style: Option<SimpleStyle>,
    has_wide: bool,
    may_join: bool,
}

impl KeptRows {
    /// Forgets them: their lines are parsed, or gone.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        (self.end, self.style, self.is_blank) = (0, None, false);
        (self.has_wide, self.may_join) = (false, false);
    }
}

/// Rows of a chunk as the history stores them.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<BulkRow>,
    /// The text of rows that are more than plain text.
    text: String,
    /// The spans of all rows, encoded.
    spans: Vec<u8>,
    /// The spans of the row that is being read: where in `text` they begin, and their styles.
    open: Vec<(usize, SimpleStyle)>,
}

#[derive(Debug, Clone, Copy)]
struct BulkRow {
    /// Where it begins in the chunk.
    begin: u32,
    /// Its text, in the chunk or in `Rows::text`.
    text: (u32, u32),
    spans: (u32, u32),
    span_count: u32,
    /// The style that its text begins with.
    style: SimpleStyle,
    is_in_chunk: bool,
    wraps: bool,
}

impl BulkRow {
    /// The row after as many bytes were removed from the front of its chunk, of `Rows::text` and of `Rows::spans`.
    fn moved(&self, chunk: u32, text: u32, spans: u32) -> Self {
        let by = if self.is_in_chunk { chunk } else { text };
        let spans = if self.is_in_chunk { 0 } else { spans };
        Self {
            begin: self.begin - chunk,
            text: (self.text.0 - by, self.text.1 - by),
            spans: (self.spans.0 - spans, self.spans.1 - spans),
            ..*self
        }
    }
}

impl Rows {
    fn clear(&mut self) {
        self.rows.clear();
        self.text.clear();
        self.spans.clear();
    }

    /// Copies the rows from number `first` on. Their chunk begins `used` bytes later.
    fn clone_from_rows(&mut self, rows: &Self, first: usize, used: usize) {
        self.clear();
        let kept = &rows.rows[first..];
        let Some(start) = kept.iter().find(|row| !row.is_in_chunk) else {
            self.rows.extend(kept.iter().map(|row| row.moved(used as u32, 0, 0)));
            return;
        };
        let (text, spans) = (start.text.0, start.spans.0);
        self.rows.extend(kept.iter().map(|row| row.moved(used as u32, text, spans)));
        self.text.push_str(&rows.text[text as usize..]);
        self.spans.extend_from_slice(&rows.spans[spans as usize..]);
    }

    /// Appends the first `count` rows to the history: rows of a chunk, of which this text begins at `base`.
    fn push_to(
        &self,
        history: &mut History,
        (chunk, new, base): (&[u8], &str, usize),
        count: usize,
        base_offset: u64,
    ) {
        for row in &self.rows[..count] {
            let offset = base_offset + u64::from(row.begin);
            let text = row.text.0 as usize..row.text.1 as usize;
            if row.is_in_chunk {
                let text = match text.start.checked_sub(base) {
                    Some(start) => &new[start..text.end - base],
                    // It was read with an earlier chunk.
                    None => std::str::from_utf8(&chunk[text]).unwrap_or_default(),
                };
                history.push_plain(text, row.wraps, offset);
            } else {
                let spans = &self.spans[row.spans.0 as usize..row.spans.1 as usize];
                let count = row.span_count as usize;
                history.push_text(&self.text[text], spans, count, row.wraps, offset);
            }
        }
    }
}

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineScan {
    Complete,
    /// The chunk ends within it.
    Partial,
    Unsupported,
}

/// The bytes up to the first that is not UTF-8, and whether that cannot be the beginning of a character that the next
/// chunk completes.
fn utf8_prefix(bytes: &[u8]) -> (&str, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => {
            let valid = &bytes[..error.valid_up_to()];
            (std::str::from_utf8(valid).unwrap_or_default(), error.error_len().is_some())
        }
    }
}

/// Reads the lines of a chunk into rows.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    columns: usize,
    tabs: &'a Tabs,
    clusters: bool,
    out: &'a mut Rows,
    sequence: Csi,
    /// Where the text begins in the chunk.
    base: usize,
    at: usize,
    /// What is printed next, and its style.
    template: Cell,
    style: SimpleStyle,
    /// A wide character, and one that may join others, were printed.
    has_wide: bool,
    may_join: bool,
    // The current row.
    begin: usize,
    begin_style: SimpleStyle,
    text_begin: usize,
    spans_begin: usize,
    /// The columns in use: the next character begins here. If this is past the last one, it wraps.
    column: usize,
    /// The character before, unless a control came in between.
    last: Option<char>,
    /// The width of the cell before, and, if that is more than one character, where it begins in the text.
    cell_width: usize,
    cell_begin: Option<usize>,
}

impl<'a> Scan<'a> {
    fn new(emulator: &'a Emulator, text: &'a str, kept: &KeptRows, out: &'a mut Rows) -> Self {
        let cursor_style = || SimpleStyle::of(&emulator.page.grid.cursor.template);
        let style = kept.style.or_else(cursor_style).unwrap_or(SimpleStyle::PLAIN);
        let template = style.template();
        Self {
            text,
            bytes: text.as_bytes(),
            columns: emulator.page.columns(),
            tabs: &emulator.tabs,
            clusters: emulator.modes.clusters,
            out,
            sequence: Csi::new(),
            base: kept.end,
            at: 0,
            template,
            style,
            has_wide: false,
            may_join: false,
            begin: 0,
            begin_style: style,
            text_begin: 0,
            spans_begin: 0,
            column: 0,
            last: None,
            cell_width: 1,
            cell_begin: None,
        }
    }

    /// Reads lines up to the first that is incomplete or not supported.
    fn lines(&mut self) -> Then {
        loop {
            if self.style == SimpleStyle::PLAIN {
                let length = printable_ascii(&self.bytes[self.at..]);
                if self.bytes[self.at + length..].starts_with(LINE_END) {
                    self.plain_line(length);
                    continue;
                }
            }
            let (at, rows) = (self.at, self.out.rows.len());
            let (text, spans) = (self.out.text.len(), self.out.spans.len());
            let style = self.style;
            let scan = self.line();
            if scan == LineScan::Complete {
                continue;
            }
            self.out.rows.truncate(rows);
            self.out.text.truncate(text);
            self.out.spans.truncate(spans);
            (self.at, self.style, self.template) = (at, style, style.template());
            return if scan == LineScan::Partial { Then::End } else { Then::Unsupported };
        }
    }

    /// Takes a line of this many ASCII characters without any style.
    fn plain_line(&mut self, length: usize) {
        let end = self.at + length;
        loop {
            let row_end = end.min(self.at + self.columns);
            let wraps = row_end < end;
            let (begin, in_chunk_end) = (self.base + self.at, self.base + row_end);
            self.out.rows.push(BulkRow {
                begin: begin as u32,
                text: (begin as u32, in_chunk_end as u32),
                spans: (0, 0),
                span_count: 0,
                style: SimpleStyle::PLAIN,
                is_in_chunk: true,
                wraps,
            });
            self.at = row_end;
            if !wraps {
                break;
            }
        }
        self.at = end + LINE_END.len();
    }

    fn line(&mut self) -> LineScan {
        self.begin_row();
        self.last = None;
        loop {
            let Some(&byte) = self.bytes.get(self.at) else { return LineScan::Partial };
            let supported = match byte {
                b' '..=b'~' => self.ascii(),
                0x80.. => self.unicode(),
                b'\t' => self.tab(),
                b'\r' => match self.bytes.get(self.at + 1) {
                    None => return LineScan::Partial,
                    // Otherwise the next row is not blank.
                    Some(b'\n') if self.style.bg == DEFAULT_BACKGROUND => {
                        self.end_row(false);
                        self.at += LINE_END.len();
                        return LineScan::Complete;
                    }
                    Some(_) => false,
                },
                0x1b => match self.control_sequence() {
                    LineScan::Complete => true,
                    other => return other,
                },
                _ => false,
            };
            if !supported {
                return LineScan::Unsupported;
            }
        }
    }

    fn begin_row(&mut self) {
        (self.begin, self.begin_style, self.column) = (self.at, self.style, 0);
        (self.text_begin, self.spans_begin) = (self.out.text.len(), self.out.spans.len());
        self.out.open.clear();
    }

    fn end_row(&mut self, wraps: bool) {
        let Rows { rows, text, spans, open } = &mut *self.out;
        // Blanks at the end are not stored.
        while !wraps && let Some(&(begin, style)) = open.last() {
            if style.shows_blanks() {
                break;
            }
            let length = text[begin..].trim_end_matches(' ').len();
            text.truncate(begin + length);
            if length > 0 {
                break;
            }
            open.pop();
        }
        let mut span_count = 0;
        for (index, &(begin, style)) in open.iter().enumerate() {
            let next = open.get(index + 1).map(|(next, _)| *next);
            // Text that no span covers is plain.
            if next.is_some() || style != SimpleStyle::PLAIN {
                let end = next.unwrap_or(text.len());
                row_record::put_span(spans, end - begin, style);
                span_count += 1;
            }
        }
        rows.push(BulkRow {
            begin: (self.base + self.begin) as u32,
            text: (self.text_begin as u32, text.len() as u32),
            spans: (self.spans_begin as u32, spans.len() as u32),
            span_count,
            style: self.begin_style,
            is_in_chunk: false,
            wraps,
        });
    }

    /// Continues in the next row; `false` if that would not be blank.
    fn wrap(&mut self) -> bool {
        if self.style.bg != DEFAULT_BACKGROUND {
            return false;
        }
        self.end_row(true);
        self.begin_row();
        true
    }

    /// Begins a span if the style is another one.
    fn use_style(&mut self, style: SimpleStyle) {
        if self.out.open.last().is_none_or(|(_, last)| *last != style) {
            self.out.open.push((self.out.text.len(), style));
        }
    }

    /// Appends the text from `from` to the current position.
    fn push_from(&mut self, from: usize) {
        if from < self.at {
            self.use_style(self.style);
            self.out.text.push_str(&self.text[from..self.at]);
        }
    }

    fn ascii(&mut self) -> bool {
        let end = self.at + printable_ascii(&self.bytes[self.at..]);
        while self.at < end {
            if self.column == self.columns && !self.wrap() {
                return false;
            }
            let (from, fits) = (self.at, (end - self.at).min(self.columns - self.column));
            self.at += fits;
            self.column += fits;
            self.push_from(from);
        }
        self.last = Some(char::from(self.bytes[end - 1]));
        (self.cell_width, self.cell_begin) = (1, None);
        true
    }

    /// Reads characters up to the next ASCII one.
    fn unicode(&mut self) -> bool {
        let mut from = self.at;
        let text = self.text;
        for character in text[self.at..].chars() {
            if character.is_ascii() {
                break;
            }
            let is_after_joiner = self.last == Some(JOINER);
            let simple = if is_after_joiner { None } else { cluster::simple_width(character) };
            let width = simple.unwrap_or_else(|| cluster::width(character));
            if simple.is_none() && (width == 0 || is_after_joiner || cluster::is_joining(character))
            {
                self.push_from(from);
                from = self.at;
                match self.extend(character, width) {
                    Some(true) => {
                        from = self.at;
                        continue;
                    }
                    Some(false) => {}
                    None => return false,
                }
            } else if character.is_control() {
                return false;
            }
            if self.column + width > self.columns {
                self.push_from(from);
                from = self.at;
                if self.column < self.columns {
                    // The column that is left empty has this style.
                    self.use_style(self.style);
                }
                if !self.wrap() {
                    return false;
                }
            }
            self.at += character.len_utf8();
            self.column += width;
            self.has_wide |= width == 2;
            self.last = Some(character);
            (self.cell_width, self.cell_begin) = (width, None);
        }
        self.push_from(from);
        true
    }

    /// Adds a character to the cell before it, as printing it would; `Some(false)` if it begins a new one. `None`:
    /// not supported.
    fn extend(&mut self, character: char, width: usize) -> Option<bool> {
        let last = self.last?;
        let is_selector = matches!(character, cluster::AS_TEXT | cluster::AS_EMOJI);
        if character.is_control() || !self.clusters && (width > 0 || is_selector) {
            return None;
        }
        self.may_join |= width > 0 || character == JOINER;
        let begin = self.cell_begin.unwrap_or(self.out.text.len() - last.len_utf8());
        let mut cell = self.out.text[begin..].chars();
        let first = cell.next()?;
        let (mut others, mut count) = ([' '; MAX_MARKS], 0);
        for mark in cell {
            *others.get_mut(count)? = mark;
            count += 1;
        }
        if width > 0
            && !(cluster::may_join(last, character)
                && cluster::joins(first, &others[..count], character))
        {
            return Some(false);
        }
        if count == MAX_MARKS {
            return None;
        }
        if width > 0 || is_selector {
            let after = cluster::extended(first, self.cell_width, character, count == 0);
            // Narrower, or in the next row.
            let added = after.checked_sub(self.cell_width)?;
            if self.column + added > self.columns {
                return None;
            }
            self.column += added;
            self.cell_width = after;
            self.has_wide |= after == 2;
        }
        self.out.text.push(character);
        self.at += character.len_utf8();
        (self.last, self.cell_begin) = (Some(character), Some(begin));
        Some(true)
    }

    /// Moves to the next tab stop; the columns in between stay blank.
    fn tab(&mut self) -> bool {
        if self.column < self.columns {
            let stop = self.tabs.after(self.column);
            if stop > self.column {
                self.use_style(SimpleStyle::PLAIN);
                self.out.text.extend(std::iter::repeat_n(' ', stop - self.column));
                self.column = stop;
            }
        }
        self.at += 1;
        self.last.take() != Some(JOINER)
    }

    /// SGR, and EL where there is nothing to erase.
    fn control_sequence(&mut self) -> LineScan {
        let rest = match &self.bytes[self.at + 1..] {
            [] => return LineScan::Partial,
            [b'[', rest @ ..] => rest,
            _ => return LineScan::Unsupported,
        };
        let Some(length) = self.sequence.read(rest) else {
            return match rest.iter().all(|byte| matches!(byte, b'0'..=b';')) {
                true => LineScan::Partial,
                false => LineScan::Unsupported,
            };
        };
        let is_blank = self.style.bg == DEFAULT_BACKGROUND && self.column < self.columns;
        match self.sequence.last {
            b'm' => {
                sgr::apply(&mut self.template, &self.sequence);
                match SimpleStyle::of(&self.template) {
                    Some(style) => self.style = style,
                    None => return LineScan::Unsupported,
                }
            }
            b'K' if self.sequence.get(0) == 0 && is_blank => {}
            _ => return LineScan::Unsupported,
        }
        self.at += 2 + length;
        // What follows begins a new cell, though their text together would be one.
        match self.last.take() == Some(JOINER) {
            true => LineScan::Unsupported,
            false => LineScan::Complete,
        }
    }
}
