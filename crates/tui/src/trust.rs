//! The panel with what the project file would run. The file may be malicious: nothing in it is hidden or cut
//! off, or can look like a row of the TUI.

use std::fmt::Write;

use crate::canvas::{Rect, width_of};

/// What the user reads before trusting the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TrustPanel {
    /// The hash of the content that is shown; `None` if there is nothing to trust (yet).
    pub(crate) hash: Option<String>,
    /// What it would run, or its errors, as the server describes them.
    pub(crate) lines: Vec<String>,
    /// The first visible row.
    pub(crate) top: usize,
    /// The file changed while the panel was open.
    pub(crate) changed: bool,
    /// The panel opened on its own, so that a key may have been meant for something else. Nothing is trusted
    /// before this time, in milliseconds since 1970.
    pub(crate) not_before: u64,
    /// The user has trusted it here, and the server has not confirmed it yet.
    pub(crate) confirmed: bool,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// It continues the line of the row before it.
    pub(crate) continues: bool,
}

/// Columns at the left of every row that only the TUI writes to, so that no text can look like a new line.
pub(crate) const GUTTER: u16 = 2;

/// Rows above the text, for the introduction.
const INTRODUCTION: u16 = 2;

impl TrustPanel {
    /// The area of the text within the panel.
    pub(crate) fn body(area: Rect) -> Rect {
        let inner = area.inner();
        // On a tiny terminal, the text is what matters.
        inner.cut_top(if inner.height > 2 * INTRODUCTION { INTRODUCTION } else { 0 }).1
    }

    /// All rows at a width.
    pub(crate) fn rows(&self, width: u16) -> Vec<Row> {
        let width = usize::from(width.saturating_sub(GUTTER)).max(1);
        let mut rows = Vec::new();
        for line in &self.lines {
            fold(line, width, &mut rows);
        }
        rows
    }

    /// The first visible row: never so far down that there is empty space.
    pub(crate) fn first(&self, rows: usize, height: u16) -> usize {
        self.top.min(rows.saturating_sub(usize::from(height)))
    }

    /// Whether the last row is visible.
    pub(crate) fn shows_end(&self, body: Rect) -> bool {
        let rows = self.rows(body.width).len();
        body.height > 0 && self.first(rows, body.height) + usize::from(body.height) >= rows
    }
}

/// Folds a line into rows of a width; every character without a column of its own is escaped.
fn fold(line: &str, width: usize, rows: &mut Vec<Row>) {
    let mut row = Row { text: String::new(), continues: false };
    let mut used = 0;
    let mut escaped = String::new();
    for character in line.chars() {
        escaped.clear();
        match width_of(character) {
            0 => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
            _ => escaped.push(character),
        }
        for character in escaped.chars() {
            let columns = usize::from(width_of(character));
            if used > 0 && used + columns > width {
                let next = Row { text: String::new(), continues: true };
                rows.push(std::mem::replace(&mut row, next));
                used = 0;
            }
            row.text.push(character);
            used += columns;
        }
    }
    rows.push(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(line: &str, width: u16) -> Vec<(String, bool)> {
        let panel = TrustPanel { lines: vec![line.to_owned()], ..TrustPanel::default() };
        panel.rows(width).into_iter().map(|row| (row.text, row.continues)).collect()
    }

    #[test]
    fn a_line_is_folded_without_loss() {
        let row = |text: &str, continues| (text.to_owned(), continues);
        assert_eq!(rows("abcdefg", 5), [row("abc", false), row("def", true), row("g", true)]);
        assert_eq!(rows("", 5), [row("", false)]);
        assert_eq!(rows("a漢字", 5), [row("a漢", false), row("字", true)]);
        // Even the narrowest width terminates.
        assert_eq!(rows("漢a", 1), [row("漢", false), row("a", true)]);
    }

    #[test]
    fn characters_without_a_column_are_escaped() {
        assert_eq!(rows("e\u{301}\u{202e}\u{1b}x", 80)[0].0, "e\\u{301}\\u{202e}\\u{1b}x");
    }

    #[test]
    fn the_end_is_visible_after_scrolling_to_it() {
        let mut panel = TrustPanel { lines: vec!["x".to_owned(); 10], ..TrustPanel::default() };
        let body = Rect::new(0, 0, 20, 4);
        assert!(!panel.shows_end(body));
        panel.top = 6;
        assert!(panel.shows_end(body));
        panel.top = usize::MAX;
        assert_eq!(panel.first(10, 4), 6);
        assert!(!panel.shows_end(Rect::new(0, 0, 20, 0)), "nothing is visible");
    }
}
