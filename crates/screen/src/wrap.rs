//! Wraps lines into rows of a given width.

use crate::cluster::clusters;
use crate::style::Span;

/// One row of text as spans of one style each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledRow {
    /// Its spans from the left; the rest of the row is blank.
    pub spans: Vec<Span>,
    /// Whether the terminal wrapped it: its line continues in the next row.
    pub wraps: bool,
}

impl StyledRow {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Appends the cells `text` of a span, to the last span of this row if that is the same.
    fn push(&mut self, text: &str, span: &Span, is_same: bool) {
        match self.spans.last_mut() {
            Some(last) if is_same => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.into(), style: span.style.clone() }),
        }
    }
}

/// Wraps one line, given as its old rows, into rows of at most `columns`. Spans are never merged: where two cells
/// would join if they were one text, a span ends.
pub(crate) fn wrap(line: &[StyledRow], columns: usize) -> Vec<StyledRow> {
    let mut rows = Vec::new();
    let (mut row, mut column) = (StyledRow::default(), 0);
    for span in line.iter().flat_map(|row| &row.spans) {
        let mut is_same = false;
        for (text, width) in clusters(&span.text) {
            if column + width > columns {
                rows.push(StyledRow { wraps: true, ..std::mem::take(&mut row) });
                (column, is_same) = (0, false);
            }
            column += width;
            row.push(text, span, is_same);
            is_same = true;
        }
    }
    row.wraps = line.last().is_some_and(|last| last.wraps);
    rows.push(row);
    rows
}
