//! What the person's terminal is set to: always ours, and the keyboard as the program with the focus
//! wants it, so that its keys come in its own form. And what it is told: a title, notifications.

use patterm_screen::Mouse;
use patterm_wire::base64;
use patterm_wire::printable::is_active;

use crate::model::{Mode, Model};

/// A screen of its own, the title put by, mouse, focus, marked pastes, and a place for the keyboard's
/// flags.
pub(crate) const ENTER: &[u8] =
    b"\x1b[?1049h\x1b[22;0;0t\x1b[?7l\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>0u\
    \x1b[2J";

/// All of it undone, and whatever a program may have had switched on.
pub(crate) const LEAVE: &[u8] = b"\x1b[?2026l\x1b[<1u\x1b[>4;0m\x1b>\x1b[?1003l\x1b[?1002l\
    \x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0 q\x1b[0m\x1b[?25h\x1b[23;0;0t\x1b[?1049l";

/// What follows the program with the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outer {
    kitty: u8,
    modify_other: u8,
    keypad: bool,
    motion: bool,
}

impl Outer {
    /// What a model wants. What we read ourselves comes in the plain form.
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

    /// The bytes that change a terminal from one to the other.
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

/// Puts a text into the terminal's clipboard.
pub(crate) fn copy(text: &str) -> Vec<u8> {
    format!("\x1b]52;c;{}\x07", base64::encode(text.as_bytes())).into_bytes()
}

/// Letters of a title: more than any bar shows.
const TITLE_LETTERS: usize = 100;

/// Letters of a notification: more than a desktop shows.
const NOTICE_LETTERS: usize = 200;

/// Free of anything that could end a sequence early, and not too long.
fn plain(text: &str, most: usize) -> String {
    text.chars().filter(|c| !is_active(*c)).take(most).collect()
}

/// What the terminal is called while we are on it: the process with the focus, and the project.
pub(crate) fn title(model: &Model) -> String {
    let project = model.seen.project.rsplit('/').next().unwrap_or_default();
    let called = if model.calling().is_empty() { "" } else { "! " };
    let text = match model.selected() {
        Some(process) => format!("{called}{} – {project}", process.name),
        None => format!("patterm – {project}"),
    };
    plain(&text, TITLE_LETTERS)
}

/// Gives the terminal a title, which is plain already.
pub(crate) fn set_title(title: &str) -> Vec<u8> {
    format!("\x1b]2;{title}\x1b\\").into_bytes()
}

/// In which of its forms a terminal takes a desktop notification. In two it would show it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notifier {
    Osc9,
    Osc777,
    Osc99,
}

/// What is known of the person's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    notifier: Notifier,
    /// There is a tmux in between, which passes on only what is wrapped for it.
    tmux: bool,
}

impl Around {
    /// What the environment says.
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
        Self { notifier, tmux: is_set("TMUX") }
    }

    /// A desktop notification.
    pub(crate) fn notify(&self, text: &str) -> Vec<u8> {
        let text = plain(text, NOTICE_LETTERS);
        let told = match self.notifier {
            Notifier::Osc9 => format!("\x1b]9;patterm: {text}\x07"),
            Notifier::Osc777 => format!("\x1b]777;notify;patterm;{text}\x07"),
            Notifier::Osc99 => format!("\x1b]99;;patterm: {text}\x1b\\"),
        };
        match self.tmux {
            true => format!("\x1bPtmux;{}\x1b\\", told.replace('\x1b', "\x1b\x1b")).into_bytes(),
            false => told.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_switched() {
        let plain = Outer::default();
        assert_eq!(plain.switch(plain), b"");
        let kitty = Outer { kitty: 5, motion: true, ..plain };
        assert_eq!(plain.switch(kitty), b"\x1b[=5;1u\x1b[?1003h");
        assert_eq!(kitty.switch(plain), b"\x1b[=0;1u\x1b[?1003l\x1b[?1002h");
    }

    #[test]
    fn a_copy_is_base64() {
        assert_eq!(copy("foob"), b"\x1b]52;c;Zm9vYg==\x07");
    }

    #[test]
    fn a_notification_has_the_terminals_form_and_cannot_be_broken_out_of() {
        let around = |set: &[&str]| {
            let set: Vec<_> = set.iter().map(|set| set.split_once('=').unwrap()).collect();
            Around::of(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let hostile = "a\x07\x1b]52;c;x\x07\u{9c}b";
        let say = |set: &[&str]| String::from_utf8(around(set).notify(hostile)).unwrap();
        assert_eq!(say(&["TERM=xterm"]), "\x1b]9;patterm: a]52;c;xb\x07");
        assert_eq!(say(&["TERM=foot"]), "\x1b]777;notify;patterm;a]52;c;xb\x07");
        assert_eq!(say(&["VTE_VERSION=7600"]), "\x1b]777;notify;patterm;a]52;c;xb\x07");
        assert_eq!(say(&["TERM=xterm-kitty"]), "\x1b]99;;patterm: a]52;c;xb\x1b\\");
        assert_eq!(
            say(&["TERM=tmux-256color", "TMUX=/tmp/x,1,0"]),
            "\x1bPtmux;\x1b\x1b]9;patterm: a]52;c;xb\x07\x1b\\"
        );
        assert!(around(&[]).notify(&"x".repeat(9_000)).len() < 300);
    }

    #[test]
    fn the_title_is_the_process_and_the_project_and_is_plain() {
        let mut sample = crate::sample::Sample::new(80, 24);
        assert_eq!(title(&sample.model), "! lead – compiler", "somebody asks");
        sample.model.seen.processes.retain(|process| process.id == "p1");
        sample.model.seen.processes[0].name = "x\x1b]2;y\x07".repeat(40);
        let shown = title(&sample.model);
        assert!(shown.starts_with("x]2;yx") && shown.chars().count() == 100, "{shown}");
        assert_eq!(set_title("a"), b"\x1b]2;a\x1b\\");
        assert_eq!(title(&crate::sample::Sample::empty(80, 24).model), "patterm – compiler");
    }
}
