//! Parses bytes, in chunks of any size, into input events.

use crate::Key;
use crate::keys::KeyCode;

use super::{InputEvent, KeyEncoding, KeyEvent, MouseEvent, TerminalReply};

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// A longer sequence is not recognised: its bytes pass through unchanged.
const MAX_SEQUENCE_BYTES: usize = 4096;

/// A longer paste is returned in parts, so that it does not have to fit into memory.
const MAX_PASTE_BYTES: usize = 1 << 20;

/// Splits a terminal's bytes into events.
#[derive(Debug, Default)]
pub struct InputParser {
    buffer: Vec<u8>,
    /// Bytes of the buffer that are already consumed.
    taken: usize,
    pasting: bool,
    /// Bytes already searched for the end of a paste.
    searched: usize,
}

/// The length of the next event in the buffer.
enum Length {
    Complete(usize),
    /// Incomplete: more bytes are needed.
    Incomplete,
}

impl InputParser {
    /// Adds bytes to the buffer.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether an incomplete event waits for more bytes, or for [`InputParser::flush`].
    pub fn has_pending(&self) -> bool {
        !self.rest().is_empty() && !self.pasting
    }

    /// Whether the incomplete event is a string, which only a terminal sends.
    pub fn is_in_string(&self) -> bool {
        !self.pasting && self.rest().starts_with(b"\x1bP")
    }

    /// Whether a paste has begun and not ended.
    pub fn is_pasting(&self) -> bool {
        self.pasting
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Consumes bytes from the front.
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let begin = self.taken;
        self.taken += bytes;
        self.buffer[begin..self.taken].to_vec()
    }

    /// The next event; `None` until more is fed.
    pub fn next_event(&mut self) -> Option<InputEvent> {
        loop {
            if self.pasting {
                return self.paste();
            }
            // Limited even if complete: the result must not depend on the chunks.
            let length = match length(self.rest())? {
                Length::Complete(length) => length.min(MAX_SEQUENCE_BYTES),
                Length::Incomplete if self.rest().len() >= MAX_SEQUENCE_BYTES => MAX_SEQUENCE_BYTES,
                Length::Incomplete => return None,
            };
            let raw = self.take(length);
            if raw == PASTE_BEGIN {
                self.pasting = true;
            } else if raw != PASTE_END {
                return Some(event(raw));
            }
        }
    }

    /// No more bytes came: takes pending bytes as they are. A lone escape is the Escape key.
    pub fn flush(&mut self) -> Option<InputEvent> {
        if self.pasting || self.rest().is_empty() {
            return None;
        }
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        let length = match self.rest() {
            // An escape and the beginning of a sequence: alt and that character.
            [0x1b, byte] if *byte != 0x1b => 2,
            [0x1b, ..] => 1,
            rest => rest.len(),
        };
        (length > 0).then(|| InputEvent::Key(legacy(self.take(length))))
    }

    fn paste(&mut self) -> Option<InputEvent> {
        let rest = self.rest();
        // Each byte is searched once, in however many chunks a paste comes; the marker may be split.
        let from = self.searched.saturating_sub(PASTE_END.len() - 1).min(rest.len());
        let found = rest[from..].windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END);
        let end = found.map(|at| from + at);
        let length = match end {
            Some(end) => end,
            // The end marker may be split.
            None if rest.len() > MAX_PASTE_BYTES => rest.len() - PASTE_END.len(),
            None => {
                self.searched = rest.len();
                return None;
            }
        };
        self.searched = 0;
        let text = self.take(length);
        if end.is_some() {
            self.taken += PASTE_END.len();
            self.pasting = false;
        }
        Some(InputEvent::Paste(text))
    }
}

