//! The cells of a key frame: exactly as they are, in runs of one style.

use std::sync::Arc;

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use crate::frame_bytes::{FrameReader, FrameWriter};

/// Styles that are looked through for one that was used before. A screen with more has some of them twice, and packing
/// makes up for it.
const STYLES_SEARCHED: usize = 16;

/// Kinds of runs, in the lowest two bits of a run's first number; the others are the number of its style.
const TEXT: u64 = 0;
/// Wide characters, each followed by its second column.
const WIDE: u64 = 1;
/// One cell with marks.
const MARKED: u64 = 2;
const KIND_BITS: u32 = 2;

/// Everything of a cell besides its characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CellStyle {
    foreground: Color,
    background: Color,
    flags: Flags,
    underline: Option<Color>,
    link: Option<Hyperlink>,
    /// The cell has room for such things, even if there is none.
    has_extra: bool,
}

impl CellStyle {
    fn of(cell: &Cell) -> Self {
        Self {
            foreground: cell.fg,
            background: cell.bg,
            flags: cell.flags,
            underline: cell.underline_color(),
            link: cell.hyperlink(),
            has_extra: cell.extra.is_some(),
        }
    }

    fn cell(&self, character: char) -> Cell {
        let mut cell = Cell {
            c: character,
            fg: self.foreground,
            bg: self.background,
            flags: self.flags,
            extra: self.has_extra.then(Arc::default),
        };
        if self.underline.is_some() {
            cell.set_underline_color(self.underline);
        }
        if self.link.is_some() {
            cell.set_hyperlink(self.link.clone());
        }
        cell
    }

    /// The style of the second column of a wide character.
    fn spacer(&self) -> Self {
        let flags = self.flags.difference(Flags::WIDE_CHAR).union(Flags::WIDE_CHAR_SPACER);
        Self { flags, ..self.clone() }
    }
}

/// Writes cells; styles that were written before are only named.
#[derive(Debug, Default)]
pub(crate) struct CellWriter {
    styles: Vec<CellStyle>,
}

impl CellWriter {
    /// Writes the cells of a row. `None` if one of them cannot be written.
    pub(crate) fn row(&mut self, out: &mut FrameWriter, cells: &[Cell]) -> Option<()> {
        let mut rest = cells;
        while let Some(first) = rest.first() {
            let style = CellStyle::of(first);
            if has_marks(first) {
                self.begin_run(out, style, MARKED)?;
                let marks = first.zerowidth().unwrap_or_default();
                out.number(marks.len() as u64);
                out.character(first.c);
                marks.iter().for_each(|mark| out.character(*mark));
                rest = &rest[1..];
                continue;
            }
            let wide = wide_length(rest, &style);
            if wide > 0 {
                self.begin_run(out, style, WIDE)?;
                out.number(wide as u64);
                rest[..2 * wide].iter().step_by(2).for_each(|cell| out.character(cell.c));
                rest = &rest[2 * wide..];
                continue;
            }
            let is_same = |(index, cell): &(usize, &Cell)| {
                is_alike(first, cell) && (*index == 0 || !has_marks(cell))
            };
            let length = rest.iter().enumerate().take_while(is_same).count();
            self.begin_run(out, style, TEXT)?;
            out.number(length as u64);
            rest[..length].iter().for_each(|cell| out.character(cell.c));
            rest = &rest[length..];
        }
        Some(())
    }

    fn begin_run(&mut self, out: &mut FrameWriter, style: CellStyle, kind: u64) -> Option<()> {
        let known =
            self.styles.iter().rev().take(STYLES_SEARCHED).position(|known| *known == style);
        let number = known.map_or(self.styles.len(), |back| self.styles.len() - 1 - back);
        out.number((number as u64) << KIND_BITS | kind);
        if known.is_none() {
            put_style(out, &style)?;
            self.styles.push(style);
        }
        Some(())
    }
}

/// Reads what [`CellWriter`] has written.
#[derive(Debug, Default)]
pub(crate) struct CellReader {
    styles: Vec<CellStyle>,
}

