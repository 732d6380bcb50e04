//! The rows of a screen and of what has scrolled off it, to be written somewhere else while the screen goes on.

use crate::page::Page;
use crate::screen::{Screen, styled};
use crate::wrap::StyledRow;

/// A row with the number of the line that it belongs to, as in [`crate::Line`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedRow {
    /// The number of its line.
    pub number: u64,
    /// The row, in the colours in which it is drawn.
    pub row: StyledRow,
}

impl Screen {
    /// Takes rows out of the history, the oldest first, until at most `keep` bytes are left.
    pub fn take_scrolled(&mut self, keep: usize) -> Vec<NumberedRow> {
        let mut rows = Vec::new();
        while self.history().bytes() > keep {
            let block = self.history_mut().take_oldest();
            if block.is_empty() {
                break;
            }
            rows.extend(block.into_iter().map(numbered));
        }
        self.coloured(rows)
    }

    /// All rows: the history, the main screen, and the alternate screen if it is shown.
    #[must_use]
    pub fn all_rows(&self) -> Vec<NumberedRow> {
        let (main, alternate) = self.pages();
        let history = self.history();
        let mut number = history.next_line() - u64::from(history.is_open());
        let mut rows: Vec<_> = history.numbered().map(numbered).collect();
        for page in [Some(main), alternate].into_iter().flatten() {
            push_page(&mut rows, page, &mut number);
        }
        self.coloured(rows)
    }

    fn coloured(&self, mut rows: Vec<NumberedRow>) -> Vec<NumberedRow> {
        for NumberedRow { row, .. } in &mut rows {
            // Not as wide as the screen: the background of a row's rest is no text.
            row.spans = self.colours().apply(&row.spans, 0).into_owned();
            row.spans.retain(|span| !span.text.is_empty());
        }
        rows
    }
}

fn numbered((number, row): (u64, StyledRow)) -> NumberedRow {
    NumberedRow { number, row }
}

fn push_page(rows: &mut Vec<NumberedRow>, page: &Page, number: &mut u64) {
    for row in 0..page.used_rows() {
        let row = styled(page, row);
        let wraps = row.wraps;
        rows.push(NumberedRow { number: *number, row });
        *number += u64::from(!wraps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn rows_that_are_taken_and_those_that_are_left_are_all_rows() {
        let mut screen = Screen::new(Size::new(4, 10));
        let mut taken = Vec::new();
        for n in 0..5_000 {
            screen.feed(format!("\x1b[3{}mline number {n}\x1b[m\r\n", n % 8).as_bytes());
            if n % 500 == 0 {
                taken.extend(screen.take_scrolled(20_000));
                assert!(screen.history().bytes() <= 20_000);
            }
        }
        screen.feed(b"\x1b[?1049h\x1b[Hfull screen");
        taken.extend(screen.all_rows());
        let (mut lines, mut open) = (Vec::new(), String::new());
        for NumberedRow { number, row } in taken {
            assert_eq!(number, lines.len() as u64);
            open.push_str(&row.text());
            if !row.wraps {
                lines.push(std::mem::take(&mut open));
            }
        }
        let last = lines.pop();
        assert_eq!(last.as_deref().map(str::trim_end), Some("full screen"));
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, (0..5_000).map(|n| format!("line number {n}")).collect::<Vec<_>>());
    }
}
