//! Resizing. The main screen's lines are wrapped again; a screen that grows gets the last rows of the history
//! back. The alternate screen is cut or extended.

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};

use crate::cluster::clusters;
use crate::emulator::Emulator;
use crate::history::History;
use crate::page::{Page, RowInfo};
use crate::reflow::Reflow;
use crate::size::Size;
use crate::style::{self, DEFAULT_BACKGROUND, DEFAULT_FOREGROUND, Span, Style};

/// Rows restored from the history at most: enough to fill the largest screen, few enough to be fast.
const MAX_RESTORED_ROWS: usize = 2_000;

/// Whether the result is the same whatever is above an incomplete history.
pub(crate) fn has_history_for(emulator: &Emulator, size: Size) -> bool {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    let Wanted { count, .. } = Wanted::of(emulator.main(), &emulator.history, rows, columns);
    emulator.history.has_lines(count, emulator.main().columns())
}

/// The rows of the history that a resize needs.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    count: usize,
    /// The page gets more rows or columns, and was full.
    grows: bool,
}

impl Wanted {
    fn of(page: &Page, history: &History, rows: usize, columns: usize) -> Self {
        let is_full = page.used_rows().max(page.row() + 1) == page.rows();
        let grows = is_full && (rows > page.rows() || columns > page.columns());
        // A wider row can hold several old ones. A line that continues on the page is wrapped as a whole.
        let ratio = columns.div_ceil(page.columns());
        let count = if grows { rows * ratio } else { usize::from(history.is_open()) };
        Self { count: count.min(MAX_RESTORED_ROWS), grows }
    }
}

pub(crate) fn resize(emulator: &mut Emulator, size: Size) {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    if let Some(main) = &mut emulator.hidden_main {
        resize_alternate(&mut emulator.page, rows, columns);
        resize_main(main, &mut emulator.history, rows, columns);
    } else {
        resize_main(&mut emulator.page, &mut emulator.history, rows, columns);
    }
    (emulator.top, emulator.bottom) = (0, rows - 1);
    (emulator.left, emulator.right) = (0, columns - 1);
    emulator.alternate_saved.clamp(rows, columns);
    emulator.report_size();
    emulator.tabs.resize(columns);
}

fn resize_alternate(page: &mut Page, rows: usize, columns: usize) {
    page.grid.resize(false, rows, columns);
    page.grid.truncate();
    page.saved.clamp(rows, columns);
    page.grid.cursor.input_needs_wrap &= page.column() + 1 == columns;
    // After rows have moved, only a lower bound of their offsets is known: that of the first row.
    let offset = page.info.front().map_or(0, |info| info.offset);
    let info = RowInfo { offset, extent: columns };
    page.info = std::iter::repeat_n(info, rows).collect();
    (0..rows).for_each(|row| page.clear_orphaned_halves(row));
}

fn resize_main(page: &mut Page, history: &mut History, rows: usize, columns: usize) {
    let Wanted { count, grows } = Wanted::of(page, history, rows, columns);
    let mut reflow = Reflow::default();
    if count > 0 {
        for (offset, lines) in history.pop_lines(count, page.columns()) {
            for row in lines {
                let mut cells = Vec::new();
                row.spans.iter().for_each(|span| push_cells(&mut cells, span));
                reflow.push_row(cells, row.wraps, offset);
            }
        }
    }
    reflow.push_page(page);
    reflow.write(page, history, (rows, columns), grows);
}

/// Appends the cells of a span of the history.
fn push_cells(cells: &mut Vec<Cell>, span: &Span) {
    let template = template(&span.style);
    for (text, columns) in clusters(&span.text) {
        let mut characters = text.chars();
        if columns > 0 {
            let first = characters.next().unwrap_or(' ');
            cells.push(Cell { c: first, ..template.clone() });
        }
        let Some(cell) = cells.last_mut() else { continue };
        characters.for_each(|mark| cell.push_zerowidth(mark));
        if columns == 2 {
            cell.flags.insert(Flags::WIDE_CHAR);
            let mut spacer = template.clone();
            spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            cells.push(spacer);
        }
    }
}

/// A blank cell with this style.
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
