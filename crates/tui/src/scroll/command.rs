//! What the last command printed, for shells that mark their commands (OSC 133).

use patterm_screen::{Screen, Size};

/// The marks that a shell prints before and after the output of a command (OSC 133).
const COMMAND_MARK: &[u8] = b"\x1b]133;C";
const AFTER_MARKS: [&[u8]; 2] = [b"\x1b]133;D", b"\x1b]133;A"];

/// Feeds output to a screen; returns the first and last row that the last command printed, counted from the oldest
/// row, if the shell marks commands.
pub(super) fn feed(screen: &mut Screen, output: &[u8]) -> Option<(usize, usize)> {
    let find = |part: &[u8], mark: &[u8]| part.windows(mark.len()).position(|bytes| bytes == mark);
    let rfind =
        |part: &[u8], mark: &[u8]| part.windows(mark.len()).rposition(|bytes| bytes == mark);
    let Some(begin) = rfind(output, COMMAND_MARK) else {
        screen.feed(output);
        return None;
    };
    let after = &output[begin..];
    let end = AFTER_MARKS.iter().filter_map(|mark| find(after, mark)).min();
    let end = end.map_or(output.len(), |end| begin + end);
    screen.feed(&output[..begin]);
    let (first, _) = row_of_cursor(screen);
    screen.feed(&output[begin..end]);
    let (last, column) = row_of_cursor(screen);
    screen.feed(&output[end..]);
    // In the first column, nothing of that row has been printed yet.
    let last = if column == 0 { last.checked_sub(1)? } else { last };
    (first <= last).then_some((first, last))
}

/// The row of the cursor after some output, counted from the oldest.
pub(super) fn row_after(output: &[u8], size: Size) -> usize {
    let mut screen = Screen::new(size);
    screen.set_replay(true);
    screen.feed(output);
    row_of_cursor(&screen).0
}

/// The row of the cursor, counted from the oldest, and its column.
fn row_of_cursor(screen: &Screen) -> (usize, usize) {
    let above = screen.history().styled(screen.size().columns, 0, usize::MAX).len();
    let cursor = screen.cursor();
    (above + usize::from(cursor.row), usize::from(cursor.column))
}
