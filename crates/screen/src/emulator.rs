//! What the parser talks to: the pages, the margins, the modes, and how the cursor and the rows
//! move. Printing, editing and the sequences themselves stand in the files beside this one.

use std::mem;

use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::CharsetIndex;

use crate::history::History;
use crate::kitty_keyboard::KittyKeyboard;
use crate::modes::Modes;
use crate::notice::Notices;
use crate::page::{Page, line};
use crate::replies::Replies;
use crate::size::{CursorShape, Size};
use crate::tabs::Tabs;
use crate::title::Title;

/// The four character sets by number.
pub(crate) const CHARSETS: [CharsetIndex; 4] =
    [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3];

/// All state of a terminal but the parser's own.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub(crate) page: Page,
    /// The main page while the alternate one is shown.
    pub(crate) hidden_main: Option<Page>,
    /// Rows of the scroll region, the last one included.
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) modes: Modes,
    pub(crate) keyboard: KittyKeyboard,
    pub(crate) tabs: Tabs,
    pub(crate) title: Title,
    /// What the program last said of itself (OSC 7501).
    pub(crate) report: String,
    /// How often it said something.
    pub(crate) reports: u64,
    /// How far it last said to be (OSC 9;4).
    pub(crate) progress: Option<crate::notice::ProgressReport>,
    pub(crate) shape: CursorShape,
    pub(crate) blinking: bool,
    /// Index of the character set in use.
    pub(crate) charset: usize,
    /// The character just printed, if nothing came after it, for REP.
    pub(crate) last_character: Option<char>,
    /// A wide character was printed at some time, so halves may have to be mended.
    pub(crate) wide: bool,
    pub(crate) history: History,
    pub(crate) replies: Replies,
    pub(crate) notices: Notices,
    /// Bytes of output before the piece being read, and read up to now.
    pub(crate) base_offset: u64,
    pub(crate) offset: u64,
    /// The visible screen changed since it was last asked.
    pub(crate) changed: bool,
    /// An old log is read again: nothing is answered or noticed.
    pub(crate) replay: bool,
}

