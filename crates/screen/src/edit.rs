//! Erasing, inserting and deleting.

use std::ops::Range;

use alacritty_terminal::grid::GridCell as _;
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::emulator::Emulator;
use crate::page::line;
use crate::style::PROTECTED;

impl Emulator {
    /// EL: 0 from the cursor on, 1 up to it, 2 the whole row. DECSEL (`selective`) leaves protected cells alone.
    pub(crate) fn erase_in_line(&mut self, what: u16, selective: bool) {
        let (row, column, columns) = (self.page.row(), self.page.column(), self.page.columns());
        match what {
            0 => self.erase(row, column..columns, selective),
            1 => self.erase(row, 0..column + 1, selective),
            2 => self.erase_rows(row..row + 1, selective),
            _ => return,
        }
        self.edited(row);
    }

    /// ED: 0 below, 1 above, 2 all, 3 the history. DECSED (`selective`) leaves protected cells alone.
    pub(crate) fn erase_in_display(&mut self, what: u16, selective: bool) {
        let (row, rows) = (self.page.row(), self.page.rows());
        match what {
            0 => {
                self.erase_in_line(0, selective);
                self.erase_rows(row + 1..rows, selective);
            }
            1 => {
                self.erase_in_line(1, selective);
                self.erase_rows(0..row, selective);
            }
            2 => {
                // The program erases it, but a person may still want to read it.
                if self.hidden_main.is_none() && !selective {
                    self.push_to_history(self.page.text_rows());
                }
                self.erase_rows(0..rows, selective);
            }
            3 => return self.history.clear(),
            _ => return,
        }
        self.edited(row);
    }

    /// ECH.
    pub(crate) fn erase_characters(&mut self, count: usize) {
        let (row, column) = (self.page.row(), self.page.column());
        self.erase(row, column..column.saturating_add(count), false);
        self.edited(row);
    }

    /// Erases cells of one row.
    pub(crate) fn erase(&mut self, row: usize, columns: Range<usize>, selective: bool) {
        if !selective && !self.guarded {
            return self.page.blank(row, columns);
        }
        let end = columns.end.min(self.page.columns());
        let template = self.page.grid.cursor.template.clone();
        self.page.touch(row);
        for cell in &mut self.page.grid[line(row)][..][columns.start.min(end)..end] {
            if !cell.flags.contains(PROTECTED) {
                cell.reset(&template);
            }
        }
    }

    fn erase_rows(&mut self, rows: Range<usize>, selective: bool) {
        if !selective && !self.guarded {
            return self.page.blank_rows(rows);
        }
        let columns = self.page.columns();
        rows.for_each(|row| self.erase(row, 0..columns, selective));
    }

    /// ICH.
    pub(crate) fn insert_blanks(&mut self, count: usize) {
        if self.is_between_sides() {
            self.shift_right(self.page.row(), self.page.column(), count);
        }
        self.edited(self.page.row());
    }

    /// DCH.
    pub(crate) fn delete_characters(&mut self, count: usize) {
        if self.is_between_sides() {
            self.shift_left(self.page.row(), self.page.column(), count);
        }
        self.edited(self.page.row());
    }

    /// Moves the cells of a row from `column` to the right margin; blank ones appear at `column`.
    fn shift_right(&mut self, row: usize, column: usize, count: usize) {
        let end = self.right + 1;
        let count = count.min(end - column);
        let wraps = self.take_wrap(row);
        self.page.touch(row);
        self.page.cut(row, column);
        self.page.cut(row, end);
        self.page.grid[line(row)][..][column..end].rotate_right(count);
        self.page.blank(row, column..column + count);
        self.put_wrap(row, wraps);
    }

    /// Moves the cells of a row up to the right margin to `column`; blank ones appear at the margin.
    fn shift_left(&mut self, row: usize, column: usize, count: usize) {
        let end = self.right + 1;
        let count = count.min(end - column);
        let wraps = self.take_wrap(row);
        self.page.touch(row);
        self.page.cut(row, column);
        self.page.cut(row, column + count);
        self.page.cut(row, end);
        self.page.grid[line(row)][..][column..end].rotate_left(count);
        self.page.blank(row, end - count..end);
        self.put_wrap(row, wraps);
    }

    /// Removes the mark of a row that wraps, so that it does not move with the last cell.
    fn take_wrap(&mut self, row: usize) -> bool {
        let wraps = self.page.wraps(row);
        self.put_wrap(row, false);
        wraps
    }

    fn put_wrap(&mut self, row: usize, wraps: bool) {
        if let Some(last) = self.page.grid[line(row)].last_mut() {
            last.flags.set(Flags::WRAPLINE, wraps);
        }
    }

    /// Moves the columns of the region from `column` on to the right (DECIC, SR, DECBI).
    pub(crate) fn columns_right(&mut self, column: usize, count: usize) {
        for row in self.top..=self.bottom {
            self.shift_right(row, column, count);
            self.edited(row);
        }
    }

    /// Moves the columns of the region to the left as far as `column` (DECDC, SL, DECFI).
    pub(crate) fn columns_left(&mut self, column: usize, count: usize) {
        for row in self.top..=self.bottom {
            self.shift_left(row, column, count);
            self.edited(row);
        }
    }

    /// DECBI: back one column; at the left margin the region moves instead.
    pub(crate) fn back_index(&mut self) {
        if self.page.column() == self.left && self.is_in_region() {
            self.columns_right(self.left, 1);
        } else {
            self.go_column(self.page.column().saturating_sub(1));
        }
    }

    /// DECFI: forward one column; at the right margin the region moves instead.
    pub(crate) fn forward_index(&mut self) {
        if self.page.column() == self.right && self.is_in_region() {
            self.columns_left(self.left, 1);
        } else {
            self.go_column(self.page.column() + 1);
        }
    }

    /// IL.
    pub(crate) fn insert_lines(&mut self, count: usize) {
        if self.is_in_region() {
            self.rows_down(self.page.row(), count);
            self.carriage_return();
        }
    }

    /// DL.
    pub(crate) fn delete_lines(&mut self, count: usize) {
        if self.is_in_region() {
            self.rows_up(self.page.row(), count);
            self.carriage_return();
        }
    }

    /// SD.
    pub(crate) fn scroll_down(&mut self, count: usize) {
        self.rows_down(self.top, count);
    }

    /// DECALN: fills the screen with E.
    pub(crate) fn align(&mut self) {
        (self.top, self.bottom) = (0, self.page.rows() - 1);
        (self.left, self.right) = (0, self.page.columns() - 1);
        self.modes.origin = false;
        let columns = self.page.columns();
        for row in 0..self.page.rows() {
            self.page.blank_rows(row..row + 1);
            self.page.touch(row);
            for cell in &mut self.page.grid[line(row)][..][..columns] {
                *cell = Cell { c: 'E', ..Default::default() };
            }
        }
        self.go(0, 0);
    }

    /// Ends every edit of a row.
    pub(crate) fn edited(&mut self, row: usize) {
        self.changed = true;
        self.page.grid.cursor.input_needs_wrap = false;
        if self.wide {
            self.page.clear_orphaned_halves(row);
        }
    }
}
