//! A way around the grid for floods of plain lines. Of a piece with more such lines than the screen
//! has rows, most are scrolled off again before anyone can look; they go straight into the history.
//! What is then to be seen, and what the history holds, is the same as without this file.

use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::emulator::{CHARSETS, Emulator};
use crate::parser::printable_ascii;

const LINE_END: &[u8] = b"\r\n";

/// Rows beyond a screenful for which the detour begins to pay.
const MIN_EXTRA_ROWS: usize = 4;

impl Emulator {
    /// Takes the plain lines that `bytes` begin with into the history, as far as they do not stay
    /// on the screen; returns the bytes used. The rest is to be read as ever.
    pub(crate) fn feed_plain_lines(&mut self, bytes: &[u8]) -> usize {
        if !self.can_bypass_grid() {
            return 0;
        }
        let (rows, columns) = (self.page.rows(), self.page.columns());
        let count = plain_rows(bytes, columns).count();
        // The last row stays blank for the cursor.
        let kept = rows - 1;
        if count < rows + MIN_EXTRA_ROWS {
            return 0;
        }
        self.push_to_history(kept);
        let mut used = 0;
        for (text, wraps) in plain_rows(bytes, columns).take(count - kept) {
            self.history.push_plain(text, wraps, self.base_offset + used as u64);
            used += text.len() + if wraps { 0 } else { LINE_END.len() };
        }
        self.page.blank_rows(0..rows);
        self.page.go(0, 0);
        self.page.info[0].offset = self.base_offset + used as u64;
        (self.changed, self.last_character) = (true, None);
        used
    }

    /// Whether plain lines would each be printed into a blank last row and scrolled up.
    fn can_bypass_grid(&self) -> bool {
        let (cursor, last) = (&self.page.grid.cursor, self.page.rows() - 1);
        self.hidden_main.is_none()
            && (self.top, self.bottom) == (0, last)
            && (self.page.row(), self.page.column()) == (last, 0)
            && self.page.info[last].extent == 0
            && !self.page.wraps(last)
            && !cursor.input_needs_wrap
            && cursor.template == Cell::default()
            && cursor.charsets[CHARSETS[self.charset]] == StandardCharset::Ascii
            && self.modes.wrap
            && !self.modes.insert
    }
}

/// The rows that `bytes` begin with: lines of printable ASCII with their ends, cut for the width,
/// each with whether its line goes on.
fn plain_rows(bytes: &[u8], columns: usize) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = bytes;
    let mut line: &[u8] = &[];
    std::iter::from_fn(move || {
        if line.is_empty() {
            let end = printable_ascii(rest);
            let after = rest[end..].strip_prefix(LINE_END)?;
            (line, rest) = (&rest[..end], after);
        }
        let (row, after) = line.split_at(columns.min(line.len()));
        line = after;
        Some((row, !line.is_empty()))
    })
}
