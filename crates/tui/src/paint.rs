//! Turns one frame into the next, as bytes for a terminal: only what changed, in a synchronized update, so that
//! nothing tears.

use std::fmt::Write as _;

use patterm_screen::{Attributes, Colour, CursorShape, Style};

use crate::canvas::{Canvas, Caret, Cell, text_width, width_of};

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourDepth {
    /// No colours: `NO_COLOR` is set, or the terminal is dumb.
    None,
    /// The sixteen that every terminal has.
    Sixteen,
    /// The palette of 256.
    Palette,
    /// 24-bit colours.
    True,
}

impl ColourDepth {
    /// Detects it from the environment. Of terminals that can be asked, the answer counts more.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).unwrap_or_default();
        let is_set = |name: &str| !value(name).is_empty();
        let term = variable("TERM").unwrap_or_else(|| "dumb".into());
        match value("COLORTERM").as_str() {
            _ if is_set("NO_COLOR") => Self::None,
            // tmux has them, and reduces them for the terminal around it.
            _ if is_set("TMUX") || term.starts_with("tmux") => Self::True,
            // GNU screen passes on the variable of the terminal around it, but not its colours.
            "truecolor" | "24bit" if !is_set("STY") => Self::True,
            _ if term.contains("direct") || term.contains("kitty") => Self::True,
            _ if term.contains("256") => Self::Palette,
            _ if term == "dumb" => Self::None,
            _ => Self::Sixteen,
        }
    }

    /// The depth after the terminal has said whether it has 24-bit colours.
    #[must_use]
    pub fn after_answer(self, true_colour: Option<bool>) -> Self {
        match (self, true_colour) {
            (Self::None, _) | (_, None) => self,
            (_, Some(true)) => Self::True,
            (Self::True, Some(false)) => Self::Palette,
            (_, Some(false)) => self,
        }
    }
}

/// The bytes that turn one frame into another; the whole frame if there was none of this size.
pub(crate) fn paint(before: Option<&Canvas>, next: &Canvas, depth: ColourDepth) -> Vec<u8> {
    let before = before.filter(|b| (b.width, b.height) == (next.width, next.height));
    let mut pen = Pen { out: String::new(), style: Style::default(), at: None, depth };
    pen.out.push_str(BEGIN);
    if before.is_none() {
        pen.out.push_str("\x1b[H\x1b[2J");
    }
    let blank = Canvas::new(next.width, 1);
    let mut changed = false;
    for y in 0..next.height {
        let old = before.map_or(blank.row(0), |before| before.row(y));
        changed |= pen.row(y, old, next.row(y));
    }
    let moved = before.is_none_or(|before| before.caret != next.caret);
    if !changed && !moved && before.is_some() {
        return Vec::new();
    }
    pen.end(next.caret)
}

/// The bytes that turn some rows of a frame into others. `before` has the rows as they were and their numbers, `next`
/// the whole frame.
pub(crate) fn paint_rows(
    before: &[(u16, Vec<Cell>)],
    caret: Option<Caret>,
    next: &Canvas,
    depth: ColourDepth,
) -> Vec<u8> {
    let mut pen = Pen { out: String::new(), style: Style::default(), at: None, depth };
    pen.out.push_str(BEGIN);
    let mut changed = false;
    for (y, old) in before {
        changed |= pen.row(*y, old, next.row(*y));
    }
    if !changed && caret == next.caret {
        return Vec::new();
    }
    pen.end(next.caret)
}

/// The beginning of a synchronized update: the cursor is hidden, and the style is known.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\x1b[0m";

struct Pen {
    out: String,
    style: Style,
    /// The terminal's cursor position, if it is known.
    at: Option<(u16, u16)>,
    depth: ColourDepth,
}

impl Pen {
    /// Shows the cursor and ends the update.
    fn end(mut self, caret: Option<Caret>) -> Vec<u8> {
        self.set_style(&Style::default());
        if let Some(caret) = caret {
            self.caret(caret);
        }
        self.out.push_str("\x1b[?2026l");
        self.out.into_bytes()
    }

