//! Changing a screen's size. The engine's grid does the wrapping; for that it gets the last rows of
//! the history back, and what it then pushes out at the top goes into the history again.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};

use crate::emulator::Emulator;
use crate::history::History;
use crate::page::{Page, RowInfo};
use crate::size::Size;
use crate::style::{self, DEFAULT_BACKGROUND, DEFAULT_FOREGROUND, Style};
use crate::wrap::{self, StyledRow};

/// Rows taken back at most: enough to fill the largest screen, little enough to be quick.
const MAX_RESTORED_ROWS: usize = 2_000;

/// Rows the grid may push out in one resize: all it has, each cut into pieces of two columns.
const MAX_PUSHED_ROWS: usize = 4_000_000;

pub(crate) fn resize(emulator: &mut Emulator, size: Size) {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    if let Some(main) = &mut emulator.hidden_main {
        emulator.page.grid.resize(false, rows, columns);
        reset_row_info(&mut emulator.page);
        (0..rows).for_each(|row| emulator.page.clear_orphaned_halves(row));
        resize_main(main, &mut emulator.history, rows, columns);
    } else {
        resize_main(&mut emulator.page, &mut emulator.history, rows, columns);
    }
    (emulator.top, emulator.bottom) = (0, rows - 1);
    emulator.tabs.resize(columns);
}

fn resize_main(page: &mut Page, history: &mut History, rows: usize, columns: usize) {
    let taken = restore_rows(page, history, rows, columns);
    // A program on the alternate screen goes back to where the cursor was saved.
    let saved_here = page.grid.saved_cursor.point == page.grid.cursor.point;
    page.grid.update_history(MAX_PUSHED_ROWS);
    page.grid.resize(true, rows, columns);
    if saved_here {
        page.grid.saved_cursor.point = page.grid.cursor.point;
    }
    let above = page.grid.history_size();
    let down = pull_down(page, above.saturating_sub(taken));
    move_to_history(page, history, above - down);
    page.margins = (0, rows - 1);
}

/// Puts the last rows of the history back above the page, where it may need them; returns how many.
fn restore_rows(page: &mut Page, history: &mut History, rows: usize, columns: usize) -> usize {
    let full = page.used_rows().max(page.row() + 1) == page.rows();
    let grows = full && (rows > page.rows() || columns > page.columns());
    if !grows && !history.is_open() {
        return 0;
    }
    // Wider rows take in several of the old ones.
    let ratio = columns.div_ceil(page.columns());
    let wanted = if grows { rows * ratio } else { 1 };
    let taken = history.pop_rows(wanted.min(MAX_RESTORED_ROWS), page.columns());
    let grid = &mut page.grid;
    grid.update_history(taken.len());
    grid.initialize_all();
    for (index, row) in taken.iter().enumerate() {
        fill(grid, above(taken.len(), index), row);
    }
    taken.len()
}

/// The line of the row at `index` among `count` rows above the page.
fn above(count: usize, index: usize) -> Line {
    Line(index as i32 - count as i32)
}

/// The engine pushes rows out at the top even where there are blank ones below. Brings as many back,
/// at most `count`; returns how many.
fn pull_down(page: &mut Page, count: usize) -> usize {
    page.info.resize(page.rows(), RowInfo::default());
    page.info.iter_mut().for_each(|info| info.extent = usize::MAX);
    let blank = page.rows() - page.used_rows().max(page.row() + 1);
    let (count, height) = (count.min(blank) as i32, page.rows() as i32);
    if count == 0 {
        return 0;
    }
    let top = -(page.grid.history_size() as i32);
    for line in (top + count..height).rev() {
        page.grid[Line(line)] = page.grid[Line(line - count)].clone();
    }
    page.grid.cursor.point.line += count;
    let saved = &mut page.grid.saved_cursor.point;
    saved.line = (saved.line + count).min(Line(height - 1));
    count as usize
}

/// Writes a row of the history into the grid.
fn fill(grid: &mut Grid<Cell>, line: Line, row: &StyledRow) {
    let columns = grid.columns();
    let mut column: usize = 0;
    for span in &row.spans {
        let template = template(&span.style);
        for character in span.text.chars() {
            let width = wrap::width(character);
            if width == 0 {
                grid[line][Column(column.saturating_sub(1).min(columns - 1))]
                    .push_zerowidth(character);
                continue;
            }
            if column + width > columns {
                break;
            }
            let mut cell = Cell { c: character, ..template.clone() };
            if width == 2 {
                cell.flags.insert(Flags::WIDE_CHAR);
                let mut spacer = template.clone();
                spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
                grid[line][Column(column + 1)] = spacer;
            }
            grid[line][Column(column)] = cell;
            column += width;
        }
    }
    if row.wraps {
        let last = &mut grid[line][Column(columns - 1)];
        if column < columns {
            last.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
        }
        last.flags.insert(Flags::WRAPLINE);
    }
}

/// A blank cell of a style.
fn template(style: &Style) -> Cell {
    let mut cell = Cell {
        fg: style.foreground.to_alacritty(DEFAULT_FOREGROUND),
        bg: style.background.to_alacritty(DEFAULT_BACKGROUND),
        flags: style::flags(style.attributes),
        ..Cell::default()
    };
    if let Some(colour) = style.underline {
        cell.set_underline_color(Some(colour.to_alacritty(DEFAULT_FOREGROUND)));
    }
    if let Some(link) = &style.link {
        cell.set_hyperlink(Some(Hyperlink::new(Some(""), link.to_string())));
    }
    cell
}

/// Moves what stands above the page into the history, and gives its memory back. Where in the
/// output these rows began is not known any more, only that it was not before those above.
fn move_to_history(page: &mut Page, history: &mut History, count: usize) {
    let columns = page.columns();
    for index in 0..count {
        let row = &page.grid[above(count, index)];
        let wraps = row[Column(columns - 1)].flags.contains(Flags::WRAPLINE);
        let cells = &row[..];
        let end = cells.iter().rposition(|cell| !style::is_blank(cell)).map_or(0, |i| i + 1);
        history.push(if wraps { cells } else { &cells[..end] }, wraps, 0);
    }
    page.grid.update_history(0);
    reset_row_info(page);
}

/// Rows were moved about: what is still known is that none was begun before the first.
fn reset_row_info(page: &mut Page) {
    page.grid.truncate();
    let offset = page.info.front().map_or(0, |info| info.offset);
    let info = RowInfo { offset, extent: page.columns() };
    page.info = std::iter::repeat_n(info, page.rows()).collect();
}
