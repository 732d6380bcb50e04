//! Splits a terminal's bytes into text, controls and escape sequences, across chunks of any size. Both
//! the screen and the stripper use it, so that they agree on what is text.

use std::str;

/// Longest OSC or DCS string kept: enough for most clipboards, but a hostile program cannot exhaust
/// memory. A longer one is dropped entirely.
const STRING_LIMIT: usize = 256 << 10;

/// Strings are short; capacity beyond this is freed after each.
const STRING_KEPT: usize = 4 << 10;

/// Parameters of one CSI sequence; as many as in xterm.js. More are ignored.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// Shown in place of bytes that are not valid UTF-8. Callers subtract a text's length from the position
/// at its end to find its beginning, so the position reported is the beginning plus this length.
const REPLACEMENT: &str = "\u{fffd}";

/// Receives what the parser finds.
pub(crate) trait Actions {
    /// How many bytes of this chunk have been parsed when the next action is reported.
    fn reached(&mut self, _bytes: usize) {}
    /// Printable ASCII.
    fn ascii(&mut self, text: &[u8]);
    /// Text without ASCII.
    fn unicode(&mut self, text: &str);
    /// A C0 control that the parser does not handle itself.
    fn control(&mut self, byte: u8);
    /// `ESC`, intermediates, final byte.
    fn escape(&mut self, _intermediates: &[u8], _last: u8) {}
    /// A control sequence.
    fn csi(&mut self, _sequence: &Csi) {}
    /// An operating system command, and whether BEL ended it.
    fn osc(&mut self, _text: &[u8], _by_bell: bool) {}
    /// A device control string.
    fn dcs(&mut self, _head: &Csi, _text: &[u8]) {}
}

/// The head of a CSI or DCS sequence.
#[derive(Debug, Clone)]
pub(crate) struct Csi {
    values: [u16; MAX_PARAMETERS],
    /// Bit i: value i follows a colon, so it belongs to the value before it.
    joined: u32,
    count: usize,
    /// `<`, `=`, `>` or `?` in front, else 0.
    pub(crate) marker: u8,
    /// The last intermediate byte, else 0. No known sequence has two.
    pub(crate) intermediate: u8,
    /// The final byte.
    pub(crate) last: u8,
}

impl Csi {
    pub(crate) fn new() -> Self {
        Self {
            values: [0; MAX_PARAMETERS],
            joined: 0,
            count: 0,
            marker: 0,
            intermediate: 0,
            last: 0,
        }
    }

    /// Reads a sequence of parameters and a final byte at the start of `bytes`, which follow `ESC [`; returns its
    /// length. `None` if it is not complete, or has anything else in it: [`Parser`] reads those byte by byte.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        self.clear();
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' => self.digit(byte),
                b';' | b':' => self.separator(byte == b':'),
                0x40..0x7f => {
                    self.finish(byte);
                    return Some(at + 1);
                }
                _ => return None,
            }
        }
        None
    }

    fn clear(&mut self) {
        (self.joined, self.count, self.marker, self.intermediate, self.last) = (0, 0, 0, 0, 0);
        self.values[0] = 0;
    }

    /// The parameter at `index`; 0 if there is none.
    pub(crate) fn get(&self, index: usize) -> u16 {
        if index < self.len() { self.values[index] } else { 0 }
    }

    /// The parameter at `index` as a count: at least 1.
    pub(crate) fn count(&self, index: usize) -> usize {
        usize::from(self.get(index).max(1))
    }

    /// How many parameters there are; an empty list is one 0.
    pub(crate) fn len(&self) -> usize {
        self.count.max(1)
    }

    /// All parameters, without the colons between them.
    pub(crate) fn values(&self) -> &[u16] {
        &self.values[..self.len()]
    }

    /// How many of the parameters from `index` on are joined to the one before by colons.
    pub(crate) fn joined_from(&self, index: usize) -> usize {
        if self.joined == 0 {
            return 0;
        }
        (index..self.len()).take_while(|&index| self.joined & (1 << index) != 0).count()
    }

    /// All parameters, each with whether it is joined to the one before by a colon.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, bool)> + '_ {
        (0..self.len()).map(|i| (self.values[i], self.joined & (1 << i) != 0))
    }

    fn digit(&mut self, digit: u8) {
        if self.count == 0 {
            self.count = 1;
        }
        if self.count <= MAX_PARAMETERS {
            let value = &mut self.values[self.count - 1];
            *value = value.saturating_mul(10).saturating_add(u16::from(digit - b'0'));
        }
    }

    fn separator(&mut self, colon: bool) {
        self.count = self.count.max(1);
        if self.count < MAX_PARAMETERS {
            self.values[self.count] = 0;
            self.joined |= u32::from(colon) << self.count;
        }
        // One more than the maximum: further digits are ignored.
        self.count = (self.count + 1).min(MAX_PARAMETERS + 1);
    }

    fn finish(&mut self, last: u8) {
        self.count = self.count.min(MAX_PARAMETERS);
        self.last = last;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Csi {
        dcs: bool,
        ignored: bool,
    },
    Osc,
    Dcs,
    /// SOS, PM, APC and malformed DCS: skipped up to their end.
    Swallow,
}