    /// Writes what changed in a row.
    fn row(&mut self, y: u16, old: &[Cell], new: &[Cell]) -> bool {
        let mut changed = false;
        // Up to this column the terminal may show something else than was painted.
        let mut doubtful = 0;
        for (x, (before, cell)) in old.iter().zip(new).enumerate() {
            // The second half of a wide character is written with the first, and the first again if only
            // the second differs.
            let is_wide = new.get(x + 1).is_some_and(|next| next.character == '\0');
            let tail_differs = is_wide && old.get(x + 1) != new.get(x + 1);
            if cell.character == '\0' || (before == cell && !tail_differs && x >= doubtful) {
                // What a terminal drew beyond a cluster of the old frame goes with that cluster.
                continue;
            }
            changed = true;
            let width = 1 + usize::from(is_wide);
            let most = widest(cell).max(widest(before));
            if most > width {
                doubtful = doubtful.max(x + most);
            }
            self.cell(x as u16, y, cell, width, new.len());
        }
        changed
    }

    /// Writes a cell of this width into a row of `columns`.
    fn cell(&mut self, x: u16, y: u16, cell: &Cell, width: usize, columns: usize) {
        if self.at != Some((x, y)) {
            let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
        }
        self.set_style(&cell.style);
        let combining = cell.combining.as_deref().unwrap_or_default();
        let most = widest(cell);
        // A terminal that gives the cluster fewer columns leaves the others as they were: they are blank then.
        if width > usize::from(width_of(cell.character)) || most > width {
            let _ = write!(self.out, "{:width$}\x1b[{};{}H", "", y + 1, x + 1);
        }
        self.out.push(cell.character);
        // A terminal that gives it more must not wrap: at the edge only the first character is drawn.
        if usize::from(x) + most <= columns {
            self.out.push_str(combining);
        }
        // Terminals disagree about the width of joined characters and many symbols: after those the
        // cursor is positioned again.
        let sure = cell.character.is_ascii() && cell.combining.is_none();
        self.at = sure.then_some((x + 1, y));
    }

    fn set_style(&mut self, style: &Style) {
        if self.style == *style {
            return;
        }
        if self.style.link != style.link {
            let plain = |link: &&str| !link.chars().any(char::is_control);
            let link = style.link.as_deref().filter(plain).unwrap_or_default();
            let _ = write!(self.out, "\x1b]8;;{link}\x1b\\");
        }
        self.out.push_str("\x1b[0");
        for (attribute, number) in ATTRIBUTES {
            if style.attributes.contains(attribute) {
                let _ = write!(self.out, ";{number}");
            }
        }
        self.colour(style.foreground, 30);
        self.colour(style.background, 40);
        if let Some(colour) = style.underline {
            self.underline(colour);
        }
        self.out.push('m');
        self.style = style.clone();
    }

    fn colour(&mut self, colour: Colour, base: u16) {
        let _ = match (colour, self.depth) {
            (Colour::Default, _) | (_, ColourDepth::None) => Ok(()),
            (Colour::Rgb(r, g, b), ColourDepth::True) => {
                write!(self.out, ";{};2;{r};{g};{b}", base + 8)
            }
            (colour, depth) => {
                let index = index_of(colour, depth);
                match index {
                    0..=7 => write!(self.out, ";{}", base + u16::from(index)),
                    8..=15 => write!(self.out, ";{}", base + 52 + u16::from(index)),
                    _ => write!(self.out, ";{};5;{index}", base + 8),
                }
            }
        };
    }

    fn underline(&mut self, colour: Colour) {
        let _ = match (colour, self.depth) {
            (Colour::Default, _) | (_, ColourDepth::None | ColourDepth::Sixteen) => Ok(()),
            (Colour::Rgb(r, g, b), ColourDepth::True) => write!(self.out, ";58:2::{r}:{g}:{b}"),
            (colour, depth) => write!(self.out, ";58:5:{}", index_of(colour, depth)),
        };
    }

    fn caret(&mut self, caret: Caret) {
        let shape = match caret.shape {
            CursorShape::Block => 2,
            CursorShape::Underline => 4,
            CursorShape::Bar => 6,
        };
        let shape = shape - u8::from(caret.blinking);
        let _ = write!(self.out, "\x1b[{shape} q\x1b[{};{}H\x1b[?25h", caret.y + 1, caret.x + 1);
    }
}

/// The most columns that a terminal may give a cell: one that knows no clusters adds up its characters.
fn widest(cell: &Cell) -> usize {
    let Some(combining) = &cell.combining else { return 1 };
    let alone = usize::from(width_of(cell.character));
    let others: usize = combining.chars().map(|other| usize::from(width_of(other))).sum();
    let cluster = text_width(&format!("{}{combining}", cell.character));
    (alone + others).max(cluster)
}

