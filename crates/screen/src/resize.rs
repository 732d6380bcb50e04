//! Changing a screen's size. The engine's grid does the wrapping; for that it gets the last rows of
//! the history back, and what it then pushes out at the top goes into the history again.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};

use crate::engine::Engine;
use crate::history::History;
use crate::page::{Page, RowInfo};
use crate::size::Size;
use crate::style::{self, DEFAULT_BACKGROUND, DEFAULT_FOREGROUND, Style};
use crate::wrap::{self, StyledRow};

/// Rows taken back at most: enough to fill the largest screen, little enough to be quick.
const TAKEN_BACK: usize = 2_000;

/// Rows the grid may push out in one resize: all it has, each cut into pieces of two columns.
const PUSHED_OUT: usize = 4_000_000;

pub(crate) fn resize(engine: &mut Engine, size: Size) {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    let old = engine.size();
    if let Some(main) = &mut engine.parked {
        resize_page(&mut engine.page, false, rows, columns);
        take_back(main, &mut engine.history, old, size);
        resize_page(main, true, rows, columns);
        give_out(main, &mut engine.history);
        forget_rows(&mut engine.page);
    } else {
        take_back(&mut engine.page, &mut engine.history, old, size);
        resize_page(&mut engine.page, true, rows, columns);
        give_out(&mut engine.page, &mut engine.history);
    }
    (engine.top, engine.bottom) = (0, rows - 1);
    engine.tabs.resize(columns);
}

/// Puts the last rows of the history back above the page, where it may need them.
fn take_back(page: &mut Page, history: &mut History, old: Size, size: Size) {
    let grows = size.rows > old.rows || size.columns > old.columns;
    if !grows && !history.is_open() {
        return;
    }
    // Wider rows take in several of the old ones.
    let ratio = usize::from(size.columns).div_ceil(usize::from(old.columns));
    let wanted = if grows { usize::from(size.rows) * ratio } else { 1 };
    let rows = history.take_back(wanted.min(TAKEN_BACK), usize::from(old.columns));
    let grid = &mut page.grid;
    grid.update_history(rows.len());
    grid.initialize_all();
    for (index, row) in rows.iter().enumerate() {
        let line = Line(index as i32 - rows.len() as i32);
        fill(grid, line, row);
    }
}

/// Writes a row of the history into the grid.
fn fill(grid: &mut Grid<Cell>, line: Line, row: &StyledRow) {
    let columns = grid.columns();
    let mut column: usize = 0;
    for run in &row.runs {
        let template = template(&run.style);
        for character in run.text.chars() {
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
        fg: style.foreground.to_engine(DEFAULT_FOREGROUND),
        bg: style.background.to_engine(DEFAULT_BACKGROUND),
        flags: style::flags(style.attributes),
        ..Cell::default()
    };
    if let Some(colour) = style.underline {
        cell.set_underline_color(Some(colour.to_engine(DEFAULT_FOREGROUND)));
    }
    if let Some(link) = &style.link {
        cell.set_hyperlink(Some(Hyperlink::new(Some(link), link.to_string())));
    }
    cell
}

fn resize_page(page: &mut Page, reflow: bool, rows: usize, columns: usize) {
    if reflow {
        page.grid.update_history(PUSHED_OUT);
    }
    page.grid.resize(reflow, rows, columns);
}

/// Moves what stands above the page into the history, and gives its memory back. Where in the
/// output these rows began is not known any more, only that it was not before those above.
fn give_out(page: &mut Page, history: &mut History) {
    let above = page.grid.history_size();
    let columns = page.columns();
    for index in 0..above {
        let row = &page.grid[Line(index as i32 - above as i32)];
        let wraps = row[Column(columns - 1)].flags.contains(Flags::WRAPLINE);
        let cells = &row[..];
        let end = cells.iter().rposition(|cell| !style::is_blank(cell)).map_or(0, |i| i + 1);
        history.push(if wraps { cells } else { &cells[..end] }, wraps, 0);
    }
    page.grid.update_history(0);
    forget_rows(page);
}

/// Rows were moved about: what is still known is that none was begun before the first.
fn forget_rows(page: &mut Page) {
    page.grid.truncate();
    let info = RowInfo { offset: page.info[0].offset, extent: page.columns() };
    page.info = std::iter::repeat_n(info, page.rows()).collect();
}
