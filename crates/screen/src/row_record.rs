//! How a row of history is stored: the length of its text, its offset in the output, and its styles as
//! spans. A plain row costs three or four bytes in addition to its text.

use std::sync::Arc;

use alacritty_terminal::term::cell::{Cell, Hyperlink};

use crate::cluster;
use crate::style::{self, Attributes, Colour, SimpleStyle, Span, Style};

/// A row of history, borrowed from its block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRecord<'a> {
    pub(crate) text: &'a str,
    pub(crate) wraps: bool,
    pub(crate) offset: u64,
    spans: &'a [u8],
    span_count: usize,
    /// Size of this row in the block's `meta` bytes.
    pub(crate) size: usize,
}

impl RowRecord<'_> {
    /// The row as spans of one style each.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let (mut text, mut bytes) = (self.text, self.spans);
        let mut spans = Vec::with_capacity(self.span_count + 1);
        for _ in 0..self.span_count {
            let length = usize::try_from(take_number(&mut bytes)).unwrap_or(0);
            let style = take_style(&mut bytes);
            let Some((piece, rest)) = text.split_at_checked(length) else { break };
            spans.push(Span { text: piece.to_owned(), style });
            text = rest;
        }
        if !text.is_empty() {
            spans.push(Span { text: text.to_owned(), style: Style::default() });
        }
        spans
    }
}

/// Appends a row of cells: its characters to `text`, the rest to `meta`. `may_join`: the text of some of them might give
/// other cells.
pub(crate) fn write(
    text: &mut String,
    meta: &mut Vec<u8>,
    spans: &mut Vec<u8>,
    cells: &[Cell],
    wraps: bool,
    offset_step: u64,
    may_join: bool,
) {
    let start = text.len();
    text.reserve(cells.len());
    let mut span_count = 0;
    spans.clear();
    let mut rest = cells;
    while let Some(first) = rest.first() {
        let span_start = text.len();
        rest = push_span(text, first, rest, may_join);
        // Text that no span covers is plain.
        if !rest.is_empty() || !is_plain(first) {
            put_number(spans, (text.len() - span_start) as u64);
            put_style(spans, first);
            span_count += 1;
        }
    }
    put_number(meta, ((text.len() - start) as u64) << 1 | u64::from(wraps));
    put_number(meta, offset_step);
    put_number(meta, span_count);
    meta.extend_from_slice(spans);
}

/// Appends a row of text with its spans, of which there are `span_count`.
pub(crate) fn write_text(
    text: &mut String,
    meta: &mut Vec<u8>,
    row: &str,
    (spans, span_count): (&[u8], usize),
    wraps: bool,
    offset_step: u64,
) {
    text.push_str(row);
    let head = (row.len() as u64) << 1 | u64::from(wraps);
    // Most rows need one byte for each number.
    if (head | offset_step | span_count as u64) < 0x80 {
        meta.extend_from_slice(&[head as u8, offset_step as u8, span_count as u8]);
    } else {
        put_number(meta, head);
        put_number(meta, offset_step);
        put_number(meta, span_count as u64);
    }
    meta.extend_from_slice(spans);
}

/// Appends a row of printable ASCII without any style.
pub(crate) fn write_plain(
    text: &mut String,
    meta: &mut Vec<u8>,
    row: &str,
    wraps: bool,
    offset_step: u64,
) {
    let length = if wraps { row.len() } else { row.as_bytes().trim_ascii_end().len() };
    write_text(text, meta, &row[..length], (&[], 0), wraps, offset_step);
}

/// Reads the row at the start of `meta`; its text is at the start of `text`. `offset` is that of the
/// previous row.
pub(crate) fn read<'a>(text: &'a str, meta: &'a [u8], offset: u64) -> Option<RowRecord<'a>> {
    let mut rest = meta;
    let head = take_number(&mut rest);
    let offset = offset + take_number(&mut rest);
    let span_count = usize::try_from(take_number(&mut rest)).ok()?;
    let spans = rest;
    for _ in 0..span_count {
        take_number(&mut rest);
        skip_style(&mut rest);
    }
    let text = text.get(..usize::try_from(head >> 1).ok()?)?;
    let size = meta.len() - rest.len();
    Some(RowRecord { text, wraps: head & 1 != 0, offset, spans, span_count, size })
}

