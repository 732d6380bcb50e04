//! Rectangles of cells: copying, filling, erasing, changing attributes, checksums (VT400).

use std::ops::Range;

use alacritty_terminal::grid::GridCell as _;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::emulator::Emulator;
use crate::page::line;
use crate::parser::Csi;
use crate::style::{BLINK, PROTECTED};

/// Rows and columns of a rectangle, within the screen.
struct Area {
    rows: Range<usize>,
    columns: Range<usize>,
}

/// Attributes that DECCARA and DECRARA can change.
const CHANGEABLE: [(u16, Flags); 4] =
    [(1, Flags::BOLD), (4, Flags::UNDERLINE), (5, BLINK), (7, Flags::INVERSE)];

impl Emulator {
    /// A sequence with `$`; false if it is not one of these.
    pub(crate) fn rectangle(&mut self, csi: &Csi) -> bool {
        match csi.last {
            b'v' => self.copy_rectangle(csi),
            b'x' => self.fill_rectangle(csi),
            b'z' => self.erase_rectangle(csi, false),
            b'{' => self.erase_rectangle(csi, true),
            b'r' => self.change_attributes(csi, change),
            b't' => self.change_attributes(csi, reverse),
            _ => return false,
        }
        true
    }

    /// The rectangle of four parameters from `first` on: top, left, bottom, right. In origin mode they count from
    /// the margins.
    fn area(&self, csi: &Csi, first: usize) -> Option<Area> {
        let (rows, columns) = (self.page.rows(), self.page.columns());
        let origin = self.modes.origin;
        let (top, left) = if origin { (self.top, self.left) } else { (0, 0) };
        let (last_row, last_column) =
            if origin { (self.bottom + 1, self.right + 1) } else { (rows, columns) };
        let at_end = |index: usize, offset: usize, end: usize| match csi.get(index) {
            0 => end,
            value => (offset + usize::from(value)).min(end),
        };
        let area = Area {
            rows: top + csi.count(first) - 1..at_end(first + 2, top, last_row),
            columns: left + csi.count(first + 1) - 1..at_end(first + 3, left, last_column),
        };
        (!area.rows.is_empty() && !area.columns.is_empty()).then_some(area)
    }

    /// DECCRA.
    fn copy_rectangle(&mut self, csi: &Csi) {
        let Some(Area { rows, columns }) = self.area(csi, 0) else { return };
        let (top, left) = if self.modes.origin { (self.top, self.left) } else { (0, 0) };
        let (to_row, to_column) = (top + csi.count(5) - 1, left + csi.count(6) - 1);
        let copied: Vec<Vec<Cell>> =
            rows.map(|row| self.page.cells(row)[columns.clone()].to_vec()).collect();
        let (last_row, last_column) = match self.modes.origin {
            true => (self.bottom + 1, self.right + 1),
            false => (self.page.rows(), self.page.columns()),
        };
        for (row, cells) in (to_row..last_row).zip(copied) {
            let end = (to_column + cells.len()).min(last_column);
            if to_column >= end {
                return;
            }
            self.page.cut(row, to_column);
            self.page.cut(row, end);
            let target = &mut self.page.grid[line(row)][Column(to_column)..Column(end)];
            for (target, mut cell) in target.iter_mut().zip(cells) {
                cell.flags.set(Flags::WRAPLINE, target.flags.contains(Flags::WRAPLINE));
                *target = cell;
            }
            self.finish_row(row);
        }
    }

    /// DECFRA.
    fn fill_rectangle(&mut self, csi: &Csi) {
        let Ok(code) = u8::try_from(csi.get(0)) else { return };
        let character = char::from(code);
        let Some(Area { rows, columns }) = self.area(csi, 1) else { return };
        if character.is_control() {
            return;
        }
        let cell = Cell { c: character, ..self.page.grid.cursor.template.clone() };
        for row in rows {
            self.page.cut(row, columns.start);
            self.page.cut(row, columns.end);
            for target in &mut self.page.grid[line(row)][..][columns.clone()] {
                let wraps = target.flags.contains(Flags::WRAPLINE);
                *target = cell.clone();
                target.flags.set(Flags::WRAPLINE, wraps);
            }
            self.finish_row(row);
        }
    }

    /// DECERA; DECSERA (`selective`) leaves protected cells alone.
    fn erase_rectangle(&mut self, csi: &Csi, selective: bool) {
        let Some(Area { rows, columns }) = self.area(csi, 0) else { return };
        let template = self.page.grid.cursor.template.clone();
        // What SPA protects, this does not spare.
        let selective = selective && !self.guarded;
        for row in rows {
            for cell in &mut self.page.grid[line(row)][..][columns.clone()] {
                if !selective || !cell.flags.contains(PROTECTED) {
                    cell.reset(&template);
                }
            }
            self.finish_row(row);
        }
    }

    /// DECCARA and DECRARA: the attributes of a rectangle, or of the text from its first to its last cell.
    fn change_attributes(&mut self, csi: &Csi, change: fn(&mut Flags, u16)) {
        let Some(Area { rows, columns }) = self.area(csi, 0) else { return };
        let last = rows.end - 1;
        for row in rows.clone() {
            let range = if self.in_rectangle {
                columns.clone()
            } else {
                let start = if row == rows.start { columns.start } else { 0 };
                start..if row == last { columns.end } else { self.page.columns() }
            };
            for cell in &mut self.page.grid[line(row)][..][range] {
                csi.all().skip(4).for_each(|(code, _)| change(&mut cell.flags, code));
            }
            self.finish_row(row);
        }
    }

    fn finish_row(&mut self, row: usize) {
        self.page.touch(row);
        self.page.clear_orphaned_halves(row);
        self.changed = true;
    }

    /// DECRQCRA: the sum of the characters in a rectangle. It would let a program read what others printed, so it is
    /// answered only where a test allowed it.
    pub(crate) fn checksum(&mut self, csi: &Csi) {
        if !self.checksums {
            return;
        }
        let mut sum: u32 = 0;
        if let Some(Area { rows, columns }) = self.area(csi, 2) {
            for cell in rows.flat_map(|row| &self.page.cells(row)[columns.clone()]) {
                sum = sum.wrapping_add(u32::from(cell.c));
            }
        }
        let sum = 0x1_0000 - (sum & 0xffff);
        self.reply_checksum(csi.get(0), sum & 0xffff);
    }
}

fn change(flags: &mut Flags, code: u16) {
    for (set, flag) in CHANGEABLE {
        match code {
            0 => flags.remove(flag),
            _ if code == set => flags.insert(flag),
            _ if code == set + 20 || (set == 1 && code == 22) => flags.remove(flag),
            _ => {}
        }
    }
}

fn reverse(flags: &mut Flags, code: u16) {
    for (set, flag) in CHANGEABLE {
        if code == set || code == 0 {
            flags.toggle(flag);
        }
    }
}
