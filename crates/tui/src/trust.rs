//! What the project file would run, as rows of a sheet. Whoever wrote it may mean harm: nothing in it
//! is hidden, cut off, or able to look like a row of ours.

use std::fmt::Write;

use crate::canvas::{Rect, width_of};

/// The sheet that a person reads before trusting the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// The content that is shown, by its hash; `None` where there is nothing to be trusted (yet).
    pub(crate) hash: Option<String>,
    /// What it would run, or what is wrong with it, as the server says it.
    pub(crate) lines: Vec<String>,
    /// The first row that is shown.
    pub(crate) top: usize,
    /// It became another one while it was looked at.
    pub(crate) anew: bool,
    /// It was not asked for: it came by itself, and so may stand under a finger that meant
    /// something else. Nothing is trusted before this time, in milliseconds since 1970.
    pub(crate) not_before: u64,
    /// The person has trusted it here, and the server has not said so yet.
    pub(crate) decided: bool,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// It goes on with the line of the row before it.
    pub(crate) continues: bool,
}

/// Columns at the left of every row that only we write to, so that no text can pass for a new line.
pub(crate) const GUTTER: u16 = 2;

/// Rows above the text, with our own words.
const WORDS: u16 = 2;

impl Sheet {
    /// Where the text stands within the sheet's room.
    pub(crate) fn body(room: Rect) -> Rect {
        let inner = room.inner();
        // Where there is hardly any room, what it would run is what must be seen.
        inner.cut_top(if inner.height > 2 * WORDS { WORDS } else { 0 }).1
    }

    /// All its rows at a width.
    pub(crate) fn rows(&self, width: u16) -> Vec<Row> {
        let width = usize::from(width.saturating_sub(GUTTER)).max(1);
        let mut rows = Vec::new();
        for line in &self.lines {
            fold(line, width, &mut rows);
        }
        rows
    }

    /// The first row shown in a body: never so far down that there is room left.
    pub(crate) fn first(&self, rows: usize, height: u16) -> usize {
        self.top.min(rows.saturating_sub(usize::from(height)))
    }

    /// Whether the last row is shown in a body.
    pub(crate) fn shows_end(&self, body: Rect) -> bool {
        let rows = self.rows(body.width).len();
        body.height > 0 && self.first(rows, body.height) + usize::from(body.height) >= rows
    }
}

/// Cuts a line into rows of a width; every character that has no column of its own is spelt out.
fn fold(line: &str, width: usize, rows: &mut Vec<Row>) {
    let mut row = Row { text: String::new(), continues: false };
    let mut used = 0;
    let mut spelt = String::new();
    for character in line.chars() {
        spelt.clear();
        match width_of(character) {
            0 => {
                let _ = write!(spelt, "\\u{{{:x}}}", u32::from(character));
            }
            _ => spelt.push(character),
        }
        for character in spelt.chars() {
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
        let sheet = Sheet { lines: vec![line.to_owned()], ..Sheet::default() };
        sheet.rows(width).into_iter().map(|row| (row.text, row.continues)).collect()
    }

    #[test]
    fn a_line_is_folded_and_nothing_of_it_is_lost() {
        let row = |text: &str, continues| (text.to_owned(), continues);
        assert_eq!(rows("abcdefg", 5), [row("abc", false), row("def", true), row("g", true)]);
        assert_eq!(rows("", 5), [row("", false)]);
        assert_eq!(rows("a漢字", 5), [row("a漢", false), row("字", true)]);
        // However narrow it is, it comes to an end.
        assert_eq!(rows("漢a", 1), [row("漢", false), row("a", true)]);
    }

    #[test]
    fn what_has_no_column_of_its_own_is_spelt_out() {
        assert_eq!(rows("e\u{301}\u{202e}\u{1b}x", 80)[0].0, "e\\u{301}\\u{202e}\\u{1b}x");
    }

    #[test]
    fn the_end_is_shown_once_it_is_scrolled_to() {
        let mut sheet = Sheet { lines: vec!["x".to_owned(); 10], ..Sheet::default() };
        let body = Rect::new(0, 0, 20, 4);
        assert!(!sheet.shows_end(body));
        sheet.top = 6;
        assert!(sheet.shows_end(body));
        sheet.top = usize::MAX;
        assert_eq!(sheet.first(10, 4), 6);
        assert!(!sheet.shows_end(Rect::new(0, 0, 20, 0)), "nothing is shown at all");
    }
}