/// The parser's state between chunks.
#[derive(Debug)]
pub(crate) struct Parser {
    state: State,
    head: Csi,
    intermediates: [u8; 2],
    intermediate_count: usize,
    string: Vec<u8>,
    string_too_long: bool,
    /// The beginning of a character that continues in the next chunk.
    partial: [u8; 4],
    partial_len: usize,
}

impl Parser {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Ground,
            head: Csi::new(),
            intermediates: [0; 2],
            intermediate_count: 0,
            string: Vec::new(),
            string_too_long: false,
            partial: [0; 4],
            partial_len: 0,
        }
    }

    /// Bytes that bring a fresh parser into the same state, in the middle of a character or a sequence.
    pub(crate) fn pending(&self) -> Vec<u8> {
        let head = || {
            let mut text = String::new();
            text.extend((self.head.marker != 0).then_some(char::from(self.head.marker)));
            for (index, (value, joined)) in self.head.all().enumerate() {
                text.extend((index > 0).then_some(if joined { ':' } else { ';' }));
                if value > 0 {
                    text.push_str(&value.to_string());
                }
            }
            text.extend((self.head.intermediate != 0).then_some(self.head.intermediate as char));
            text
        };
        let intermediates = &self.intermediates[..self.intermediate_count.min(2)];
        match self.state {
            State::Ground => self.partial[..self.partial_len].to_vec(),
            State::Escape => [b"\x1b", intermediates].concat(),
            State::Csi { ignored: true, dcs } => if dcs { b"\x1bP0<" } else { b"\x1b[0<" }.to_vec(),
            State::Csi { dcs, .. } => {
                [if dcs { b"\x1bP" } else { b"\x1b[" }, head().as_bytes()].concat()
            }
            State::Swallow => b"\x1bX".to_vec(),
            State::Osc | State::Dcs if self.string_too_long => b"\x1bX".to_vec(),
            State::Osc => [b"\x1b]", self.string.as_slice()].concat(),
            State::Dcs => {
                let last = [self.head.last];
                [b"\x1bP", head().as_bytes(), &last, &self.string].concat()
            }
        }
    }

    /// Whether the next byte begins something new.
    pub(crate) fn is_ground(&self) -> bool {
        self.state == State::Ground && self.partial_len == 0
    }

    /// Parses one chunk.
    pub(crate) fn advance(&mut self, bytes: &[u8], actions: &mut impl Actions) {
        let mut at = 0;
        while at < bytes.len() {
            at += match self.state {
                State::Ground => self.ground(bytes, at, actions),
                State::Osc | State::Dcs => self.string(bytes, at, actions),
                State::Swallow => self.swallow(&bytes[at..]),
                State::Escape if bytes[at] >= 0x80 => {
                    // Not part of a sequence: the character is text.
                    self.state = State::Ground;
                    0
                }
                State::Escape | State::Csi { .. } => {
                    actions.reached(at + 1);
                    self.sequence(bytes[at], actions);
                    1
                }
            };
        }
    }

    fn ground(&mut self, bytes: &[u8], at: usize, actions: &mut impl Actions) -> usize {
        let rest = &bytes[at..];
        if self.partial_len > 0 {
            return self.complete(rest, at, actions);
        }
        let plain = printable_ascii(rest);
        if plain > 0 {
            actions.reached(at + plain);
            actions.ascii(&rest[..plain]);
            return plain;
        }
        match rest[0] {
            0x1b => {
                if rest.get(1) == Some(&b'[')
                    && let Some(length) = self.head.read(&rest[2..])
                {
                    actions.reached(at + 2 + length);
                    actions.csi(&self.head);
                    return 2 + length;
                }
                self.enter_escape();
                1
            }
            0x7f => 1,
            control @ 0..0x20 => {
                actions.reached(at + 1);
                actions.control(control);
                1
            }
            _ => {
                let end = leading(rest, |byte| byte >= 0x80);
                self.unicode(&rest[..end], at, end == rest.len(), actions);
                end
            }
        }
    }

    /// Parses non-ASCII bytes at position `at` of the chunk; an incomplete character at the end is kept for
    /// the next chunk.
    fn unicode(
        &mut self,
        mut bytes: &[u8],
        mut at: usize,
        may_continue: bool,
        actions: &mut impl Actions,
    ) {
        while !bytes.is_empty() {
            let error = match str::from_utf8(bytes) {
                Ok(text) => {
                    actions.reached(at + bytes.len());
                    return actions.unicode(text);
                }
                Err(error) => error,
            };
            let (good, bad) = bytes.split_at(error.valid_up_to());
            at += good.len();
            if let Ok(text) = str::from_utf8(good)
                && !text.is_empty()
            {
                actions.reached(at);
                actions.unicode(text);
            }
            match error.error_len() {
                None if may_continue => {
                    self.partial[..bad.len()].copy_from_slice(bad);
                    self.partial_len = bad.len();
                    return;
                }
                length => {
                    let length = length.unwrap_or(bad.len());
                    actions.reached(at + REPLACEMENT.len());
                    actions.unicode(REPLACEMENT);
                    at += length;
                    bytes = &bad[length..];
                }
            }
        }
    }

    /// Completes a character that began in an earlier chunk; returns the bytes used.
    fn complete(&mut self, bytes: &[u8], at: usize, actions: &mut impl Actions) -> usize {
        for (used, &byte) in bytes.iter().enumerate() {
            self.partial[self.partial_len] = byte;
            let tried = self.partial;
            match str::from_utf8(&tried[..=self.partial_len]) {
                Ok(text) => {
                    self.partial_len = 0;
                    actions.reached(at + used + 1);
                    actions.unicode(text);
                    return used + 1;
                }
                Err(error) if error.error_len().is_none() && error.valid_up_to() == 0 => {
                    self.partial_len += 1;
                }
                Err(_) => {
                    // The new byte does not belong to it and is parsed again.
                    let begun = std::mem::take(&mut self.partial_len);
                    actions.reached(at + used + REPLACEMENT.len() - begun);
                    actions.unicode(REPLACEMENT);
                    return used;
                }
            }
        }
        bytes.len()
    }

    fn enter_escape(&mut self) {
        self.state = State::Escape;
        self.intermediate_count = 0;
    }

    fn sequence(&mut self, byte: u8, actions: &mut impl Actions) {
        match byte {
            0x18 | 0x1a => self.state = State::Ground,
            0x1b => self.enter_escape(),
            0x7f => {}
            0..0x20 => {
                // A control inside a sequence acts as if it came before it, except in a DCS.
                if !matches!(self.state, State::Csi { dcs: true, .. }) {
                    actions.control(byte);
                }
            }
            _ => match self.state {
                State::Csi { dcs, ignored } => self.csi(byte, dcs, ignored, actions),
                _ => self.escape(byte, actions),
            },
        }
    }

    fn escape(&mut self, byte: u8, actions: &mut impl Actions) {
        match byte {
            0x20..0x30 => {
                if self.intermediate_count < 2 {
                    self.intermediates[self.intermediate_count] = byte;
                }
                self.intermediate_count += 1;
                return;
            }
            _ if self.intermediate_count > 0 => {}
            b'[' | b'P' => {
                self.head.clear();
                self.state = State::Csi { dcs: byte == b'P', ignored: false };
                return;
            }
            b']' => return self.begin_string(State::Osc),
            b'X' | b'^' | b'_' => return self.state = State::Swallow,
            _ => {}
        }
        self.state = State::Ground;
        if byte < 0x80 && self.intermediate_count <= 2 {
            actions.escape(&self.intermediates[..self.intermediate_count], byte);
        }
    }

    fn csi(&mut self, byte: u8, dcs: bool, ignored: bool, actions: &mut impl Actions) {
        let head = &mut self.head;
        let broken = match byte {
            b'0'..=b'9' if head.intermediate == 0 => {
                head.digit(byte);
                false
            }
            b';' | b':' if head.intermediate == 0 => {
                head.separator(byte == b':');
                false
            }
            b'<'..=b'?' if head.count == 0 && head.intermediate == 0 && head.marker == 0 => {
                head.marker = byte;
                false
            }
            0x20..0x30 => {
                let second = head.intermediate != 0;
                head.intermediate = byte;
                second
            }
            0x40..0x7f => return self.finish(byte, dcs, ignored, actions),
            _ => true,
        };
        self.state = State::Csi { dcs, ignored: ignored || broken };
    }

    fn finish(&mut self, last: u8, dcs: bool, ignored: bool, actions: &mut impl Actions) {
        self.head.finish(last);
        match (dcs, ignored) {
            (true, false) => self.begin_string(State::Dcs),
            (true, true) => self.state = State::Swallow,
            (false, _) => {
                self.state = State::Ground;
                if !ignored {
                    actions.csi(&self.head);
                }
            }
        }
    }

    fn begin_string(&mut self, state: State) {
        self.state = state;
        self.string.clear();
        self.string_too_long = false;
    }

    fn string(&mut self, bytes: &[u8], at: usize, actions: &mut impl Actions) -> usize {
        let rest = &bytes[at..];
        let end = leading(rest, |byte| byte >= 0x20);
        if self.string.len() + end <= STRING_LIMIT {
            self.string.extend_from_slice(&rest[..end]);
        } else {
            self.string_too_long = true;
        }
        let Some(&byte) = rest.get(end) else { return end };
        let osc = self.state == State::Osc;
        match byte {
            0x18 | 0x1a => self.state = State::Ground,
            0x1b => {
                actions.reached(at + end + 1);
                self.end_string(osc, false, actions);
                self.enter_escape();
            }
            0x07 if osc => {
                actions.reached(at + end + 1);
                self.end_string(osc, true, actions);
                self.state = State::Ground;
            }
            _ => {}
        }
        end + 1
    }

    fn end_string(&mut self, osc: bool, by_bell: bool, actions: &mut impl Actions) {
        if self.string_too_long {
        } else if osc {
            actions.osc(&self.string, by_bell);
        } else {
            actions.dcs(&self.head, &self.string);
        }
        self.string.clear();
        self.string.shrink_to(STRING_KEPT);
    }

    fn swallow(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = memchr::memchr3(0x18, 0x1a, 0x1b, bytes) else {
            return bytes.len();
        };
        match bytes[end] {
            0x1b => self.enter_escape(),
            _ => self.state = State::Ground,
        }
        end + 1
    }
}

/// The number of printable ASCII bytes at the start.
pub(crate) fn printable_ascii(bytes: &[u8]) -> usize {
    leading(bytes, |byte| byte.wrapping_sub(0x20) < 0x5f)
}

/// The number of bytes at the start that are all of one kind.
#[inline]
fn leading(bytes: &[u8], is_kind: impl Fn(u8) -> bool) -> usize {
    // Sixteen at a time without a branch: compiles to vector instructions.
    const STEP: usize = 16;
    let mut length = 0;
    for chunk in bytes.chunks_exact(STEP) {
        if !chunk.iter().fold(true, |all, byte| all & is_kind(*byte)) {
            break;
        }
        length += STEP;
    }
    let rest = &bytes[length..];
    length + rest.iter().position(|byte| !is_kind(*byte)).unwrap_or(rest.len())
}