impl Emulator {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            page: Page::new(size),
            hidden_main: None,
            top: 0,
            bottom: usize::from(size.rows) - 1,
            modes: Modes::default(),
            keyboard: KittyKeyboard::default(),
            tabs: Tabs::new(usize::from(size.columns)),
            title: Title::default(),
            report: String::new(),
            reports: 0,
            progress: None,
            shape: CursorShape::default(),
            blinking: true,
            charset: 0,
            last_character: None,
            wide: false,
            history: History::default(),
            replies: Replies::default(),
            notices: Notices::default(),
            base_offset: 0,
            offset: 0,
            changed: false,
            replay: false,
        }
    }

    pub(crate) fn size(&self) -> Size {
        let (rows, columns) = (self.page.rows(), self.page.columns());
        Size::new(rows as u16, columns as u16)
    }

    /// The main page, shown or not.
    pub(crate) fn main(&self) -> &Page {
        self.hidden_main.as_ref().unwrap_or(&self.page)
    }

    // Moving the cursor.

    /// CUP, VPA and their like: rows count from the top margin when the origin mode is on.
    pub(crate) fn go(&mut self, row: usize, column: usize) {
        self.changed = true;
        if self.modes.origin {
            self.page.go((row + self.top).min(self.bottom), column);
        } else {
            self.page.go(row, column);
        }
    }

    /// The cursor's row as the program counts it.
    pub(crate) fn addressed_row(&self) -> usize {
        self.page.row().saturating_sub(if self.modes.origin { self.top } else { 0 })
    }

    pub(crate) fn up(&mut self, count: usize) {
        let row = self.page.row();
        let limit = if row >= self.top { self.top } else { 0 };
        self.changed = true;
        self.page.go(row.saturating_sub(count).max(limit), self.page.column());
    }

    pub(crate) fn down(&mut self, count: usize) {
        let row = self.page.row();
        let limit = if row <= self.bottom { self.bottom } else { self.page.rows() - 1 };
        self.changed = true;
        self.page.go(row.saturating_add(count).min(limit), self.page.column());
    }

    pub(crate) fn go_column(&mut self, column: usize) {
        self.changed = true;
        self.page.go(self.page.row(), column);
    }

    // Moving rows.

    /// Down one row; at the bottom margin the region scrolls.
    pub(crate) fn line_feed(&mut self) {
        self.changed = true;
        self.page.grid.cursor.input_needs_wrap = false;
        let row = self.page.row();
        if row == self.bottom {
            self.scroll_up(1);
        } else if row + 1 < self.page.rows() {
            self.page.grid.cursor.point.line += 1;
        }
        let row = self.page.row();
        self.page.info[row].offset = self.offset;
    }

    /// Up one row; at the top margin the region scrolls.
    pub(crate) fn reverse_line_feed(&mut self) {
        self.changed = true;
        self.page.grid.cursor.input_needs_wrap = false;
        if self.page.row() == self.top {
            self.page.scroll_down(self.top, self.bottom + 1, 1);
        } else {
            let row = self.page.row().saturating_sub(1);
            self.page.go(row, self.page.column());
        }
    }

    /// Scrolls the region up. What leaves a main screen at its top goes into the history.
    pub(crate) fn scroll_up(&mut self, count: usize) {
        let count = count.min(self.bottom + 1 - self.top);
        if self.top == 0 && self.hidden_main.is_none() {
            self.push_to_history(count);
        }
        self.page.scroll_up(self.top, self.bottom + 1, count);
        self.changed = true;
    }

    /// Copies the first rows into the history.
    pub(crate) fn push_to_history(&mut self, count: usize) {
        for row in 0..count {
            let offset = self.page.info[row].offset;
            self.history.push(self.page.visible_cells(row), self.page.wraps(row), offset);
        }
    }

    /// Goes on in the next row because this one is full.
    pub(crate) fn wrap(&mut self) {
        let (row, last) = (self.page.row(), self.page.columns() - 1);
        self.page.grid[line(row)][Column(last)].flags.insert(Flags::WRAPLINE);
        self.line_feed();
        self.page.grid.cursor.point.column = Column(0);
    }

    /// DECSTBM.
    pub(crate) fn set_margins(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.min(self.page.rows()) - 1;
        if top < bottom {
            (self.top, self.bottom) = (top, bottom);
            self.go(0, 0);
        }
    }

    // Cursor saved and restored, pages exchanged.

    pub(crate) fn save_cursor(&mut self) {
        self.page.grid.saved_cursor = self.page.grid.cursor.clone();
        // As in xterm.js; a snapshot could not bring it back.
        self.page.grid.saved_cursor.input_needs_wrap = false;
        self.page.saved_origin = self.modes.origin;
        self.page.saved_charset = self.charset;
    }

    pub(crate) fn restore_cursor(&mut self) {
        self.page.grid.cursor = self.page.grid.saved_cursor.clone();
        self.modes.origin = self.page.saved_origin;
        self.charset = self.page.saved_charset;
        self.changed = true;
        self.keep_in_margins();
    }

    /// With the origin mode on, the cursor is never outside the margins.
    fn keep_in_margins(&mut self) {
        let row = self.page.row();
        if self.modes.origin && !(self.top..=self.bottom).contains(&row) {
            self.page.go(row.clamp(self.top, self.bottom), self.page.column());
        }
    }

    /// Shows the alternate page, empty, with the cursor where it was.
    pub(crate) fn enter_alternate(&mut self) {
        if self.hidden_main.is_some() {
            return;
        }
        let mut page = Page::new(self.size());
        page.grid.cursor = self.page.grid.cursor.clone();
        let rows = page.rows();
        page.blank_rows(0..rows);
        let mut main = mem::replace(&mut self.page, page);
        main.margins = (self.top, self.bottom);
        (self.top, self.bottom) = (0, rows - 1);
        self.hidden_main = Some(main);
        self.keyboard.swap();
        self.modes.alternate_screen = true;
        self.changed = true;
    }

    /// Shows the main page again, with the cursor where it is.
    pub(crate) fn leave_alternate(&mut self) {
        let Some(main) = self.hidden_main.take() else { return };
        let alternate = mem::replace(&mut self.page, main);
        let point = alternate.grid.cursor.point;
        (self.top, self.bottom) = self.page.margins;
        self.page.grid.cursor = alternate.grid.cursor;
        self.page.go(usize::try_from(point.line.0).unwrap_or(0), point.column.0);
        self.keyboard.swap();
        self.modes.alternate_screen = false;
        self.changed = true;
        self.keep_in_margins();
    }

    // Resets.

    /// RIS. History, title and what waits to be taken stay.
    pub(crate) fn reset(&mut self) {
        let tiny = Size::new(1, 1);
        let mut old = mem::replace(self, Self::new(tiny));
        // The page is blanked and used again: a new one would cost more than most programs print.
        self.page = old.hidden_main.take().unwrap_or(old.page);
        self.page.reset();
        self.bottom = self.page.rows() - 1;
        self.tabs = Tabs::new(self.page.columns());
        self.history = old.history;
        self.title = old.title;
        (self.report, self.reports, self.progress) = (old.report, old.reports, old.progress);
        self.replies = old.replies;
        self.notices = old.notices;
        (self.base_offset, self.offset, self.replay) = (old.base_offset, old.offset, old.replay);
        self.changed = true;
    }

    /// DECSTR.
    pub(crate) fn soft_reset(&mut self) {
        self.modes.cursor_visible = true;
        (self.modes.origin, self.modes.insert, self.modes.wrap) = (false, false, true);
        (self.modes.application_cursor, self.modes.application_keypad) = (false, false);
        (self.top, self.bottom) = (0, self.page.rows() - 1);
        let cursor = &mut self.page.grid.cursor;
        cursor.template = alacritty_terminal::term::cell::Cell::default();
        cursor.charsets = alacritty_terminal::grid::Charsets::default();
        self.charset = 0;
        self.page.grid.saved_cursor = alacritty_terminal::grid::Cursor::default();
        self.page.saved_origin = false;
        self.page.saved_charset = 0;
        self.changed = true;
    }
}
