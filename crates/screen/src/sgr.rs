//! SGR: the colours and attributes of what is printed next.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, Rgb};

use crate::parser::Csi;
use crate::style::{DEFAULT_BACKGROUND, DEFAULT_FOREGROUND};

/// Applies one SGR sequence to the template of what is printed next.
pub(crate) fn apply(template: &mut Cell, sequence: &Csi) {
    let parameters: Vec<(u16, bool)> = sequence.all().collect();
    let mut rest = parameters.as_slice();
    while let Some((&(value, _), after)) = rest.split_first() {
        // Values behind colons belong to this one.
        let joined = after.iter().take_while(|(_, joined)| *joined).count();
        let (sub, next) = after.split_at(joined);
        let used = apply_one(template, value, sub, next);
        rest = &next[used..];
    }
}

/// Applies one parameter; returns how many of the following ones it used.
fn apply_one(cell: &mut Cell, value: u16, sub: &[(u16, bool)], next: &[(u16, bool)]) -> usize {
    match value {
        0 => {
            let link = cell.hyperlink();
            *cell = Cell::default();
            if link.is_some() {
                cell.set_hyperlink(link); // A link ends with OSC 8 only.
            }
        }
        1 => cell.flags.insert(Flags::BOLD),
        2 => cell.flags.insert(Flags::DIM),
        3 => cell.flags.insert(Flags::ITALIC),
        4 => underline(cell, sub.first().map_or(1, |(kind, _)| *kind)),
        7 => cell.flags.insert(Flags::INVERSE),
        8 => cell.flags.insert(Flags::HIDDEN),
        9 => cell.flags.insert(Flags::STRIKEOUT),
        21 => underline(cell, 2),
        22 => cell.flags.remove(Flags::BOLD | Flags::DIM),
        23 => cell.flags.remove(Flags::ITALIC),
        24 => underline(cell, 0),
        27 => cell.flags.remove(Flags::INVERSE),
        28 => cell.flags.remove(Flags::HIDDEN),
        29 => cell.flags.remove(Flags::STRIKEOUT),
        30..=37 => cell.fg = Color::Indexed((value - 30) as u8),
        39 => cell.fg = DEFAULT_FOREGROUND,
        40..=47 => cell.bg = Color::Indexed((value - 40) as u8),
        49 => cell.bg = DEFAULT_BACKGROUND,
        90..=97 => cell.fg = Color::Indexed((value - 90 + 8) as u8),
        100..=107 => cell.bg = Color::Indexed((value - 100 + 8) as u8),
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
    cell.flags.remove(Flags::ALL_UNDERLINES);
    cell.flags.insert(match kind {
        0 => return,
        2 => Flags::DOUBLE_UNDERLINE,
        3 => Flags::UNDERCURL,
        4 => Flags::DOTTED_UNDERLINE,
        5 => Flags::DASHED_UNDERLINE,
        _ => Flags::UNDERLINE,
    });
}

/// A colour of the palette or of three parts, with colons (`38:2::r:g:b`, `38:2:r:g:b`, `38:5:n`) or
/// with semicolons; and how many of the following parameters it used.
fn extended(sub: &[(u16, bool)], next: &[(u16, bool)]) -> (Option<Color>, usize) {
    let values = |list: &[(u16, bool)]| list.iter().map(|(value, _)| *value).collect::<Vec<_>>();
    if !sub.is_empty() {
        let colour = match *values(sub) {
            [2, _, r, g, b, ..] | [2, r, g, b] => rgb(r, g, b),
            [5, index, ..] => indexed(index),
            _ => None,
        };
        return (colour, 0);
    }
    // A mixed form, `38;2:r:g:b`, is nobody's.
    match *values(&next[..next.len().min(4)]) {
        [2, r, g, b] => (rgb(r, g, b), 4),
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

/// The SGR parameters that give this look from a fresh one.
pub(crate) fn parameters(cell: &Cell) -> String {
    use std::fmt::Write as _;
    const FLAGS: [(Flags, &str); 11] = [
        (Flags::BOLD, "1"),
        (Flags::DIM, "2"),
        (Flags::ITALIC, "3"),
        (Flags::UNDERLINE, "4"),
        (Flags::INVERSE, "7"),
        (Flags::HIDDEN, "8"),
        (Flags::STRIKEOUT, "9"),
        (Flags::DOUBLE_UNDERLINE, "4:2"),
        (Flags::UNDERCURL, "4:3"),
        (Flags::DOTTED_UNDERLINE, "4:4"),
        (Flags::DASHED_UNDERLINE, "4:5"),
    ];
    let mut text = String::from("0");
    for (_, code) in FLAGS.iter().filter(|(flag, _)| cell.flags.contains(*flag)) {
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
