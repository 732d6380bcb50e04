//! Controls, short escape sequences, OSC and DCS: the parser's actions on a screen.

use alacritty_terminal::term::cell::Hyperlink;
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::emulator::{CHARSETS, Emulator};
use crate::notice::{self, Notice};
use crate::parser::{Actions, Csi};
use crate::title::{TITLE_LIMIT, clean};

/// Longest link kept; as long as browsers accept.
const LINK_LIMIT: usize = 2_048;

impl Actions for Emulator {
    fn reached(&mut self, bytes: usize) {
        self.offset = self.base_offset + bytes as u64;
    }

    fn ascii(&mut self, text: &[u8]) {
        self.print_ascii(text);
    }

    fn unicode(&mut self, text: &str) {
        self.print_unicode(text);
    }

    fn control(&mut self, byte: u8) {
        self.last_character = None;
        match byte {
            0x07 => self.notice(Notice::Bell),
            0x08 => self.backward(1),
            b'\t' => self.tab(1),
            b'\n' | 0x0b | 0x0c => {
                self.line_feed();
                if self.modes.newline {
                    self.carriage_return();
                }
            }
            b'\r' => self.carriage_return(),
            0x0e => self.charset = 1,
            0x0f => self.charset = 0,
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        self.last_character = None;
        match (intermediates, last) {
            ([], b'7') => self.save_cursor(),
            ([], b'8') => self.restore_cursor(),
            ([], b'6') => self.back_index(),
            ([], b'9') => self.forward_index(),
            ([], b'V') => self.guard(true),
            ([], b'W') => self.guard(false),
            ([], b'=') => self.modes.application_keypad = true,
            ([], b'>') => self.modes.application_keypad = false,
            ([], b'D') => self.line_feed(),
            ([], b'E') => {
                self.line_feed();
                self.carriage_return();
            }
            ([], b'H') => self.tabs.set(self.page.column(), true),
            ([], b'M') => self.reverse_line_feed(),
            ([], b'Z') => self.reply_primary(),
            ([], b'c') => self.reset(),
            ([], b'n') => self.charset = 2,
            ([], b'o') => self.charset = 3,
            ([b'#'], b'8') => self.align(),
            ([set @ b'('..=b'+'], name) => {
                let index = CHARSETS[usize::from(set - b'(')];
                self.page.grid.cursor.charsets[index] = match name {
                    b'0' => StandardCharset::SpecialCharacterAndLineDrawing,
                    _ => StandardCharset::Ascii,
                };
            }
            _ => {}
        }
    }

    fn csi(&mut self, sequence: &Csi) {
        self.control_sequence(sequence);
        self.last_character = None;
    }

    fn osc(&mut self, text: &[u8], by_bell: bool) {
        let mut parts = text.splitn(2, |&byte| byte == b';');
        let code = parts.next().and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
        let rest = parts.next().unwrap_or_default();
        if code.is_some_and(|code| self.colour_command(code, rest, by_bell)) {
            return;
        }
        let notice = match code {
            Some(code @ 0..=2) => {
                let title = clean(rest, TITLE_LIMIT);
                if code < 2 {
                    self.title.icon.clone_from(&title);
                }
                if code != 1 {
                    self.set_title(title);
                }
                return;
            }
            Some(8) => return self.link(rest),
            Some(7501) => return self.status_report(rest),
            Some(7) => notice::osc_7(rest),
            Some(9) => notice::osc_9(rest),
            Some(52) => notice::osc_52(rest),
            Some(133) => notice::osc_133(rest),
            Some(777) => notice::osc_777(rest),
            _ => None,
        };
        if let Some(notice) = notice {
            self.notice(notice);
        }
    }

    fn dcs(&mut self, head: &Csi, text: &[u8]) {
        match (head.marker, head.intermediate, head.last) {
            (0, b'$', b'q') => self.reply_setting(text),
            (0, b'+', b'q') => self.reply_capabilities(text),
            _ => {}
        }
    }
}

impl Emulator {
    /// Queues a notice, unless an old log is being replayed.
    fn notice(&mut self, notice: Notice) {
        if let Notice::Progress(progress) = &notice {
            self.progress = Some(*progress);
        }
        if !self.replay {
            self.notices.push(notice);
        }
    }

    /// OSC 7501: a program reports its status. Reports with an id are about parts of it.
    fn status_report(&mut self, text: &[u8]) {
        let mut fields = text.split(|&byte| byte == b':');
        if text == b"?" {
            self.reply_status_reports();
        } else if !fields.any(|field| field.starts_with(b"id=")) {
            self.report = clean(text, TITLE_LIMIT);
            self.reports += 1;
        }
    }

    pub(crate) fn set_title(&mut self, title: String) {
        if title != self.title.text {
            self.notice(Notice::Title(title.clone()));
            self.title.text = title;
        }
    }

    /// OSC 8: begins or ends a link for the text that follows.
    fn link(&mut self, text: &[u8]) {
        let mut parts = text.splitn(2, |&byte| byte == b';');
        let parameters = parts.next().unwrap_or_default();
        let address = parts.next().unwrap_or_default();
        let link = (!address.is_empty() && address.len() <= LINK_LIMIT).then(|| {
            let mut ids = parameters.split(|&byte| byte == b':');
            let id = ids.find_map(|pair| pair.strip_prefix(b"id="));
            // Always set, even if empty: alacritty would generate one from a global counter.
            let id = clean(id.unwrap_or_default(), LINK_LIMIT);
            Hyperlink::new(Some(id), clean(address, LINK_LIMIT))
        });
        self.page.grid.cursor.template.set_hyperlink(link);
    }
}
