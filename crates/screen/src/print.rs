//! Printing text into the page.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::emulator::{CHARSETS, Emulator};
use crate::page::{clear_half, line};
use crate::wrap;

/// Marks kept on one character. Real text has up to four; a program that sends marks without end
/// must not fill the memory.
const MAX_MARKS: usize = 8;

impl Emulator {
    /// Printable ASCII: the path that nearly all output takes.
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
            let (column, columns) = (self.page.column(), self.page.columns());
            // Without wrapping, the last column takes every further character; the last stays.
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

    /// Writes what fits into the row.
    fn write_ascii(&mut self, text: &[u8]) {
        let (row, start, columns) = (self.page.row(), self.page.column(), self.page.columns());
        let end = start + text.len();
        if self.wide {
            self.clear_halves_around(row, start, end);
        }
        let info = &mut self.page.info[row];
        info.extent = info.extent.max(end);
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
        self.advance_to(end, columns);
    }

    fn advance_to(&mut self, end: usize, columns: usize) {
        let cursor = &mut self.page.grid.cursor;
        cursor.point.column = Column(end.min(columns - 1));
        cursor.input_needs_wrap = end >= columns;
    }

    /// Blanks the halves of wide characters that writing `start..end` will leave.
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

    /// Any text.
    pub(crate) fn print_unicode(&mut self, text: &str) {
        let end = self.offset;
        for (index, character) in text.char_indices() {
            self.offset = end.saturating_sub((text.len() - index) as u64);
            self.print(character);
        }
    }

    /// One character.
    pub(crate) fn print(&mut self, character: char) {
        if character.is_control() {
            return; // C1 controls, which nobody sends as UTF-8 for a good reason.
        }
        let charset = self.page.grid.cursor.charsets[CHARSETS[self.charset]];
        let character = charset.map(character);
        let width = wrap::width(character);
        self.changed = true;
        if width == 0 {
            return self.print_mark(character);
        }
        self.last_character = Some(character);
        if self.page.grid.cursor.input_needs_wrap && self.modes.wrap {
            self.wrap();
        }
        let columns = self.page.columns();
        if self.page.column() + width > columns {
            if !self.modes.wrap {
                return;
            }
            self.fill_for_wide();
            self.wrap();
        }
        let (row, column) = (self.page.row(), self.page.column());
        if self.modes.insert {
            self.insert_blanks(width);
        }
        if self.wide {
            self.clear_halves_around(row, column, column + width);
        }
        self.wide |= width == 2;
        self.page.touch(row);
        let mut cell = Cell { c: character, ..self.page.grid.cursor.template.clone() };
        let cells = &mut self.page.grid[line(row)];
        if width == 2 {
            let mut spacer = Cell { c: ' ', ..cell.clone() };
            spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            cells[Column(column + 1)] = spacer;
            cell.flags.insert(Flags::WIDE_CHAR);
        }
        cells[Column(column)] = cell;
        self.advance_to(column + width, columns);
    }

    /// The last column stays empty when a wide character has no room there.
    fn fill_for_wide(&mut self) {
        let (row, column) = (self.page.row(), self.page.column());
        if self.wide {
            self.clear_halves_around(row, column, column + 1);
        }
        let mut cell = Cell { c: ' ', ..self.page.grid.cursor.template.clone() };
        cell.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        self.page.touch(row);
        self.page.grid[line(row)][Column(column)] = cell;
    }

    /// A mark that takes no room joins the character before it.
    fn print_mark(&mut self, mark: char) {
        let (row, mut column) = (self.page.row(), self.page.column());
        if !self.page.grid.cursor.input_needs_wrap {
            column = column.saturating_sub(1);
        }
        let cells = &mut self.page.grid[line(row)];
        if cells[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        let cell = &mut cells[Column(column)];
        if cell.zerowidth().is_none_or(|marks| marks.len() < MAX_MARKS) {
            cell.push_zerowidth(mark);
            self.page.touch(row);
        }
    }

    /// REP: the last character again.
    pub(crate) fn repeat(&mut self, count: usize) {
        let Some(character) = self.last_character else { return };
        // A row at most, as in tmux: a few bytes must not cost a screenful of work.
        let count = count.min(self.page.columns());
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => self.print_ascii(&vec![byte; count]),
            _ => (0..count).for_each(|_| self.print(character)),
        }
    }
}
