//! Draws a screen on another terminal, again and again: only text, colours and the cursor. Nothing else that a program
//! has printed gets there: no titles, modes, queries or clipboard writes.

use std::fmt::Write as _;

use crate::cluster::clusters;
use crate::row_copies::RowCopies;
use crate::screen::Screen;
use crate::sgr;
use crate::size::Size;
use crate::style::{DEFAULT_BACKGROUND, DEFAULT_FOREGROUND, SimpleStyle, Style, flags};

/// What a terminal shows of a screen.
#[derive(Debug, Default)]
pub struct Drawing {
    /// The size of the terminal; by default that of the screen.
    window: Option<Size>,
    /// The size of the screen when it was drawn, and the rows above the part that is shown.
    drawn: Option<(Size, u16)>,
    rows: RowCopies,
    cursor: Option<(u16, u16, bool)>,
}

impl Drawing {
    /// Draws on a terminal of the screen's size.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws on a terminal of another size: of a larger screen, the columns on the left and the rows around the cursor.
    #[must_use]
    pub fn within(window: Size) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// What to print so that the terminal shows the screen; empty if it does already.
    pub fn update(&mut self, screen: &Screen) -> String {
        let (size, mut out) = (screen.size(), String::new());
        let window = self.window.unwrap_or(size);
        let top = self.top(screen, window);
        if self.drawn.replace((size, top)) != Some((size, top)) {
            (self.rows, self.cursor) = (RowCopies::default(), None);
            out.push_str("\x1b[0m\x1b[H\x1b[2J");
        }
        let is_fresh = !out.is_empty();
        for row in self.rows.update(screen) {
            if (top..top.saturating_add(window.rows)).contains(&row) {
                draw_row(&mut out, screen, row, row - top, window.columns, is_fresh);
            }
        }
        let (cursor, columns) = (screen.cursor(), window.columns.max(1));
        let row = cursor.row.saturating_sub(top).min(window.rows.saturating_sub(1));
        let cursor = (row, cursor.column.min(columns - 1), cursor.visible);
        if !out.is_empty() || self.cursor != Some(cursor) {
            let (row, column, visible) = cursor;
            let _ = write!(out, "\x1b[0m\x1b[{};{}H", row + 1, column + 1);
            if self.cursor.is_none_or(|(.., before)| before != visible) {
                out.push_str(if visible { "\x1b[?25h" } else { "\x1b[?25l" });
            }
            self.cursor = Some(cursor);
        }
        out
    }

    /// The rows of the screen above the part that is shown. It moves no more than it has to.
    fn top(&self, screen: &Screen, window: Size) -> u16 {
        let (size, row) = (screen.size(), screen.cursor().row);
        let most = size.rows.saturating_sub(window.rows);
        let before = self.drawn.filter(|(drawn, _)| *drawn == size).map_or(most, |(_, top)| top);
        let last = row.saturating_sub(window.rows.saturating_sub(1));
        before.clamp(last.min(row), row).min(most)
    }
}

fn draw_row(out: &mut String, screen: &Screen, row: u16, at: u16, columns: u16, is_blank: bool) {
    let styled = screen.styled_row(row);
    let spans = screen.colours().apply(&styled.spans, screen.size().columns);
    if is_blank && spans.is_empty() {
        return;
    }
    let _ = write!(out, "\x1b[{};1H", at + 1);
    if !is_blank {
        out.push_str("\x1b[0m\x1b[K");
    }
    let (mut column, mut is_sure) = (0, true);
    for span in spans.iter() {
        // Terminals disagree about the width of some characters; what follows them must not move.
        if !is_sure {
            let _ = write!(out, "\x1b[{}G", column + 1);
        }
        let _ = write!(out, "\x1b[{}m", parameters(&span.style));
        let link = span.style.link.as_deref().filter(|link| is_web_link(link));
        if let Some(link) = link {
            let _ = write!(out, "\x1b]8;;{link}\x1b\\");
        }
        for (text, width) in clusters(&span.text) {
            if column + width > usize::from(columns) {
                break;
            }
            out.push_str(text);
            column += width;
        }
        if link.is_some() {
            out.push_str("\x1b]8;;\x1b\\");
        }
        is_sure = span.text.is_ascii();
        if column >= usize::from(columns) {
            break;
        }
    }
}

