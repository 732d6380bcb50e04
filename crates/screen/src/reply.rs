//! Replies to a program's queries: a fixed list, filled in with numbers and never with text that the
//! program chose. A terminal that echoes a title or a setting types text of the program's choice into
//! whatever reads the reply.

use crate::emulator::Emulator;
use crate::sgr;
use crate::style::PROTECTED;

/// What a terminal of each level has: a VT100 with its option, then colours and selective erasing, then also scrolling
/// to the sides and rectangles.
const PRIMARY: [&str; 4] =
    ["\x1b[?1;2c", "\x1b[?62;6;22c", "\x1b[?63;6;22c", "\x1b[?64;6;21;22;28c"];

/// As in tmux: no version that a program could look up.
const SECONDARY: &str = "\x1b[>84;0;0c";

/// DEC private modes that are known but never change: 3 always set, 4 never set.
const PERMANENT: [(u16, u8); 5] = [(3, 4), (8, 3), (42, 4), (60, 4), (95, 4)];

/// The capabilities that programs ask for, by their terminfo names: what panes' `TERM` says, and true colours.
const CAPABILITIES: [(&str, &str); 4] =
    [("TN", "xterm-256color"), ("Co", "256"), ("colors", "256"), ("RGB", "8/8/8")];

impl Emulator {
    /// Queues a reply, unless an old log is being replayed.
    pub(crate) fn reply(&mut self, text: &str) {
        if !self.replay {
            self.replies.push(text);
        }
    }

    /// DA1.
    pub(crate) fn reply_primary(&mut self) {
        self.reply(PRIMARY[usize::from(self.level).clamp(1, PRIMARY.len()) - 1]);
    }

    /// DA2.
    pub(crate) fn reply_secondary(&mut self) {
        self.reply(SECONDARY);
    }

    /// XTVERSION.
    pub(crate) fn reply_version(&mut self) {
        let reply = format!("\x1bP>|{}\x1b\\", self.terminal_name.as_str());
        self.reply(&reply);
    }

    /// OSC 7501: status reports are supported.
    pub(crate) fn reply_status_reports(&mut self) {
        self.reply("\x1b]7501;?\x1b\\");
    }

    /// DSR.
    pub(crate) fn reply_status(&mut self, what: u16, private: bool) {
        let (row, column) = (self.addressed_row() + 1, self.addressed_column() + 1);
        match (what, private) {
            (5, false) => self.reply("\x1b[0n"),
            (6, false) => self.reply(&format!("\x1b[{row};{column}R")),
            // A VT400 names the page.
            (6, true) if self.level >= 4 => self.reply(&format!("\x1b[?{row};{column};1R")),
            (6, true) => self.reply(&format!("\x1b[?{row};{column}R")),
            // No printer, keys not locked, a keyboard, no locator, nothing to report, one session.
            (15, true) => self.reply("\x1b[?13n"),
            (25, true) => self.reply("\x1b[?20n"),
            (26, true) => self.reply("\x1b[?27;1;0;0n"),
            (53 | 55, true) => self.reply("\x1b[?50n"),
            (56, true) => self.reply("\x1b[?57;0n"),
            (62, true) => self.reply("\x1b[0*{"),
            (75, true) => self.reply("\x1b[?70n"),
            (85, true) => self.reply("\x1b[?83n"),
            // The colour scheme: dark.
            (996, true) => self.reply("\x1b[?997;1n"),
            _ => {}
        }
    }

    /// DECRQM: 1 set, 2 reset, 3 always set, 4 never set, 0 unknown.
    pub(crate) fn reply_mode(&mut self, number: u16, private: bool) {
        let state = match (private, number) {
            (true, _) => self.private_mode(number),
            (false, 4) => Some(self.modes.insert),
            (false, 20) => Some(self.modes.newline),
            (false, _) => None,
        };
        let state = match state {
            Some(true) => 1,
            Some(false) => 2,
            None if private => {
                PERMANENT.iter().find(|(mode, _)| *mode == number).map_or(0, |m| m.1)
            }
            // Echo by the terminal itself (12) is always off, so the mode is set.
            None if number == 12 => 3,
            None => {
                if matches!(number, 1 | 2 | 5 | 7 | 10 | 11 | 13..=19) {
                    4
                } else {
                    0
                }
            }
        };
        let mark = if private { "?" } else { "" };
        self.reply(&format!("\x1b[{mark}{number};{state}$y"));
    }

