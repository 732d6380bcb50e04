//! The state that the parser's actions change: pages, margins and modes, and how rows move.
//! The cursor, printing, editing and the sequences themselves are in the files beside this one.

use std::mem;

use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::CharsetIndex;

use crate::colours::Colours;
use crate::history::History;
use crate::kitty_keyboard::KittyKeyboard;
use crate::modes::Modes;
use crate::notice::Notices;
use crate::page::{Page, SavedCursor, line};
use crate::replies::Replies;
use crate::size::{CursorShape, Size};
use crate::tabs::Tabs;
use crate::terminal_name::TerminalName;
use crate::title::Title;

/// The four character sets by number.
pub(crate) const CHARSETS: [CharsetIndex; 4] =
    [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3];

/// The level of conformance: that of a VT400.
pub(crate) const MAX_LEVEL: u8 = 4;

/// All state of a terminal except the parser's.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub(crate) page: Page,
    /// The main page while the alternate one is shown.
    pub(crate) hidden_main: Option<Page>,
    /// First and last row of the scroll region, both inclusive.
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    /// First and last column of the region, both inclusive; the whole width unless mode 69 is on.
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// What was saved on the alternate page, while the main page is shown.
    pub(crate) alternate_saved: SavedCursor,
    /// Erasing leaves protected cells alone: they were protected by SPA, not by DECSCA.
    pub(crate) guarded: bool,
    /// Changing attributes in a rectangle affects the rectangle, not the text from its first to its last cell.
    pub(crate) in_rectangle: bool,
    /// Private modes that were saved (XTSAVE): at most the known ones, each once.
    pub(crate) saved_modes: Vec<(u16, bool)>,
    /// Checksums of the screen and titles are reported: only in tests, since they let a program read what others have
    /// printed, and repeat text that one chose.
    pub(crate) checksums: bool,
    /// The level of conformance (DECSCL).
    pub(crate) level: u8,
    pub(crate) modes: Modes,
    pub(crate) keyboard: KittyKeyboard,
    pub(crate) tabs: Tabs,
    pub(crate) title: Title,
    /// The colours that the program has changed.
    pub(crate) colours: Colours,
    /// The program's last status report (OSC 7501).
    pub(crate) report: String,
    /// The number of status reports.
    pub(crate) reports: u64,
    /// The program's last progress report (OSC 9;4).
    pub(crate) progress: Option<crate::notice::ProgressReport>,
    pub(crate) shape: CursorShape,
    pub(crate) blinking: bool,
    /// Index of the character set in use.
    pub(crate) charset: usize,
    /// The character just printed, for REP; none after anything else.
    pub(crate) last_character: Option<char>,
    /// A wide character has been printed, so edits may leave halves of one behind.
    pub(crate) wide: bool,
    pub(crate) history: History,
    pub(crate) replies: Replies,
    pub(crate) notices: Notices,
    /// Bytes of output before the chunk being parsed, and parsed up to now.
    pub(crate) base_offset: u64,
    pub(crate) offset: u64,
    /// The visible screen has changed since the last check.
    pub(crate) changed: bool,
    /// The reply to XTVERSION.
    pub(crate) terminal_name: TerminalName,
    /// An old log is being replayed: no replies, no notices.
    pub(crate) replay: bool,
}

impl Emulator {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            page: Page::new(size),
            hidden_main: None,
            top: 0,
            bottom: usize::from(size.rows) - 1,
            left: 0,
            right: usize::from(size.columns) - 1,
            alternate_saved: SavedCursor::default(),
            guarded: false,
            in_rectangle: false,
            saved_modes: Vec::new(),
            checksums: false,
            level: MAX_LEVEL,
            modes: Modes::default(),
            keyboard: KittyKeyboard::default(),
            tabs: Tabs::new(usize::from(size.columns)),
            title: Title::default(),
            colours: Colours::default(),
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
            terminal_name: TerminalName::default(),
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

    /// The number of the cursor's shape (DECSCUSR).
    pub(crate) fn shape_number(&self) -> u8 {
        let shape = match self.shape {
            CursorShape::Block => 1,
            CursorShape::Underline => 3,
            CursorShape::Bar => 5,
        };
        shape + u8::from(!self.blinking)
    }

    // Moving rows.

    /// Down one row; at the bottom margin the region scrolls.
    pub(crate) fn line_feed(&mut self) {
        self.changed = true;
        self.page.grid.cursor.input_needs_wrap = false;
        let row = self.page.row();
        if row == self.bottom {
            if self.is_between_sides() {
                self.scroll_up(1);
            }
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
            if self.is_between_sides() {
                self.rows_down(self.top, 1);
            }
        } else {
            let row = self.page.row().saturating_sub(1);
            self.page.go(row, self.page.column());
        }
    }

    /// Scrolls the region up. Rows that leave the main screen at its top go into the history.
    pub(crate) fn scroll_up(&mut self, count: usize) {
        let count = count.min(self.bottom + 1 - self.top);
        if self.top == 0 && self.hidden_main.is_none() && self.is_full_width() {
            self.push_to_history(count);
        }
        self.rows_up(self.top, count);
    }