const ATTRIBUTES: [(Attributes, &str); 13] = [
    (Attributes::BOLD, "1"),
    (Attributes::DIM, "2"),
    (Attributes::ITALIC, "3"),
    (Attributes::UNDERLINE, "4"),
    (Attributes::INVERSE, "7"),
    (Attributes::HIDDEN, "8"),
    (Attributes::STRIKEOUT, "9"),
    (Attributes::DOUBLE_UNDERLINE, "4:2"),
    (Attributes::CURLY_UNDERLINE, "4:3"),
    (Attributes::DOTTED_UNDERLINE, "4:4"),
    (Attributes::DASHED_UNDERLINE, "4:5"),
    (Attributes::BLINK, "5"),
    (Attributes::OVERLINE, "53"),
];

/// The nearest colour of the palette, or of its first sixteen.
fn index_of(colour: Colour, depth: ColourDepth) -> u8 {
    let (r, g, b) = match colour {
        Colour::Default => return 7,
        Colour::Indexed(index) if depth != ColourDepth::Sixteen || index < 16 => return index,
        Colour::Indexed(index) => rgb_of(index),
        Colour::Rgb(r, g, b) => (r, g, b),
    };
    if depth == ColourDepth::Sixteen { sixteen(r, g, b) } else { palette(r, g, b) }
}

/// The fixed 240 colours of the palette.
fn rgb_of(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return (grey, grey, grey);
    }
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    let cube = index.saturating_sub(16);
    (step(cube / 36), step(cube / 6 % 6), step(cube % 6))
}