/// The length of the first event in the buffer; `None` if the buffer is empty.
fn length(bytes: &[u8]) -> Option<Length> {
    let complete = |end: usize| Length::Complete(end);
    Some(match bytes {
        [] => return None,
        [0x1b] => Length::Incomplete,
        [0x1b, b'[', rest @ ..] => {
            // The oldest mouse reports end in three arbitrary bytes, or in three characters if the
            // program requested UTF-8.
            if rest.first() == Some(&b'M') {
                return Some(
                    mouse_end(&rest[1..]).map_or(Length::Incomplete, |end| complete(end + 3)),
                );
            }
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            let broken = rest.iter().position(|byte| !(0x20..=0x7e).contains(byte));
            match (end, broken) {
                (Some(end), None) => complete(end + 3),
                (Some(end), Some(broken)) if end < broken => complete(end + 3),
                (_, Some(broken)) => complete(broken + 2),
                (None, None) => Length::Incomplete,
            }
        }
        [0x1b, b'O', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if rest.len() > digits { complete(digits + 3) } else { Length::Incomplete }
        }
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => string_end(rest)?,
        // Of many escapes, only the last two belong to the bytes that follow.
        [0x1b, 0x1b, 0x1b, ..] => complete(1),
        [0x1b, 0x1b, ..] => match length(&bytes[1..])? {
            Length::Complete(length) if length > 1 => complete(length + 1),
            Length::Complete(_) => complete(1),
            Length::Incomplete => Length::Incomplete,
        },
        [0x1b, rest @ ..] => match character(rest) {
            Some(length) => complete(1 + length),
            None => Length::Incomplete,
        },
        rest => character(rest).map_or(Length::Incomplete, complete),
    })
}

/// Where a string in a terminal's reply ends.
fn string_end(rest: &[u8]) -> Option<Length> {
    let bell = rest.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
    let mark = rest.windows(2).position(|pair| pair == b"\x1b\\").map(|at| at + 2);
    let end = bell.into_iter().chain(mark).min();
    Some(end.map_or(Length::Incomplete, |end| Length::Complete(end + 2)))
}

/// Where the three numbers of the oldest mouse reports end; `None` if incomplete.
fn mouse_end(rest: &[u8]) -> Option<usize> {
    let mut end = 0;
    for _ in 0..3 {
        end += match rest.get(end..)? {
            [] => return None,
            [0xc2..=0xdf, 0x80..=0xbf, ..] => 2,
            [0xc2..=0xdf] => return None,
            _ => 1,
        };
    }
    Some(end)
}

/// The length of the first character; `None` if incomplete.
fn character(bytes: &[u8]) -> Option<usize> {
    let length = match bytes.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let follows = bytes.iter().skip(1).take(length - 1);
    match follows.clone().all(|byte| (0x80..0xc0).contains(byte)) {
        true if bytes.len() < length => None,
        true => Some(length),
        false => Some(1),
    }
}

fn event(raw: Vec<u8>) -> InputEvent {
    match raw.as_slice() {
        b"\x1b[I" => InputEvent::Focus(true),
        b"\x1b[O" => InputEvent::Focus(false),
        [0x1b, b'[', b'M', ..] if raw.len() > 6 => InputEvent::Reply(TerminalReply::Other),
        [0x1b, b'[', b'M', code, x, y] => InputEvent::Mouse(MouseEvent {
            code: u16::from(code.saturating_sub(32)),
            x: u16::from(x.saturating_sub(33)),
            y: u16::from(y.saturating_sub(33)),
            released: code & 3 == 3 && code & 64 == 0,
        }),
        [0x1b, b'[', b'<', inner @ .., b'M' | b'm'] => match mouse(inner, raw.ends_with(b"m")) {
            Some(mouse) => InputEvent::Mouse(mouse),
            None => InputEvent::Reply(TerminalReply::Other),
        },
        [0x1b, b'[', b'?', flags @ .., b'u'] => {
            let flags = std::str::from_utf8(flags).ok().and_then(|flags| flags.parse().ok());
            InputEvent::Reply(flags.map_or(TerminalReply::Other, TerminalReply::KittyKeyboard))
        }
        [0x1b, b'[', b'?', .., b'c'] => InputEvent::Reply(TerminalReply::Attributes),
        [0x1b, b'[', b'?', mode @ .., b'$', b'y'] => {
            InputEvent::Reply(mode_reply(mode).unwrap_or(TerminalReply::Other))
        }
        [0x1b, b'P', text @ .., 0x1b, b'\\'] | [0x1b, b'P', text @ .., 0x07] => {
            InputEvent::Reply(TerminalReply::String(text.to_vec()))
        }
        [0x1b, b'[', rest @ .., last] if is_reply(rest, *last) => {
            InputEvent::Reply(TerminalReply::Other)
        }
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', _, ..] => InputEvent::Reply(TerminalReply::Other),
        _ => InputEvent::Key(key_event(raw)),
    }
}

