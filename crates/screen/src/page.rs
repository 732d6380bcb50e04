//! One grid of cells, the main or the alternate one: the engine's rows and, beside each, what the
//! history wants to know about it.

use std::collections::VecDeque;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid, GridCell};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::row_record;
use crate::size::Size;
use crate::style::{self, DEFAULT_BACKGROUND};

/// What is known about a row besides its cells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowInfo {
    /// Where in the output the row was begun.
    pub(crate) offset: u64,
    /// No cell from this column on shows anything. The engine knows as much but does not tell, and
    /// looking at 80 cells for each short line would cost more than everything else.
    pub(crate) extent: usize,
}

/// A grid of cells, its cursor, and what is known about its rows.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) grid: Grid<Cell>,
    pub(crate) info: VecDeque<RowInfo>,
    /// Whether the saved cursor had the origin mode on.
    pub(crate) saved_origin: bool,
    /// The character set that the saved cursor had in use.
    pub(crate) saved_charset: usize,
    /// The scroll region of a page that is not shown.
    pub(crate) margins: (usize, usize),
}

impl Page {
    pub(crate) fn new(size: Size) -> Self {
        let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
        Self {
            grid: Grid::new(rows, columns, 0),
            info: std::iter::repeat_n(RowInfo::default(), rows).collect(),
            saved_origin: false,
            saved_charset: 0,
            margins: (0, rows - 1),
        }
    }

    /// Makes it as new.
    pub(crate) fn reset(&mut self) {
        let rows = self.rows();
        self.grid.cursor = Cursor::default();
        self.grid.saved_cursor = Cursor::default();
        (self.saved_origin, self.saved_charset, self.margins) = (false, 0, (0, rows - 1));
        self.blank_rows(0..rows);
    }

    pub(crate) fn rows(&self) -> usize {
        self.grid.screen_lines()
    }

    pub(crate) fn columns(&self) -> usize {
        self.grid.columns()
    }

    /// The cursor's row.
    pub(crate) fn row(&self) -> usize {
        usize::try_from(self.grid.cursor.point.line.0).unwrap_or(0)
    }

    /// The cursor's column.
    pub(crate) fn column(&self) -> usize {
        self.grid.cursor.point.column.0
    }

    /// Puts the cursor somewhere inside the grid.
    pub(crate) fn go(&mut self, row: usize, column: usize) {
        let (row, column) = (row.min(self.rows() - 1), column.min(self.columns() - 1));
        self.grid.cursor.point.line = line(row);
        self.grid.cursor.point.column = Column(column);
        self.grid.cursor.input_needs_wrap = false;
    }

    pub(crate) fn cells(&self, row: usize) -> &[Cell] {
        &self.grid[line(row)][..]
    }

    /// The cells of a row up to the last that shows something.
    pub(crate) fn visible_cells(&self, row: usize) -> &[Cell] {
        let cells = self.cells(row);
        if self.wraps(row) {
            return cells;
        }
        let cells = &cells[..self.info[row].extent.min(cells.len())];
        let length = cells.iter().rposition(|cell| !style::is_blank(cell)).map_or(0, |i| i + 1);
        &cells[..length]
    }

    /// Whether the terminal wrapped this row into the next.
    pub(crate) fn wraps(&self, row: usize) -> bool {
        self.cells(row).last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
    }

    /// The text of a row without blanks at its end; one that wraps keeps them.
    pub(crate) fn text(&self, row: usize) -> String {
        let mut text = String::new();
        row_record::push_text(&mut text, self.visible_cells(row));
        if !self.wraps(row) {
            text.truncate(text.trim_end_matches(' ').len());
        }
        text
    }

    /// Rows up to the last that shows something.
    pub(crate) fn used_rows(&self) -> usize {
        (0..self.rows())
            .rev()
            .find(|&row| !self.visible_cells(row).is_empty())
            .map_or(0, |row| row + 1)
    }

    /// Rows up to the last with a character in it; colour alone does not count.
    pub(crate) fn text_rows(&self) -> usize {
        let has_text = |row: &usize| self.visible_cells(*row).iter().any(|cell| cell.c != ' ');
        (0..self.rows()).rev().find(has_text).map_or(0, |row| row + 1)
    }

