//! The user's terminal: its modes, with the keyboard mode of the program with the focus, so that keys arrive in the
//! form that this program expects; its title; and notifications.

use patterm_screen::Mouse;
use patterm_wire::base64;
use patterm_wire::printable::is_active;

use crate::model::{Mode, Model};

/// The alternate screen, the title saved, mouse, focus reports, bracketed paste, and a stack entry for the
/// keyboard's flags.
pub(crate) const ENTER: &[u8] =
    b"\x1b[?1049h\x1b[22;0;0t\x1b[?7l\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>0u\
    \x1b[2J";

/// Undoes all of it, and whatever a program may have switched on.
pub const LEAVE: &[u8] = b"\x1b[?2026l\x1b[<1u\x1b[>4;0m\x1b>\x1b[?1003l\x1b[?1002l\
    \x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0 q\x1b[0m\x1b[?25h\x1b[23;0;0t\x1b[?1049l";

/// The modes that follow the program with the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OuterModes {
    kitty: u8,
    modify_other: u8,
    keypad: bool,
    motion: bool,
}

impl OuterModes {
    /// The modes for a model. Keys for the TUI itself come in the plain form.
    pub(crate) fn of(model: &Model) -> Self {
        let pane = model.focused_pane().filter(|pane| pane.scroll.is_none());
        let Some(modes) = pane.map(|pane| pane.screen.modes()) else { return Self::default() };
        let typing = model.mode == Mode::Typing;
        Self {
            kitty: if typing { modes.kitty_keyboard } else { 0 },
            modify_other: if typing { modes.modify_other_keys } else { 0 },
            keypad: typing && modes.application_keypad,
            motion: modes.mouse == Mouse::Motion,
        }
    }

    /// The bytes that change a terminal from these modes to the next.
    pub(crate) fn switch(self, next: Self) -> Vec<u8> {
        let mut out = String::new();
        if self.kitty != next.kitty {
            out.push_str(&format!("\x1b[={};1u", next.kitty));
        }
        if self.modify_other != next.modify_other {
            out.push_str(&format!("\x1b[>4;{}m", next.modify_other));
        }
        if self.keypad != next.keypad {
            out.push_str(if next.keypad { "\x1b=" } else { "\x1b>" });
        }
        if self.motion != next.motion {
            out.push_str(if next.motion { "\x1b[?1003h" } else { "\x1b[?1003l\x1b[?1002h" });
        }
        out.into_bytes()
    }
}

/// Sets the terminal's clipboard.
pub(crate) fn copy(text: &str) -> Vec<u8> {
    format!("\x1b]52;c;{}\x07", base64::encode(text.as_bytes())).into_bytes()
}

/// Characters of a title: more than any title bar shows.
const TITLE_LETTERS: usize = 100;

/// Characters of a notification: more than a desktop shows.
const NOTICE_LETTERS: usize = 200;

/// Removes everything that could end a sequence early, and limits the length.
fn plain(text: &str, most: usize) -> String {
    text.chars().filter(|c| !is_active(*c)).take(most).collect()
}

/// The terminal's title: the process with the focus, and the project.
pub(crate) fn title(model: &Model) -> String {
    let project = model.snapshot.project.rsplit('/').next().unwrap_or_default();
    let mark = if model.needing_attention().is_empty() { "" } else { "! " };
    let text = match model.selected() {
        Some(process) => format!("{mark}{} – {project}", process.name),
        None => format!("patterm – {project}"),
    };
    plain(&text, TITLE_LETTERS)
}

/// Sets the terminal's title, which [`title`] has sanitized.
pub(crate) fn set_title(title: &str) -> Vec<u8> {
    format!("\x1b]2;{title}\x1b\\").into_bytes()
}

/// The sequence for desktop notifications. With two of them a terminal would show them twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notifier {
    Osc9,
    Osc777,
    Osc99,
}

