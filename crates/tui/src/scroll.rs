//! Scrollback: all rows of a process, a position, a search and a selection.

use patterm_screen::{Screen, Size, StyledRow};

use crate::canvas::width_of;

/// A position: a row, counted from the oldest, and a column.
pub(crate) type Position = (usize, usize);

/// The rows of a process while the user scrolls through them. They do not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    pub(crate) rows: Vec<StyledRow>,
    pub(crate) height: usize,
    /// The first row shown.
    pub(crate) top: usize,
    pub(crate) cursor: Position,
    /// The start of the selection.
    pub(crate) anchor: Option<Position>,
    /// Whole rows are selected.
    pub(crate) by_rows: bool,
    /// The search text.
    pub(crate) search: String,
    /// The search text is being typed.
    pub(crate) typing: bool,
    /// The offset of the output where the rows end.
    pub(crate) end: u64,
}

impl Scroll {
    /// The rows on a screen and those that scrolled off it.
    pub(crate) fn of(screen: &Screen, height: u16) -> Self {
        let mut rows = screen.history().styled(screen.size().columns, 0, usize::MAX);
        rows.extend(shown(screen));
        let height = usize::from(height.max(1));
        let cursor = screen.cursor();
        let first = rows.len().saturating_sub(usize::from(screen.size().rows));
        let mut scroll = Self { rows, height, end: screen.offset(), ..Self::default() };
        scroll.cursor = (first + usize::from(cursor.row), usize::from(cursor.column));
        scroll.top = scroll.last_top();
        scroll.keep_in();
        scroll
    }

    /// Adds older rows above, from the output up to where these rows end; `cut` says that the output does not
    /// start at the beginning.
    pub(crate) fn add_older(&mut self, output: &[u8], cut: bool, screen: &Screen) {
        let size = screen.size();
        let mut replayed = Screen::new(Size::new(size.rows, size.columns));
        replayed.set_replay(true);
        // If it starts inside a line or a sequence, that line is dropped.
        let line_end = output.iter().position(|byte| *byte == b'\n').filter(|_| cut);
        let begin = line_end.map_or(0, |at| at + 1);
        replayed.feed(&output[begin..]);
        let older = replayed.history().styled(size.columns, 0, usize::MAX);
        let known = self.rows.len().saturating_sub(usize::from(size.rows));
        if older.len() <= known {
            return;
        }
        let more = older.len() - known;
        self.rows.splice(..known, older);
        self.top += more;
        self.cursor.0 += more;
        if let Some(anchor) = &mut self.anchor {
            anchor.0 += more;
        }
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    /// Whether the newest rows are visible.
    pub(crate) fn at_end(&self) -> bool {
        self.top >= self.last_top()
    }

    /// Moves the cursor, and scrolls if necessary.
    pub(crate) fn move_by(&mut self, rows: isize, columns: isize) {
        self.cursor.0 = self.cursor.0.saturating_add_signed(rows);
        self.cursor.1 = self.cursor.1.saturating_add_signed(columns);
        self.keep_in();
    }

    /// Scrolls, and moves the cursor if necessary.
    pub(crate) fn shift(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows).min(self.last_top());
        let last = self.top + self.height - 1;
        self.cursor.0 = self.cursor.0.clamp(self.top, last).min(self.rows.len().saturating_sub(1));
    }

    pub(crate) fn go(&mut self, position: Position) {
        self.cursor = position;
        self.keep_in();
    }

    fn keep_in(&mut self) {
        self.cursor.0 = self.cursor.0.min(self.rows.len().saturating_sub(1));
        let width = self.rows.get(self.cursor.0).map_or(0, |row| columns(&row.text()));
        self.cursor.1 = self.cursor.1.min(width.saturating_sub(1));
        let lowest = (self.cursor.0 + 1).saturating_sub(self.height);
        self.top = self.top.clamp(lowest.min(self.cursor.0), self.cursor.0).min(self.last_top());
    }

    /// Goes to the next row with the search text, upwards or downwards; false if there is none.
    pub(crate) fn find(&mut self, up: bool) -> bool {
        let wanted = self.search.to_lowercase();
        if wanted.is_empty() {
            return false;
        }
        let count = self.rows.len();
        let order = (1..=count).map(|step| match up {
            true => (self.cursor.0 + count - step) % count,
            false => (self.cursor.0 + step) % count,
        });
        let found = order.into_iter().find_map(|row| {
            let text = self.rows[row].text().to_lowercase();
            text.find(&wanted).map(|at| (row, columns(&text[..at])))
        });
        let Some(position) = found else { return false };
        self.go(position);
        true
    }