/// Whether a CSI sequence with these parameters is a reply and not a key.
fn is_reply(parameters: &[u8], last: u8) -> bool {
    match last {
        b'c' | b'n' | b'y' => matches!(parameters.first(), Some(b'?' | b'>' | b'0'..=b'9')),
        // A cursor report looks like F3 with modifiers, except that F3 begins with a 1.
        b'R' => !parameters.is_empty() && !parameters.starts_with(b"1;"),
        b't' => true,
        // A mouse report with three numbers, in urxvt's encoding.
        b'M' => parameters.first().is_some_and(u8::is_ascii_digit),
        _ => matches!(parameters.first(), Some(b'?' | b'>' | b'<' | b'=')),
    }
}

/// The number and the state in a report about a mode.
fn mode_reply(parameters: &[u8]) -> Option<TerminalReply> {
    let (mode, state) = std::str::from_utf8(parameters).ok()?.split_once(';')?;
    Some(TerminalReply::Mode(mode.parse().ok()?, state.parse().ok()?))
}

fn mouse(parameters: &[u8], released: bool) -> Option<MouseEvent> {
    let mut numbers = std::str::from_utf8(parameters).ok()?.split(';').map(str::parse::<u16>);
    let (code, x, y) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(MouseEvent { code, x: x.saturating_sub(1), y: y.saturating_sub(1), released })
}

fn key_event(raw: Vec<u8>) -> KeyEvent {
    match raw.as_slice() {
        [0x1b, b'[', inner @ .., b'u'] => {
            let (key, released) = kitty(inner);
            KeyEvent { key, released, encoding: KeyEncoding::Kitty, raw }
        }
        [0x1b, b'[', b'2', b'7', b';', inner @ .., b'~'] => KeyEvent {
            key: modify_other(inner),
            released: false,
            encoding: KeyEncoding::ModifyOther,
            raw,
        },
        [0x1b, b'[' | b'O', inner @ .., last] => {
            let (key, released, kitty) = function(inner, *last);
            let encoding = if kitty { KeyEncoding::Kitty } else { KeyEncoding::Legacy };
            KeyEvent { key, released, encoding, raw }
        }
        _ => legacy(raw),
    }
}

fn numbers(text: &[u8]) -> Vec<Vec<u32>> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let parts = text.split(';');
    parts.map(|part| part.split(':').map(|n| n.parse().unwrap_or(0)).collect()).collect()
}

fn number(all: &[Vec<u32>], part: usize, sub: usize) -> u32 {
    all.get(part).and_then(|part| part.get(sub)).copied().unwrap_or(0)
}

fn with_modifiers(code: KeyCode, modifiers: u32) -> Key {
    let held = modifiers.saturating_sub(1);
    let mut key = Key::from(code);
    (key.shift, key.alt) = (held & 1 != 0, held & 2 != 0);
    (key.ctrl, key.logo) = (held & 4 != 0, held & 8 != 0);
    key
}

const RELEASE: u32 = 3;

