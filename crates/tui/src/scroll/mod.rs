//! Scrollback: all rows of a process, a position, a search and a selection.

mod command;
mod select;
#[cfg(test)]
mod tests;
mod words;

use patterm_screen::{Screen, Size, StyledRow};

pub(crate) use select::link_in;
pub(crate) use words::WordMove;

/// A position: a row, counted from the oldest, and a column.
pub(crate) type Position = (usize, usize);

/// The shape of a selection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// From one character to another, across the ends of rows.
    #[default]
    Text,
    /// Whole rows.
    Rows,
    /// A rectangle.
    Block,
}

/// Where a row has the search text: from this column up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) row: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Matches that are counted: a search for a single letter must not take all memory.
const MATCHES: usize = 100_000;

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
    pub(crate) shape: Shape,
    /// The search text.
    pub(crate) search: String,
    /// Where it is, in order.
    pub(crate) matches: Vec<Match>,
    /// The search text is being typed.
    pub(crate) typing: bool,
    /// The offset of the output where the rows end.
    pub(crate) end: u64,
    /// The width of the screen.
    columns: usize,
    /// Older rows have been requested and have not arrived.
    pub(crate) loads: bool,
    /// The first and last row that the last command printed, if the shell marks commands.
    command: Option<(usize, usize)>,
    /// The user wants to select them as soon as they are known.
    pub(crate) wants_command: bool,
    /// How often the next movement is repeated, as far as it has been typed.
    pub(crate) count: Option<usize>,
    /// The offset of the output to which the user wants to go as soon as its row is known.
    pub(crate) wanted: Option<u64>,
}

impl Scroll {
    /// The rows on a screen and those that scrolled off it.
    pub(crate) fn of(screen: &Screen, height: u16) -> Self {
        let mut rows = screen.history().styled(screen.size().columns, 0, usize::MAX);
        rows.extend(shown(screen));
        let height = usize::from(height.max(1));
        let cursor = screen.cursor();
        let first = rows.len().saturating_sub(usize::from(screen.size().rows));
        let columns = usize::from(screen.size().columns);
        let mut scroll = Self { rows, height, columns, end: screen.offset(), ..Self::default() };
        scroll.cursor = (first + usize::from(cursor.row), usize::from(cursor.column));
        scroll.top = scroll.last_top();
        scroll.keep_in();
        scroll
    }

    /// Adds older rows above, from the output up to where these rows end; it starts at this offset.
    pub(crate) fn add_older(&mut self, output: &[u8], offset: u64, screen: &Screen) {
        let size = screen.size();
        let mut replayed = Screen::new(Size::new(size.rows, size.columns));
        replayed.set_replay(true);
        // If it starts inside a line or a sequence, that line is dropped.
        let line_end = output.iter().position(|byte| *byte == b'\n').filter(|_| offset > 0);
        let begin = line_end.map_or(0, |at| at + 1);
        let command = command::feed(&mut replayed, &output[begin..]);
        let older = replayed.history().styled(size.columns, 0, usize::MAX);
        let known = self.rows.len().saturating_sub(usize::from(size.rows));
        // Counted from the oldest row of these, which may be above or below the oldest of the others.
        let in_rows = |row: usize| (row + known.max(older.len())).saturating_sub(older.len());
        self.command = command.map(|(first, last)| (in_rows(first), in_rows(last)));
        let place = self.wanted.take().map(|wanted| {
            let end = usize::try_from(wanted.saturating_sub(offset)).unwrap_or(usize::MAX);
            let before = &output[begin..end.clamp(begin, output.len())];
            in_rows(command::row_after(before, Size::new(size.rows, size.columns)))
        });
        if older.len() > known {
            let more = older.len() - known;
            self.rows.splice(..known, older);
            self.top += more;
            self.cursor.0 += more;
            if let Some(anchor) = &mut self.anchor {
                anchor.0 += more;
            }
            self.update_matches();
        }
        self.loads = false;
        if let Some(row) = place {
            // Some of what was before it stays visible.
            self.top = row.saturating_sub(self.height / 2).min(self.last_top());
            self.go((row, 0));
        }
        if self.wants_command {
            self.select_command();
        }
    }

    /// Selects what the last command printed; false if that is not known.
    pub(crate) fn select_command(&mut self) -> bool {
        self.wants_command = self.loads;
        let Some((first, last)) = self.command else { return false };
        (self.anchor, self.shape) = (Some((first, 0)), Shape::Rows);
        self.go((last, 0));
        true
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
        // A block may be wider than the row of its corner.
        let width = match self.anchor.is_some() && self.shape == Shape::Block {
            true => self.columns,
            false => self.rows.get(self.cursor.0).map_or(0, |row| columns(&row.text())),
        };
        self.cursor.1 = self.cursor.1.min(width.saturating_sub(1));
        let lowest = (self.cursor.0 + 1).saturating_sub(self.height);
        self.top = self.top.clamp(lowest.min(self.cursor.0), self.cursor.0).min(self.last_top());
    }

    /// Finds the search text again in all rows.
    pub(crate) fn update_matches(&mut self) {
        self.matches.clear();
        let wanted = self.search.to_lowercase();
        if wanted.is_empty() {
            return;
        }
        let width = columns(&wanted);
        for (row, styled) in self.rows.iter().enumerate() {
            let text = styled.text().to_lowercase();
            let found = text.match_indices(&wanted).map(|(at, _)| columns(&text[..at]));
            self.matches.extend(found.map(|from| Match { row, from, to: from + width }));
            if self.matches.len() >= MATCHES {
                break;
            }
        }
    }

    /// Goes to the next match, upwards or downwards; false if there is none.
    pub(crate) fn find(&mut self, up: bool) -> bool {
        let at = |found: &Match| (found.row, found.from);
        let next = match up {
            true => {
                let before = self.matches.partition_point(|found| at(found) < self.cursor);
                before.checked_sub(1).or(self.matches.len().checked_sub(1))
            }
            false => {
                let after = self.matches.partition_point(|found| at(found) <= self.cursor);
                Some(if after < self.matches.len() { after } else { 0 })
            }
        };
        let Some(found) = next.and_then(|next| self.matches.get(next)) else { return false };
        let found = at(found);
        // Not in the first row, which shows the count of matches, and with some text around it.
        if !(self.top + 1..self.top + self.height).contains(&found.0) {
            self.top = found.0.saturating_sub(self.height / 3).min(self.last_top());
        }
        self.go(found);
        true
    }

    /// Moves to a row of those that are shown.
    pub(crate) fn go_to_shown(&mut self, row: usize) {
        self.go((self.top + row.min(self.height - 1), 0));
    }

    /// The number of the match at the cursor, from 1, if there is one.
    pub(crate) fn match_number(&self) -> Option<usize> {
        let is_here = |found: &Match| (found.row, found.from) == self.cursor;
        self.matches.iter().position(is_here).map(|at| at + 1)
    }

    /// The matches in a row.
    pub(crate) fn matches_in(&self, row: usize) -> &[Match] {
        let from = self.matches.partition_point(|found| found.row < row);
        let to = self.matches.partition_point(|found| found.row <= row);
        &self.matches[from..to]
    }
}

fn shown(screen: &Screen) -> impl Iterator<Item = StyledRow> + '_ {
    (0..screen.size().rows).map(|row| screen.styled_row(row))
}

fn columns(text: &str) -> usize {
    crate::canvas::text_width(text)
}