    /// The selection: its first and last position.
    pub(crate) fn selection(&self) -> Option<(Position, Position)> {
        let anchor = self.anchor?;
        let (from, to) = (anchor.min(self.cursor), anchor.max(self.cursor));
        Some(if self.by_rows { ((from.0, 0), (to.0, usize::MAX)) } else { (from, to) })
    }

    /// The selected text; wrapped rows are joined.
    pub(crate) fn selected(&self) -> String {
        let Some((from, to)) = self.selection() else { return String::new() };
        let mut text = String::new();
        for row in from.0..=to.0.min(self.rows.len().saturating_sub(1)) {
            let left = if row == from.0 { from.1 } else { 0 };
            let right = if row == to.0 { to.1 } else { usize::MAX };
            let part = slice(&self.rows[row].text(), left, right);
            let is_wrapped = self.rows[row].wraps && row != to.0;
            text.push_str(if is_wrapped { &part } else { part.trim_end() });
            if row != to.0 && !is_wrapped {
                text.push('\n');
            }
        }
        text
    }
}

fn shown(screen: &Screen) -> impl Iterator<Item = StyledRow> + '_ {
    (0..screen.size().rows).map(|row| screen.styled_row(row))
}

fn columns(text: &str) -> usize {
    crate::canvas::text_width(text)
}

/// The text between two columns, both included.
fn slice(text: &str, left: usize, right: usize) -> String {
    let mut column = 0;
    let mut part = String::new();
    for character in text.chars() {
        if column > right {
            break;
        }
        // A combining mark belongs to the character before it.
        if column >= left || (width_of(character) == 0 && !part.is_empty()) {
            part.push(character);
        }
        column += usize::from(width_of(character));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scroll(lines: usize) -> (Scroll, Screen) {
        let mut screen = Screen::new(Size::new(5, 20));
        for line in 1..=lines {
            screen.feed(format!("line {line}\r\n").as_bytes());
        }
        (Scroll::of(&screen, 5), screen)
    }

    #[test]
    fn it_starts_at_the_screen_and_goes_up_to_the_oldest_row() {
        let (mut scroll, _) = scroll(50);
        assert_eq!(scroll.rows.len(), 51);
        assert!(scroll.at_end());
        assert_eq!(scroll.cursor, (50, 0));
        scroll.move_by(-1000, 0);
        assert_eq!((scroll.top, scroll.cursor), (0, (0, 0)));
        scroll.shift(3);
        assert_eq!((scroll.top, scroll.cursor), (3, (3, 0)));
        scroll.move_by(1000, 0);
        assert!(scroll.at_end());
    }

    #[test]
    fn search_works_in_both_directions_and_wraps_around() {
        let (mut scroll, _) = scroll(50);
        scroll.search = "LINE 2".into();
        assert!(scroll.find(true));
        assert_eq!(scroll.cursor, (28, 0), "line 29");
        assert!(scroll.find(true));
        assert_eq!(scroll.cursor, (27, 0));
        assert!(scroll.find(false) && scroll.find(false));
        assert_eq!(scroll.cursor, (1, 0), "and wraps around: line 2");
        scroll.search = "nothing".into();
        assert!(!scroll.find(true));
    }

    #[test]
    fn wrapped_rows_are_joined_in_a_copy() {
        let mut screen = Screen::new(Size::new(5, 4));
        screen.feed("ab漢def\r\nxy".as_bytes());
        let mut scroll = Scroll::of(&screen, 5);
        scroll.anchor = Some((0, 1));
        scroll.go((2, 0));
        assert_eq!(scroll.selected(), "b漢def\nx");
        scroll.by_rows = true;
        assert_eq!(scroll.selected(), "ab漢def\nxy");
    }

    #[test]
    fn older_rows_are_added_above_and_the_position_stays() {
        let (_, screen) = scroll(50);
        let fresh = screen.snapshot();
        let mut view = Screen::new(screen.size());
        view.feed(&fresh);
        let mut scroll = Scroll::of(&view, 5);
        assert_eq!(scroll.rows.len(), 5);
        let shown = scroll.rows[scroll.top].text();
        let output: String = (1..=50).map(|line| format!("line {line}\r\n")).collect();
        let mut cut = scroll.clone();
        cut.add_older(output.as_bytes(), true, &view);
        assert_eq!(cut.rows.len(), 50, "the first line is incomplete");
        scroll.add_older(output.as_bytes(), false, &view);
        assert_eq!(scroll.rows.len(), 51);
        assert_eq!(scroll.rows[scroll.top].text(), shown);
    }
}
