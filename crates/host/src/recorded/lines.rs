//! The lines of a recording: those that scroll off its screen, and what is on the screen in the end.

use patterm_screen::{Attributes, Colour, NumberedRow, Screen, Span, is_web_link};
use patterm_wire::recording::{
    RecordedAttribute, RecordedColour, RecordedLine, RecordedSpan, RecordedStyle,
};

use super::COST;

/// Rows of one line at most: a program may print forever without a line feed.
const MAX_LINE_ROWS: usize = 2_000;

const ATTRIBUTES: [(Attributes, RecordedAttribute); 12] = [
    (Attributes::BOLD, RecordedAttribute::Bold),
    (Attributes::DIM, RecordedAttribute::Dim),
    (Attributes::ITALIC, RecordedAttribute::Italic),
    (Attributes::UNDERLINE, RecordedAttribute::Underline),
    (Attributes::DOUBLE_UNDERLINE, RecordedAttribute::Underline),
    (Attributes::CURLY_UNDERLINE, RecordedAttribute::Underline),
    (Attributes::DOTTED_UNDERLINE, RecordedAttribute::Underline),
    (Attributes::DASHED_UNDERLINE, RecordedAttribute::Underline),
    (Attributes::STRIKEOUT, RecordedAttribute::Strikeout),
    (Attributes::OVERLINE, RecordedAttribute::Overline),
    (Attributes::INVERSE, RecordedAttribute::Inverse),
    (Attributes::HIDDEN, RecordedAttribute::Hidden),
];

/// Makes lines of rows.
#[derive(Debug)]
pub(super) struct Lines {
    /// The number of the next line. Rows of those before it were on an earlier screen.
    next: u64,
    /// The rows of a line that is not complete.
    rows: Vec<NumberedRow>,
}

impl Lines {
    /// The lines that are on a screen and those that follow.
    pub(super) fn after(screen: &Screen) -> Self {
        let history = screen.history();
        Self { next: history.next_line() - u64::from(history.is_open()), rows: Vec::new() }
    }

    /// Adds rows, in their order; `are_last` if no more follow. Returns what the new lines cost.
    pub(super) fn add(
        &mut self,
        rows: Vec<NumberedRow>,
        are_last: bool,
        lines: &mut Vec<RecordedLine>,
    ) -> usize {
        let mut cost = 0;
        for row in rows {
            if row.number < self.next {
                continue;
            }
            let is_end = !row.row.wraps;
            let next = row.number + u64::from(is_end);
            self.rows.push(row);
            if is_end || self.rows.len() >= MAX_LINE_ROWS {
                self.next = next;
                cost += self.finish(lines);
            }
        }
        if are_last && !self.rows.is_empty() {
            cost += self.finish(lines);
        }
        cost
    }

    fn finish(&mut self, lines: &mut Vec<RecordedLine>) -> usize {
        let spans = self.rows.drain(..).flat_map(|row| row.row.spans);
        let line = RecordedLine { spans: spans.map(recorded).collect() };
        let cost = line.spans.iter().map(|span| span.text.len() + COST).sum::<usize>() + COST;
        lines.push(line);
        cost
    }
}

fn recorded(span: Span) -> RecordedSpan {
    let style = span.style;
    let mut attributes: Vec<_> = ATTRIBUTES
        .iter()
        .filter(|(attribute, _)| style.attributes.contains(*attribute))
        .map(|(_, recorded)| *recorded)
        .collect();
    attributes.dedup();
    RecordedSpan {
        text: span.text,
        style: RecordedStyle {
            foreground: colour(style.foreground),
            background: colour(style.background),
            attributes,
            link: style.link.filter(|link| is_web_link(link)).map(|link| link.to_string()),
        },
    }
}

fn colour(colour: Colour) -> Option<RecordedColour> {
    match colour {
        Colour::Default => None,
        Colour::Indexed(index) => Some(RecordedColour::Indexed(index)),
        Colour::Rgb(red, green, blue) => Some(RecordedColour::Rgb(red, green, blue)),
    }
}