/// How many of the leading cells are one span: they have the same style, and their text gives the same cells again.
pub(crate) fn span_length(cells: &[Cell]) -> usize {
    let Some(first) = cells.first() else { return 0 };
    let mut before = first;
    for (index, cell) in cells.iter().enumerate().skip(1) {
        if !style::same_style(first, cell) || would_join(before, cell) {
            return index;
        }
        if !cell.flags.intersects(style::SPACER) {
            before = cell;
        }
    }
    cells.len()
}

/// Whether two cells that follow each other would be one if they were printed as one text.
#[inline]
fn would_join(before: &Cell, cell: &Cell) -> bool {
    if before.extra.is_none() && !cluster::is_joining(cell.c) {
        return false;
    }
    let others = before.zerowidth().unwrap_or_default();
    let last = *others.last().unwrap_or(&before.c);
    !cell.flags.intersects(style::SPACER)
        && cluster::may_join(last, cell.c)
        && cluster::joins(before.c, others, cell.c)
}

pub(crate) fn push_text(text: &mut String, cells: &[Cell]) {
    cells.iter().for_each(|cell| push_cell(text, cell));
}

/// Appends the leading cells with the style of the first; returns the others.
fn push_span<'a>(text: &mut String, first: &Cell, cells: &'a [Cell], may_join: bool) -> &'a [Cell] {
    let mut rest = cells;
    let mut before = None;
    loop {
        let length = rest.len();
        rest = push_ascii(text, first, rest);
        if rest.len() < length {
            before = None;
        }
        match rest.split_first() {
            Some((cell, after)) if style::same_style(first, cell) => {
                if may_join {
                    if before.is_some_and(|before| would_join(before, cell)) {
                        return rest;
                    }
                    if !cell.flags.intersects(style::SPACER) {
                        before = Some(cell);
                    }
                }
                push_cell(text, cell);
                rest = after;
            }
            _ => return rest,
        }
    }
}

/// Cells whose characters are collected before they are appended.
const ASCII_CHUNK: usize = 128;

/// Appends cells while they are ASCII with exactly the first one's style; returns the others. Most cells
/// are, and one character at a time would cost more than everything else done for a row.
fn push_ascii<'a>(text: &mut String, first: &Cell, cells: &'a [Cell]) -> &'a [Cell] {
    let (foreground, background, flags) = (first.fg, first.bg, first.flags);
    let begins = cells.first().is_some_and(|cell| cell.c.is_ascii() && cell.flags == flags);
    if !begins || flags.intersects(style::SPACER) || first.extra.is_some() {
        return cells;
    }
    let mut chunk = [0; ASCII_CHUNK];
    let mut count = 0;
    for (byte, cell) in chunk.iter_mut().zip(cells) {
        let same = cell.flags == flags && cell.fg == foreground && cell.bg == background;
        if !same || !cell.c.is_ascii() || cell.extra.is_some() {
            break;
        }
        *byte = cell.c as u8;
        count += 1;
    }
    if let Ok(chunk) = std::str::from_utf8(&chunk[..count]) {
        text.push_str(chunk);
    }
    &cells[count..]
}

#[inline]
fn push_cell(text: &mut String, cell: &Cell) {
    if cell.flags.intersects(style::SPACER) {
        return;
    }
    text.push(cell.c);
    if cell.extra.is_some() {
        text.extend(cell.zerowidth().unwrap_or_default());
    }
}

fn is_plain(cell: &Cell) -> bool {
    cell.fg == style::DEFAULT_FOREGROUND
        && cell.bg == style::DEFAULT_BACKGROUND
        && cell.flags.difference(style::LAYOUT).is_empty()
        && (cell.extra.is_none()
            || (cell.underline_color().is_none() && cell.hyperlink().is_none()))
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            break;
        }
    }
    number
}

const HAS_ATTRIBUTES: u8 = 1 << 4;
const HAS_UNDERLINE: u8 = 1 << 5;
const HAS_LINK: u8 = 1 << 6;

