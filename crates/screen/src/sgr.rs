//! SGR: colours and attributes of the text that follows.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, Rgb};

use crate::parser::Csi;
use crate::style::{
    BLINK, DASHED_UNDERLINE, DEFAULT_BACKGROUND, DEFAULT_FOREGROUND, DOTTED_UNDERLINE, OVERLINE,
    PROTECTED, UNDERLINES,
};

/// Applies one SGR sequence to the template for printed cells.
pub(crate) fn apply(template: &mut Cell, sequence: &Csi) {
    let (values, mut at) = (sequence.values(), 0);
    while let Some(&value) = values.get(at) {
        // Values after colons belong to this one.
        let (sub, next) = values[at + 1..].split_at(sequence.joined_from(at + 1));
        at += 1 + sub.len() + apply_one(template, value, sub, next);
    }
}

/// Applies one parameter; returns how many of the following ones it used.
fn apply_one(cell: &mut Cell, value: u16, sub: &[u16], next: &[u16]) -> usize {
    match value {
        0 => {
            (cell.fg, cell.bg) = (DEFAULT_FOREGROUND, DEFAULT_BACKGROUND);
            cell.flags = cell.flags.intersection(PROTECTED);
            if cell.extra.is_some() {
                let link = cell.hyperlink();
                cell.extra = None;
                if link.is_some() {
                    cell.set_hyperlink(link); // Only OSC 8 ends a link.
                }
            }
        }
        1 => cell.flags.insert(Flags::BOLD),
        2 => cell.flags.insert(Flags::DIM),
        3 => cell.flags.insert(Flags::ITALIC),
        4 => underline(cell, sub.first().map_or(1, |kind| *kind)),
        5 | 6 => cell.flags.insert(BLINK),
        7 => cell.flags.insert(Flags::INVERSE),
        8 => cell.flags.insert(Flags::HIDDEN),
        9 => cell.flags.insert(Flags::STRIKEOUT),
        21 => underline(cell, 2),
        22 => cell.flags.remove(Flags::BOLD | Flags::DIM),
        23 => cell.flags.remove(Flags::ITALIC),
        24 => underline(cell, 0),
        25 => cell.flags.remove(BLINK),
        27 => cell.flags.remove(Flags::INVERSE),
        28 => cell.flags.remove(Flags::HIDDEN),
        29 => cell.flags.remove(Flags::STRIKEOUT),
        30..=37 => cell.fg = Color::Indexed((value - 30) as u8),
        39 => cell.fg = DEFAULT_FOREGROUND,
        40..=47 => cell.bg = Color::Indexed((value - 40) as u8),
        49 => cell.bg = DEFAULT_BACKGROUND,
        90..=97 => cell.fg = Color::Indexed((value - 90 + 8) as u8),
        100..=107 => cell.bg = Color::Indexed((value - 100 + 8) as u8),
        53 => cell.flags.insert(OVERLINE),
        55 => cell.flags.remove(OVERLINE),
        59 => cell.set_underline_color(None),
        38 | 48 | 58 => {
            let (colour, used) = extended(sub, next);
            match (value, colour) {
                (_, None) => {}
                (38, Some(colour)) => cell.fg = colour,
                (48, Some(colour)) => cell.bg = colour,
                (_, colour) => cell.set_underline_color(colour),
            }
            return used;
        }
        _ => {}
    }
    0
}

fn underline(cell: &mut Cell, kind: u16) {
    cell.flags.remove(UNDERLINES);
    cell.flags.insert(match kind {
        0 => return,
        2 => Flags::DOUBLE_UNDERLINE,
        3 => Flags::UNDERCURL,
        4 => DOTTED_UNDERLINE,
        5 => DASHED_UNDERLINE,
        _ => Flags::UNDERLINE,
    });
}

/// An indexed or RGB colour, with colons (`38:2::r:g:b`, `38:2:r:g:b`, `38:5:n`) or with semicolons; and
/// how many of the following parameters it used.
fn extended(sub: &[u16], next: &[u16]) -> (Option<Color>, usize) {
    if !sub.is_empty() {
        let colour = match *sub {
            [2, _, r, g, b, ..] | [2, r, g, b] => rgb(r, g, b),
            [5, index, ..] => indexed(index),
            _ => None,
        };
        return (colour, 0);
    }
    // No program uses the mixed form `38;2:r:g:b`.
    match *next {
        [2, r, g, b, ..] => (rgb(r, g, b), 4),
        [5, index, ..] => (indexed(index), 2),
        _ => (None, next.len().min(1)),
    }
}

fn rgb(r: u16, g: u16, b: u16) -> Option<Color> {
    let part = |value: u16| u8::try_from(value).ok();
    Some(Color::Spec(Rgb { r: part(r)?, g: part(g)?, b: part(b)? }))
}

fn indexed(index: u16) -> Option<Color> {
    u8::try_from(index).ok().map(Color::Indexed)
}

/// The SGR parameters that set this style, starting from the default.
pub(crate) fn parameters(cell: &Cell) -> String {
    use std::fmt::Write as _;
    const FLAGS: [(Flags, &str); 8] = [
        (Flags::BOLD, "1"),
        (Flags::DIM, "2"),
        (Flags::ITALIC, "3"),
        (BLINK, "5"),
        (Flags::INVERSE, "7"),
        (Flags::HIDDEN, "8"),
        (Flags::STRIKEOUT, "9"),
        (OVERLINE, "53"),
    ];
    const KINDS: [(Flags, &str); 5] = [
        (Flags::UNDERLINE, "4"),
        (Flags::DOUBLE_UNDERLINE, "4:2"),
        (Flags::UNDERCURL, "4:3"),
        (DOTTED_UNDERLINE, "4:4"),
        (DASHED_UNDERLINE, "4:5"),
    ];
    let mut text = String::from("0");
    for (_, code) in FLAGS.iter().filter(|(flag, _)| cell.flags.contains(*flag)) {
        let _ = write!(text, ";{code}");
    }
    let underline = cell.flags.intersection(UNDERLINES);
    for (_, code) in KINDS.iter().filter(|(kind, _)| underline == *kind) {
        let _ = write!(text, ";{code}");
    }
    let mut colour = |code: u8, colour: Color| {
        let _ = match colour {
            Color::Indexed(index) => write!(text, ";{code};5;{index}"),
            Color::Spec(Rgb { r, g, b }) => write!(text, ";{code};2;{r};{g};{b}"),
            Color::Named(_) => Ok(()),
        };
    };
    colour(38, cell.fg);
    colour(48, cell.bg);
    if let Some(underline) = cell.underline_color() {
        colour(58, underline);
    }
    text
}
