//! Dispatches control sequences (CSI).

use crate::emulator::{Emulator, MAX_LEVEL};
use crate::parser::Csi;
use crate::sgr;
use crate::size::CursorShape;
use crate::style::PROTECTED;
use crate::tabs::Tabs;

impl Emulator {
    /// Applies one control sequence; unknown ones are ignored.
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
            // VT200 and before have no such query.
            (_, b'$') if csi.last == b'p' && self.level < 3 => {}
            (0, b'$') if csi.last == b'p' => self.reply_mode(csi.get(0), false),
            (0, b'$') => {
                self.rectangle(csi);
            }
            (0, b'*') => match csi.last {
                b'x' => self.in_rectangle = csi.get(0) == 2,
                b'y' => self.checksum(csi),
                _ => {}
            },
            (0, b'"') if csi.last == b'p' => self.set_level(csi.get(0)),
            (0, b'"') if csi.last == b'q' => self.protect(csi.get(0) == 1),
            (0, b'\'') if self.is_in_region() => match csi.last {
                b'}' => self.columns_right(self.page.column(), csi.count(0)),
                b'~' => self.columns_left(self.page.column(), csi.count(0)),
                _ => {}
            },
            (0, b' ') if csi.last == b'@' => self.columns_left(self.left, csi.count(0)),
            (0, b' ') if csi.last == b'A' => self.columns_right(self.left, csi.count(0)),
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
            b'B' => self.down(count),
            b'C' => self.forward(count),
            b'D' => self.backward(count),
            b'E' => {
                self.down(count);
                self.carriage_return();
            }
            b'F' => {
                self.up(count);
                self.carriage_return();
            }
            b'G' | b'`' => self.go_addressed_column(count - 1),
            b'a' => self.go_addressed_column(self.addressed_column().saturating_add(count)),
            b'e' => self.down_past_margin(count),
            b'H' | b'f' => self.go(count - 1, csi.count(1) - 1),
            b'I' => self.tab(count),
            b'J' => self.erase_in_display(csi.get(0), false),
            b'K' => self.erase_in_line(csi.get(0), false),
            b'L' => self.insert_lines(count),
            b'M' => self.delete_lines(count),
            b'P' => self.delete_characters(count),
            b'S' => self.scroll_up(count),
            b'T' if csi.len() == 1 => self.scroll_down(count),
            b'X' => self.erase_characters(count),
            b'Z' => self.tab_back(count),
            b'b' => self.repeat(count),
            b'c' if csi.get(0) == 0 => self.reply_primary(),
            b'd' => self.go_row(count - 1),
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
            b's' if self.modes.side_margins => {
                let right = if csi.get(1) == 0 { self.page.columns() } else { csi.count(1) };
                self.set_side_margins(count - 1, right);
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
            b'J' if csi.get(0) < 3 => self.erase_in_display(csi.get(0), true),
            b'K' => self.erase_in_line(csi.get(0), true),
            b'W' if csi.get(0) == 5 => self.tabs = Tabs::new(self.page.columns()),
            b'm' if csi.get(0) == 4 => self.reply_other_keys(),
            // The checksum of macros: there are none.
            b'n' if csi.get(0) == 63 => self.reply_checksum(csi.get(1), 0),
            b'n' => self.reply_status(csi.get(0), true),
            b'r' => csi.all().for_each(|(number, _)| self.restore_mode(number)),
            b's' => csi.all().for_each(|(number, _)| self.save_mode(number)),
            b'u' => self.reply_keyboard(),
            _ => {}
        }
    }

    /// XTSAVE: the state of a private mode that only sets a flag.
    fn save_mode(&mut self, number: u16) {
        if let Some(state) = self.modes.switch(number).copied() {
            self.saved_modes.retain(|(saved, _)| *saved != number);
            self.saved_modes.push((number, state));
        }
    }

    /// XTRESTORE.
    fn restore_mode(&mut self, number: u16) {
        let saved = self.saved_modes.iter().find(|(saved, _)| *saved == number);
        if let Some((_, state)) = saved.copied() {
            self.set_private_mode(number, state);
        }
    }

    /// Whether a private mode is on; `None` if it is unknown.
    pub(crate) fn private_mode(&self, number: u16) -> Option<bool> {
        if number == 12 { Some(self.blinking) } else { self.modes.state(number) }
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
            3 => self.set_column_mode(),
            // A VT400 has them.
            69 if self.level >= 4 => self.use_side_margins(on),
            69 => {}
            2027 => self.modes.clusters = on,
            2048 => {
                self.modes.size_reports = on;
                self.report_size();
            }
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

    /// DECSCA: whether selective erasing leaves alone what is printed from now on.
    fn protect(&mut self, on: bool) {
        self.guarded = false;
        self.page.grid.cursor.template.flags.set(PROTECTED, on);
    }

    /// SPA and EPA: the same, for all erasing.
    pub(crate) fn guard(&mut self, on: bool) {
        self.guarded = true;
        self.page.grid.cursor.template.flags.set(PROTECTED, on);
    }

    /// DECSCL: the level of conformance, of which a VT400 has four. It resets the terminal, softly as a VT200 does.
    fn set_level(&mut self, number: u16) {
        if let Some(level @ 1..=5) = number.checked_sub(60) {
            self.soft_reset();
            self.level = level.min(u16::from(MAX_LEVEL)) as u8;
        }
    }

    /// DECCOLM, if it is allowed (mode 40): the width is that of the pane, but the screen is erased and the margins
    /// are reset, as when it changes.
    fn set_column_mode(&mut self) {
        if self.modes.column_mode {
            self.use_side_margins(false);
            (self.top, self.bottom) = (0, self.page.rows() - 1);
            self.erase_in_display(2, false);
            self.go(0, 0);
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

    /// XTWINOPS: reports sizes, saves and restores titles; there are no windows to move.
    fn window_operation(&mut self, csi: &Csi) {
        match (csi.get(0), csi.get(1)) {
            (11, _) => self.reply_window(),
            (13, _) => self.reply_position(),
            (18 | 19, _) => self.reply_size(csi.get(0)),
            (20 | 21, _) => self.reply_title(csi.get(0) == 20),
            (22, 0..=2) => self.title.push(),
            (23, what @ 0..=2) => {
                if let Some((title, icon)) = self.title.pop() {
                    if what != 1 {
                        self.set_title(title);
                    }
                    if what != 2 {
                        self.title.icon = icon;
                    }
                }
            }
            _ => {}
        }
    }

    /// Moves forward by tab stops.
    pub(crate) fn tab(&mut self, count: usize) {
        if self.modes.tab_wraps && self.modes.wrap && self.page.grid.cursor.input_needs_wrap {
            self.wrap();
        }
        let mut column = self.page.column();
        for _ in 0..count {
            match self.tabs.after(column) {
                stop if stop == column => break,
                stop => column = stop,
            }
        }
        column = column.min(self.edge() - 1);
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
        let first = if self.modes.origin { self.left } else { 0 };
        self.go_column(column.max(first));
    }
}
