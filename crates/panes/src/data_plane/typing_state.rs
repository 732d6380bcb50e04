//! The state of a person's typing: when they last typed, and whether they left a draft. Only keys and pastes count;
//! reports that a terminal sends by itself do not ([`patterm_screen::input`] tells them apart).

use patterm_screen::input::{InputEvent, InputParser, KeyEvent};
use patterm_screen::keys::{Key, KeyCode};
use tokio::time::Instant;

/// The state of typing into a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct TypingState {
    /// When a person last typed.
    pub typed: Option<Instant>,
    /// When there was last input from anyone but patterm itself.
    pub written: Option<Instant>,
    /// How many keys and pastes there were from anyone but patterm itself.
    pub keys: u64,
    /// Text was typed and neither submitted nor discarded.
    pub draft: bool,
    /// The number of letters in it.
    letters: usize,
    /// Whether any of them is visible, not blank.
    visible: bool,
}

impl TypingState {
    /// Applies input that arrived at `now`.
    pub(super) fn note(&mut self, typed: Typed, now: Instant) {
        if typed.any {
            self.typed = Some(now);
        }
        let is_erased = typed.erased > 0 || typed.word_erased;
        if typed.any || typed.begins || typed.letters > 0 || is_erased {
            self.written = Some(now);
        }
        self.keys += typed.keys;
        self.draft = typed.draft.unwrap_or(self.draft);
        if typed.begins {
            (self.letters, self.visible) = (0, false);
        }
        // Blanks are erased together with the word before them.
        if typed.word_erased && !self.visible {
            self.letters = 0;
        }
        self.letters = (self.letters + typed.letters).saturating_sub(typed.erased);
        self.visible = self.letters > 0 && (self.visible || typed.visible);
    }

    /// The draft consists of blanks only: a prompt with them looks empty.
    pub fn holds_blanks(&self) -> bool {
        self.holds_letters() && !self.visible
    }

    /// There is a draft, and it was not erased letter by letter.
    pub fn holds_letters(&self) -> bool {
        self.draft && self.letters > 0
    }
}

/// The effect of some input on the typing state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Typed {
    /// It contained a key or a paste.
    pub any: bool,
    /// The number of keys and pastes.
    pub(super) keys: u64,
    /// Whether it leaves a draft; `None` if it does not change that.
    pub(super) draft: Option<bool>,
    /// The draft before it was submitted or discarded.
    pub(super) begins: bool,
    /// Letters typed since then.
    pub(super) letters: usize,
    /// Whether any of them is visible.
    pub(super) visible: bool,
    /// Letters erased since then.
    pub(super) erased: usize,
    /// A word was erased before any visible letter was typed, and all blanks before it too.
    pub(super) word_erased: bool,
}

impl Typed {
    fn add(&mut self, token: &InputEvent) {
        self.any |= token.is_typed();
        self.keys += u64::from(token.is_typed());
        self.draft = leaves_draft(token).or(self.draft);
        match token {
            InputEvent::Paste(text) => self.write(&String::from_utf8_lossy(text)),
            InputEvent::Key(KeyEvent { key: Some(key), released: false, .. }) => match key.code {
                _ if erases_word(key) => self.erase_word(),
                KeyCode::Backspace => self.erased += 1,
                KeyCode::Char(letter) if leaves_draft(token) == Some(true) => {
                    self.write(letter.encode_utf8(&mut [0; 4]));
                }
                _ if leaves_draft(token) == Some(false) => self.begin(),
                _ => {}
            },
            _ => {}
        }
    }

    fn begin(&mut self) {
        let Self { any, keys, draft, .. } = *self;
        *self = Self { any, keys, draft, begins: true, ..Self::default() };
    }

    /// The length of the word is unknown; blanks are erased together with the word before them.
    fn erase_word(&mut self) {
        if !self.visible {
            (self.letters, self.erased, self.word_erased) = (0, 0, true);
        }
    }

