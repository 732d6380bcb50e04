//! One grid of cells, main or alternate: alacritty's grid, with what the history needs for each row.

use std::collections::VecDeque;
use std::ops::Range;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid, GridCell};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::row_record;
use crate::size::Size;
use crate::style::{self, DEFAULT_BACKGROUND};

/// Properties of a row besides its cells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowInfo {
    /// The offset in the output at which the row began.
    pub(crate) offset: u64,
    /// All cells from this column on are blank. alacritty tracks the same but does not expose it, and
    /// checking 80 cells for each short line would cost more than everything else.
    pub(crate) extent: usize,
}

/// What DECSC saves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedCursor {
    pub(crate) cursor: Cursor<Cell>,
    /// Whether origin mode was on.
    pub(crate) origin: bool,
    /// The character set in use.
    pub(crate) charset: usize,
}

impl SavedCursor {
    /// Whether the program has saved it.
    pub(crate) fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Keeps it within a screen of this size.
    pub(crate) fn clamp(&mut self, rows: usize, columns: usize) {
        let point = &mut self.cursor.point;
        point.line = point.line.min(line(rows - 1));
        point.column = point.column.min(Column(columns - 1));
    }
}

/// A grid of cells, with its cursor and row properties.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) grid: Grid<Cell>,
    pub(crate) info: VecDeque<RowInfo>,
    /// What DECSC saved on it.
    pub(crate) saved: SavedCursor,
    /// The scroll region of a page that is not shown.
    pub(crate) margins: (usize, usize),
}

impl Page {
    pub(crate) fn new(size: Size) -> Self {
        let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
        Self {
            grid: Grid::new(rows, columns, 0),
            info: std::iter::repeat_n(RowInfo::default(), rows).collect(),
            saved: SavedCursor::default(),
            margins: (0, rows - 1),
        }
    }

    /// Resets it to its initial state.
    pub(crate) fn reset(&mut self) {
        let rows = self.rows();
        self.grid.cursor = Cursor::default();
        (self.saved, self.margins) = (SavedCursor::default(), (0, rows - 1));
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

    /// Moves the cursor, within the grid.
    pub(crate) fn go(&mut self, row: usize, column: usize) {
        let (row, column) = (row.min(self.rows() - 1), column.min(self.columns() - 1));
        self.grid.cursor.point.line = line(row);
        self.grid.cursor.point.column = Column(column);
        self.grid.cursor.input_needs_wrap = false;
    }

    pub(crate) fn cells(&self, row: usize) -> &[Cell] {
        &self.grid[line(row)][..]
    }

    /// The cells of a row up to the last that is not blank.
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

    /// The text of a row without trailing blanks; a row that wraps keeps them.
    pub(crate) fn text(&self, row: usize) -> String {
        let mut text = String::new();
        row_record::push_text(&mut text, self.visible_cells(row));
        if !self.wraps(row) {
            text.truncate(text.trim_end_matches(' ').len());
        }
        text
    }

    /// Rows up to the last that is not blank.
    pub(crate) fn used_rows(&self) -> usize {
        (0..self.rows())
            .rev()
            .find(|&row| !self.visible_cells(row).is_empty())
            .map_or(0, |row| row + 1)
    }

    /// Rows up to the last that contains a character; colour alone does not count.
    pub(crate) fn text_rows(&self) -> usize {
        let has_text = |row: &usize| self.visible_cells(*row).iter().any(|cell| cell.c != ' ');
        (0..self.rows()).rev().find(has_text).map_or(0, |row| row + 1)
    }

    /// Records that any cell of a row may be non-blank.
    pub(crate) fn touch(&mut self, row: usize) {
        self.info[row].extent = self.columns();
    }

    /// Whether erased cells are blank: they get the current background.
    pub(crate) fn blanks_are_plain(&self) -> bool {
        self.grid.cursor.template.bg == DEFAULT_BACKGROUND
    }

    /// Erases cells of one row.
    pub(crate) fn blank(&mut self, row: usize, columns: Range<usize>) {
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

    /// Erases whole rows.
    pub(crate) fn blank_rows(&mut self, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let extent = if self.blanks_are_plain() { 0 } else { self.columns() };
        self.info.range_mut(rows.clone()).for_each(|info| info.extent = extent);
        self.grid.reset_region(line(rows.start)..line(rows.end));
    }

    /// Moves the rows `top..end` up; blank rows appear below.
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

    /// Moves the rows `top..end` down; blank rows appear above.
    pub(crate) fn scroll_down(&mut self, top: usize, end: usize, count: usize) {
        let count = count.min(end - top);
        self.grid.scroll_down(&(line(top)..line(end)), count);
        let extent = if self.blanks_are_plain() { 0 } else { self.columns() };
        for _ in 0..count {
            self.info.remove(end - 1);
            self.info.insert(top, RowInfo { offset: 0, extent });
        }
    }

    /// Moves the cells in some columns of the rows `top..end` up; blank cells appear below.
    pub(crate) fn shift_up(&mut self, top: usize, end: usize, columns: Range<usize>, count: usize) {
        let count = count.min(end - top);
        for row in top..end {
            self.take_columns(row, columns.clone(), (row + count < end).then_some(row + count));
        }
    }

    /// Moves the cells in some columns of the rows `top..end` down; blank cells appear above.
    pub(crate) fn shift_down(
        &mut self,
        top: usize,
        end: usize,
        columns: Range<usize>,
        count: usize,
    ) {
        let count = count.min(end - top);
        for row in (top..end).rev() {
            self.take_columns(row, columns.clone(), (row >= top + count).then(|| row - count));
        }
    }

    /// Copies some columns of another row into this one, or erases them.
    fn take_columns(&mut self, row: usize, columns: Range<usize>, from: Option<usize>) {
        let (start, end) = (columns.start, columns.end);
        self.cut(row, start);
        self.cut(row, end);
        match from {
            Some(from) => {
                let cells = self.cells(from)[columns].to_vec();
                self.grid[line(row)][Column(start)..Column(end)].clone_from_slice(&cells);
                self.touch(row);
            }
            None => self.blank(row, columns),
        }
        self.clear_orphaned_halves(row);
    }

    /// Erases a wide character that would be split in two at `column`.
    pub(crate) fn cut(&mut self, row: usize, column: usize) {
        let cells = &mut self.grid[line(row)][..];
        if column > 0
            && cells.get(column).is_some_and(|c| c.flags.contains(Flags::WIDE_CHAR_SPACER))
        {
            clear_half(&mut cells[column - 1]);
            clear_half(&mut cells[column]);
        }
    }

    /// Erases halves of wide characters that an edit left behind in a row.
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

/// Turns half of a wide character into a blank of the same style.
pub(crate) fn clear_half(cell: &mut Cell) {
    cell.clear_wide();
    cell.flags.remove(Flags::WIDE_CHAR_SPACER);
}

/// alacritty's index of a row.
pub(crate) fn line(row: usize) -> Line {
    Line(i32::try_from(row).unwrap_or(i32::MAX))
}
