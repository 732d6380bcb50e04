//! Line and block characters as shapes within their cell.

use std::fmt::Write as _;

use crate::svg::CELL;

/// The shape of a cell.
pub(crate) enum Shape {
    /// Lines from the centre: left, right, up, down; and whether they are curved.
    Lines { arms: [bool; 4], round: bool, weight: f64 },
    /// Rectangles in eighths of the cell: x, y, width, height; and their opacity.
    Blocks(Vec<[u8; 4]>, f64),
    /// A triangle pointing right, which few fonts have.
    Triangle,
}

const LIGHT: f64 = 1.2;
const HEAVY: f64 = 2.4;

/// Line characters by their directions.
const LINES: [(char, &str, f64); 34] = [
    ('─', "lr", LIGHT),
    ('│', "ud", LIGHT),
    ('┌', "rd", LIGHT),
    ('┐', "ld", LIGHT),
    ('└', "ru", LIGHT),
    ('┘', "lu", LIGHT),
    ('├', "rud", LIGHT),
    ('┤', "lud", LIGHT),
    ('┬', "lrd", LIGHT),
    ('┴', "lru", LIGHT),
    ('┼', "lrud", LIGHT),
    ('╭', "rd~", LIGHT),
    ('╮', "ld~", LIGHT),
    ('╰', "ru~", LIGHT),
    ('╯', "lu~", LIGHT),
    ('╴', "l", LIGHT),
    ('╵', "u", LIGHT),
    ('╶', "r", LIGHT),
    ('╷', "d", LIGHT),
    ('━', "lr", HEAVY),
    ('┃', "ud", HEAVY),
    ('┏', "rd", HEAVY),
    ('┓', "ld", HEAVY),
    ('┗', "ru", HEAVY),
    ('┛', "lu", HEAVY),
    ('┣', "rud", HEAVY),
    ('┫', "lud", HEAVY),
    ('┳', "lrd", HEAVY),
    ('┻', "lru", HEAVY),
    ('╋', "lrud", HEAVY),
    ('╸', "l", HEAVY),
    ('╹', "u", HEAVY),
    ('╺', "r", HEAVY),
    ('╻', "d", HEAVY),
];

/// The quarters of a cell that U+2596 and those after it fill: upper left 1, upper right 2, lower
/// left 4, lower right 8.
const QUARTERS: [u8; 10] = [4, 8, 1, 13, 9, 7, 11, 2, 6, 14];

/// The shape of a character; `None` if it is ordinary text.
pub(crate) fn shape(character: char) -> Option<Shape> {
    if let Some((_, arms, weight)) = LINES.iter().find(|(line, ..)| *line == character) {
        let has = |arm: char| arms.contains(arm);
        let round = has('~');
        let arms = ['l', 'r', 'u', 'd'].map(has);
        return Some(Shape::Lines { arms, round, weight: *weight });
    }
    if character == '⏵' {
        return Some(Shape::Triangle);
    }
    let code = character as u32;
    let eighth = |from: u32| u8::try_from(code - from).unwrap_or(0);
    let blocks = match code {
        0x2580 => vec![[0, 0, 8, 4]],
        0x2581..=0x2588 => vec![[0, 8 - eighth(0x2580), 8, eighth(0x2580)]],
        0x2589..=0x258f => vec![[0, 0, 8 - eighth(0x2588), 8]],
        0x2590 => vec![[4, 0, 4, 8]],
        0x2591..=0x2593 => {
            return Some(Shape::Blocks(vec![[0, 0, 8, 8]], f64::from(eighth(0x2590)) / 4.0));
        }
        0x2594 => vec![[0, 0, 8, 1]],
        0x2595 => vec![[7, 0, 1, 8]],
        0x2596..=0x259f => {
            let filled = QUARTERS[usize::from(eighth(0x2596))];
            let quarters = [(1, [0, 0, 4, 4]), (2, [4, 0, 4, 4]), (4, [0, 4, 4, 4]), (8, [4; 4])];
            quarters.iter().filter(|(bit, _)| filled & bit != 0).map(|(_, part)| *part).collect()
        }
        _ => return None,
    };
    Some(Shape::Blocks(blocks, 1.0))
}

impl Shape {
    /// Draws it into the cell at a position.
    pub(crate) fn draw(&self, (x, y): (f64, f64), colour: &str, out: &mut String) {
        match self {
            Self::Lines { arms, round, weight } => {
                let _ = writeln!(
                    out,
                    "<path d=\"{}\" stroke=\"{colour}\" stroke-width=\"{weight}\" fill=\"none\"/>",
                    path((x, y), *arms, *round),
                );
            }
            Self::Triangle => {
                let _ = writeln!(
                    out,
                    "<path d=\"M{:.1} {:.1}v8l6 -4z\" fill=\"{colour}\"/>",
                    x + 1.5,
                    y + CELL.1 / 2.0 - 4.0,
                );
            }
            Self::Blocks(blocks, opacity) => {
                let opacity = match opacity {
                    1.0 => String::new(),
                    opacity => format!(" fill-opacity=\"{opacity}\""),
                };
                for [left, top, width, height] in blocks.iter().map(|part| part.map(f64::from)) {
                    let _ = writeln!(
                        out,
                        "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" \
                         fill=\"{colour}\"{opacity}/>",
                        x + left / 8.0 * CELL.0,
                        y + top / 8.0 * CELL.1,
                        width / 8.0 * CELL.0,
                        height / 8.0 * CELL.1,
                    );
                }
            }
        }
    }
}

fn path((x, y): (f64, f64), [left, right, up, down]: [bool; 4], round: bool) -> String {
    let (middle, centre) = (x + CELL.0 / 2.0, y + CELL.1 / 2.0);
    let (end, bottom) = (x + CELL.0, y + CELL.1);
    if round {
        let from = if left { x } else { end };
        let to = if up { y } else { bottom };
        return format!("M{from:.1} {centre:.1}Q{middle:.1} {centre:.1} {middle:.1} {to:.1}");
    }
    let mut path = String::new();
    if left || right {
        let (from, to) = (if left { x } else { middle }, if right { end } else { middle });
        let _ = write!(path, "M{from:.1} {centre:.1}H{to:.1}");
    }
    if up || down {
        let (from, to) = (if up { y } else { centre }, if down { bottom } else { centre });
        let _ = write!(path, "M{middle:.1} {from:.1}V{to:.1}");
    }
    path
}
