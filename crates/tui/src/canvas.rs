//! A frame of cells, before it is turned into bytes.

use patterm_screen::{CursorShape, Span, Style, clusters};
use patterm_wire::printable::is_active;

/// A rectangle of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rect {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) width: u16,
    pub(crate) height: u16,
}

impl Rect {
    pub(crate) fn new(x: u16, y: u16, width: u16, height: u16) -> Self {
        Self { x, y, width, height }
    }

    pub(crate) fn right(&self) -> u16 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> u16 {
        self.y + self.height
    }

    pub(crate) fn contains(&self, x: u16, y: u16) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }

    /// The top part of this height, and the rest.
    pub(crate) fn cut_top(self, height: u16) -> (Self, Self) {
        let height = height.min(self.height);
        let rest = Self { y: self.y + height, height: self.height - height, ..self };
        (Self { height, ..self }, rest)
    }

    /// A centred rectangle of at most this size.
    pub(crate) fn middle(self, width: u16, height: u16) -> Self {
        let (width, height) = (width.min(self.width), height.min(self.height));
        let (left, top) = ((self.width - width) / 2, (self.height - height) / 2);
        Self { x: self.x + left, y: self.y + top, width, height }
    }

    /// Without its border.
    pub(crate) fn inner(self) -> Self {
        let (width, height) = (self.width.saturating_sub(2), self.height.saturating_sub(2));
        Self { x: self.x + 1, y: self.y + 1, width, height }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Its character; NUL in the second half of a wide character.
    pub(crate) character: char,
    /// The other characters of its cluster: marks, selectors, joined emoji.
    pub(crate) combining: Option<Box<str>>,
    pub(crate) style: Style,
}

impl Default for Cell {
    fn default() -> Self {
        Self { character: ' ', combining: None, style: Style::default() }
    }
}

/// The cursor's position and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caret {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) shape: CursorShape,
    pub(crate) blinking: bool,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Canvas {
    pub(crate) width: u16,
    pub(crate) height: u16,
    cells: Vec<Cell>,
    pub(crate) caret: Option<Caret>,
}

/// The width of a character in columns.
pub(crate) fn width_of(character: char) -> u16 {
    patterm_screen::width(character) as u16
}

/// The width of a text in columns.
pub(crate) fn text_width(text: &str) -> usize {
    patterm_screen::text_width(text)
}