fn parameters(style: &Style) -> String {
    let simple = SimpleStyle {
        fg: style.foreground.to_alacritty(DEFAULT_FOREGROUND),
        bg: style.background.to_alacritty(DEFAULT_BACKGROUND),
        flags: flags(style.attributes),
    };
    let mut cell = simple.template();
    if let Some(underline) = style.underline {
        cell.set_underline_color(Some(underline.to_alacritty(DEFAULT_FOREGROUND)));
    }
    sgr::parameters(&cell)
}

/// Whether a link leads to the web: others may do anything on the machine of whoever follows them.
#[must_use]
pub fn is_web_link(link: &str) -> bool {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        link.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    });
    is_web && !link.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: &Screen) -> (Vec<crate::StyledRow>, crate::Cursor) {
        let rows = (0..screen.size().rows).map(|row| {
            let row = screen.styled_row(row);
            let spans = screen.colours().apply(&row.spans, screen.size().columns).into_owned();
            crate::StyledRow { spans, wraps: false }
        });
        (rows.collect(), screen.cursor())
    }

    #[test]
    fn a_terminal_that_is_drawn_on_shows_the_same_after_each_step() {
        let mut screen = Screen::new(Size::new(5, 20));
        let mut terminal = Screen::new(Size::new(5, 20));
        let mut drawing = Drawing::new();
        let steps: &[&[u8]] = &[
            b"plain \x1b[1;31mred\x1b[0m\r\n",
            "\x1b[4:3;58;2;1;2;3mwave\x1b[m 漢字 e\u{301} \u{1f469}\u{200d}\u{1f680}x\r\n"
                .as_bytes(),
            b"12345678901234567890more\x1b[44m\x1b[K",
            b"\x1b[1;1H\x1b[?25l",
            b"\x1b[?1049h\x1b[3;3Hfull\x1b[?25h",
            b"\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\",
            b"\x1b[?1049l\r\n\n\n\nscrolled",
            b"\x1b[2J",
        ];
        for step in steps {
            for byte in step.chunks(3) {
                screen.feed(byte);
                terminal.feed(drawing.update(&screen).as_bytes());
                let (expected, actual) = (shown(&screen), shown(&terminal));
                assert_eq!(actual.0, expected.0, "{:?}", String::from_utf8_lossy(step));
                let place = |cursor: crate::Cursor| (cursor.row, cursor.column, cursor.visible);
                assert_eq!(place(actual.1), place(expected.1));
            }
        }
        assert_eq!(drawing.update(&screen), "");
    }

    #[test]
    fn only_text_colours_and_web_links_are_drawn() {
        let mut screen = Screen::new(Size::new(4, 40));
        screen.feed(b"\x1b]0;title\x07\x1b]52;c;c2VjcmV0\x07\x1b[?1000h\x1b[?2004h\x1b[c\x07");
        screen.feed(b"\x1b]8;;file:///etc/passwd\x1b\\local\x1b]8;;\x1b\\");
        screen.feed(b"\x1b]4;1;#102030\x07\x1b[31mred\x1b[1\"qsafe");
        let drawn = Drawing::new().update(&screen);
        for bad in ["title", "]52", "?1000", "?2004", "\x07", "file:", "]4;", "\"q"] {
            assert!(!drawn.contains(bad), "{bad:?} in {drawn:?}");
        }
        assert!(drawn.contains("local") && drawn.contains("38;2;16;32;48mred"));
        assert!(is_web_link("HTTPS://x") && !is_web_link("javascript:x") && !is_web_link("http"));
        assert!(!is_web_link("https://x\u{9c}"));
    }

    #[test]
    fn a_small_terminal_shows_the_part_around_the_cursor() {
        let mut screen = Screen::new(Size::new(10, 20));
        let mut terminal = Screen::new(Size::new(4, 6));
        let mut drawing = Drawing::within(Size::new(4, 6));
        for row in 1..=10 {
            screen.feed(format!("\x1b[{row};1Hrow {row} 漢字").as_bytes());
        }
        terminal.feed(drawing.update(&screen).as_bytes());
        assert_eq!(terminal.rows(), ["row 7", "row 8", "row 9", "row 10"].map(str::to_owned));
        screen.feed(b"\x1b[2;1H");
        terminal.feed(drawing.update(&screen).as_bytes());
        assert_eq!(terminal.rows(), ["row 2", "row 3", "row 4", "row 5"].map(str::to_owned));
        assert_eq!(terminal.cursor().row, 0);
        screen.feed(b"\x1b[4;20H");
        terminal.feed(drawing.update(&screen).as_bytes());
        let cursor = terminal.cursor();
        assert_eq!((cursor.row, cursor.column), (2, 5));
    }
}
