//! Which control sequence does what.

use crate::emulator::Emulator;
use crate::parser::Csi;
use crate::sgr;
use crate::size::CursorShape;

impl Emulator {
    /// One control sequence. What is not here does nothing.
    pub(crate) fn control_sequence(&mut self, csi: &Csi) {
        match (csi.marker, csi.intermediate) {
            (0, 0) => self.plain_sequence(csi),
            (b'?', 0) => self.private_sequence(csi),
            (b'>', 0) => match csi.last {
                b'c' if csi.get(0) == 0 => self.reply_secondary(),
                b'm' if csi.get(0) == 4 || csi.get(0) == 0 => {
                    self.modes.modify_other_keys = csi.get(1).min(2) as u8;
                }
                b'q' if csi.get(0) == 0 => self.reply_version(),
                b'u' => self.keyboard.push(csi.get(0)),
                _ => {}
            },
            (b'<', 0) if csi.last == b'u' => self.keyboard.pop(csi.count(0)),
            (b'=', 0) if csi.last == b'u' => self.keyboard.set(csi.get(0), csi.get(1)),
            (0, b'!') if csi.last == b'p' => self.soft_reset(),
            (0, b'$') if csi.last == b'p' => self.reply_mode(csi.get(0), false),
            (b'?', b'$') if csi.last == b'p' => self.reply_mode(csi.get(0), true),
            (0, b' ') if csi.last == b'q' => self.set_shape(csi.get(0)),
            _ => {}
        }
    }

    fn plain_sequence(&mut self, csi: &Csi) {
        let count = csi.count(0);
        let column = self.page.column();
        match csi.last {
            b'@' => self.insert_blanks(count),
            b'A' => self.up(count),
            b'B' | b'e' => self.down(count),
            b'C' | b'a' => self.go_column(column.saturating_add(count)),
            b'D' => self.go_column(column.saturating_sub(count)),
            b'E' => {
                self.down(count);
                self.go_column(0);
            }
            b'F' => {
                self.up(count);
                self.go_column(0);
            }
            b'G' | b'`' => self.go_column(count - 1),
            b'H' | b'f' => self.go(count - 1, csi.count(1) - 1),
            b'I' => self.tab(count),
            b'J' => self.erase_in_display(csi.get(0)),
            b'K' => self.erase_in_line(csi.get(0)),
            b'L' => self.insert_lines(count),
            b'M' => self.delete_lines(count),
            b'P' => self.delete_characters(count),
            b'S' => self.scroll_up(count),
            b'T' if csi.len() == 1 => self.scroll_down(count),
            b'X' => self.erase_characters(count),
            b'Z' => self.tab_back(count),
            b'b' => self.repeat(count),
            b'c' if csi.get(0) == 0 => self.reply_primary(),
            b'd' => self.go(count - 1, column),
            b'g' => match csi.get(0) {
                0 => self.tabs.set(column, false),
                3 => self.tabs.clear(),
                _ => {}
            },
            b'h' => self.set_modes(csi, true),
            b'l' => self.set_modes(csi, false),
            b'm' => sgr::apply(&mut self.page.grid.cursor.template, csi),
            b'n' => self.reply_status(csi.get(0), false),
            b'r' => {
                let bottom = if csi.get(1) == 0 { self.page.rows() } else { csi.count(1) };
                self.set_margins(count - 1, bottom);
            }
            b's' => self.save_cursor(),
            b't' => self.window_operation(csi),
            b'u' => self.restore_cursor(),
            _ => {}
        }
    }

    fn private_sequence(&mut self, csi: &Csi) {
        match csi.last {
            b'h' => csi.all().for_each(|(number, _)| self.set_private_mode(number, true)),
            b'l' => csi.all().for_each(|(number, _)| self.set_private_mode(number, false)),
            // Selective erase: nothing here is protected.
            b'J' if csi.get(0) < 3 => self.erase_in_display(csi.get(0)),
            b'K' => self.erase_in_line(csi.get(0)),
            b'm' if csi.get(0) == 4 => self.reply_other_keys(),
            b'n' => self.reply_status(csi.get(0), true),
            b'u' => self.reply_keyboard(),
            _ => {}
        }
    }

    fn set_modes(&mut self, csi: &Csi, on: bool) {
        for (number, _) in csi.all() {
            match number {
                4 => self.modes.insert = on,
                20 => self.modes.newline = on,
                _ => {}
            }
        }
    }

    fn set_private_mode(&mut self, number: u16, on: bool) {
        match number {
            6 => {
                self.modes.origin = on;
                self.go(0, 0);
            }
            12 => self.blinking = on,
            47 | 1047 if on => self.enter_alternate(),
            47 | 1047 => self.leave_alternate(),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 if on => {
                self.save_cursor();
                self.enter_alternate();
            }
            1049 => {
                self.leave_alternate();
                self.restore_cursor();
            }
            _ => {
                if let Some(switch) = self.modes.switch(number) {
                    *switch = on;
                    self.changed |= matches!(number, 5 | 25);
                } else {
                    self.modes.set_mouse(number, on);
                }
            }
        }
    }

    /// DECSCUSR.
    fn set_shape(&mut self, number: u16) {
        self.shape = match number {
            0..=2 => CursorShape::Block,
            3 | 4 => CursorShape::Underline,
            5 | 6 => CursorShape::Bar,
            _ => return,
        };
        self.blinking = number == 0 || number % 2 == 1;
        self.changed = true;
    }

    /// XTWINOPS: sizes are told, titles put aside and taken back; windows are nobody's here.
    fn window_operation(&mut self, csi: &Csi) {
        match (csi.get(0), csi.get(1)) {
            (18 | 19, _) => self.reply_size(csi.get(0)),
            (22, 0 | 2) => self.title.push(),
            (23, 0 | 2) => {
                if let Some(title) = self.title.pop() {
                    self.set_title(title);
                }
            }
            _ => {}
        }
    }

    /// Forward to tab stops.
    pub(crate) fn tab(&mut self, count: usize) {
        let mut column = self.page.column();
        for _ in 0..count {
            match self.tabs.after(column) {
                stop if stop == column => break,
                stop => column = stop,
            }
        }
        // A tab at the end of a full row stays there.
        if column != self.page.column() {
            self.go_column(column);
        }
    }

    fn tab_back(&mut self, count: usize) {
        let mut column = self.page.column();
        for _ in 0..count {
            match self.tabs.before(column) {
                stop if stop == column => break,
                stop => column = stop,
            }
        }
        self.go_column(column);
    }
}
