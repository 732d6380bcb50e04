//! The style of processes. Nothing important is shown by colour alone.

use patterm_screen::{Colour, Style};
use patterm_wire::follow::{ActivityState, HealthState, ProcessInfo, ProcessKind, ProcessStatus};

use crate::settings::Theme;

/// Gives cells the selected style.
pub(super) fn select(style: &mut Style, selected: &Style) {
    style.attributes = style.attributes | selected.attributes;
    if selected.foreground != Colour::Default {
        style.foreground = selected.foreground;
    }
    if selected.background != Colour::Default {
        style.background = selected.background;
    }
}

/// The kind of a process, as one character.
pub(super) fn kind(process: &ProcessInfo) -> &'static str {
    match process.kind {
        ProcessKind::Agent => "@",
        ProcessKind::Command => "$",
        ProcessKind::Terminal => ">",
        ProcessKind::Other(_) => "·",
    }
}

/// The state of a process: a symbol, a word, and their style.
pub(super) fn state<'t>(
    process: &ProcessInfo,
    theme: &'t Theme,
) -> (&'static str, String, &'t Style) {
    if !process.waiting_for.is_empty() && !process.status.is_alive() {
        // As in `patterm ps`, whatever its run before was.
        return ("◌", "starting".to_owned(), &theme.dim);
    }
    let (sign, word, style) = match (&process.status, &process.activity) {
        (ProcessStatus::Starting, _) => ("◌", "starting", &theme.dim),
        (ProcessStatus::Running, _) if process.limited.is_some() => {
            ("◇", "limited", &theme.blocked)
        }
        (ProcessStatus::Running, _) if process.health.is_some() => return health(process, theme),
        (ProcessStatus::Running, ActivityState::Working) => ("●", "working", &theme.working),
        (ProcessStatus::Running, ActivityState::Idle) => ("○", "idle", &theme.idle),
        (ProcessStatus::Running, ActivityState::Blocked) => ("◆", "blocked", &theme.blocked),
        (ProcessStatus::Running, ActivityState::Unknown) => ("●", "running", &theme.idle),
        (ProcessStatus::Exited, _) => return exited(process, theme),
        (ProcessStatus::Failed, _) => ("✗", "failed", &theme.failed),
        (ProcessStatus::Stopped, _) => ("·", "stopped", &theme.dim),
        (ProcessStatus::Lost, _) => ("?", "lost", &theme.failed),
        (ProcessStatus::Running, ActivityState::Other(word)) => ("●", word.as_str(), &theme.idle),
        (ProcessStatus::Other(word), _) => ("●", word.as_str(), &theme.idle),
    };
    (sign, word.to_owned(), style)
}

/// The state of a process whose health is checked: that tells more than whether it prints.
fn health<'t>(process: &ProcessInfo, theme: &'t Theme) -> (&'static str, String, &'t Style) {
    match &process.health {
        Some(HealthState::Unhealthy) => ("✗", "unhealthy".to_owned(), &theme.failed),
        Some(HealthState::Other(word)) => ("●", word.clone(), &theme.idle),
        Some(HealthState::Healthy) | None => ("●", "healthy".to_owned(), &theme.idle),
    }
}

fn exited<'t>(process: &ProcessInfo, theme: &'t Theme) -> (&'static str, String, &'t Style) {
    match (process.code, process.signal) {
        (Some(0), _) => ("·", "exited".to_owned(), &theme.dim),
        (Some(code), _) => ("✗", format!("exit {code}"), &theme.failed),
        (None, Some(signal)) => ("✗", format!("signal {signal}"), &theme.failed),
        (None, None) => ("·", "exited".to_owned(), &theme.dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_at_a_limit_is_shown_as_limited() {
        let theme = Theme::default();
        let limited = |limited: Option<&str>| {
            let process = ProcessInfo {
                status: ProcessStatus::Running,
                limited: limited.map(str::to_owned),
                ..ProcessInfo::default()
            };
            let (sign, word, _) = state(&process, &theme);
            (sign, word)
        };
        assert_eq!(limited(Some("3pm")), ("◇", "limited".to_owned()));
        assert_eq!(limited(None), ("●", "running".to_owned()));
    }

    #[test]
    fn a_process_that_is_checked_is_shown_as_healthy_or_not() {
        let shown = |status, health| {
            let process = ProcessInfo { status, health: Some(health), ..ProcessInfo::default() };
            let (sign, word, _) = state(&process, &Theme::default());
            format!("{sign} {word}")
        };
        let other = || HealthState::Other("degraded".into());
        assert_eq!(shown(ProcessStatus::Running, HealthState::Healthy), "● healthy");
        assert_eq!(shown(ProcessStatus::Running, HealthState::Unhealthy), "✗ unhealthy");
        assert_eq!(shown(ProcessStatus::Running, other()), "● degraded");
        assert_eq!(shown(ProcessStatus::Stopped, HealthState::Unhealthy), "· stopped");
    }

    #[test]
    fn a_process_that_waits_for_others_is_starting() {
        let waiting_for = vec!["db".to_owned()];
        for status in [ProcessStatus::Stopped, ProcessStatus::Exited] {
            let (waiting_for, signal) = (waiting_for.clone(), Some(15));
            let process = ProcessInfo { status, waiting_for, signal, ..ProcessInfo::default() };
            assert_eq!(state(&process, &Theme::default()).1, "starting");
        }
    }

    #[test]
    fn states_of_newer_servers_are_shown_as_they_are() {
        let shown = |status: &str, activity: &str| {
            let status = serde_json::from_value(status.into()).unwrap();
            let activity = serde_json::from_value(activity.into()).unwrap();
            let process = ProcessInfo { status, activity, ..ProcessInfo::default() };
            state(&process, &Theme::default()).1
        };
        assert_eq!(shown("frozen", "idle"), "frozen");
        assert_eq!(shown("running", "dreaming"), "dreaming");
        assert_eq!(shown("stopped", "dreaming"), "stopped");
    }
}
