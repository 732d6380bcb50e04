//! Tables, as wide as necessary but not wider than the page.

use patterm_screen::Span;
use pulldown_cmark::Alignment;

use super::flow::Flow;
use super::{Row, run};
use crate::canvas::text_width;
use crate::settings::Theme;

/// A narrower column would be unreadable.
const COLUMN: usize = 3;

/// No page is wide enough for more columns; this limits the work for a table of thousands.
const COLUMNS: usize = 32;

/// The separator of columns.
const BETWEEN: &str = " │ ";

/// The table being read.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Flow>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add(&mut self, cell: Flow) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Its rows at a width; the first is the heading.
    pub(super) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        let columns = self.columns(width);
        let mut rows = Vec::new();
        for (at, cells) in self.rows.iter().enumerate() {
            self.lay(cells, &columns, theme, &mut rows);
            if at == 0 {
                let lines: Vec<_> = columns.iter().map(|width| "─".repeat(*width)).collect();
                rows.push(vec![run(&lines.join("─┼─"), &theme.dim)]);
            }
        }
        rows
    }

    /// The widths of the columns: the widest shrink until all fit.
    fn columns(&self, width: usize) -> Vec<usize> {
        let widest =
            |at: usize| self.rows.iter().filter_map(move |row| row.get(at)).map(Flow::width);
        let mut columns: Vec<usize> = (0..self.alignments.len().min(COLUMNS))
            .map(|at| widest(at).max().unwrap_or(0).max(1))
            .collect();
        let between = BETWEEN.chars().count() * columns.len().saturating_sub(1);
        let room = width.saturating_sub(between);
        let mut over = columns.iter().sum::<usize>().saturating_sub(room);
        while over > 0 {
            let mut order: Vec<usize> = columns.clone();
            order.sort_unstable_by(|one, other| other.cmp(one));
            let widest = order.first().copied().unwrap_or(0);
            if widest <= COLUMN {
                break;
            }
            // All of the widest shrink together, down to the next width.
            let next = order.iter().find(|width| **width < widest).copied().unwrap_or(0);
            let many = order.iter().filter(|width| **width == widest).count();
            let step = (widest - next.max(COLUMN)).min(over.div_ceil(many));
            for column in columns.iter_mut().filter(|column| **column == widest) {
                let less = step.min(over);
                *column -= less;
                over -= less;
            }
        }
        columns
    }

    fn lay(&self, cells: &[Flow], columns: &[usize], theme: &Theme, rows: &mut Vec<Row>) {
        let wrapped: Vec<Vec<Row>> =
            cells.iter().zip(columns).map(|(cell, width)| cell.wrap(*width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for line in 0..height {
            let mut row = Vec::new();
            for (at, width) in columns.iter().take(cells.len()).enumerate() {
                if at > 0 {
                    row.push(run(BETWEEN, &theme.dim));
                }
                let cell = wrapped.get(at).and_then(|cell| cell.get(line)).cloned();
                let alignment = self.alignments.get(at).copied().unwrap_or(Alignment::None);
                row.extend(aligned(cell.unwrap_or_default(), *width, alignment, theme));
            }
            rows.push(row);
        }
    }
}

fn aligned(cell: Row, width: usize, alignment: Alignment, theme: &Theme) -> Row {
    let taken: usize = cell.iter().map(|run| text_width(&run.text)).sum();
    let free = width.saturating_sub(taken);
    let left = match alignment {
        Alignment::Right => free,
        Alignment::Center => free / 2,
        Alignment::None | Alignment::Left => 0,
    };
    let blank = |columns: usize| -> Option<Span> {
        (columns > 0).then(|| run(&" ".repeat(columns), &theme.text))
    };
    blank(left).into_iter().chain(cell).chain(blank(free - left)).collect()
}