fn kitty(inner: &[u8]) -> (Option<Key>, bool) {
    let all = numbers(inner);
    let released = number(&all, 1, 1) == RELEASE;
    let code = match number(&all, 0, 0) {
        9 => Some(KeyCode::Tab),
        13 => Some(KeyCode::Enter),
        27 => Some(KeyCode::Escape),
        127 => Some(KeyCode::Backspace),
        // The keypad's digits and signs.
        n @ 57399..=57408 => char::from_digit(n - 57399, 10).map(KeyCode::Char),
        57409 => Some(KeyCode::Char('.')),
        57410 => Some(KeyCode::Char('/')),
        57411 => Some(KeyCode::Char('*')),
        57412 => Some(KeyCode::Char('-')),
        57413 => Some(KeyCode::Char('+')),
        57414 => Some(KeyCode::Enter),
        57417 => Some(KeyCode::Left),
        57418 => Some(KeyCode::Right),
        57419 => Some(KeyCode::Up),
        57420 => Some(KeyCode::Down),
        57421 => Some(KeyCode::PageUp),
        57422 => Some(KeyCode::PageDown),
        57423 => Some(KeyCode::Home),
        57424 => Some(KeyCode::End),
        57425 => Some(KeyCode::Insert),
        57426 => Some(KeyCode::Delete),
        // Other keys of the private use area have no name here.
        57344..=63743 => None,
        n => char::from_u32(n).map(KeyCode::Char),
    };
    let mut key = code.map(|code| with_modifiers(code, number(&all, 1, 0)));
    // The shifted character is reported if the program requested it.
    let shifted = char::from_u32(number(&all, 0, 1)).filter(|c| *c != '\0');
    if let (Some(key), Some(shifted)) = (&mut key, shifted)
        && key.shift
        && !key.ctrl
    {
        key.code = KeyCode::Char(shifted);
        key.shift = false;
    }
    (key, released)
}

fn modify_other(inner: &[u8]) -> Option<Key> {
    let all = numbers(inner);
    let code = match number(&all, 1, 0) {
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Escape,
        127 => KeyCode::Backspace,
        n => KeyCode::Char(char::from_u32(n)?),
    };
    Some(with_modifiers(code, number(&all, 0, 0)))
}

/// Keys with their own sequence: which, whether released, and whether only the kitty keyboard encodes
/// it this way.
fn function(inner: &[u8], last: u8) -> (Option<Key>, bool, bool) {
    let all = numbers(inner);
    let code = match last {
        b'A' => Some(KeyCode::Up),
        b'B' => Some(KeyCode::Down),
        b'C' => Some(KeyCode::Right),
        b'D' => Some(KeyCode::Left),
        b'H' => Some(KeyCode::Home),
        b'F' => Some(KeyCode::End),
        b'P'..=b'S' => Some(KeyCode::Function(last - b'P' + 1)),
        b'Z' => Some(KeyCode::Tab),
        b'~' => tilde(number(&all, 0, 0)),
        _ => None,
    };
    let mut key = code.map(|code| with_modifiers(code, number(&all, 1, 0)));
    if last == b'Z'
        && let Some(key) = &mut key
    {
        key.shift = true;
    }
    let event = number(&all, 1, 1);
    (key, event == RELEASE, event != 0)
}

fn tilde(number: u32) -> Option<KeyCode> {
    const FUNCTIONS: [u32; 16] = [15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34];
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=14 => KeyCode::Function(number as u8 - 10),
        number => {
            let index = FUNCTIONS.iter().position(|known| *known == number)?;
            KeyCode::Function(index as u8 + 5)
        }
    })
}

/// A character, a control character, or alt and one of them.
fn legacy(raw: Vec<u8>) -> KeyEvent {
    let (alt, rest) = match raw.as_slice() {
        [0x1b, rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let key = match rest {
        [0x1b, b'[' | b'O', inner @ .., last] => function(inner, *last).0,
        [byte] if *byte < 0x20 || *byte == 0x7f => Some(control(*byte)),
        rest => {
            let text = std::str::from_utf8(rest).ok();
            let mut characters = text.unwrap_or_default().chars();
            let first = characters.next();
            first.filter(|_| characters.next().is_none()).map(|c| Key::from(KeyCode::Char(c)))
        }
    };
    let key = key.map(|key| Key { alt: alt || key.alt, ..key });
    KeyEvent { key, released: false, encoding: KeyEncoding::Legacy, raw }
}

fn control(byte: u8) -> Key {
    let ctrl = |character: char| Key { ctrl: true, ..Key::from(KeyCode::Char(character)) };
    match byte {
        0x09 => KeyCode::Tab.into(),
        0x0d => KeyCode::Enter.into(),
        0x1b => KeyCode::Escape.into(),
        0x7f => KeyCode::Backspace.into(),
        0x00 => ctrl(' '),
        0x1c..=0x1f => ctrl(char::from(byte - 0x1c + b'\\')),
        byte => ctrl(char::from(byte - 1 + b'a')),
    }
}