    /// Moves the region's rows from `from` on up; blank ones appear at the bottom margin.
    pub(crate) fn rows_up(&mut self, from: usize, count: usize) {
        self.changed = true;
        if self.is_full_width() {
            self.page.scroll_up(from, self.bottom + 1, count);
        } else {
            self.page.shift_up(from, self.bottom + 1, self.left..self.right + 1, count);
        }
    }

    /// Moves the region's rows from `from` on down; blank ones appear there.
    pub(crate) fn rows_down(&mut self, from: usize, count: usize) {
        self.changed = true;
        if self.is_full_width() {
            self.page.scroll_down(from, self.bottom + 1, count);
        } else {
            self.page.shift_down(from, self.bottom + 1, self.left..self.right + 1, count);
        }
    }

    /// Copies the first rows into the history.
    pub(crate) fn push_to_history(&mut self, count: usize) {
        for row in 0..count {
            let offset = self.page.info[row].offset;
            self.history.push(self.page.visible_cells(row), self.page.wraps(row), offset);
        }
    }

    /// Continues in the next row because this one is full.
    pub(crate) fn wrap(&mut self) {
        let (row, last) = (self.page.row(), self.page.columns() - 1);
        // Between margins, the next row is not the same line.
        if self.is_full_width() {
            self.page.grid[line(row)][Column(last)].flags.insert(Flags::WRAPLINE);
        }
        let column = if self.page.column() <= self.right { self.left } else { 0 };
        self.line_feed();
        self.page.grid.cursor.point.column = Column(column);
    }

    /// DECSTBM.
    pub(crate) fn set_margins(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.min(self.page.rows()) - 1;
        if top < bottom {
            (self.top, self.bottom) = (top, bottom);
            self.go(0, 0);
        }
    }

    /// DECSLRM.
    pub(crate) fn set_side_margins(&mut self, left: usize, right: usize) {
        let right = right.min(self.page.columns()) - 1;
        if left < right {
            (self.left, self.right) = (left, right);
            self.go(0, 0);
        }
    }

    /// DECLRMM (mode 69): without it there are no margins at the sides.
    pub(crate) fn use_side_margins(&mut self, on: bool) {
        self.modes.side_margins = on;
        self.page.grid.cursor.input_needs_wrap = false;
        (self.left, self.right) = (0, self.page.columns() - 1);
    }

    // Saving the cursor, switching pages.

    pub(crate) fn save_cursor(&mut self) {
        let mut cursor = self.page.grid.cursor.clone();
        // As in xterm.js; a snapshot could not restore it.
        cursor.input_needs_wrap = false;
        self.page.saved = SavedCursor { cursor, origin: self.modes.origin, charset: self.charset };
    }

    pub(crate) fn restore_cursor(&mut self) {
        let saved = self.page.saved.clone();
        self.page.grid.cursor = saved.cursor;
        (self.modes.origin, self.charset) = (saved.origin, saved.charset);
        self.changed = true;
        self.keep_in_margins();
    }

    /// In origin mode, the cursor is never outside the margins.
    fn keep_in_margins(&mut self) {
        if self.modes.origin && !self.is_in_region() {
            let row = self.page.row().clamp(self.top, self.bottom);
            self.page.go(row, self.page.column().clamp(self.left, self.right));
        }
    }

    /// Shows the alternate page, empty, with the cursor in the same place.
    pub(crate) fn enter_alternate(&mut self) {
        if self.hidden_main.is_some() {
            return;
        }
        let mut page = Page::new(self.size());
        page.grid.cursor = self.page.grid.cursor.clone();
        let rows = page.rows();
        page.blank_rows(0..rows);
        page.saved = mem::take(&mut self.alternate_saved);
        let mut main = mem::replace(&mut self.page, page);
        main.margins = (self.top, self.bottom);
        (self.top, self.bottom) = (0, rows - 1);
        self.hidden_main = Some(main);
        self.keyboard.swap();
        self.modes.alternate_screen = true;
        self.changed = true;
    }

    /// Shows the main page again, with the cursor in the same place.
    pub(crate) fn leave_alternate(&mut self) {
        let Some(main) = self.hidden_main.take() else { return };
        let mut alternate = mem::replace(&mut self.page, main);
        self.alternate_saved = mem::take(&mut alternate.saved);
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

    /// RIS. Keeps history, title, and pending replies and notices.
    pub(crate) fn reset(&mut self) {
        let tiny = Size::new(1, 1);
        let mut old = mem::replace(self, Self::new(tiny));
        // Reuses the page: allocating one would cost more than parsing most programs' output.
        self.page = old.hidden_main.take().unwrap_or(old.page);
        self.page.reset();
        (self.bottom, self.right) = (self.page.rows() - 1, self.page.columns() - 1);
        self.checksums = old.checksums;
        self.tabs = Tabs::new(self.page.columns());
        self.history = old.history;
        self.title = old.title;
        (self.report, self.reports, self.progress) = (old.report, old.reports, old.progress);
        self.terminal_name = old.terminal_name;
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
        self.use_side_margins(false);
        (self.modes.reverse_wrap, self.modes.far_reverse_wrap) = (false, false);
        (self.guarded, self.in_rectangle) = (false, false);
        let cursor = &mut self.page.grid.cursor;
        cursor.template = alacritty_terminal::term::cell::Cell::default();
        cursor.charsets = alacritty_terminal::grid::Charsets::default();
        self.charset = 0;
        self.page.saved = SavedCursor::default();
        self.changed = true;
    }
}
