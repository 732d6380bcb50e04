//! Asks the user's terminal what it can do. `COLORTERM` does not survive ssh and sudo, and it reaches terminals that it
//! does not describe, so it only counts if the terminal does not answer.

use patterm_screen::input::TerminalReply;

/// Sets a 24-bit background and asks which style is set; also asks for the capability `RGB` (in hexadecimal). A
/// terminal that knows neither question still answers the last one, what kind of terminal it is.
pub(crate) const QUESTIONS: &[u8] =
    b"\x1b[48;2;1;2;3m\x1bP$qm\x1b\\\x1b[m\x1bP+q524742\x1b\\\x1b[c";

/// More questions, for a complete report: the keyboard's flags, and whether synchronized updates are known.
pub(crate) const MORE_QUESTIONS: &[u8] = b"\x1b[?u\x1b[?2026$p";

/// The reply that a capability exists, and its name.
const RGB_REPLY: &[u8] = b"1+r524742";

/// The background that [`QUESTIONS`] sets, as numbers.
const BACKGROUND: [&[u8]; 5] = [b"48", b"2", b"1", b"2", b"3"];

/// What the terminal has answered so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalFeatures {
    /// It has 24-bit colours; `None` if it has not said so.
    pub true_colour: Option<bool>,
    /// It has the kitty keyboard.
    pub kitty_keyboard: bool,
    /// It has synchronized updates, which prevent flickering.
    pub synchronized: bool,
    /// It has answered all questions that it knows.
    pub is_complete: bool,
}

impl TerminalFeatures {
    /// Takes a reply into account.
    pub(crate) fn note(&mut self, reply: &TerminalReply) {
        match reply {
            TerminalReply::Attributes => self.is_complete = true,
            TerminalReply::KittyKeyboard(_) => self.kitty_keyboard = true,
            // 1 and 2: the mode is known, and set or reset.
            TerminalReply::Mode(2026, 1 | 2) => self.synchronized = true,
            TerminalReply::String(text) if text.starts_with(RGB_REPLY) => {
                self.true_colour = Some(true);
            }
            TerminalReply::String(text) => {
                if let Some(style) = text.strip_prefix(b"1$r").and_then(|t| t.strip_suffix(b"m")) {
                    let kept = keeps_background(style);
                    self.true_colour = Some(kept || self.true_colour == Some(true));
                }
            }
            TerminalReply::Mode(..) | TerminalReply::Other => {}
        }
    }
}

/// Whether a style contains the background as it was set. Terminals separate the numbers by semicolons or colons, and
/// some add an empty colour space or 0.
fn keeps_background(style: &[u8]) -> bool {
    let numbers: Vec<&[u8]> = style.split(|byte| matches!(byte, b';' | b':')).collect();
    let with_space = |space: &'static [u8]| {
        let mut numbers = BACKGROUND.to_vec();
        numbers.insert(2, space);
        numbers
    };
    let forms = [BACKGROUND.to_vec(), with_space(b""), with_space(b"0")];
    forms.iter().any(|form| numbers.windows(form.len()).any(|found| found == form))
}

#[cfg(test)]
mod tests {
    use super::*;
    use patterm_screen::input::{InputEvent, InputParser};

    /// What is known after the terminal has sent these bytes.
    fn after(bytes: &str) -> TerminalFeatures {
        let (mut parser, mut features) = (InputParser::default(), TerminalFeatures::default());
        parser.feed(bytes.as_bytes());
        while let Some(event) = parser.next_event() {
            match event {
                InputEvent::Reply(reply) => features.note(&reply),
                other => panic!("{other:?} is not a reply"),
            }
        }
        features
    }

    #[test]
    fn the_answers_of_terminals_tell_whether_they_have_24_bit_colours() {
        for (answers, expected) in [
            // xterm, VTE, foot, kitty, WezTerm, iTerm2: various forms of the same style.
            ("\x1bP1$r0;48:2::1:2:3m\x1b\\\x1bP0+r\x1b\\\x1b[?65;1;9c", Some(true)),
            ("\x1bP1$r48:2:1:2:3m\x1b\\\x1b[?62;c", Some(true)),
            ("\x1bP1$r0;48;2;1;2;3m\x1b\\\x1b[?64;4c", Some(true)),
            ("\x1bP0$r\x1b\\\x1bP1+r524742=382F382F38\x1b\\\x1b[?62;22c", Some(true)),
            ("\x1bP1$r0m\x1b\\\x1bP1+r524742\x1b\\\x1b[?62c", Some(true)),
            // An xterm without them uses the nearest colour of its palette.
            ("\x1bP1$r0;48:5:16m\x1b\\\x1bP0+r524742\x1b\\\x1b[?64;1;2c", Some(false)),
            ("\x1bP1$r0m\x1b\\\x1b[?1;2c", Some(false)),
            // Alacritty and tmux know neither question.
            ("\x1b[?6c", None),
            ("\x1bP0$r\x1b\\\x1b[?1;2;4c", None),
        ] {
            let features = after(answers);
            assert_eq!(features.true_colour, expected, "{answers:?}");
            assert!(features.is_complete, "{answers:?}");
        }
        assert!(!after("\x1bP1$r0m\x1b\\").is_complete);
    }

    #[test]
    fn other_features_are_known_by_their_replies() {
        let features = after("\x1b[?0u\x1b[?2026;2$y\x1b[?62c");
        assert!(features.kitty_keyboard && features.synchronized && features.is_complete);
        assert!(!after("\x1b[?2026;0$y\x1b[?62c").synchronized, "0: unknown");
        assert!(!after("\x1b[?2004;1$y\x1b[?62c").synchronized, "another mode");
    }

    #[test]
    fn a_style_that_only_resembles_the_background_is_another() {
        for style in ["0;48:2::1:2:30", "0;38:2::1:2:3", "48;2;3;2;1", "", "0;148;2;1;2;3"] {
            assert!(!keeps_background(style.as_bytes()), "{style}");
        }
    }
}
