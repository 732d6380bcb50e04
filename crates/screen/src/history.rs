//! Rows that scrolled off the screen, in a form much smaller than cells. They are kept as they
//! were on the screen, with a mark where the terminal wrapped them; lines are joined, and cut for
//! another width, only when they are read.

use std::borrow::Cow;
use std::collections::VecDeque;

use alacritty_terminal::term::cell::Cell;

use crate::row_record::{self, RowRecord};
use crate::wrap::{self, StyledRow};

/// Text and styles a block takes before the next is begun. Small, because whole blocks are dropped
/// and the budget over all panes is to be kept within a percent; large, so that a block's own
/// fields do not count.
const BLOCK_BYTES: usize = 16 << 10;

/// Rows of one line that are joined. A program may print without end and never send a line feed;
/// nobody can use a line of more than some hundred kilobytes.
const MAX_LINE_ROWS: usize = 2_000;

/// A logical line: rows joined where the terminal had wrapped them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number. Numbers only grow; a resize may skip some, and a line of more than some
    /// thousand rows comes in several pieces with one number.
    pub number: u64,
    /// Where in the program's output it began, counted in bytes.
    pub offset: u64,
    /// Its text.
    pub text: Cow<'a, str>,
}

/// A row on its way into a [`Line`].
#[derive(Debug)]
pub(crate) struct RowText<'a> {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) text: Cow<'a, str>,
    pub(crate) wraps: bool,
}

#[derive(Debug, Default)]
struct Block {
    text: String,
    meta: Vec<u8>,
    /// The number of the line that the first row belongs to.
    first_line: u64,
    /// Offset that the first row's own counts from.
    first_offset: u64,
    last_offset: u64,
    /// The caller's stamp when the last row came.
    stamp: u64,
}

impl Block {
    fn footprint(&self) -> usize {
        self.text.capacity() + self.meta.capacity()
    }

    fn is_full(&self) -> bool {
        self.text.len() + self.meta.len() >= BLOCK_BYTES
    }

    /// All rows, each with its line's number.
    fn rows(&self) -> impl Iterator<Item = (u64, RowRecord<'_>)> {
        let (mut text, mut meta) = (self.text.as_str(), self.meta.as_slice());
        let (mut number, mut offset) = (self.first_line, self.first_offset);
        std::iter::from_fn(move || {
            if meta.is_empty() {
                return None;
            }
            let record = row_record::read(text, meta, offset)?;
            text = &text[record.text.len()..];
            meta = &meta[record.size..];
            offset = record.offset;
            let line = number;
            number += u64::from(!record.wraps);
            Some((line, record))
        })
    }
}

/// The rows above a screen.
#[derive(Debug, Default)]
pub struct History {
    blocks: VecDeque<Block>,
    /// Bytes of all blocks but the last, which still grows.
    sealed: usize,
    next_line: u64,
    /// The last row goes on, so the next belongs to the same line.
    open: bool,
    stamp: u64,
    scratch: Vec<u8>,
}

