//! Selections in the scrollback: text, rows, blocks, words and lines; and links.

use patterm_screen::{StyledRow, clusters};

use super::{Position, Scroll, Shape, columns};

impl Scroll {
    /// Begins a selection at the cursor, or changes the shape of the one that was begun.
    pub(crate) fn begin_selection(&mut self, shape: Shape) {
        if self.anchor.is_none() || self.shape == shape {
            self.anchor = Some(self.cursor);
        }
        self.shape = shape;
        self.keep_in();
    }

    /// Selects the word at a position.
    pub(crate) fn select_word(&mut self, (row, column): Position) {
        let Some(styled) = self.rows.get(row) else { return };
        let mut at = 0;
        let mut cells: Vec<(usize, usize, bool)> = Vec::new();
        for (cluster, width) in row_clusters(styled) {
            cells.push((at, at + width, cluster.chars().all(is_word)));
            at += width;
        }
        let Some(here) = cells.iter().position(|(from, to, _)| (*from..*to).contains(&column))
        else {
            return;
        };
        let same = |cell: &&(usize, usize, bool)| cell.2 && cells[here].2;
        let first = cells[..here].iter().rev().take_while(same).last().unwrap_or(&cells[here]);
        let last = cells[here..].iter().skip(1).take_while(same).last().unwrap_or(&cells[here]);
        (self.anchor, self.shape) = (Some((row, first.0)), Shape::Text);
        self.cursor = (row, last.1.saturating_sub(1));
    }

    /// Selects the line at a row, with the rows that the terminal wrapped.
    pub(crate) fn select_line(&mut self, row: usize) {
        let wraps = |row: &usize| self.rows.get(*row).is_some_and(|row| row.wraps);
        let first = (0..row).rev().take_while(wraps).last().unwrap_or(row);
        let last = (row..self.rows.len()).find(|row| !wraps(row)).unwrap_or(row);
        (self.anchor, self.shape) = (Some((first, 0)), Shape::Rows);
        self.cursor = (last, 0);
    }

    /// The selected columns of a row, both included.
    pub(crate) fn selected_in(&self, row: usize) -> Option<(usize, usize)> {
        let anchor = self.anchor?;
        let (from, to) = (anchor.min(self.cursor), anchor.max(self.cursor));
        if !(from.0..=to.0).contains(&row) {
            return None;
        }
        Some(match self.shape {
            Shape::Rows => (0, usize::MAX),
            Shape::Block => (anchor.1.min(self.cursor.1), anchor.1.max(self.cursor.1)),
            Shape::Text => {
                let left = if row == from.0 { from.1 } else { 0 };
                (left, if row == to.0 { to.1 } else { usize::MAX })
            }
        })
    }

    /// The selected text; wrapped rows are joined.
    pub(crate) fn selected(&self) -> String {
        let Some(anchor) = self.anchor else { return String::new() };
        let (from, to) = (anchor.0.min(self.cursor.0), anchor.0.max(self.cursor.0));
        let to = to.min(self.rows.len().saturating_sub(1));
        let mut text = String::new();
        for row in from..=to {
            let Some((left, right)) = self.selected_in(row) else { continue };
            let part = slice(&self.rows[row], left, right);
            let is_wrapped = self.rows[row].wraps && row != to && self.shape != Shape::Block;
            text.push_str(if is_wrapped { &part } else { part.trim_end() });
            if row != to && !is_wrapped {
                text.push('\n');
            }
        }
        text
    }

    /// Where the character at a position links to.
    pub(crate) fn link_at(&self, position: Position) -> Option<&str> {
        link_in(self.rows.get(position.0)?, position.1)
    }
}

/// Where the character in a column of a row links to.
pub(crate) fn link_in(row: &StyledRow, column: usize) -> Option<&str> {
    let mut from = 0;
    let span = row.spans.iter().find(|span| {
        from += columns(&span.text);
        column < from
    });
    span?.style.link.as_deref()
}

/// Whether a character belongs to a word, as a double click selects it: paths and addresses are one word.
pub(super) fn is_word(character: char) -> bool {
    !character.is_whitespace() && !"\"'`()[]{}<>|│".contains(character)
}

/// The clusters of a row, each with its width. No cluster continues in the next span.
pub(super) fn row_clusters(row: &StyledRow) -> impl Iterator<Item = (&str, usize)> {
    row.spans.iter().flat_map(|span| clusters(&span.text))
}

/// The text between two columns, both included.
fn slice(row: &StyledRow, left: usize, right: usize) -> String {
    let mut column = 0;
    let mut part = String::new();
    for (cluster, width) in row_clusters(row) {
        if column > right {
            break;
        }
        if column >= left || (width == 0 && !part.is_empty()) {
            part.push_str(cluster);
        }
        column += width;
    }
    part
}
