//! A screen as an SVG. Lines and blocks are drawn as shapes, so that they join whatever the font;
//! every piece of text is told its width, so that columns stand one below the other.

use std::fmt::Write as _;

use patterm_screen::{Attributes, Colour, Screen, Style};

use crate::shapes::shape;

/// One cell, in the picture's units.
pub(crate) const CELL: (f64, f64) = (9.0, 19.0);

/// Room around the screen.
const MARGIN: f64 = 12.0;

/// Where a text stands in its row.
const BASELINE: f64 = 14.2;

const FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";
const FOREGROUND: u32 = 0x00d6_dae0;
const BACKGROUND: u32 = 0x0015_181e;

/// The sixteen colours that a terminal names.
const SIXTEEN: [u32; 16] = [
    0x0023_2830,
    0x00e0_6c75,
    0x008f_c379,
    0x00e0_b86c,
    0x006c_a8e8,
    0x00c6_8ae0,
    0x0058_b8c0,
    0x00b6_bcc6,
    0x006a_7280,
    0x00f0_8a92,
    0x00a8_d892,
    0x00f0_cc88,
    0x008c_c0f8,
    0x00d8_a4f0,
    0x007c_d0d8,
    0x00f0_f2f6,
];

/// Draws what a screen shows now.
pub(crate) fn draw(screen: &Screen) -> String {
    let size = screen.size();
    let (width, height) = (f64::from(size.columns) * CELL.0, f64::from(size.rows) * CELL.1);
    let (outer_width, outer_height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let mut picture = Picture { out: String::new() };
    let _ = write!(
        picture.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {outer_width:.0} \
         {outer_height:.0}\" width=\"{outer_width:.0}\" height=\"{outer_height:.0}\">\n\
         <style>rect{{shape-rendering:crispEdges}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\" font-family=\"{FONT}\" font-size=\"15\" \
         fill=\"{}\" xml:space=\"preserve\">\n",
        hex(BACKGROUND),
        hex(FOREGROUND),
    );
    for row in 0..size.rows {
        picture.row(screen, row);
    }
    picture.cursor(screen);
    picture.out.push_str("</g>\n</svg>\n");
    picture.out
}

struct Picture {
    out: String,
}

impl Picture {
    fn row(&mut self, screen: &Screen, row: u16) {
        let mut column = 0;
        for run in screen.styled_row(row).spans {
            let look = Look::of(&run.style);
            let width: usize = run.text.chars().map(width_of).sum();
            self.background(row, column, width, &look);
            self.text(row, column, &run.text, &look);
            column += width;
        }
    }

    fn background(&mut self, row: u16, column: usize, width: usize, look: &Look) {
        if look.background == BACKGROUND || width == 0 {
            return;
        }
        let (x, y) = at(row, column);
        let _ = writeln!(
            self.out,
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{:.0}\" height=\"{}\" fill=\"{}\"/>",
            width as f64 * CELL.0,
            CELL.1,
            hex(look.background),
        );
    }

    /// A run in pieces: words of plain letters, shapes, and everything else by itself.
    fn text(&mut self, row: u16, column: usize, text: &str, look: &Look) {
        let mut column = column;
        let mut word = String::new();
        for character in text.chars() {
            let plain = character.is_ascii_graphic();
            if !plain {
                self.word(row, column - word.chars().count(), &word, look);
                word.clear();
            }
            let (x, y) = at(row, column);
            match character {
                ' ' => {}
                _ if plain => word.push(character),
                _ => match shape(character) {
                    Some(shape) => shape.draw((x, y), &hex(look.foreground), &mut self.out),
                    None => self.symbol((x, y), character, look),
                },
            }
            column += width_of(character);
        }
        self.word(row, column - word.chars().count(), &word, look);
    }

    fn word(&mut self, row: u16, column: usize, word: &str, look: &Look) {
        if word.is_empty() {
            return;
        }
        let (x, y) = at(row, column);
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.0}\" y=\"{:.1}\" textLength=\"{:.0}\"{}>{}</text>",
            y + BASELINE,
            word.len() as f64 * CELL.0,
            look.attributes(),
            escape(word),
        );
    }

    /// A character of another font, perhaps: it stands in the middle of its room.
    fn symbol(&mut self, (x, y): (f64, f64), character: char, look: &Look) {
        let _ = writeln!(
            self.out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\"{}>{character}</text>",
            x + CELL.0 * width_of(character) as f64 / 2.0,
            y + BASELINE,
            look.attributes(),
        );
    }

    fn cursor(&mut self, screen: &Screen) {
        let cursor = screen.cursor();
        if cursor.visible {
            let (x, y) = at(cursor.row, usize::from(cursor.column));
            let _ = writeln!(
                self.out,
                "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{}\" height=\"{}\" fill=\"{}\" \
                 fill-opacity=\".6\"/>",
                CELL.0,
                CELL.1,
                hex(FOREGROUND),
            );
        }
    }
}