    /// The kitty keyboard's flags.
    pub(crate) fn reply_keyboard(&mut self) {
        self.reply(&format!("\x1b[?{}u", self.keyboard.flags()));
    }

    /// modifyOtherKeys.
    pub(crate) fn reply_other_keys(&mut self) {
        self.reply(&format!("\x1b[>4;{}m", self.modes.modify_other_keys));
    }

    /// The size in cells, of the text area (18) or of the screen (19).
    pub(crate) fn reply_size(&mut self, what: u16) {
        let (rows, columns) = (self.page.rows(), self.page.columns());
        self.reply(&format!("\x1b[{};{rows};{columns}t", what - 10));
    }

    /// The title of the icon or of the window: only in tests.
    pub(crate) fn reply_title(&mut self, of_icon: bool) {
        if self.checksums {
            let (name, title) =
                if of_icon { ('L', &self.title.icon) } else { ('l', &self.title.text) };
            let reply = format!("\x1b]{name}{title}\x1b\\");
            self.reply(&reply);
        }
    }

    /// The state of the window: shown.
    pub(crate) fn reply_window(&mut self) {
        self.reply("\x1b[1t");
    }

    /// The position of the window: there is none.
    pub(crate) fn reply_position(&mut self) {
        self.reply("\x1b[3;0;0t");
    }

    /// Reports the size in the program's input, if it asked for that (mode 2048). The size in pixels is unknown.
    pub(crate) fn report_size(&mut self) {
        if self.modes.size_reports {
            let (rows, columns) = (self.page.rows(), self.page.columns());
            self.reply(&format!("\x1b[48;{rows};{columns};0;0t"));
        }
    }

    /// DECCKSR.
    pub(crate) fn reply_checksum(&mut self, id: u16, sum: u32) {
        self.reply(&format!("\x1bP{id}!~{sum:04X}\x1b\\"));
    }

    /// DECRQSS: a setting as the sequence that sets it. The name is matched, never quoted.
    pub(crate) fn reply_setting(&mut self, name: &[u8]) {
        let template = &self.page.grid.cursor.template;
        let setting = match name {
            b"m" => format!("{}m", sgr::parameters(template)),
            b"r" => format!("{};{}r", self.top + 1, self.bottom + 1),
            b"s" => format!("{};{}s", self.left + 1, self.right + 1),
            b" q" => format!("{} q", self.shape_number()),
            b"\"q" => format!("{}\"q", u8::from(template.flags.contains(PROTECTED))),
            b"\"p" => format!("{};1\"p", 60 + u16::from(self.level)),
            // There is no status line.
            b"$}" => "0$}".to_owned(),
            b"$~" => "0$~".to_owned(),
            b"*x" => format!("{}*x", 2 * u8::from(self.in_rectangle)),
            b"t" if self.page.rows() >= 24 => format!("{}t", self.page.rows()),
            _ => return self.reply("\x1bP0$r\x1b\\"),
        };
        self.reply(&format!("\x1bP1$r{setting}\x1b\\"));
    }

    /// XTGETTCAP: capabilities by their names in hexadecimal. Unknown ones are not quoted.
    pub(crate) fn reply_capabilities(&mut self, names: &[u8]) {
        for name in names.split(|&byte| byte == b';') {
            let known = CAPABILITIES
                .iter()
                .find(|(known, _)| hex(known).as_bytes() == name.to_ascii_uppercase());
            match known {
                Some((name, value)) => {
                    self.reply(&format!("\x1bP1+r{}={}\x1b\\", hex(name), hex(value)));
                }
                None => self.reply("\x1bP0+r\x1b\\"),
            }
        }
    }
}

/// Text in hexadecimal.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}
