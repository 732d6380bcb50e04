//! Erasing, inserting and deleting.

use crate::emulator::Emulator;
use crate::page::line;

impl Emulator {
    /// EL: 0 from the cursor on, 1 up to it, 2 the whole row.
    pub(crate) fn erase_in_line(&mut self, what: u16) {
        let (row, column, columns) = (self.page.row(), self.page.column(), self.page.columns());
        match what {
            0 => self.page.blank(row, column..columns),
            1 => self.page.blank(row, 0..column + 1),
            2 => self.page.blank_rows(row..row + 1),
            _ => return,
        }
        self.edited(row);
    }

    /// ED: 0 below, 1 above, 2 all, 3 the history.
    pub(crate) fn erase_in_display(&mut self, what: u16) {
        let (row, rows) = (self.page.row(), self.page.rows());
        match what {
            0 => {
                self.erase_in_line(0);
                self.page.blank_rows(row + 1..rows);
            }
            1 => {
                self.erase_in_line(1);
                self.page.blank_rows(0..row);
            }
            2 => {
                // Erased by the program, but a person may still want to read it.
                if self.hidden_main.is_none() {
                    self.push_to_history(self.page.text_rows());
                }
                self.page.blank_rows(0..rows);
            }
            3 => return self.history.clear(),
            _ => return,
        }
        self.edited(row);
    }

    /// ECH.
    pub(crate) fn erase_characters(&mut self, count: usize) {
        let (row, column) = (self.page.row(), self.page.column());
        self.page.blank(row, column..column.saturating_add(count));
        self.edited(row);
    }

    /// ICH.
    pub(crate) fn insert_blanks(&mut self, count: usize) {
        let (row, column, columns) = (self.page.row(), self.page.column(), self.page.columns());
        let count = count.min(columns - column);
        self.page.touch(row);
        self.page.cut(row, column);
        self.page.grid[line(row)][..][column..].rotate_right(count);
        self.page.blank(row, column..column + count);
        self.edited(row);
    }

    /// DCH.
    pub(crate) fn delete_characters(&mut self, count: usize) {
        let (row, column, columns) = (self.page.row(), self.page.column(), self.page.columns());
        let count = count.min(columns - column);
        self.page.cut(row, column);
        self.page.cut(row, column + count);
        self.page.grid[line(row)][..][column..].rotate_left(count);
        self.page.blank(row, columns - count..columns);
        self.edited(row);
    }

    /// IL.
    pub(crate) fn insert_lines(&mut self, count: usize) {
        let row = self.page.row();
        if (self.top..=self.bottom).contains(&row) {
            self.page.scroll_down(row, self.bottom + 1, count);
            self.go_column(0);
        }
    }

    /// DL.
    pub(crate) fn delete_lines(&mut self, count: usize) {
        let row = self.page.row();
        if (self.top..=self.bottom).contains(&row) {
            self.page.scroll_up(row, self.bottom + 1, count);
            self.go_column(0);
        }
    }

    /// SD.
    pub(crate) fn scroll_down(&mut self, count: usize) {
        self.page.scroll_down(self.top, self.bottom + 1, count);
        self.changed = true;
    }

    /// DECALN: the whole screen full of E.
    pub(crate) fn align(&mut self) {
        (self.top, self.bottom) = (0, self.page.rows() - 1);
        self.modes.origin = false;
        let columns = self.page.columns();
        for row in 0..self.page.rows() {
            self.page.blank_rows(row..row + 1);
            self.page.touch(row);
            for cell in &mut self.page.grid[line(row)][..][..columns] {
                *cell = alacritty_terminal::term::cell::Cell { c: 'E', ..Default::default() };
            }
        }
        self.go(0, 0);
    }

    /// What every edit of a row ends with.
    fn edited(&mut self, row: usize) {
        self.changed = true;
        self.page.grid.cursor.input_needs_wrap = false;
        if self.wide {
            self.page.clear_orphaned_halves(row);
        }
    }
}
