//! A screen as bytes that draw it again: on a fresh screen of the same size, or on a terminal.

use std::fmt::Write as _;

use alacritty_terminal::grid::Cursor as GridCursor;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::emulator::{CHARSETS, Emulator};
use crate::page::Page;
use crate::row_record;
use crate::sgr;
use crate::size::CursorShape;
use crate::style::{SPACER, same_style};

pub(crate) fn snapshot(emulator: &Emulator) -> Vec<u8> {
    let mut pen = Pen::default();
    if !emulator.title.text.is_empty() {
        pen.add(format_args!("\x1b]2;{}\x1b\\", emulator.title.text));
    }
    let (shown, other) = emulator.keyboard.stacks();
    if let Some(main) = &emulator.hidden_main {
        pen.page(main);
        pen.saved_cursor(main);
        pen.keyboard(other);
        pen.margins(main.margins, main.rows());
        pen.set_style(&Cell::default()); // The other screen begins in the background in force.
        pen.add(format_args!("\x1b[?1047h"));
    }
    pen.page(&emulator.page);
    pen.saved_cursor(&emulator.page);
    pen.keyboard(shown);
    pen.settings(emulator);
    pen.cursor(emulator);
    pen.out.into_bytes()
}

/// Writes sequences, and knows how what it prints next would look.
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
        for row in 0..page.rows() {
            let cells = page.visible_cells(row);
            if continues && cells.is_empty() {
                self.cells(&[Cell::default()]); // So that the row before wraps.
            } else if !cells.is_empty() {
                if !continues {
                    self.go(row, 0);
                }
                let wide_next = row + 1 < page.rows()
                    && page.cells(row + 1)[0].flags.contains(Flags::WIDE_CHAR);
                self.row(cells, wide_next);
            }
            continues = page.wraps(row) && row + 1 < page.rows();
        }
    }

    /// One row. The last column that a wide character left empty fills itself when that follows.
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
            let length =
                cells.iter().position(|cell| !same_style(first, cell)).unwrap_or(cells.len());
            self.set_style(first);
            row_record::push_text(&mut self.out, &cells[..length]);
            cells = &cells[length..];
        }
    }

    fn set_style(&mut self, cell: &Cell) {
        if !same_style(&self.style, cell) {
            self.add(format_args!("\x1b[{}m", sgr::parameters(cell)));
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

    /// Character sets and look of a cursor.
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

    fn saved_cursor(&mut self, page: &Page) {
        let saved = &page.grid.saved_cursor;
        if *saved == GridCursor::default() && !page.saved_origin && page.saved_charset == 0 {
            return;
        }
        if page.saved_origin {
            self.add(format_args!("\x1b[?6h"));
        }
        let row = usize::try_from(saved.point.line.0).unwrap_or(0);
        self.go(row, saved.point.column.0);
        self.cursor_style(saved, page.saved_charset);
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
        for (number, on) in emulator.modes.changed() {
            self.add(format_args!("\x1b[?{number}{}", if on { 'h' } else { 'l' }));
        }
        if emulator.modes.newline {
            self.add(format_args!("\x1b[20h"));
        }
        if emulator.modes.modify_other_keys > 0 {
            self.add(format_args!("\x1b[>4;{}m", emulator.modes.modify_other_keys));
        }
        let shape = match emulator.shape {
            CursorShape::Block => 1,
            CursorShape::Underline => 3,
            CursorShape::Bar => 5,
        } + u8::from(!emulator.blinking);
        if shape != 1 {
            self.add(format_args!("\x1b[{shape} q"));
        }
    }

    /// The cursor comes last: nothing may move it any more.
    fn cursor(&mut self, emulator: &Emulator) {
        let page = &emulator.page;
        let (row, mut column) = (emulator.addressed_row(), page.column());
        if emulator.modes.origin {
            self.add(format_args!("\x1b[?6h"));
        }
        let full = page.grid.cursor.input_needs_wrap;
        let cells = page.cells(page.row());
        if full && cells[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column -= 1;
        }
        self.go(row, column);
        if full {
            // Only printing into the last column leaves the cursor behind it.
            let mut last = cells[column..].to_vec();
            last.iter_mut().for_each(|c| c.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER));
            self.cells(&last);
        }
        self.cursor_style(&page.grid.cursor, emulator.charset);
        if emulator.modes.insert {
            self.add(format_args!("\x1b[4h"));
        }
    }
}