    /// Notes that any cell of a row may show something now.
    pub(crate) fn touch(&mut self, row: usize) {
        self.info[row].extent = self.columns();
    }

    /// Whether blanked cells show nothing: they take the background in force.
    pub(crate) fn blanks_are_plain(&self) -> bool {
        self.grid.cursor.template.bg == DEFAULT_BACKGROUND
    }

    /// Blanks cells of one row.
    pub(crate) fn blank(&mut self, row: usize, columns: std::ops::Range<usize>) {
        let columns = columns.start.min(self.columns())..columns.end.min(self.columns());
        if columns.is_empty() {
            return;
        }
        let template = self.grid.cursor.template.clone();
        for cell in &mut self.grid[line(row)][Column(columns.start)..Column(columns.end)] {
            cell.reset(&template);
        }
        if template.bg != DEFAULT_BACKGROUND {
            self.touch(row);
        }
    }

    /// Blanks whole rows.
    pub(crate) fn blank_rows(&mut self, rows: std::ops::Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let extent = if self.blanks_are_plain() { 0 } else { self.columns() };
        self.info.range_mut(rows.clone()).for_each(|info| info.extent = extent);
        self.grid.reset_region(line(rows.start)..line(rows.end));
    }

    /// Moves the rows from `top` to before `end` up; blank ones come in below.
    pub(crate) fn scroll_up(&mut self, top: usize, end: usize, count: usize) {
        let count = count.min(end - top);
        self.grid.scroll_up(&(line(top)..line(end)), count);
        let extent = if self.blanks_are_plain() { 0 } else { self.columns() };
        for _ in 0..count {
            if top == 0 && end == self.info.len() {
                self.info.pop_front();
                self.info.push_back(RowInfo { offset: 0, extent });
            } else {
                self.info.remove(top);
                self.info.insert(end - 1, RowInfo { offset: 0, extent });
            }
        }
    }

    /// Moves the rows from `top` to before `end` down; blank ones come in above.
    pub(crate) fn scroll_down(&mut self, top: usize, end: usize, count: usize) {
        let count = count.min(end - top);
        self.grid.scroll_down(&(line(top)..line(end)), count);
        let extent = if self.blanks_are_plain() { 0 } else { self.columns() };
        for _ in 0..count {
            self.info.remove(end - 1);
            self.info.insert(top, RowInfo { offset: 0, extent });
        }
    }

    /// Blanks a wide character that stands on both sides of a place where the row is cut.
    pub(crate) fn cut(&mut self, row: usize, column: usize) {
        let cells = &mut self.grid[line(row)][..];
        if column > 0
            && cells.get(column).is_some_and(|c| c.flags.contains(Flags::WIDE_CHAR_SPACER))
        {
            clear_half(&mut cells[column - 1]);
            clear_half(&mut cells[column]);
        }
    }

    /// Blanks halves of wide characters that an edit left behind in a row.
    pub(crate) fn clear_orphaned_halves(&mut self, row: usize) {
        let columns = self.columns();
        let cells = &mut self.grid[line(row)][..];
        for column in 0..columns {
            let flags = cells[column].flags;
            let orphaned = if flags.contains(Flags::WIDE_CHAR) {
                column + 1 == columns || !cells[column + 1].flags.contains(Flags::WIDE_CHAR_SPACER)
            } else {
                flags.contains(Flags::WIDE_CHAR_SPACER)
                    && (column == 0 || !cells[column - 1].flags.contains(Flags::WIDE_CHAR))
            };
            if orphaned {
                clear_half(&mut cells[column]);
            }
            if column + 1 < columns {
                cells[column].flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
            }
        }
    }
}

/// Makes half of a wide character a blank of the same look.
pub(crate) fn clear_half(cell: &mut Cell) {
    cell.clear_wide();
    cell.flags.remove(Flags::WIDE_CHAR_SPACER);
}

/// The engine's number of a row.
pub(crate) fn line(row: usize) -> Line {
    Line(i32::try_from(row).unwrap_or(i32::MAX))
}