/// How a run looks, in colours of the picture.
struct Look {
    foreground: u32,
    background: u32,
    attributes: Attributes,
}

impl Look {
    fn of(style: &Style) -> Self {
        let mut foreground = colour(style.foreground, FOREGROUND);
        let mut background = colour(style.background, BACKGROUND);
        if style.attributes.contains(Attributes::INVERSE) {
            (foreground, background) = (background, foreground);
        }
        if style.attributes.contains(Attributes::DIM) {
            foreground = between(foreground, background);
        }
        Self { foreground, background, attributes: style.attributes }
    }

    fn attributes(&self) -> String {
        let mut out = String::new();
        if self.foreground != FOREGROUND {
            let _ = write!(out, " fill=\"{}\"", hex(self.foreground));
        }
        for (attribute, name) in [
            (Attributes::BOLD, " font-weight=\"bold\""),
            (Attributes::ITALIC, " font-style=\"italic\""),
            (Attributes::UNDERLINE, " text-decoration=\"underline\""),
            (Attributes::STRIKEOUT, " text-decoration=\"line-through\""),
        ] {
            if self.attributes.contains(attribute) {
                out.push_str(name);
            }
        }
        out
    }
}

fn at(row: u16, column: usize) -> (f64, f64) {
    (column as f64 * CELL.0, f64::from(row) * CELL.1)
}

/// Columns that a character takes, as the screen itself has it.
fn width_of(character: char) -> usize {
    use patterm_screen::Size;
    if character.is_ascii() {
        return 1;
    }
    let mut screen = Screen::new(Size::new(1, 4));
    screen.feed(character.encode_utf8(&mut [0; 4]).as_bytes());
    usize::from(screen.cursor().column)
}

fn colour(colour: Colour, default: u32) -> u32 {
    match colour {
        Colour::Default => default,
        Colour::Indexed(index) if index < 16 => SIXTEEN[usize::from(index)],
        Colour::Indexed(index) if index >= 232 => (8 + 10 * (u32::from(index) - 232)) * 0x01_01_01,
        Colour::Indexed(index) => {
            let cube = u32::from(index) - 16;
            let step = |n: u32| if n == 0 { 0 } else { 55 + 40 * n };
            step(cube / 36) << 16 | step(cube / 6 % 6) << 8 | step(cube % 6)
        }
        Colour::Rgb(r, g, b) => u32::from(r) << 16 | u32::from(g) << 8 | u32::from(b),
    }
}

/// The colour in the middle, a little nearer to the first.
fn between(first: u32, second: u32) -> u32 {
    let part = |shift: u32| {
        let (a, b) = (first >> shift & 0xff, second >> shift & 0xff);
        ((a * 6 + b * 4) / 10) << shift
    };
    part(16) | part(8) | part(0)
}

fn hex(colour: u32) -> String {
    format!("#{colour:06x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
