//! Wraps whole logical lines again for another width. Cursors are indices into the text of their line, so they stay
//! with the character they are on, whatever wraps around it.

use alacritty_terminal::grid::Grid;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::history::History;
use crate::page::{Page, RowInfo, line};
use crate::style;

/// A cell in the text: the index of a line, and of a cell in it; it may be past the end of the line.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    line: usize,
    cell: usize,
}

/// A line as the program printed it.
#[derive(Debug, Default)]
struct LogicalLine {
    cells: Vec<Cell>,
    /// The offset in the output at which it began.
    offset: u64,
}

/// The lines of a page and of the rows restored above it, and the places to follow.
#[derive(Debug, Default)]
pub(crate) struct Reflow {
    lines: Vec<LogicalLine>,
    /// The last line continues in the next row.
    open: bool,
    /// Where the page begins.
    top: Place,
    cursor: Place,
    saved: Place,
}

/// A row of the new width.
struct Row {
    cells: Vec<Cell>,
    wraps: bool,
    offset: u64,
}

/// Rows of the new width, and where the places are now.
struct Wrapped {
    rows: Vec<Row>,
    /// Row and column, and whether that is past a full row: of the top, the cursor and the saved cursor.
    places: [(usize, usize, bool); 3],
}

impl Reflow {
    /// Adds a row; `cells` are without blanks at the end, unless it wraps.
    pub(crate) fn push_row(&mut self, cells: Vec<Cell>, wraps: bool, offset: u64) {
        match self.lines.last_mut() {
            Some(last) if self.open => last.cells.extend(cells),
            _ => self.lines.push(LogicalLine { cells, offset }),
        }
        self.open = wraps;
    }

    /// The place of the cell that the next row begins with.
    fn next_place(&self) -> Place {
        match self.lines.last() {
            Some(last) if self.open => Place { line: self.lines.len() - 1, cell: last.cells.len() },
            _ => Place { line: self.lines.len(), cell: 0 },
        }
    }

    /// Adds the rows of a page up to the last that is used or has the cursor.
    pub(crate) fn push_page(&mut self, page: &Page) {
        self.top = self.next_place();
        let cursor = &page.grid.cursor;
        let saved = page.saved.cursor.point;
        let used = page.used_rows().max(page.row() + 1);
        for row in 0..used {
            let mut cells = text_cells(page, row);
            let wraps = page.wraps(row);
            let start = self.next_place();
            let at = |column: usize| Place { cell: start.cell + column, ..start };
            if row == page.row() {
                let column = page.column() + usize::from(cursor.input_needs_wrap);
                // Blanks before the cursor are text that may be continued.
                if !wraps && cells.len() < column {
                    cells.resize(column, Cell::default());
                }
                self.cursor = at(column.min(cells.len()));
            }
            if line(row) == saved.line {
                self.saved = at(saved.column.0);
            }
            self.push_row(cells, wraps, page.info[row].offset);
        }
        let below = usize::try_from(saved.line.0).unwrap_or(0).saturating_sub(used - 1);
        if below > 0 {
            self.saved = Place { line: self.lines.len() - 1 + below, cell: saved.column.0 };
        }
    }

