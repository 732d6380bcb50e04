//! Encodes a screen as bytes that draw it again, on a fresh screen of the same size or on a terminal.

use std::fmt::Write as _;

use alacritty_terminal::grid::Cursor as GridCursor;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::cluster;
use crate::emulator::{CHARSETS, Emulator, MAX_LEVEL};
use crate::modes::Modes;
use crate::page::{Page, SavedCursor};
use crate::row_record;
use crate::sgr;
use crate::style::{PROTECTED, SPACER, same_style};

pub(crate) fn snapshot(emulator: &Emulator) -> Vec<u8> {
    let mut pen = Pen::default();
    if emulator.level != MAX_LEVEL {
        pen.add(format_args!("\x1b[{}\"p", 60 + u16::from(emulator.level))); // It resets other things.
    }
    if !emulator.title.text.is_empty() {
        pen.add(format_args!("\x1b]2;{}\x1b\\", emulator.title.text));
    }
    pen.out.push_str(&emulator.colours.sequences());
    if emulator.alternate_saved.is_set() {
        pen.add(format_args!("\x1b[?1047h"));
        pen.saved_cursor(&emulator.alternate_saved);
        pen.set_style(&Cell::default());
        pen.add(format_args!("\x1b[?1047l"));
    }
    for (number, saved) in &emulator.saved_modes {
        let fresh = Modes::default().switch(*number).is_some_and(|state| *state);
        let set = |on: bool| if on { 'h' } else { 'l' };
        let (saved, fresh) = (set(*saved), set(fresh));
        pen.add(format_args!("\x1b[?{number}{saved}\x1b[?{number}s\x1b[?{number}{fresh}"));
    }
    let (shown, other) = emulator.keyboard.stacks();
    if let Some(main) = &emulator.hidden_main {
        pen.page(main);
        pen.saved_cursor(&main.saved);
        pen.keyboard(other);
        pen.margins(main.margins, main.rows());
        pen.set_style(&Cell::default()); // The other screen starts with the current background.
        pen.add(format_args!("\x1b[?1047h"));
    }
    pen.page(&emulator.page);
    pen.saved_cursor(&emulator.page.saved);
    pen.keyboard(shown);
    pen.settings(emulator);
    pen.cursor(emulator);
    pen.out.into_bytes()
}

/// Whether a mark made a wide character narrow.
fn was_narrowed(cell: &Cell) -> bool {
    let has_mark = |marks: &[char]| marks.contains(&cluster::AS_TEXT);
    !cell.flags.contains(Flags::WIDE_CHAR) && cell.zerowidth().is_some_and(has_mark)
}

/// Writes sequences and tracks the current style.
#[derive(Default)]
struct Pen {
    out: String,
    style: Cell,
    link: Option<Hyperlink>,
}

