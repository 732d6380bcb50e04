//! Rows that scrolled off the screen, in a form much smaller than cells. They are stored as they were
//! on the screen, marked where the terminal wrapped them; lines are joined, and wrapped for another
//! width, only when they are read.

use std::borrow::Cow;
use std::collections::VecDeque;

use alacritty_terminal::term::cell::Cell;

use crate::row_record::{self, RowRecord};
use crate::wrap::{self, StyledRow};

/// Bytes of text and styles in a block. Small, because whole blocks are dropped and the budget for all
/// panes must be met within a percent; large enough that a block's own fields do not matter.
const BLOCK_BYTES: usize = 16 << 10;

/// Rows joined into one line at most. A program may print forever without a line feed; a line of more
/// than a few hundred kilobytes is of no use.
const MAX_LINE_ROWS: usize = 2_000;

/// A logical line: rows joined where the terminal had wrapped them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number. Numbers only grow; a resize may skip some, and a line of more than
    /// 2,000 rows is split into several with the same number.
    pub number: u64,
    /// The offset in the program's output, in bytes, at which it began.
    pub offset: u64,
    /// Its text.
    pub text: Cow<'a, str>,
}

/// A row, before rows are joined into a [`Line`].
#[derive(Debug)]
pub(crate) struct RowText<'a> {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) text: Cow<'a, str>,
    pub(crate) wraps: bool,
}

/// A row as it is stored.
#[cfg(test)]
#[derive(Debug)]
#[expect(dead_code, reason = "printed and compared")]
pub(crate) struct StoredRow {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) wraps: bool,
    pub(crate) spans: Vec<crate::Span>,
}

/// A line of the history, wrapped into rows, with its offset in the output.
type WrappedLine = (u64, Vec<StyledRow>);

/// The last lines of a history.
struct LastLines {
    lines: Vec<WrappedLine>,
    /// The block and the row where they begin.
    start: (usize, usize),
    /// There are as many as were asked for, whatever is above them.
    is_whole: bool,
}

#[derive(Debug, Default)]
struct Block {
    text: String,
    meta: Vec<u8>,
    /// The number of the line that the first row belongs to.
    first_line: u64,
    /// The offset that the first row's step is relative to.
    first_offset: u64,
    last_offset: u64,
    /// The caller's stamp when the last row was added.
    stamp: u64,
}

impl Block {
    fn footprint(&self) -> usize {
        self.text.capacity() + self.meta.capacity()
    }

    fn is_full(&self) -> bool {
        self.text.len() + self.meta.len() >= BLOCK_BYTES
    }

    /// All rows, each with the number of its line.
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

    fn styled(&self) -> impl Iterator<Item = (u64, StyledRow)> + '_ {
        let row = |record: RowRecord<'_>| StyledRow { spans: record.spans(), wraps: record.wraps };
        self.rows().map(move |(number, record)| (number, row(record)))
    }
}

/// Where rows that are restored later have to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Junction {
    next_line: u64,
}

/// The rows above a screen.
#[derive(Debug, Default)]
pub struct History {
    blocks: VecDeque<Block>,
    /// Bytes of all blocks except the last, which is still growing.
    sealed: usize,
    next_line: u64,
    /// The last row wraps, so the next one belongs to the same line.
    open: bool,
    stamp: u64,
    /// Rows above these are still to be restored.
    older: Option<Junction>,
    /// The offset of the last of them. Those of later rows are not smaller.
    least_offset: u64,
    /// Characters that may join others have been printed. Most output has none, and needs no check.
    pub(crate) may_join: bool,
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

    /// Drops the oldest rows until at least `bytes` are freed or nothing is left; returns the bytes
    /// freed. Whole blocks are dropped, so it may free a few kilobytes more.
    pub fn drop_oldest(&mut self, bytes: usize) -> usize {
        let before = self.bytes();
        while before - self.bytes() < bytes {
            let Some(block) = self.blocks.pop_front() else { break };
            // What is older is dropped as well.
            self.older = None;
            self.sealed -= if self.blocks.is_empty() { 0 } else { block.footprint() };
            // The capacity of the list counts too.
            if self.blocks.capacity() > 2 * self.blocks.len() + 8 {
                self.blocks.shrink_to(self.blocks.len() + 4);
            }
        }
        before - self.bytes()
    }

