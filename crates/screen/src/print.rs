//! Printing text into the page.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::cluster::{self, MAX_MARKS};
use crate::emulator::{CHARSETS, Emulator};
use crate::page::{clear_half, line};

impl Emulator {
    /// Prints printable ASCII: the path of nearly all output.
    pub(crate) fn print_ascii(&mut self, mut text: &[u8]) {
        let Some(&last) = text.last() else { return };
        let charset = self.page.grid.cursor.charsets[CHARSETS[self.charset]];
        if self.modes.insert || charset != StandardCharset::Ascii {
            let end = self.offset;
            for (index, &byte) in text.iter().enumerate() {
                self.offset = end.saturating_sub((text.len() - index) as u64);
                self.print(char::from(byte));
            }
            return;
        }
        self.last_character = Some(char::from(last));
        self.changed = true;
        let end = self.offset;
        while !text.is_empty() {
            if self.page.grid.cursor.input_needs_wrap && self.modes.wrap {
                self.offset = end.saturating_sub(text.len() as u64);
                self.wrap();
            }
            let (column, columns) = (self.page.column(), self.edge());
            // Without wrapping, each further character overwrites the last column.
            let overflow = !self.modes.wrap && text.len() > columns - column;
            let fits = text.len().min(columns - column);
            self.write_ascii(&text[..fits]);
            text = &text[fits..];
            if overflow {
                self.write_ascii(&text[text.len() - 1..]);
                return;
            }
        }
    }

    /// Writes text that fits into the row.
    fn write_ascii(&mut self, text: &[u8]) {
        let (row, start, edge) = (self.page.row(), self.page.column(), self.edge());
        let end = start + text.len();
        if self.wide {
            self.clear_halves_around(row, start, end);
        }
        let info = &mut self.page.info[row];
        info.extent = info.extent.max(end);
        let wraps = end == self.page.columns() && self.page.wraps(row);
        let template = self.page.grid.cursor.template.clone();
        let cells = &mut self.page.grid[line(row)][Column(start)..Column(end)];
        for (cell, &byte) in cells.iter_mut().zip(text) {
            cell.c = char::from(byte);
            cell.fg = template.fg;
            cell.bg = template.bg;
            cell.flags = template.flags;
            if cell.extra.is_some() || template.extra.is_some() {
                cell.extra.clone_from(&template.extra);
            }
        }
        // The line goes on as before, with another character here.
        if wraps && let Some(last) = cells.last_mut() {
            last.flags.insert(Flags::WRAPLINE);
        }
        self.advance_to(end, edge);
    }

    fn advance_to(&mut self, end: usize, edge: usize) {
        let cursor = &mut self.page.grid.cursor;
        cursor.point.column = Column(end.min(edge - 1));
        cursor.input_needs_wrap = end >= edge;
    }

    /// Erases the halves of wide characters that writing `start..end` would leave.
    fn clear_halves_around(&mut self, row: usize, start: usize, end: usize) {
        let columns = self.page.columns();
        let cells = &mut self.page.grid[line(row)][..];
        if start > 0 && cells[start].flags.contains(Flags::WIDE_CHAR_SPACER) {
            clear_half(&mut cells[start - 1]);
        }
        if end < columns && cells[end].flags.contains(Flags::WIDE_CHAR_SPACER) {
            clear_half(&mut cells[end]);
        }
    }

    /// Prints any text.
    pub(crate) fn print_unicode(&mut self, text: &str) {
        let end = self.offset;
        let charset = self.page.grid.cursor.charsets[CHARSETS[self.charset]];
        let is_simple = charset == StandardCharset::Ascii && !self.modes.insert;
        for (index, character) in text.char_indices() {
            self.offset = end.saturating_sub((text.len() - index) as u64);
            match cluster::simple_width(character) {
                Some(width) if is_simple && self.last_character != Some(cluster::JOINER) => {
                    self.changed = true;
                    self.print_cell(character, width);
                }
                _ => self.print(character),
            }
        }
    }

    /// Prints one character.
    #[inline]
    pub(crate) fn print(&mut self, character: char) {
        if character.is_control() {
            return; // C1 controls: nothing legitimate sends them as UTF-8.
        }
        let charset = self.page.grid.cursor.charsets[CHARSETS[self.charset]];
        let character = charset.map(character);
        let width = cluster::width(character);
        self.changed = true;
        if width == 0 {
            self.history.may_join |= character == cluster::JOINER;
            return self.print_mark(character);
        }
        let is_joining = cluster::is_joining(character);
        if (is_joining || self.last_character == Some(cluster::JOINER)) && self.join(character) {
            return;
        }
        self.print_cell(character, width);
    }

    /// Prints a character into a cell of its own.
    #[inline]
    fn print_cell(&mut self, character: char, width: usize) {
        self.last_character = Some(character);
        if self.page.grid.cursor.input_needs_wrap && self.modes.wrap {
            self.wrap();
        }
        let mut edge = self.edge();
        if self.page.column() + width > edge {
            if !self.modes.wrap {
                return;
            }
            self.fill_for_wide();
            self.wrap();
            edge = self.edge();
        }
        let cell = Cell { c: character, ..self.page.grid.cursor.template.clone() };
        self.write_cell(cell, width, edge);
    }

