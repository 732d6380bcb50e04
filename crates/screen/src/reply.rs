//! What a program's questions are answered with: a fixed list, filled in with numbers and with
//! nothing that the program chose. A terminal that echoes a title or a setting back types text of
//! the program's choice into whatever reads the answer.

use std::fmt::Write as _;

use crate::emulator::Emulator;

/// Who we say we are. Claude Code asks, and older ones switch their keyboard on only for names they
/// know; what programs assume about tmux (a multiplexer, no images) is true here.
const VERSION: &str = "tmux 3.5a";

/// A VT220 with colours.
const PRIMARY: &str = "\x1b[?62;22c";

/// As tmux says it: no version that a program could look up.
const SECONDARY: &str = "\x1b[>84;0;0c";

const FOREGROUND: Rgb = (0xd8, 0xd8, 0xd8);
const BACKGROUND: Rgb = (0x18, 0x18, 0x18);

type Rgb = (u8, u8, u8);

impl Emulator {
    /// Answers, unless an old log is read.
    fn reply(&mut self, text: &str) {
        if !self.replay {
            self.replies.push(text);
        }
    }

    /// DA1.
    pub(crate) fn reply_primary(&mut self) {
        self.reply(PRIMARY);
    }

    /// DA2.
    pub(crate) fn reply_secondary(&mut self) {
        self.reply(SECONDARY);
    }

    /// XTVERSION.
    pub(crate) fn reply_version(&mut self) {
        self.reply(&format!("\x1bP>|{VERSION}\x1b\\"));
    }

    /// OSC 7501: reports of what a program does are read here.
    pub(crate) fn reply_status_reports(&mut self) {
        self.reply("\x1b]7501;?\x1b\\");
    }

    /// DSR.
    pub(crate) fn reply_status(&mut self, what: u16, private: bool) {
        let (row, column) = (self.addressed_row() + 1, self.page.column() + 1);
        match (what, private) {
            (5, false) => self.reply("\x1b[0n"),
            (6, false) => self.reply(&format!("\x1b[{row};{column}R")),
            (6, true) => self.reply(&format!("\x1b[?{row};{column}R")),
            // The colour scheme: dark.
            (996, true) => self.reply("\x1b[?997;1n"),
            _ => {}
        }
    }

    /// DECRQM: 1 set, 2 reset, 0 not known.
    pub(crate) fn reply_mode(&mut self, number: u16, private: bool) {
        let state = match (private, number) {
            (true, _) => self.modes.state(number),
            (false, 4) => Some(self.modes.insert),
            (false, 20) => Some(self.modes.newline),
            (false, _) => None,
        };
        let state = state.map_or(0, |on| if on { 1 } else { 2 });
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

    /// The size in cells, of the text area (18) and of the screen it is on (19).
    pub(crate) fn reply_size(&mut self, what: u16) {
        let (rows, columns) = (self.page.rows(), self.page.columns());
        self.reply(&format!("\x1b[{};{rows};{columns}t", what - 10));
    }

    /// DECRQSS and XTGETTCAP: whatever was asked for is not known.
    pub(crate) fn reply_unknown(&mut self, kind: char) {
        self.reply(&format!("\x1bP0{kind}r\x1b\\"));
    }

    /// OSC 4, 10, 11, 12 with a question mark. The end is the one that the question had.
    pub(crate) fn reply_colour(&mut self, code: u16, index: Option<u8>, by_bell: bool) {
        let (r, g, b) = match (code, index) {
            (4, Some(index)) => palette(index),
            (11, _) => BACKGROUND,
            _ => FOREGROUND,
        };
        let mut text = format!("\x1b]{code};");
        if let Some(index) = index {
            let _ = write!(text, "{index};");
        }
        let _ = write!(text, "rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}");
        text.push_str(if by_bell { "\x07" } else { "\x1b\\" });
        self.reply(&text);
    }
}

/// The 256 colours as xterm has them.
fn palette(index: u8) -> Rgb {
    const BASE: [Rgb; 16] = [
        (0x00, 0x00, 0x00),
        (0xcd, 0x00, 0x00),
        (0x00, 0xcd, 0x00),
        (0xcd, 0xcd, 0x00),
        (0x00, 0x00, 0xee),
        (0xcd, 0x00, 0xcd),
        (0x00, 0xcd, 0xcd),
        (0xe5, 0xe5, 0xe5),
        (0x7f, 0x7f, 0x7f),
        (0xff, 0x00, 0x00),
        (0x00, 0xff, 0x00),
        (0xff, 0xff, 0x00),
        (0x5c, 0x5c, 0xff),
        (0xff, 0x00, 0xff),
        (0x00, 0xff, 0xff),
        (0xff, 0xff, 0xff),
    ];
    match index {
        0..16 => BASE[usize::from(index)],
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}
