//! Moving by words in the scrollback, with the keys of vi.

use patterm_screen::StyledRow;

use super::select::{is_word, row_clusters};
use super::{Position, Scroll, columns};

/// Where a move by words ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordMove {
    /// At the beginning of the next word.
    NextBegin,
    /// At the end of this word or the next one.
    NextEnd,
    /// At the beginning of this word or the one before.
    PreviousBegin,
}

impl Scroll {
    /// Moves by one word, across rows; at the last word it stays.
    pub(crate) fn move_word(&mut self, by: WordMove) {
        let (row, _) = self.cursor;
        let found = match by {
            WordMove::NextBegin => self.first_after(row, |word| word.0),
            WordMove::NextEnd => self.first_after(row, |word| word.1),
            WordMove::PreviousBegin => self.last_before(row),
        };
        if let Some(position) = found {
            self.go(position);
        }
    }

    /// Moves to the first character of the row that is not a blank.
    pub(crate) fn go_to_text(&mut self) {
        let text = self.rows.get(self.cursor.0).map(StyledRow::text).unwrap_or_default();
        let blanks = &text[..text.len() - text.trim_start().len()];
        self.go((self.cursor.0, columns(blanks)));
    }

    fn first_after(&self, row: usize, end: fn((usize, usize)) -> usize) -> Option<Position> {
        let rows = self.rows.iter().enumerate().skip(row);
        let mut ends =
            rows.flat_map(|(row, styled)| words_in(styled).into_iter().map(move |w| (row, end(w))));
        ends.find(|position| *position > self.cursor)
    }

    fn last_before(&self, row: usize) -> Option<Position> {
        let rows = self.rows.iter().enumerate().take(row + 1).rev();
        let mut begins = rows.flat_map(|(row, styled)| {
            words_in(styled).into_iter().rev().map(move |word| (row, word.0))
        });
        begins.find(|position| *position < self.cursor)
    }
}

/// The first and the last column of each word of a row.
fn words_in(row: &StyledRow) -> Vec<(usize, usize)> {
    let (mut words, mut column, mut inside) = (Vec::new(), 0, false);
    for (cluster, width) in row_clusters(row) {
        let is_part = cluster.chars().all(is_word);
        match (is_part, inside, words.last_mut()) {
            (true, true, Some((_, last))) => *last = column,
            (true, ..) => words.push((column, column)),
            (false, ..) => {}
        }
        inside = is_part;
        column += width;
    }
    words
}
