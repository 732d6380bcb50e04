//! How processes look. What must be seen is never told by colour alone.

use patterm_screen::{Colour, Style};
use patterm_wire::follow::{SeenActivity, SeenKind, SeenProcess, SeenStatus};

use crate::settings::Theme;

/// Makes cells look selected, whatever they show.
pub(super) fn select(style: &mut Style, selected: &Style) {
    style.attributes = style.attributes | selected.attributes;
    if selected.foreground != Colour::Default {
        style.foreground = selected.foreground;
    }
    if selected.background != Colour::Default {
        style.background = selected.background;
    }
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
pub(super) fn state<'t>(
    process: &SeenProcess,
    theme: &'t Theme,
) -> (&'static str, String, &'t Style) {
    let (sign, word, style) = match (process.status, process.activity) {
        (SeenStatus::Starting, _) => ("◌", "starting", &theme.dim),
        (SeenStatus::Running, SeenActivity::Working) => ("●", "working", &theme.working),
        (SeenStatus::Running, SeenActivity::Idle) => ("○", "idle", &theme.idle),
        (SeenStatus::Running, SeenActivity::Blocked) => ("◆", "blocked", &theme.blocked),
        (SeenStatus::Running, SeenActivity::Unknown) => ("●", "running", &theme.idle),
        (SeenStatus::Exited, _) => return exited(process, theme),
        (SeenStatus::Failed, _) => ("✗", "failed", &theme.failed),
        (SeenStatus::Stopped, _) => ("·", "stopped", &theme.dim),
        (SeenStatus::Lost, _) => ("?", "lost", &theme.failed),
    };
    (sign, word.to_owned(), style)
}

fn exited<'t>(process: &SeenProcess, theme: &'t Theme) -> (&'static str, String, &'t Style) {
    match (process.code, process.signal) {
        (Some(0), _) => ("·", "exited".to_owned(), &theme.dim),
        (Some(code), _) => ("✗", format!("exit {code}"), &theme.failed),
        (None, Some(signal)) => ("✗", format!("signal {signal}"), &theme.failed),
        (None, None) => ("·", "exited".to_owned(), &theme.dim),
    }
}
