//! Copies of a screen's rows, to find those that have changed since.

use alacritty_terminal::term::cell::Cell;

use crate::colours::Colours;
use crate::screen::Screen;

/// The rows of a screen as they were. They are compared cell by cell: a row that has changed is never missed, and a
/// comparison takes a fraction of the time that drawing takes.
#[derive(Debug, Default)]
pub struct RowCopies {
    rows: Vec<Vec<Cell>>,
    /// The colours that they were drawn in.
    colours: Colours,
}

impl RowCopies {
    /// Copies the rows of a screen; returns those that differ from the last copy. Rows that were not there before are
    /// among them.
    pub fn update(&mut self, screen: &Screen) -> Vec<u16> {
        let rows = screen.size().rows;
        if self.colours != *screen.colours() {
            self.colours = screen.colours().clone();
            self.rows.clear();
        }
        self.rows.truncate(usize::from(rows));
        let mut changed = Vec::new();
        for row in 0..rows {
            let cells = screen.visible_cells(row);
            match self.rows.get_mut(usize::from(row)) {
                Some(copy) if copy == cells => continue,
                Some(copy) => {
                    copy.clear();
                    copy.extend_from_slice(cells);
                }
                None => self.rows.push(cells.to_vec()),
            }
            changed.push(row);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn only_rows_that_look_different_are_found() {
        let mut screen = Screen::new(Size::new(4, 10));
        let mut copies = RowCopies::default();
        assert_eq!(copies.update(&screen), [0, 1, 2, 3], "all are new");
        screen.feed(b"one\r\ntwo\x1b[1;2H");
        assert_eq!(copies.update(&screen), [0, 1]);
        assert_eq!(copies.update(&screen), [0; 0]);
        screen.feed(b"n\x1b[2;1H\x1b[31mt\x1b[4;1H \x1b[K");
        assert_eq!(copies.update(&screen), [1], "the same letter again, another colour, a blank");
        screen.feed(b"\x1b[2;1H\x1b[mtwo");
        assert_eq!(copies.update(&screen), [1]);
        screen.feed(b"\x1b[4;1H\n");
        assert_eq!(copies.update(&screen), [0, 1], "what has scrolled");
        screen.feed(b"\x1b]4;1;#123456\x07");
        assert_eq!(copies.update(&screen), [0, 1, 2, 3], "all are drawn in other colours");
        assert_eq!(copies.update(&screen), [0; 0]);
        screen.resize(Size::new(5, 10));
        assert!(copies.update(&screen).contains(&4), "a new row");
    }
}