impl Canvas {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let cells = vec![Cell::default(); usize::from(width) * usize::from(height)];
        Self { width, height, cells, caret: None }
    }

    pub(crate) fn row(&self, y: u16) -> &[Cell] {
        let start = usize::from(y) * usize::from(self.width);
        &self.cells[start..start + usize::from(self.width)]
    }

    fn cell(&mut self, x: u16, y: u16) -> Option<&mut Cell> {
        let inside = x < self.width && y < self.height;
        let index = usize::from(y) * usize::from(self.width) + usize::from(x);
        inside.then(|| &mut self.cells[index])
    }

    /// Makes a part of a row blank.
    pub(crate) fn blank(&mut self, y: u16, left: u16, right: u16) {
        for x in left..right.min(self.width) {
            if let Some(cell) = self.cell(x, y) {
                *cell = Cell::default();
            }
        }
    }

    /// Changes the style of the cells in a rectangle.
    pub(crate) fn restyle(&mut self, area: Rect, change: impl Fn(&mut Style)) {
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                if let Some(cell) = self.cell(x, y) {
                    change(&mut cell.style);
                }
            }
        }
    }

    pub(crate) fn clear(&mut self, area: Rect, style: &Style) {
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                self.set(x, y, ' ', style);
            }
        }
    }

    /// Sets one character; wide characters that it cuts in half become blank.
    fn set(&mut self, x: u16, y: u16, character: char, style: &Style) {
        let was_tail = self.cell(x, y).is_some_and(|cell| cell.character == '\0');
        if was_tail
            && x > 0
            && let Some(head) = self.cell(x - 1, y)
        {
            (head.character, head.combining) = (' ', None);
        }
        if let Some(tail) = self.cell(x + 1, y)
            && tail.character == '\0'
        {
            tail.character = ' ';
        }
        if let Some(cell) = self.cell(x, y) {
            *cell = Cell { character, combining: None, style: style.clone() };
        }
    }

    /// Writes text up to a right edge; returns the column after it.
    pub(crate) fn put(&mut self, x: u16, y: u16, edge: u16, text: &str, style: &Style) -> u16 {
        let edge = edge.min(self.width);
        let mut at = x;
        for (cluster, width) in clusters(text) {
            // An active character would affect more than its own cell.
            let mut characters = cluster.chars();
            if width == 0 {
                let marks = characters.filter(|mark| !is_active(*mark));
                marks.for_each(|mark| self.combine(x, at, y, mark));
                continue;
            }
            let width = width as u16;
            if at + width > edge {
                break;
            }
            let first = characters.next().filter(|first| !is_active(*first)).unwrap_or(' ');
            if width == 2 {
                self.set(at + 1, y, ' ', style);
            }
            self.set(at, y, first, style);
            let others: String = characters.filter(|other| !is_active(*other)).collect();
            if let Some(head) = self.cell(at, y)
                && !others.is_empty()
            {
                head.combining = Some(others.into());
            }
            if width == 2
                && let Some(tail) = self.cell(at + 1, y)
            {
                tail.character = '\0';
            }
            at += width;
        }
        at
    }

    /// Adds a combining mark to the character before `at`.
    fn combine(&mut self, from: u16, at: u16, y: u16, mark: char) {
        let mut before = at;
        while before > from {
            before -= 1;
            let Some(cell) = self.cell(before, y) else { return };
            if cell.character != '\0' {
                let mut combining = cell.combining.take().map(String::from).unwrap_or_default();
                combining.push(mark);
                cell.combining = Some(combining.into());
                return;
            }
        }
    }

    /// Writes styled spans one after the other.
    pub(crate) fn put_runs(&mut self, x: u16, y: u16, edge: u16, runs: &[Span]) -> u16 {
        runs.iter().fold(x, |at, run| self.put(at, y, edge, &run.text, &run.style))
    }

    /// Writes styled spans without their first columns. A wide character that begins before is left out.
    pub(crate) fn put_runs_from(&mut self, skip: u16, place: (u16, u16), edge: u16, runs: &[Span]) {
        let (x, y) = place;
        let mut column = 0;
        for run in runs {
            let mut rest = String::new();
            let begin = column.max(skip);
            for (cluster, width) in clusters(&run.text) {
                match column >= skip {
                    true => rest.push_str(cluster),
                    // The half of it that is in view.
                    false => rest.extend((skip..column + width as u16).map(|_| ' ')),
                }
                column += width as u16;
            }
            self.put(x + begin - skip, y, edge, &rest, &run.style);
        }
    }

    /// Writes text, truncated with an ellipsis if it does not fit.
    pub(crate) fn put_cut(&mut self, x: u16, y: u16, edge: u16, text: &str, style: &Style) -> u16 {
        if text_width(text) <= usize::from(edge.saturating_sub(x)) {
            return self.put(x, y, edge, text, style);
        }
        let at = self.put(x, y, edge.saturating_sub(1), text, style);
        self.put(at, y, edge, "…", style)
    }

    /// Draws a border with a title.
    pub(crate) fn frame(&mut self, area: Rect, title: &str, style: &Style) {
        if area.width < 2 || area.height < 2 {
            return;
        }
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for x in area.x + 1..right {
            self.set(x, area.y, '─', style);
            self.set(x, bottom, '─', style);
        }
        for y in area.y + 1..bottom {
            self.set(area.x, y, '│', style);
            self.set(right, y, '│', style);
        }
        for (x, y, corner) in [
            (area.x, area.y, '┌'),
            (right, area.y, '┐'),
            (area.x, bottom, '└'),
            (right, bottom, '┘'),
        ] {
            self.set(x, y, corner, style);
        }
        if area.width > 6 && !title.is_empty() {
            self.put_cut(area.x + 2, area.y, right - 1, &format!(" {title} "), style);
        }
    }

    /// The frame as text, without trailing blanks.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for y in 0..self.height {
            let mut row = String::new();
            for cell in self.row(y).iter().filter(|cell| cell.character != '\0') {
                row.push(cell.character);
                row.push_str(cell.combining.as_deref().unwrap_or_default());
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_marks_stay_intact() {
        let mut canvas = Canvas::new(6, 1);
        canvas.put(0, 0, 6, "a漢e\u{301}b", &Style::default());
        assert_eq!(canvas.text(), "a漢e\u{301}b\n");
        assert_eq!(canvas.row(0)[2].character, '\0');
        canvas.put(2, 0, 6, "x", &Style::default());
        assert_eq!(canvas.text(), "a xe\u{301}b\n", "half a character becomes blank");
        canvas.put(5, 0, 6, "漢", &Style::default());
        assert_eq!(canvas.text(), "a xe\u{301}b\n", "it does not fit");
    }

    #[test]
    fn a_cluster_is_one_cell_of_its_width() {
        let mut canvas = Canvas::new(8, 1);
        let end =
            canvas.put(0, 0, 8, "👨\u{200d}👩\u{200d}👧❤\u{fe0f}a\u{3164}b", &Style::default());
        assert_eq!(end, 8);
        let row = canvas.row(0);
        assert_eq!(row[0].combining.as_deref(), Some("\u{200d}👩\u{200d}👧"));
        assert_eq!((row[1].character, row[2].character, row[3].character), ('\0', '❤', '\0'));
        // A filler is invisible: it is drawn as the blank that it looks like.
        assert_eq!((row[4].character, row[5].character, row[7].character), ('a', ' ', 'b'));
        canvas.put(3, 0, 8, "x", &Style::default());
        assert_eq!(canvas.row(0)[2], Cell::default(), "half a cluster becomes blank");
    }

    #[test]
    fn text_that_does_not_fit_is_truncated() {
        let mut canvas = Canvas::new(5, 2);
        canvas.put_cut(0, 0, 5, "abcdefg", &Style::default());
        canvas.put_cut(0, 1, 5, "abcde", &Style::default());
        assert_eq!(canvas.text(), "abcd…\nabcde\n");
    }
}
