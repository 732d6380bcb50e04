//! The box for an agent's first prompt, which may have several lines.

use super::overlay::above_status;
use super::tree::wrap;
use crate::canvas::{Canvas, Caret, text_width};
use crate::model::{AgentToStart, Model};

/// Rows of text that the box has at least, so that it looks like more than one line.
const ROWS_MIN: u16 = 3;

/// The widest text: longer lines are hard to read.
const WIDTH_MAX: u16 = 96;

pub(super) fn draw(model: &Model, agent: &AgentToStart, text: &str, canvas: &mut Canvas) {
    let area = above_status(model);
    // No margins on a narrow terminal.
    let margins = if area.width < 40 { 0 } else { 4 };
    let width = area.width.saturating_sub(margins).min(WIDTH_MAX);
    let rows = rows(text, usize::from(width.saturating_sub(3)));
    let most = area.height.saturating_sub(2);
    let height = (rows.len() as u16).clamp(ROWS_MIN.min(most), most.max(1));
    let room = area.middle(width, height + 2);
    canvas.clear(room, &model.theme().text);
    let title = format!("first prompt for {} (may be empty)", agent.preset);
    canvas.frame(room, &title, &model.theme().accent);
    let inner = room.inner();
    // The end is where the user types.
    let first = rows.len().saturating_sub(usize::from(inner.height));
    for (line, row) in rows.iter().skip(first).enumerate() {
        let y = inner.y + line as u16;
        let x = canvas.put(inner.x + 1, y, inner.right(), row, &model.theme().text);
        let shape = patterm_screen::CursorShape::Bar;
        canvas.caret = Some(Caret { x, y, shape, blinking: false });
    }
}

/// The lines of the text, wrapped; there is always one.
fn rows(text: &str, width: usize) -> Vec<String> {
    let wrapped = |line: &str| match text_width(line) {
        0 => vec![String::new()],
        _ => wrap(line, width.max(1)),
    };
    text.split('\n').flat_map(wrapped).collect()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn empty_lines_are_kept() {
        assert_eq!(rows("", 9), [""]);
        assert_eq!(rows("a\n", 9), ["a", ""]);
        assert_eq!(rows("a\n\nb c", 9), ["a", "", "b c"]);
        assert_eq!(rows("one two", 4), ["one", "two"]);
    }
}