    /// Wraps the lines into rows of this width.
    fn wrap(self, columns: usize) -> Wrapped {
        let follow = [self.top, self.cursor, self.saved];
        let mut places = [(0, 0, false); 3];
        let mut rows: Vec<Row> = Vec::new();
        let count = self.lines.len();
        for (number, LogicalLine { cells, offset }) in self.lines.into_iter().enumerate() {
            let length = cells.len();
            let mut row: Vec<Cell> = Vec::with_capacity(columns);
            for (index, cell) in cells.into_iter().enumerate() {
                let width = 1 + usize::from(cell.flags.contains(Flags::WIDE_CHAR));
                if row.len() + width > columns {
                    let full = std::mem::replace(&mut row, Vec::with_capacity(columns));
                    rows.push(Row { cells: full, wraps: true, offset });
                }
                for (place, new) in follow.iter().zip(&mut places) {
                    if (place.line, place.cell) == (number, index) {
                        *new = (rows.len(), row.len(), false);
                    }
                }
                row.push(cell);
            }
            for (place, new) in follow.iter().zip(&mut places) {
                if place.line == number && place.cell >= length {
                    let column = row.len() + place.cell - length;
                    let is_full = row.len() == columns && place.cell == length;
                    *new = (rows.len(), column.min(columns - 1), is_full);
                }
            }
            rows.push(Row { cells: row, wraps: self.open && number + 1 == count, offset });
        }
        for (place, new) in follow.iter().zip(&mut places) {
            if place.line >= count {
                *new = (rows.len() + place.line - count, place.cell.min(columns - 1), false);
            }
        }
        Wrapped { rows, places }
    }

    /// Writes the lines into the page, with its new size; rows that do not fit above go into the history. Unless
    /// `fills` is set, no row above the page's old first row comes onto the screen.
    pub(crate) fn write(
        self,
        page: &mut Page,
        history: &mut History,
        (rows, columns): (usize, usize),
        fills: bool,
    ) {
        let Wrapped { rows: wrapped, places: [top, cursor, saved] } = self.wrap(columns);
        let least = if fills { 0 } else { top.0 };
        // The cursor's row stays visible, at the price of rows below it.
        let first = wrapped.len().saturating_sub(rows).max(least).min(cursor.0);
        let mut grid: Grid<Cell> = Grid::new(rows, columns, 0);
        grid.cursor = page.grid.cursor.clone();
        let first_offset = page.info.front().map_or(0, |info| info.offset);
        page.info =
            std::iter::repeat_n(RowInfo { offset: first_offset, extent: 0 }, rows).collect();
        for (index, Row { mut cells, wraps, offset }) in wrapped.into_iter().enumerate() {
            if index < first {
                let end =
                    cells.iter().rposition(|cell| !style::is_blank(cell)).map_or(0, |i| i + 1);
                history.push(if wraps { &cells } else { &cells[..end] }, wraps, offset);
            } else if index - first < rows {
                if wraps {
                    mark_wrap(&mut cells, columns);
                }
                let row = index - first;
                page.info[row] = RowInfo { offset, extent: columns };
                let target = &mut grid[line(row)][Column(0)..Column(columns)];
                target.iter_mut().zip(cells).for_each(|(target, cell)| *target = cell);
            }
        }
        let point = |(row, column, _): (usize, usize, bool)| {
            (line(row.saturating_sub(first).min(rows - 1)), Column(column))
        };
        (grid.cursor.point.line, grid.cursor.point.column) = point(cursor);
        grid.cursor.input_needs_wrap = cursor.2;
        // One that was never set stays where it was: at the origin.
        if page.saved.is_set() {
            let at = &mut page.saved.cursor.point;
            (at.line, at.column) = point(saved);
        }
        page.grid = grid;
        page.margins = (0, rows - 1);
    }
}

/// The cells of a row that are text, without marks of its layout.
fn text_cells(page: &Page, row: usize) -> Vec<Cell> {
    let mut cells = page.visible_cells(row).to_vec();
    if let Some(last) = cells.last_mut()
        && page.wraps(row)
    {
        last.flags.remove(Flags::WRAPLINE);
        if last.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            cells.pop();
        }
    }
    cells.iter_mut().for_each(|cell| cell.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER));
    cells
}

/// Marks a row as wrapped, with its last column filled.
fn mark_wrap(cells: &mut Vec<Cell>, columns: usize) {
    if cells.len() < columns {
        cells.resize(columns - 1, Cell::default());
        let mut spacer = Cell::default();
        spacer.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        cells.push(spacer);
    }
    if let Some(last) = cells.last_mut() {
        last.flags.insert(Flags::WRAPLINE);
    }
}
