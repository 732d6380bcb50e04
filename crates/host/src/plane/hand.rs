//! A person's hand on a keyboard: when it last typed, and whether it left something unfinished. Only
//! keys and pastes count; what a terminal sends by itself does not
//! ([`patterm_screen::input`] tells them apart).

use patterm_screen::input::{InputEvent, InputParser, KeyEvent};
use patterm_screen::keys::{Key, KeyCode};
use tokio::time::Instant;

/// What is known of the person who types into a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hand {
    /// When something was last typed.
    pub(crate) typed: Option<Instant>,
    /// When something was last typed by anybody but patterm itself.
    pub(crate) written: Option<Instant>,
    /// Something was typed and neither entered nor given up.
    pub(crate) draft: bool,
    /// How many letters of it there are, and whether one of them can be seen.
    letters: usize,
    seen: bool,
}

impl Hand {
    /// Notes what was typed.
    pub(super) fn note(&mut self, typed: Typed) {
        if typed.any {
            self.typed = Some(Instant::now());
        }
        let is_erased = typed.erased > 0 || typed.word_erased;
        if typed.any || typed.begins || typed.letters > 0 || is_erased {
            self.written = Some(Instant::now());
        }
        self.draft = typed.draft.unwrap_or(self.draft);
        if typed.begins {
            (self.letters, self.seen) = (0, false);
        }
        // Of blanks nothing is left.
        if typed.word_erased && !self.seen {
            self.letters = 0;
        }
        self.letters = (self.letters + typed.letters).saturating_sub(typed.erased);
        self.seen = self.letters > 0 && (self.seen || typed.seen);
    }

    /// Only blanks were typed and not entered: a prompt that holds them looks empty.
    pub(crate) fn holds_blanks(&self) -> bool {
        self.holds_letters() && !self.seen
    }

    /// Something was typed and not entered, and not erased letter by letter.
    pub(crate) fn holds_letters(&self) -> bool {
        self.draft && self.letters > 0
    }
}

/// What a person typed among the bytes of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// There was a key or a paste.
    pub(crate) any: bool,
    /// Whether an unfinished text is left; `None` where that is as it was before.
    pub(super) draft: Option<bool>,
    /// What was there before is gone: it was entered or given up.
    pub(super) begins: bool,
    /// Letters since then, whether one of them can be seen, and how many were erased.
    pub(super) letters: usize,
    pub(super) seen: bool,
    pub(super) erased: usize,
    /// A word was erased before anything that can be seen was typed: all blanks before it went too.
    pub(super) word_erased: bool,
}

impl Typed {
    fn add(&mut self, token: &InputEvent) {
        self.any |= token.is_typed();
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
        *self = Self { any: self.any, draft: self.draft, begins: true, ..Self::default() };
    }

    /// How many letters a word has is not known; blanks are erased with the word before them.
    fn erase_word(&mut self) {
        if !self.seen {
            (self.letters, self.erased, self.word_erased) = (0, 0, true);
        }
    }

    fn write(&mut self, text: &str) {
        self.letters += text.chars().count();
        self.seen |= text.chars().any(|letter| !letter.is_whitespace());
    }

    /// The same with what was typed after it.
    fn and(mut self, next: Self) -> Self {
        self.any |= next.any;
        self.draft = next.draft.or(self.draft);
        if next.begins {
            self.begin();
        }
        if next.word_erased {
            self.erase_word();
        }
        self.letters += next.letters;
        self.seen |= next.seen;
        self.erased += next.erased;
        self
    }
}

/// Finds what a person typed in the input of one view, however it is cut.
#[derive(Debug, Default)]
pub(crate) struct Typist {
    parser: InputParser,
}

impl Typist {
    /// Takes bytes in.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Typed {
        let is_plain = !self.is_waiting() && !self.parser.is_pasting() && !bytes.contains(&0x1b);
        if is_plain {
            return plain(bytes);
        }
        self.parser.feed(bytes);
        let mut typed = Typed::default();
        while let Some(token) = self.parser.next_event() {
            typed.add(&token);
        }
        // The text of a paste comes when it is whole.
        typed.any |= self.parser.is_pasting();
        typed
    }

    /// The same for input that is known to be whole.
    pub(super) fn read_whole(mut self, bytes: &[u8]) -> Typed {
        let typed = self.read(bytes);
        let last = self.settle();
        typed.and(last)
    }

    /// Whether an escape waits for what may follow it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.parser.has_pending()
    }

    /// Nothing followed: it was the key.
    pub(crate) fn settle(&mut self) -> Typed {
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

/// The same for bytes without a sequence, of which there may be many.
fn plain(bytes: &[u8]) -> Typed {
    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0x03 | 0x04 | 0x15);
    let is_text = |byte: &u8| !byte.is_ascii_control();
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
        draft,
        begins: end.is_some(),
        word_erased: erased.is_some(),
        letters: line.iter().filter(|byte| is_text(byte)).count(),
        seen: line.iter().any(|byte| is_text(byte) && *byte != b' '),
        erased: line.iter().filter(|byte| matches!(byte, 0x7f | 0x08)).count(),
    }
}

/// Whether there is an unfinished text after this; `None` where it says nothing about that.
fn leaves_draft(token: &InputEvent) -> Option<bool> {
    match token {
        InputEvent::Paste(text) => (!text.is_empty()).then_some(true),
        InputEvent::Key(KeyEvent { key: Some(key), released: false, .. }) => match key.code {
            // The end of a line, of a thought, of a program.
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
    fn a_draft_is_what_was_typed_and_not_entered() {
        let (mut hand, mut typist) = (Hand::default(), Typist::default());
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
            hand.note(typist.read(typed.as_bytes()));
            assert_eq!(hand.draft, draft, "{typed:?}");
        }
        hand.note(typist.read(b"x"));
        hand.note(typist.read(b"\x1b"));
        assert!(hand.draft && typist.is_waiting(), "it may be the beginning of a report");
        hand.note(typist.settle());
        assert!(!hand.draft, "it was the key");
    }

    #[test]
    fn a_draft_of_blanks_is_known_though_it_is_not_seen() {
        let (mut hand, mut typist) = (Hand::default(), Typist::default());
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
            // A word is erased: ctrl+w, alt+backspace, and ctrl+backspace and ctrl+w as newer terminals send
            // them.
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
            hand.note(typist.read(typed.as_bytes()));
            assert_eq!(hand.holds_blanks(), blanks, "{typed:?}");
        }
    }

    #[test]
    fn focus_mouse_and_replies_are_no_typing_however_they_are_cut() {
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