fn colour_kind(colour: Colour) -> u8 {
    match colour {
        Colour::Default => 0,
        Colour::Indexed(_) => 1,
        Colour::Rgb(..) => 2,
    }
}

fn put_colour(out: &mut Vec<u8>, colour: Colour) {
    match colour {
        Colour::Default => {}
        Colour::Indexed(index) => out.push(index),
        Colour::Rgb(r, g, b) => out.extend([r, g, b]),
    }
}

fn take_colour(bytes: &mut &[u8], kind: u8) -> Colour {
    match (kind & 3, *bytes) {
        (1, [index, rest @ ..]) => {
            *bytes = rest;
            Colour::Indexed(*index)
        }
        (2, [r, g, b, rest @ ..]) => {
            *bytes = rest;
            Colour::Rgb(*r, *g, *b)
        }
        _ => Colour::Default,
    }
}

fn put_style(out: &mut Vec<u8>, cell: &Cell) {
    let simple = SimpleStyle { fg: cell.fg, bg: cell.bg, flags: cell.flags };
    match cell.extra.is_none() {
        true => put_parts(out, simple, None, None),
        false => put_parts(out, simple, cell.underline_color().map(Colour::from), cell.hyperlink()),
    }
}

/// Appends a span of this many bytes.
pub(crate) fn put_span(out: &mut Vec<u8>, length: usize, style: SimpleStyle) {
    put_number(out, length as u64);
    put_parts(out, style, None, None);
}

#[inline]
fn put_parts(
    out: &mut Vec<u8>,
    simple: SimpleStyle,
    underline: Option<Colour>,
    link: Option<Hyperlink>,
) {
    let (foreground, background) = (Colour::from(simple.fg), Colour::from(simple.bg));
    let attributes = style::attributes(simple.flags);
    let mut head = colour_kind(foreground) | colour_kind(background) << 2;
    head |= if attributes == Attributes::default() { 0 } else { HAS_ATTRIBUTES };
    head |= if underline.is_some() { HAS_UNDERLINE } else { 0 };
    head |= if link.is_some() { HAS_LINK } else { 0 };
    out.push(head);
    put_colour(out, foreground);
    put_colour(out, background);
    if head & HAS_ATTRIBUTES != 0 {
        put_number(out, u64::from(attributes.bits()));
    }
    if let Some(colour) = underline {
        out.push(colour_kind(colour));
        put_colour(out, colour);
    }
    if let Some(link) = link {
        put_number(out, link.uri().len() as u64);
        out.extend_from_slice(link.uri().as_bytes());
    }
}

fn take_style(bytes: &mut &[u8]) -> Style {
    let head = take_byte(bytes);
    let foreground = take_colour(bytes, head);
    let background = take_colour(bytes, head >> 2);
    let bits = if head & HAS_ATTRIBUTES != 0 { take_number(bytes) as u16 } else { 0 };
    let underline = (head & HAS_UNDERLINE != 0).then(|| {
        let kind = take_byte(bytes);
        take_colour(bytes, kind)
    });
    let link = (head & HAS_LINK != 0).then(|| Arc::from(String::from_utf8_lossy(take_link(bytes))));
    Style { foreground, background, underline, attributes: Attributes::from_bits(bits), link }
}

/// Skips a style without building it.
fn skip_style(bytes: &mut &[u8]) {
    let head = take_byte(bytes);
    take_colour(bytes, head);
    take_colour(bytes, head >> 2);
    if head & HAS_ATTRIBUTES != 0 {
        take_number(bytes);
    }
    if head & HAS_UNDERLINE != 0 {
        let kind = take_byte(bytes);
        take_colour(bytes, kind);
    }
    if head & HAS_LINK != 0 {
        take_link(bytes);
    }
}

fn take_byte(bytes: &mut &[u8]) -> u8 {
    let Some((&byte, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    byte
}

fn take_link<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::try_from(take_number(bytes)).unwrap_or(0).min(bytes.len());
    let (link, rest) = bytes.split_at(length);
    *bytes = rest;
    link
}