    fn write(&mut self, text: &str) {
        self.letters += text.chars().count();
        self.visible |= text.chars().any(|letter| !letter.is_whitespace());
    }

    /// This input followed by another.
    fn then(mut self, next: Self) -> Self {
        self.any |= next.any;
        self.keys += next.keys;
        self.draft = next.draft.or(self.draft);
        if next.begins {
            self.begin();
        }
        if next.word_erased {
            self.erase_word();
        }
        self.letters += next.letters;
        self.visible |= next.visible;
        self.erased += next.erased;
        self
    }
}

/// Finds keys and pastes in the input of one view, however it is split.
#[derive(Debug, Default)]
pub struct Typist {
    parser: InputParser,
}

impl Typist {
    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Typed {
        let is_plain = !self.is_waiting() && !self.parser.is_pasting() && !bytes.contains(&0x1b);
        if is_plain {
            return plain(bytes);
        }
        self.parser.feed(bytes);
        let mut typed = Typed::default();
        while let Some(token) = self.parser.next_event() {
            typed.add(&token);
        }
        // The text of a paste is counted when it is complete.
        typed.any |= self.parser.is_pasting();
        typed
    }

    /// Reads input that is known to be complete.
    pub(super) fn read_whole(mut self, bytes: &[u8]) -> Typed {
        let typed = self.read(bytes);
        let last = self.settle();
        typed.then(last)
    }

    /// Whether an escape may be the beginning of a sequence.
    pub fn is_waiting(&self) -> bool {
        self.parser.has_pending()
    }

    /// Nothing followed the escape: it was the key.
    pub fn settle(&mut self) -> Typed {
        let mut typed = Typed::default();
        while let Some(token) = self.parser.flush() {
            typed.add(&token);
        }
        typed
    }
}

/// Ctrl+W, which erases a word.
const ERASE_WORD: u8 = 0x17;

fn erases_word(key: &Key) -> bool {
    match key.code {
        KeyCode::Backspace => key.alt || key.ctrl,
        KeyCode::Char('w') => key.ctrl,
        _ => false,
    }
}

/// The fast path for input without escape sequences, which may be long.
fn plain(bytes: &[u8]) -> Typed {
    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0x03 | 0x04 | 0x15);
    let is_text = |byte: &u8| !byte.is_ascii_control();
    // Not a later byte of a character of several bytes.
    let is_first = |byte: &&u8| **byte & 0xc0 != 0x80;
    let draft = bytes.iter().rev().find(|byte| ends(byte) || is_text(byte)).map(is_text);
    let end = bytes.iter().rposition(ends);
    let mut line = &bytes[end.map_or(0, |end| end + 1)..];
    let is_blank = |line: &[u8]| !line.iter().any(|byte| is_text(byte) && *byte != b' ');
    let last_word = |line: &[u8]| line.iter().rposition(|byte| *byte == ERASE_WORD);
    let erased = last_word(line).filter(|at| is_blank(&line[..*at]));
    if let Some(at) = erased {
        line = &line[at + 1..];
    }
    Typed {
        any: !bytes.is_empty(),
        keys: bytes.iter().filter(|byte| is_first(byte)).count() as u64,
        draft,
        begins: end.is_some(),
        word_erased: erased.is_some(),
        letters: line.iter().filter(|byte| is_text(byte)).count(),
        visible: line.iter().any(|byte| is_text(byte) && *byte != b' '),
        erased: line.iter().filter(|byte| matches!(byte, 0x7f | 0x08)).count(),
    }
}