    /// Writes a character at the cursor and moves past it.
    #[inline]
    fn write_cell(&mut self, mut cell: Cell, width: usize, edge: usize) {
        let (row, column) = (self.page.row(), self.page.column());
        if self.modes.insert {
            self.insert_blanks(width);
        }
        if self.wide {
            self.clear_halves_around(row, column, column + width);
        }
        self.wide |= width == 2;
        let info = &mut self.page.info[row];
        info.extent = info.extent.max(column + width);
        let wraps = column + width == self.page.columns() && self.page.wraps(row);
        if width == 2 {
            let mut spacer = self.page.grid.cursor.template.clone();
            spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            self.page.grid[line(row)][Column(column + 1)] = spacer;
            cell.flags.insert(Flags::WIDE_CHAR);
        }
        let cells = &mut self.page.grid[line(row)];
        cells[Column(column)] = cell;
        if wraps && let Some(last) = cells.last_mut() {
            last.flags.insert(Flags::WRAPLINE);
        }
        self.advance_to(column + width, edge);
    }

    /// Leaves the last column empty if a wide character does not fit there.
    fn fill_for_wide(&mut self) {
        let (row, column) = (self.page.row(), self.page.column());
        if self.wide {
            self.clear_halves_around(row, column, column + 1);
        }
        let mut cell = Cell { c: ' ', ..self.page.grid.cursor.template.clone() };
        if self.is_full_width() && column + 1 == self.page.columns() {
            cell.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        }
        self.page.touch(row);
        self.page.grid[line(row)][Column(column)] = cell;
    }

    /// The column of the character before the cursor.
    fn column_before(&self) -> usize {
        let mut column = self.page.column();
        if !self.page.grid.cursor.input_needs_wrap {
            column = column.saturating_sub(1);
        }
        let cells = self.page.cells(self.page.row());
        if cells[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        column
    }

    /// Adds a zero-width mark to the character before it.
    fn print_mark(&mut self, mark: char) {
        let (row, column) = (self.page.row(), self.column_before());
        if matches!(mark, cluster::AS_TEXT | cluster::AS_EMOJI) {
            // Elsewhere it has no effect, and text that contains it would be read back with another width.
            if self.last_character.is_some() && self.modes.clusters {
                self.extend_cell(mark);
            }
            return;
        }
        let cell = &mut self.page.grid[line(row)][Column(column)];
        if cell.zerowidth().is_none_or(|marks| marks.len() < MAX_MARKS) {
            cell.push_zerowidth(mark);
            self.page.touch(row);
        }
        self.last_character = self.last_character.map(|_| mark);
    }

    /// Adds a character with columns of its own to the cluster before it, if it continues that.
    #[cold]
    fn join(&mut self, character: char) -> bool {
        self.history.may_join = true;
        let may_join = |last| cluster::may_join(last, character);
        if !self.modes.clusters || !self.last_character.is_some_and(may_join) {
            return false;
        }
        let cell = &self.page.cells(self.page.row())[self.column_before()];
        cluster::joins(cell.c, cell.zerowidth().unwrap_or_default(), character)
            && self.extend_cell(character)
    }

    /// Adds a character to the cell before the cursor, which may get another width. Returns false if it cannot.
    fn extend_cell(&mut self, added: char) -> bool {
        let (row, column) = (self.page.row(), self.column_before());
        let cell = &self.page.cells(row)[column];
        let before = 1 + usize::from(cell.flags.contains(Flags::WIDE_CHAR));
        let marks = cell.zerowidth().map_or(0, <[char]>::len);
        let after = cluster::extended(cell.c, before, added, marks == 0);
        let edge = self.edge();
        let has_room = column + after <= edge || self.modes.wrap;
        if marks >= MAX_MARKS || !has_room {
            return false;
        }
        self.last_character = Some(added);
        self.page.grid[line(row)][Column(column)].push_zerowidth(added);
        if before == after {
            return true;
        }
        let mut cell = self.page.cells(row)[column].clone();
        cell.flags.remove(Flags::WIDE_CHAR | Flags::WRAPLINE);
        let was_at_end = self.page.grid.cursor.input_needs_wrap;
        self.page.go(row, column);
        if column + after > edge {
            self.fill_for_wide();
            self.wrap();
        } else if after == 1 {
            self.page.blank(row, column..column + 2);
        } else if self.modes.insert && !was_at_end {
            // The first column was inserted already.
            self.page.go(row, column + 1);
            self.insert_blanks(1);
            self.page.go(row, column);
        }
        let inserts = std::mem::replace(&mut self.modes.insert, false);
        let edge = self.edge();
        self.write_cell(cell, after, edge);
        self.modes.insert = inserts;
        true
    }

    /// REP: repeats the last character, with its marks.
    pub(crate) fn repeat(&mut self, count: usize) {
        if self.last_character.is_none() {
            return;
        }
        // At most one row, as in tmux: a few bytes must not cost a screenful of work.
        let count = count.min(self.page.columns());
        let cell = &self.page.cells(self.page.row())[self.column_before()];
        if cell.c.is_ascii() && cell.zerowidth().is_none() {
            let byte = cell.c as u8;
            return self.print_ascii(&vec![byte; count]);
        }
        let mut text = String::from(cell.c);
        text.extend(cell.zerowidth().unwrap_or_default());
        for _ in 0..count {
            // Each by itself: it must not join the one before.
            self.last_character = None;
            text.chars().for_each(|character| self.print(character));
        }
    }
}
