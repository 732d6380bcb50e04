//! Lines joined from rows, and rows cut from lines for a width.

use unicode_width::UnicodeWidthChar;

use crate::style::Span;

/// One row of text in pieces of one style each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledRow {
    /// Its pieces from the left; the rest of the row is blank.
    pub spans: Vec<Span>,
    /// Whether the terminal wrapped it: its line goes on in the next row.
    pub wraps: bool,
}

impl StyledRow {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    fn push(&mut self, character: char, span: &Span) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style => last.text.push(character),
            _ => self.spans.push(Span { text: character.into(), style: span.style.clone() }),
        }
    }
}

/// Columns that a character takes here: 0, 1 or 2.
pub(crate) fn width(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Cuts one line, given as the rows it was in, into rows of at most `columns`.
pub(crate) fn wrap(line: &[StyledRow], columns: usize) -> Vec<StyledRow> {
    let mut rows = vec![StyledRow::default()];
    let mut column = 0;
    for span in line.iter().flat_map(|row| &row.spans) {
        for character in span.text.chars() {
            let width = width(character);
            if column + width > columns {
                if let Some(row) = rows.last_mut() {
                    row.wraps = true;
                }
                rows.push(StyledRow::default());
                column = 0;
            }
            column += width;
            if let Some(row) = rows.last_mut() {
                row.push(character, span);
            }
        }
    }
    if let (Some(row), Some(last)) = (rows.last_mut(), line.last()) {
        row.wraps = last.wraps;
    }
    rows
}