/// Whether there is a draft after this event; `None` if it does not change that.
fn leaves_draft(token: &InputEvent) -> Option<bool> {
    match token {
        InputEvent::Paste(text) => (!text.is_empty()).then_some(true),
        InputEvent::Key(KeyEvent { key: Some(key), released: false, .. }) => match key.code {
            // These submit or discard the line.
            KeyCode::Enter | KeyCode::Escape => (!key.shift && !key.alt).then_some(false),
            KeyCode::Char('c' | 'd' | 'u' | 'j') if key.ctrl => Some(false),
            KeyCode::Char(_) if !key.ctrl && !key.alt && !key.logo => Some(true),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_text_that_was_typed_and_not_submitted() {
        let (mut typing, mut typist) = (TypingState::default(), Typist::default());
        for (typed, draft) in [
            ("h", true),
            ("\x1b[D", true),
            ("\r", false),
            ("\x1b[A", false),
            ("ls\r", false),
            ("ls\rl\x01", true),
            ("\x1b[200~two\rlines\x1b[201~", true),
            ("\x03", false),
            ("\x1b[<0;1;1M", false),
            ("é", true),
            ("\x1b[13;2u", true),
            ("\x1b[13u", false),
            ("\x1b[97u", true),
            ("\x1b[99;5u", false),
            ("\x1b]11;rgb:00/00/00\x1b\\", false),
        ] {
            typing.note(typist.read(typed.as_bytes()), Instant::now());
            assert_eq!(typing.draft, draft, "{typed:?}");
        }
        typing.note(typist.read(b"x"), Instant::now());
        typing.note(typist.read(b"\x1b"), Instant::now());
        assert!(typing.draft && typist.is_waiting(), "it may be the beginning of a report");
        typing.note(typist.settle(), Instant::now());
        assert!(!typing.draft, "it was the key");
    }

    #[test]
    fn keys_and_pastes_are_counted() {
        let (mut typing, mut typist) = (TypingState::default(), Typist::default());
        for (typed, keys) in [
            ("y", 1),
            ("y\r", 3),
            ("é", 4),
            ("\x1b[B\r", 6),
            ("\x1b[200~two\rlines\x1b[201~", 7),
            ("\x1b[I\x1b[<35;10;3M", 7),
        ] {
            typing.note(typist.read(typed.as_bytes()), Instant::now());
            assert_eq!(typing.keys, keys, "{typed:?}");
        }
    }

    #[test]
    fn a_draft_of_blanks_is_known_though_it_is_invisible() {
        let (mut typing, mut typist) = (TypingState::default(), Typist::default());
        for (typed, blanks) in [
            (" ", true),
            ("  ", true),
            ("\x7f\x7f", true),
            ("\x7f", false),
            (" a", false),
            ("\x7f", false),
            ("\r ", true),
            ("\x1b[200~ \x1b[201~", true),
            ("\x1b[200~x\x1b[201~", false),
            ("\x03", false),
            // A word is erased: ctrl+w, alt+backspace, and the forms of ctrl+backspace and ctrl+w that newer
            // terminals send.
            ("   ", true),
            ("\x17", false),
            ("  ", true),
            ("\x1b\x7f", false),
            ("  ", true),
            ("\x1b[127;5u", false),
            ("  ", true),
            ("\x1b[119;5u", false),
            ("  \x17", false),
            ("  \x17 ", true),
            ("\x17", false),
            ("a  \x17", false),
        ] {
            typing.note(typist.read(typed.as_bytes()), Instant::now());
            assert_eq!(typing.holds_blanks(), blanks, "{typed:?}");
        }
    }

    #[test]
    fn focus_mouse_and_replies_do_not_count_as_typing_however_they_are_split() {
        for report in ["\x1b[I", "\x1b[O", "\x1b[<35;10;3M", "\x1b[?1;2c", "\x1bP>|t\x1b\\"] {
            for step in [1, 2, report.len()] {
                let mut typist = Typist::default();
                let read = report.as_bytes().chunks(step).map(|piece| typist.read(piece));
                assert!(read.into_iter().all(|typed| typed == Typed::default()), "{report:?}");
                assert!(!typist.is_waiting());
            }
        }
    }
}
