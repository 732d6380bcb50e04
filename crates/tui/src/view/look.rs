//! How things look. Only the terminal's own sixteen colours are used, so that it suits light and
//! dark ones; what must be seen is never told by colour alone.

use patterm_screen::{Attributes, Colour, Style};
use patterm_wire::follow::{SeenActivity, SeenKind, SeenProcess, SeenStatus};

pub(super) fn plain() -> Style {
    Style::default()
}

pub(super) fn dim() -> Style {
    with(Attributes::DIM)
}

pub(super) fn bold() -> Style {
    with(Attributes::BOLD)
}

pub(super) fn inverse() -> Style {
    with(Attributes::INVERSE)
}

pub(super) fn coloured(index: u8) -> Style {
    Style { foreground: Colour::Indexed(index), ..Style::default() }
}

pub(super) fn accent() -> Style {
    Style { attributes: Attributes::BOLD, ..coloured(6) }
}

pub(super) fn bad() -> Style {
    Style { attributes: Attributes::BOLD, ..coloured(1) }
}

fn with(attributes: Attributes) -> Style {
    Style { attributes, ..Style::default() }
}

/// What a process runs, as one character.
pub(super) fn kind(process: &SeenProcess) -> &'static str {
    match process.kind {
        SeenKind::Agent => "@",
        SeenKind::Command => "$",
        SeenKind::Terminal => ">",
    }
}

/// How a process stands: a sign, a word, and how both look.
pub(super) fn state(process: &SeenProcess) -> (&'static str, String, Style) {
    let (sign, word, style) = match (process.status, process.activity) {
        (SeenStatus::Starting, _) => ("◌", "starting", dim()),
        (SeenStatus::Running, SeenActivity::Working) => ("●", "working", coloured(2)),
        (SeenStatus::Running, SeenActivity::Idle) => ("○", "idle", plain()),
        (SeenStatus::Running, SeenActivity::Blocked) => ("◆", "blocked", coloured(3)),
        (SeenStatus::Running, SeenActivity::Unknown) => ("●", "running", plain()),
        (SeenStatus::Exited, _) => return exited(process),
        (SeenStatus::Failed, _) => ("✗", "failed", coloured(1)),
        (SeenStatus::Stopped, _) => ("·", "stopped", dim()),
        (SeenStatus::Lost, _) => ("?", "lost", coloured(1)),
    };
    (sign, word.to_owned(), style)
}

fn exited(process: &SeenProcess) -> (&'static str, String, Style) {
    match (process.code, process.signal) {
        (Some(0), _) => ("·", "exited".to_owned(), dim()),
        (Some(code), _) => ("✗", format!("exit {code}"), coloured(1)),
        (None, Some(signal)) => ("✗", format!("signal {signal}"), coloured(1)),
        (None, None) => ("·", "exited".to_owned(), dim()),
    }
}