    /// Takes the oldest rows, a few kilobytes; none if there are none.
    pub(crate) fn take_oldest(&mut self) -> Vec<(u64, StyledRow)> {
        let oldest = self.blocks.front();
        let rows = oldest.map_or_else(Vec::new, |block| block.styled().collect());
        self.drop_oldest(1);
        rows
    }

    /// All rows, each with the number of its line.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u64, StyledRow)> + '_ {
        self.blocks.iter().flat_map(Block::styled)
    }

    /// The stamp of the oldest block's last row: the pane with the smallest one has the oldest rows.
    /// `None` if there is no history.
    #[must_use]
    pub fn oldest_stamp(&self) -> Option<u64> {
        self.blocks.front().map(|block| block.stamp)
    }

    /// Sets the stamp for rows added from now on; it should only grow.
    pub fn set_stamp(&mut self, stamp: u64) {
        self.stamp = stamp;
    }

    /// The number of the oldest line in the history.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.blocks.front().map_or(self.next_line, |block| block.first_line)
    }

    /// The number that the next line to scroll off will get.
    #[must_use]
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Whether the last row's line continues at the top of the screen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Lines from number `from` on, oldest first. The last may continue at the top of the screen.
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

    /// Rows wrapped for a width: `count` rows that end `skip` rows above the screen, oldest first.
    #[must_use]
    pub fn styled(&self, columns: u16, skip: usize, count: usize) -> Vec<StyledRow> {
        let LastLines { lines, .. } =
            self.last_lines(skip.saturating_add(count), usize::from(columns));
        let mut rows: Vec<_> = lines.into_iter().flat_map(|(_, rows)| rows).collect();
        rows.truncate(rows.len().saturating_sub(skip));
        rows.split_off(rows.len().saturating_sub(count))
    }

    pub(crate) fn rows(&self, from: u64) -> impl Iterator<Item = RowText<'_>> {
        // The first row wanted is in the block before the first one that begins at `from` or later.
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

    /// All rows as they are stored.
    #[cfg(test)]
    pub(crate) fn stored(&self) -> Vec<StoredRow> {
        let rows = self.blocks.iter().flat_map(Block::rows);
        rows.map(|(number, row)| StoredRow {
            number,
            offset: row.offset,
            wraps: row.wraps,
            spans: row.spans(),
        })
        .collect()
    }

    /// Appends a row that left the screen.
    pub(crate) fn push(&mut self, cells: &[Cell], wraps: bool, offset: u64) {
        let step = self.begin_row(wraps, offset);
        if let Some(Block { text, meta, .. }) = self.blocks.back_mut() {
            row_record::write(text, meta, &mut self.scratch, cells, wraps, step, self.may_join);
        }
    }

    /// Appends a row of printable ASCII without any style.
    pub(crate) fn push_plain(&mut self, row: &str, wraps: bool, offset: u64) {
        let step = self.begin_row(wraps, offset);
        if let Some(Block { text, meta, .. }) = self.blocks.back_mut() {
            row_record::write_plain(text, meta, row, wraps, step);
        }
    }

    /// Appends a row of text with its encoded spans, of which there are `span_count`.
    pub(crate) fn push_text(
        &mut self,
        row: &str,
        spans: &[u8],
        span_count: usize,
        wraps: bool,
        offset: u64,
    ) {
        let step = self.begin_row(wraps, offset);
        if let Some(Block { text, meta, .. }) = self.blocks.back_mut() {
            row_record::write_text(text, meta, row, (spans, span_count), wraps, step);
        }
    }

    /// Makes room for a row; returns the distance of its offset from that of the previous row.
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
        offset = offset.max(self.least_offset);
        if let Some(last) = self.blocks.back_mut() {
            // The next one will be of similar size.
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

    /// Drops all rows; line numbers continue.
    pub(crate) fn clear(&mut self) {
        self.blocks = VecDeque::new();
        (self.sealed, self.open, self.older, self.least_offset) = (0, false, None, 0);
    }

    /// An empty history, whose next line has this number. `older`: there are rows above it, which are restored later, and
    /// the last of them has this offset.
    pub(crate) fn continued(
        next_line: u64,
        open: bool,
        may_join: bool,
        older: Option<u64>,
    ) -> Self {
        let least_offset = older.unwrap_or(0);
        let older = older.map(|_| Junction { next_line });
        Self { next_line, open, may_join, older, least_offset, ..Self::default() }
    }

    /// The offset of the last row, restored or not; `None` if there is none.
    pub(crate) fn last_offset(&self) -> Option<u64> {
        let missing = self.older.map(|_| self.least_offset);
        self.blocks.back().map(|block| block.last_offset).or(missing)
    }

    /// Whether rows above these are still to be restored.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.older.is_some()
    }

    /// No more rows are restored: those above are gone.
    pub fn give_up_older(&mut self) {
        self.older = None;
    }

    /// Puts the rows above that were still to be restored, from a screen that has the output before these. If they were
    /// cleared or dropped meanwhile, nothing happens.
    pub fn restore_older(&mut self, mut older: Self) {
        let Some(junction) = self.older.take() else { return };
        // Without its beginning, a log gives fewer lines than there were. If it gives more, it is not the same output.
        let Some(shift) = junction.next_line.checked_sub(older.next_line) else { return };
        self.older = older.older.map(|it| Junction { next_line: it.next_line + shift });
        self.least_offset = older.least_offset;
        if older.is_empty() {
            return;
        }
        older.blocks.iter_mut().for_each(|block| block.first_line += shift);
        if let Some(last) = older.blocks.back_mut() {
            last.text.shrink_to_fit();
            last.meta.shrink_to_fit();
        }
        let restored: usize = older.blocks.iter().map(Block::footprint).sum();
        let offset = older.blocks.back().map_or(0, |block| block.last_offset);
        let is_empty = self.blocks.is_empty();
        std::mem::swap(&mut self.blocks, &mut older.blocks);
        self.blocks.append(&mut older.blocks);
        if is_empty {
            self.sealed = restored - self.blocks.back().map_or(0, Block::footprint);
            self.begin_block(offset);
        } else {
            self.sealed += restored;
        }
    }

    /// Whether `pop_lines` gives the same whatever is above these rows.
    pub(crate) fn has_lines(&self, count: usize, columns: usize) -> bool {
        self.older.is_none() || count == 0 || self.last_lines(count, columns).is_whole
    }

    /// Removes and returns the last lines, at least `count` rows at this width if there are that many,
    /// so that a resize can show them again.
    pub(crate) fn pop_lines(&mut self, count: usize, columns: usize) -> Vec<WrappedLine> {
        let LastLines { lines, start: (block, row), .. } = self.last_lines(count, columns);
        if !lines.is_empty() {
            self.truncate(block, row);
        }
        lines
    }

    /// The last complete lines, wrapped for a width, until there are `count` rows.
    fn last_lines(&self, count: usize, columns: usize) -> LastLines {
        let mut found: Vec<WrappedLine> = Vec::new();
        let (mut total, mut start) = (0, (self.blocks.len(), 0));
        let mut line: VecDeque<StyledRow> = VecDeque::new();
        let (mut line_start, mut line_offset) = (start, 0);
        'blocks: for (index, block) in self.blocks.iter().enumerate().rev() {
            let records: Vec<_> = block.rows().map(|(_, record)| record).collect();
            for (row, record) in records.iter().enumerate().rev() {
                if !line.is_empty() && (!record.wraps || line.len() >= MAX_LINE_ROWS) {
                    let rows = wrap::wrap(line.make_contiguous(), columns);
                    total += rows.len();
                    found.push((line_offset, rows));
                    start = line_start;
                    line.clear();
                    if total >= count {
                        break 'blocks;
                    }
                }
                line.push_front(StyledRow { spans: record.spans(), wraps: record.wraps });
                (line_start, line_offset) = ((index, row), record.offset);
            }
        }
        let is_whole = total >= count;
        if !is_whole && !line.is_empty() {
            found.push((line_offset, wrap::wrap(line.make_contiguous(), columns)));
            start = line_start;
        }
        found.reverse();
        LastLines { lines: found, start, is_whole }
    }

    /// Drops the given row and all rows after it. Later lines get new numbers.
    fn truncate(&mut self, block: usize, row: usize) {
        self.blocks.truncate(block + 1);
        let last = &mut self.blocks[block];
        let (mut text, mut meta, mut offset) = (0, 0, last.first_offset);
        self.open = false;
        for (_, record) in last.rows().take(row) {
            text += record.text.len();
            meta += record.size;
            offset = record.offset;
            self.open = record.wraps; // Only if a line was too long to be removed as a whole.
        }
        last.text.truncate(text);
        last.meta.truncate(meta);
        last.last_offset = offset;
        if row == 0 {
            self.blocks.pop_back();
            // That of the last row that is left, in whatever block it is.
            offset = self.blocks.back().map_or(0, |block| block.last_offset);
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