impl History {
    /// Memory in use, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sealed
            + self.blocks.back().map_or(0, Block::footprint)
            + self.blocks.capacity() * size_of::<Block>()
            + self.scratch.capacity()
    }

    /// Drops the oldest rows until at least `bytes` are free or nothing is left; returns the bytes
    /// freed. Rows go in blocks, so it may be some kilobytes more than asked.
    pub fn drop_oldest(&mut self, bytes: usize) -> usize {
        let before = self.bytes();
        while before - self.bytes() < bytes {
            let Some(block) = self.blocks.pop_front() else { break };
            self.sealed -= if self.blocks.is_empty() { 0 } else { block.footprint() };
            // The blocks' own list is part of the sum.
            if self.blocks.capacity() > 2 * self.blocks.len() + 8 {
                self.blocks.shrink_to(self.blocks.len() + 4);
            }
        }
        before - self.bytes()
    }

    /// The stamp of the oldest block's last row: the pane where it is smallest has the coldest
    /// rows. Nothing if there is no history.
    #[must_use]
    pub fn oldest_stamp(&self) -> Option<u64> {
        self.blocks.front().map(|block| block.stamp)
    }

    /// Sets what rows are stamped with from now on; it should only grow.
    pub fn set_stamp(&mut self, stamp: u64) {
        self.stamp = stamp;
    }

    /// The number of the oldest line still here.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.blocks.front().map_or(self.next_line, |block| block.first_line)
    }

    /// The number that the next line to scroll off will get.
    #[must_use]
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Whether the last row's line goes on at the top of the screen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Lines from the number `from` on, oldest first. The last may go on at the top of the screen.
    pub fn lines(&self, from: u64) -> impl Iterator<Item = Line<'_>> {
        join(self.rows(from))
    }

    /// The last `count` lines, oldest first.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<Line<'_>> {
        let mut lines = 0;
        let mut from = self.next_line;
        for block in self.blocks.iter().rev() {
            let last = block.rows().last().map_or(block.first_line, |(number, _)| number);
            let here = from.min(last + 1) - block.first_line;
            let wanted = (count - lines) as u64;
            if here >= wanted {
                from = from.min(last + 1) - wanted;
                break;
            }
            lines += usize::try_from(here).unwrap_or(usize::MAX);
            from = block.first_line;
        }
        self.lines(from).collect()
    }

    /// Rows for a width, cut from the lines anew: `count` rows that stand `skip` rows above the
    /// screen, oldest first.
    #[must_use]
    pub fn styled(&self, columns: u16, skip: usize, count: usize) -> Vec<StyledRow> {
        let (mut rows, _) = self.last_rows(skip.saturating_add(count), usize::from(columns));
        rows.truncate(rows.len().saturating_sub(skip));
        rows.split_off(rows.len().saturating_sub(count))
    }

    pub(crate) fn rows(&self, from: u64) -> impl Iterator<Item = RowText<'_>> {
        // The block before the first that begins later holds the first row wanted.
        let start = self.blocks.partition_point(|block| block.first_line < from).saturating_sub(1);
        self.blocks
            .range(start.min(self.blocks.len())..)
            .flat_map(Block::rows)
            .skip_while(move |(number, _)| *number < from)
            .map(|(number, row)| RowText {
                number,
                offset: row.offset,
                text: Cow::Borrowed(row.text),
                wraps: row.wraps,
            })
    }

    /// Appends a row that left the screen.
    pub(crate) fn push(&mut self, cells: &[Cell], wraps: bool, offset: u64) {
        let step = self.begin_row(wraps, offset);
        if let Some(Block { text, meta, .. }) = self.blocks.back_mut() {
            row_record::write(text, meta, &mut self.scratch, cells, wraps, step);
        }
    }

    /// Appends a row of printable ASCII in the terminal's own colours.
    pub(crate) fn push_plain(&mut self, row: &[u8], wraps: bool, offset: u64) {
        let step = self.begin_row(wraps, offset);
        if let Some(Block { text, meta, .. }) = self.blocks.back_mut() {
            row_record::write_plain(text, meta, row, wraps, step);
        }
    }

    /// Makes room for a row; returns how far its offset is from that of the row before.
    fn begin_row(&mut self, wraps: bool, offset: u64) -> u64 {
        if self.blocks.back().is_none_or(Block::is_full) {
            self.begin_block(offset);
        }
        self.next_line += u64::from(!self.open);
        self.open = wraps;
        let Some(block) = self.blocks.back_mut() else { return 0 };
        let step = offset.saturating_sub(block.last_offset);
        block.last_offset += step;
        block.stamp = self.stamp;
        step
    }

    fn begin_block(&mut self, mut offset: u64) {
        let mut room = (0, 0);
        if let Some(last) = self.blocks.back_mut() {
            // The next will be much like this one.
            room = (last.text.len(), last.meta.len());
            offset = offset.max(last.last_offset);
            last.text.shrink_to_fit();
            last.meta.shrink_to_fit();
            self.sealed += last.footprint();
        }
        self.blocks.push_back(Block {
            text: String::with_capacity(room.0),
            meta: Vec::with_capacity(room.1),
            first_line: self.next_line - u64::from(self.open),
            first_offset: offset,
            last_offset: offset,
            stamp: self.stamp,
        });
    }

    /// Forgets all rows; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.blocks = VecDeque::new();
        (self.sealed, self.open) = (0, false);
    }

    /// Takes the last lines back, at least `count` rows of them at this width if there are so many,
    /// so that a resize can bring them onto the screen.
    pub(crate) fn pop_rows(&mut self, count: usize, columns: usize) -> Vec<StyledRow> {
        let (rows, (block, row)) = self.last_rows(count, columns);
        if rows.is_empty() {
            return rows;
        }
        self.truncate(block, row);
        rows
    }

    /// The last whole lines, cut for a width, until there are `count` rows; and the block and row
    /// where they begin.
    fn last_rows(&self, count: usize, columns: usize) -> (Vec<StyledRow>, (usize, usize)) {
        let mut found: Vec<Vec<StyledRow>> = Vec::new();
        let (mut total, mut start) = (0, (self.blocks.len(), 0));
        let mut line: VecDeque<StyledRow> = VecDeque::new();
        let mut line_start = start;
        'blocks: for (index, block) in self.blocks.iter().enumerate().rev() {
            let records: Vec<_> = block.rows().map(|(_, record)| record).collect();
            for (row, record) in records.iter().enumerate().rev() {
                if !line.is_empty() && (!record.wraps || line.len() >= MAX_LINE_ROWS) {
                    let rows = wrap::wrap(line.make_contiguous(), columns);
                    total += rows.len();
                    found.push(rows);
                    start = line_start;
                    line.clear();
                    if total >= count {
                        break 'blocks;
                    }
                }
                line.push_front(StyledRow { spans: record.spans(), wraps: record.wraps });
                line_start = (index, row);
            }
        }
        if total < count && !line.is_empty() {
            found.push(wrap::wrap(line.make_contiguous(), columns));
            start = line_start;
        }
        (found.into_iter().rev().flatten().collect(), start)
    }

    /// Drops the given row and all behind it. What comes next gets new numbers.
    fn truncate(&mut self, block: usize, row: usize) {
        self.blocks.truncate(block + 1);
        let last = &mut self.blocks[block];
        let (mut text, mut meta, mut offset) = (0, 0, last.first_offset);
        self.open = false;
        for (_, record) in last.rows().take(row) {
            text += record.text.len();
            meta += record.size;
            offset = record.offset;
            self.open = record.wraps; // Only where a line was too long to be taken whole.
        }
        last.text.truncate(text);
        last.meta.truncate(meta);
        last.last_offset = offset;
        if row == 0 {
            self.blocks.pop_back();
        }
        let sealed = self.blocks.len().saturating_sub(1);
        self.sealed = self.blocks.iter().take(sealed).map(Block::footprint).sum();
        if !self.blocks.is_empty() {
            self.begin_block(offset);
        }
    }
}

/// Joins rows into lines.
pub(crate) fn join<'a>(rows: impl Iterator<Item = RowText<'a>>) -> impl Iterator<Item = Line<'a>> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        let mut row = rows.next()?;
        for _ in 0..MAX_LINE_ROWS {
            if !row.wraps {
                break;
            }
            let Some(next) = rows.next_if(|next| next.number == row.number) else { break };
            row.text.to_mut().push_str(&next.text);
            row.wraps = next.wraps;
        }
        Some(Line { number: row.number, offset: row.offset, text: row.text })
    })
}