fn palette(r: u8, g: u8, b: u8) -> u8 {
    let (low, high) = (r.min(g).min(b), r.max(g).max(b));
    if high - low < 8 {
        return match low {
            0..=3 => 16,
            244.. => 231,
            grey => 232 + ((u16::from(grey).saturating_sub(3)) / 10).min(23) as u8,
        };
    }
    let step = |value: u8| match value {
        0..=47 => 0,
        48..=114 => 1,
        _ => (value - 35) / 40,
    };
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

fn sixteen(r: u8, g: u8, b: u8) -> u8 {
    let high = r.max(g).max(b);
    if high < 48 {
        return 0;
    }
    // A component counts if it is more than half of the strongest.
    let bit = |value: u8, bit: u8| if value > high / 2 { bit } else { 0 };
    let hue = bit(r, 1) | bit(g, 2) | bit(b, 4);
    match (hue, high) {
        (7, 0..=140) => 8,
        (7, 141..=200) => 7,
        (hue, 180..) => 8 + hue,
        (hue, _) => hue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_written() {
        let mut before = Canvas::new(10, 2);
        before.put(0, 0, 10, "hello", &Style::default());
        let mut next = before.clone();
        assert!(paint(Some(&before), &next, ColourDepth::True).is_empty());
        next.put(1, 0, 10, "a", &Style::default());
        let bytes = String::from_utf8(paint(Some(&before), &next, ColourDepth::True)).unwrap();
        assert_eq!(bytes, "\x1b[?2026h\x1b[?25l\x1b[0m\x1b[1;2Ha\x1b[?2026l");
        let whole = String::from_utf8(paint(None, &next, ColourDepth::True)).unwrap();
        assert!(whole.contains("\x1b[2J\x1b[1;1Hhallo"), "{whole:?}");
    }

    fn painted(before: &Canvas, next: &Canvas) -> String {
        String::from_utf8(paint(Some(before), next, ColourDepth::True)).unwrap()
    }

    #[test]
    fn clusters_are_drawn_so_that_any_terminal_shows_the_rest_in_its_place() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let mut before = Canvas::new(12, 1);
        before.put(0, 0, 12, "ab34567", &Style::default());
        let mut next = before.clone();
        next.put(0, 0, 12, family, &Style::default());
        // Both columns are blank first, the cursor is placed after it, and what a terminal that shows three
        // emoji would cover is drawn again.
        let expected = format!("\x1b[1;1H  \x1b[1;1H{family}\x1b[1;3H3456\x1b[?2026l");
        assert!(painted(&before, &next).ends_with(&expected), "{:?}", painted(&before, &next));
        // The same when it goes.
        let back = painted(&next, &before);
        assert!(back.ends_with("\x1b[1;1Hab3456\x1b[?2026l"), "{back:?}");
        // At the edge, a terminal that shows three emoji would wrap.
        let mut edge = Canvas::new(4, 1);
        edge.put(2, 0, 4, family, &Style::default());
        let drawn = painted(&Canvas::new(4, 1), &edge);
        assert!(drawn.ends_with("\x1b[1;3H  \x1b[1;3H👨\x1b[?2026l"), "{drawn:?}");
        // A symbol in two columns that may be shown in one.
        let mut heart = Canvas::new(4, 1);
        heart.put(0, 0, 4, "❤\u{fe0f}x", &Style::default());
        let drawn = painted(&Canvas::new(4, 1), &heart);
        let expected = "\x1b[1;1H  \x1b[1;1H❤\u{fe0f}\x1b[1;3Hx\x1b[?2026l";
        assert!(drawn.ends_with(expected), "{drawn:?}");
    }

    #[test]
    fn colours_are_reduced_to_the_terminals_depth() {
        let style = |foreground: Colour| Style { foreground, ..Style::default() };
        for (colour, depth, expected) in [
            (Colour::Indexed(1), ColourDepth::True, "\x1b[0;31m"),
            (Colour::Indexed(9), ColourDepth::Sixteen, "\x1b[0;91m"),
            (Colour::Indexed(196), ColourDepth::Palette, "\x1b[0;38;5;196m"),
            (Colour::Indexed(196), ColourDepth::Sixteen, "\x1b[0;91m"),
            (Colour::Rgb(1, 2, 3), ColourDepth::True, "\x1b[0;38;2;1;2;3m"),
            (Colour::Rgb(255, 0, 0), ColourDepth::Palette, "\x1b[0;38;5;196m"),
            (Colour::Rgb(0, 0, 128), ColourDepth::Sixteen, "\x1b[0;34m"),
            (Colour::Rgb(0, 0, 128), ColourDepth::None, "\x1b[0m"),
        ] {
            let mut canvas = Canvas::new(1, 1);
            canvas.put(0, 0, 1, "x", &style(colour));
            let bytes = String::from_utf8(paint(None, &canvas, depth)).unwrap();
            assert!(bytes.contains(&format!("{expected}x")), "{colour:?} {depth:?} {bytes:?}");
        }
    }

    #[test]
    fn blinking_and_overlined_text_reaches_the_terminal() {
        let attributes = Attributes::BLINK | Attributes::OVERLINE | Attributes::UNDERLINE;
        let mut canvas = Canvas::new(1, 1);
        canvas.put(0, 0, 1, "x", &Style { attributes, ..Style::default() });
        let bytes = String::from_utf8(paint(None, &canvas, ColourDepth::Sixteen)).unwrap();
        assert!(bytes.contains("\x1b[0;4;5;53mx"), "{bytes:?}");
    }

    #[test]
    fn the_depth_is_detected_from_the_environment() {
        let of = |set: &[(&str, &str)]| {
            ColourDepth::of(|name| {
                set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let truecolor = ("COLORTERM", "truecolor");
        assert_eq!(of(&[("NO_COLOR", "1"), truecolor, ("TERM", "xterm")]), ColourDepth::None);
        assert_eq!(of(&[truecolor, ("TERM", "xterm")]), ColourDepth::True);
        assert_eq!(of(&[("TERM", "xterm-256color")]), ColourDepth::Palette);
        assert_eq!(of(&[("TERM", "tmux-256color")]), ColourDepth::True, "over ssh");
        assert_eq!(of(&[("TERM", "screen-256color"), ("TMUX", "/tmp/t,1,0")]), ColourDepth::True);
        let in_screen = [("TERM", "screen.xterm-256color"), ("STY", "1.tty"), truecolor];
        assert_eq!(of(&in_screen), ColourDepth::Palette);
        assert_eq!(of(&[("NO_COLOR", ""), ("TERM", "xterm")]), ColourDepth::Sixteen);
        assert_eq!(of(&[]), ColourDepth::None);
    }

    #[test]
    fn the_terminals_answer_counts_more_than_the_environment() {
        use ColourDepth::{None as Monochrome, Palette, Sixteen, True};
        for (guess, answer, expected) in [
            (Palette, Some(true), True),
            (Sixteen, Some(true), True),
            (True, Some(false), Palette),
            (Sixteen, Some(false), Sixteen),
            (True, None, True),
            (Monochrome, Some(true), Monochrome),
        ] {
            assert_eq!(guess.after_answer(answer), expected, "{guess:?} {answer:?}");
        }
    }
}