impl CellReader {
    /// Reads the cells of a row; `None` if they are not exactly `columns`.
    pub(crate) fn row(&mut self, input: &mut FrameReader<'_>, columns: usize) -> Option<Vec<Cell>> {
        let mut cells = Vec::with_capacity(columns);
        while cells.len() < columns {
            let head = input.number()?;
            let number = usize::try_from(head >> KIND_BITS).ok()?;
            if number == self.styles.len() {
                self.styles.push(take_style(input)?);
            }
            let style = self.styles.get(number)?;
            let count = usize::try_from(input.number()?).ok()?;
            match head & ((1 << KIND_BITS) - 1) {
                TEXT if count > 0 => {
                    // A cell is copied much faster than it is made.
                    let blank = style.cell(' ');
                    for _ in 0..count.min(columns + 1) {
                        cells.push(Cell { c: input.character()?, ..blank.clone() });
                    }
                }
                WIDE if count > 0 => {
                    let spacer = style.spacer().cell(' ');
                    for _ in 0..count.min(columns + 1) {
                        cells.extend([style.cell(input.character()?), spacer.clone()]);
                    }
                }
                MARKED => {
                    let mut cell = style.cell(input.character()?);
                    for _ in 0..count {
                        cell.push_zerowidth(input.character()?);
                    }
                    cells.push(cell);
                }
                _ => return None,
            }
        }
        (cells.len() == columns).then_some(cells)
    }
}

fn has_marks(cell: &Cell) -> bool {
    cell.zerowidth().is_some_and(|marks| !marks.is_empty())
}

/// Whether two cells have the same style, without building it.
fn is_alike(a: &Cell, b: &Cell) -> bool {
    a.fg == b.fg
        && a.bg == b.bg
        && a.flags == b.flags
        && match (&a.extra, &b.extra) {
            (None, None) => true,
            (Some(_), Some(_)) => {
                a.underline_color() == b.underline_color() && a.hyperlink() == b.hyperlink()
            }
            _ => false,
        }
}

/// How many wide characters of this style the cells begin with, each with a second column as printing leaves it.
fn wide_length(cells: &[Cell], style: &CellStyle) -> usize {
    if !style.flags.contains(Flags::WIDE_CHAR) {
        return 0;
    }
    let spacer = style.spacer().cell(' ');
    let first = &cells[0];
    let pairs = cells.chunks_exact(2);
    let is_pair = |pair: &&[Cell]| {
        is_alike(first, &pair[0])
            && !has_marks(&pair[0])
            && is_alike(&spacer, &pair[1])
            && pair[1].c == ' '
            && !has_marks(&pair[1])
    };
    pairs.take_while(is_pair).count()
}

fn put_style(out: &mut FrameWriter, style: &CellStyle) -> Option<()> {
    let CellStyle { foreground, background, flags, underline, link, has_extra } = style;
    out.number(u64::from(flags.bits()));
    put_colour(out, *foreground)?;
    put_colour(out, *background)?;
    out.flag(*has_extra);
    if *has_extra {
        out.flag(underline.is_some());
        if let Some(colour) = underline {
            put_colour(out, *colour)?;
        }
        out.flag(link.is_some());
        if let Some(link) = link {
            out.text(link.id());
            out.text(link.uri());
        }
    }
    Some(())
}

fn take_style(input: &mut FrameReader<'_>) -> Option<CellStyle> {
    let flags = Flags::from_bits_retain(u16::try_from(input.number()?).ok()?);
    let (foreground, background) = (take_colour(input)?, take_colour(input)?);
    let has_extra = input.flag()?;
    let mut style =
        CellStyle { foreground, background, flags, underline: None, link: None, has_extra };
    if has_extra {
        if input.flag()? {
            style.underline = Some(take_colour(input)?);
        }
        if input.flag()? {
            let (id, uri) = (input.text()?, input.text()?);
            style.link = Some(Hyperlink::new(Some(id), uri));
        }
    }
    Some(style)
}

/// `None` for a colour that no sequence sets.
fn put_colour(out: &mut FrameWriter, colour: Color) -> Option<()> {
    match colour {
        Color::Named(NamedColor::Foreground) => out.number(0),
        Color::Named(NamedColor::Background) => out.number(1),
        Color::Named(_) => return None,
        Color::Indexed(index) => {
            out.number(2);
            out.byte(index);
        }
        Color::Spec(Rgb { r, g, b }) => {
            out.number(3);
            [r, g, b].into_iter().for_each(|part| out.byte(part));
        }
    }
    Some(())
}

fn take_colour(input: &mut FrameReader<'_>) -> Option<Color> {
    Some(match input.number()? {
        0 => Color::Named(NamedColor::Foreground),
        1 => Color::Named(NamedColor::Background),
        2 => Color::Indexed(input.byte()?),
        3 => Color::Spec(Rgb { r: input.byte()?, g: input.byte()?, b: input.byte()? }),
        _ => return None,
    })
}