impl Pen {
    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }

    fn go(&mut self, row: usize, column: usize) {
        self.add(format_args!("\x1b[{};{}H", row + 1, column + 1));
    }

    fn page(&mut self, page: &Page) {
        let mut continues = false;
        self.wrapped_bottom(page);
        for row in 0..page.rows() {
            let cells = page.visible_cells(row);
            if row > 0 && row + 1 == page.rows() && page.wraps(row) {
                // Drawn already; its first character makes the row before wrap.
                if continues {
                    let first = 1 + usize::from(cells[0].flags.contains(Flags::WIDE_CHAR));
                    self.cells(&cells[..first]);
                }
                break;
            }
            if continues && cells.is_empty() {
                self.cells(&[Cell::default()]); // So that the row before wraps.
            } else if !cells.is_empty() {
                if !continues {
                    self.go(row, 0);
                }
                let wide_next = page.wraps(row)
                    && row + 1 < page.rows()
                    && page.cells(row + 1)[0].flags.contains(Flags::WIDE_CHAR);
                self.row(cells, wide_next);
                if cells.len() < page.columns() && cells.last().is_some_and(was_narrowed) {
                    // Its second column was printed before its mark gave it back.
                    self.set_style(&Cell::default());
                    self.add(format_args!("\x1b[X"));
                }
            }
            continues = page.wraps(row) && row + 1 < page.rows();
        }
    }

    /// A last row that wraps: it is drawn at the top, followed by a blank, and moved down.
    fn wrapped_bottom(&mut self, page: &Page) {
        let bottom = page.rows() - 1;
        if bottom > 0 && page.wraps(bottom) {
            self.go(0, 0);
            self.row(page.cells(bottom), false);
            self.set_style(&Cell::default());
            self.add(format_args!(" \x1b[{bottom}T"));
        }
    }

    /// One row. A last column left empty by a wide character fills itself when that character follows.
    fn row(&mut self, cells: &[Cell], wide_next: bool) {
        match cells.split_last() {
            Some((last, before)) if last.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) => {
                self.cells(before);
                if !wide_next {
                    let mut blank = last.clone();
                    blank.flags.remove(SPACER);
                    self.cells(&[blank]);
                }
            }
            _ => self.cells(cells),
        }
    }

    fn cells(&mut self, mut cells: &[Cell]) {
        while let Some(first) = cells.first() {
            let length = row_record::span_length(cells);
            if same_style(&self.style, first) && self.joins(first) {
                // A sequence between two characters keeps them apart.
                self.add(format_args!("\x1b[{}m", sgr::parameters(first)));
            }
            self.set_style(first);
            row_record::push_text(&mut self.out, &cells[..length]);
            cells = &cells[length..];
        }
    }

    /// Whether a cell would become part of what was written last.
    fn joins(&self, cell: &Cell) -> bool {
        self.out.chars().next_back().is_some_and(|last| cluster::may_join(last, cell.c))
    }

    fn set_style(&mut self, cell: &Cell) {
        if !same_style(&self.style, cell) {
            self.add(format_args!("\x1b[{}m", sgr::parameters(cell)));
            if (self.style.flags ^ cell.flags).contains(PROTECTED) {
                let protected = u8::from(cell.flags.contains(PROTECTED));
                self.add(format_args!("\x1b[{protected}\"q"));
            }
            let link = cell.hyperlink();
            if link != self.link {
                match &link {
                    Some(link) if link.id().is_empty() => {
                        self.add(format_args!("\x1b]8;;{}\x1b\\", link.uri()));
                    }
                    Some(link) => {
                        self.add(format_args!("\x1b]8;id={};{}\x1b\\", link.id(), link.uri()));
                    }
                    None => self.add(format_args!("\x1b]8;;\x1b\\")),
                }
                self.link = link;
            }
            self.style = cell.clone();
        }
    }

    /// Character sets and style of a cursor.
    fn cursor_style(&mut self, cursor: &GridCursor<Cell>, charset: usize) {
        for (index, name) in CHARSETS.iter().zip(['(', ')', '*', '+']) {
            let set = match cursor.charsets[*index] {
                StandardCharset::Ascii => 'B',
                StandardCharset::SpecialCharacterAndLineDrawing => '0',
            };
            self.add(format_args!("\x1b{name}{set}"));
        }
        self.out.push_str(["\x0f", "\x0e", "\x1bn", "\x1bo"][charset]);
        self.set_style(&cursor.template);
    }

    fn saved_cursor(&mut self, saved: &SavedCursor) {
        if !saved.is_set() {
            return;
        }
        if saved.origin {
            self.add(format_args!("\x1b[?6h"));
        }
        let row = usize::try_from(saved.cursor.point.line.0).unwrap_or(0);
        self.go(row, saved.cursor.point.column.0);
        self.cursor_style(&saved.cursor, saved.charset);
        self.add(format_args!("\x1b7\x1b[?6l\x0f\x1b(B"));
    }

    fn keyboard(&mut self, stack: &[u8]) {
        for flags in stack {
            self.add(format_args!("\x1b[>{flags}u"));
        }
    }

    fn margins(&mut self, (top, bottom): (usize, usize), rows: usize) {
        if (top, bottom) != (0, rows - 1) {
            self.add(format_args!("\x1b[{};{}r", top + 1, bottom + 1));
        }
    }

    fn settings(&mut self, emulator: &Emulator) {
        if let Some(stops) = emulator.tabs.changed() {
            self.add(format_args!("\x1b[3g"));
            for column in stops {
                self.add(format_args!("\x1b[{}G\x1bH", column + 1));
            }
        }
        self.margins((emulator.top, emulator.bottom), emulator.page.rows());
        if emulator.modes.side_margins {
            self.add(format_args!("\x1b[?69h\x1b[{};{}s", emulator.left + 1, emulator.right + 1));
        }
        if emulator.in_rectangle {
            self.add(format_args!("\x1b[2*x"));
        }
        for (number, on) in emulator.modes.changed() {
            self.add(format_args!("\x1b[?{number}{}", if on { 'h' } else { 'l' }));
        }
        if emulator.modes.newline {
            self.add(format_args!("\x1b[20h"));
        }
        if emulator.modes.modify_other_keys > 0 {
            self.add(format_args!("\x1b[>4;{}m", emulator.modes.modify_other_keys));
        }
        let shape = emulator.shape_number();
        if shape != 1 {
            self.add(format_args!("\x1b[{shape} q"));
        }
    }

    /// The cursor comes last, so that nothing moves it afterwards.
    fn cursor(&mut self, emulator: &Emulator) {
        let page = &emulator.page;
        let (row, mut column) = (emulator.addressed_row(), page.column());
        let left = page.column() - emulator.addressed_column();
        if emulator.modes.origin {
            self.add(format_args!("\x1b[?6h"));
        }
        let full = page.grid.cursor.input_needs_wrap;
        let cells = page.cells(page.row());
        if full && cells[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column -= 1;
        }
        self.go(row, column - left);
        if full {
            // Only printing into the last column leaves the cursor past it.
            let mut last = cells[column..emulator.edge()].to_vec();
            last.iter_mut().for_each(|c| c.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER));
            self.cells(&last);
        }
        self.cursor_style(&page.grid.cursor, emulator.charset);
        if emulator.modes.insert {
            self.add(format_args!("\x1b[4h"));
        }
        if emulator.guarded {
            let protected = page.grid.cursor.template.flags.contains(PROTECTED);
            self.out.push_str(if protected { "\x1bV" } else { "\x1bW" });
        }
        if !emulator.modes.clusters {
            self.add(format_args!("\x1b[?2027l"));
        }
    }
}