/// What is known about the user's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalInfo {
    notifier: Notifier,
    /// tmux is in between, which passes on only what is wrapped for it.
    pub(crate) tmux: bool,
    /// It may be asked what it can do, without text on the screen or an answer from another terminal.
    pub(crate) answers: bool,
}

impl TerminalInfo {
    /// Detects it from the environment.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let notifier = if is_set("KITTY_WINDOW_ID") || term.contains("kitty") {
            Notifier::Osc99
        } else if is_set("VTE_VERSION") || term.starts_with("foot") || term.starts_with("rxvt") {
            Notifier::Osc777
        } else {
            Notifier::Osc9
        };
        // GNU screen passes questions on to the terminal around it; the Linux console prints some of them.
        let answers = !is_set("STY") && term != "linux" && term != "dumb" && !term.is_empty();
        Self { notifier, tmux: is_set("TMUX"), answers }
    }

    /// A desktop notification.
    pub(crate) fn notify(&self, text: &str) -> Vec<u8> {
        let text = plain(text, NOTICE_LETTERS);
        let sequence = match self.notifier {
            Notifier::Osc9 => format!("\x1b]9;patterm: {text}\x07"),
            Notifier::Osc777 => format!("\x1b]777;notify;patterm;{text}\x07"),
            Notifier::Osc99 => format!("\x1b]99;;patterm: {text}\x1b\\"),
        };
        match self.tmux {
            true => {
                format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes()
            }
            false => sequence.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_switched() {
        let plain = OuterModes::default();
        assert_eq!(plain.switch(plain), b"");
        let kitty = OuterModes { kitty: 5, motion: true, ..plain };
        assert_eq!(plain.switch(kitty), b"\x1b[=5;1u\x1b[?1003h");
        assert_eq!(kitty.switch(plain), b"\x1b[=0;1u\x1b[?1003l\x1b[?1002h");
    }

    #[test]
    fn a_copy_is_base64() {
        assert_eq!(copy("foob"), b"\x1b]52;c;Zm9vYg==\x07");
    }

    #[test]
    fn a_notification_fits_the_terminal_and_is_sanitized() {
        let terminal = |set: &[&str]| {
            let set: Vec<_> = set.iter().map(|set| set.split_once('=').unwrap()).collect();
            TerminalInfo::of(|name| {
                set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
            })
        };
        let hostile = "a\x07\x1b]52;c;x\x07\u{9c}b";
        let sent = |set: &[&str]| String::from_utf8(terminal(set).notify(hostile)).unwrap();
        assert_eq!(sent(&["TERM=xterm"]), "\x1b]9;patterm: a]52;c;xb\x07");
        assert_eq!(sent(&["TERM=foot"]), "\x1b]777;notify;patterm;a]52;c;xb\x07");
        assert_eq!(sent(&["VTE_VERSION=7600"]), "\x1b]777;notify;patterm;a]52;c;xb\x07");
        assert_eq!(sent(&["TERM=xterm-kitty"]), "\x1b]99;;patterm: a]52;c;xb\x1b\\");
        assert_eq!(
            sent(&["TERM=tmux-256color", "TMUX=/tmp/x,1,0"]),
            "\x1bPtmux;\x1b\x1b]9;patterm: a]52;c;xb\x07\x1b\\"
        );
        assert!(terminal(&[]).notify(&"x".repeat(9_000)).len() < 300);
    }

    #[test]
    fn the_title_has_the_process_and_the_project() {
        let mut sample = crate::sample::Sample::new(80, 24);
        assert_eq!(title(&sample.model), "! lead – compiler", "a process needs attention");
        sample.model.snapshot.processes.retain(|process| process.id == "p1");
        sample.model.snapshot.processes[0].name = "x\x1b]2;y\x07".repeat(40);
        let shown = title(&sample.model);
        assert!(shown.starts_with("x]2;yx") && shown.chars().count() == 100, "{shown}");
        assert_eq!(set_title("a"), b"\x1b]2;a\x1b\\");
        assert_eq!(title(&crate::sample::Sample::empty(80, 24).model), "patterm – compiler");
    }
}
