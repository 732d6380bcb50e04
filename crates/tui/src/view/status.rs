//! The status bar: notices, processes that need attention, and keys.

use patterm_screen::Style;

use super::style;
use crate::action::Action;
use crate::canvas::{Canvas, text_width};
use crate::model::{Confirmation, Mode, Model, Question, is_alive};

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let y = model.height - 1;
    let edge = model.width;
    canvas.clear(crate::canvas::Rect::new(0, y, edge, 1), &model.theme().bar);
    let right = keys(model);
    let right_width = text_width(&right) as u16;
    let left_edge = edge.saturating_sub(if right_width < edge { right_width } else { 0 });
    if let Some((prompt, text)) = line(model) {
        let x = canvas.put(1, y, edge, &prompt, &model.theme().bar);
        let room = usize::from(edge.saturating_sub(x + 1));
        let skipped = text_width(&text).saturating_sub(room);
        let shown: String = text.chars().skip(skipped).collect();
        let x = canvas.put(x, y, edge, &shown, &model.theme().bar);
        let shape = patterm_screen::CursorShape::Bar;
        canvas.caret = Some(crate::canvas::Caret { x, y, shape, blinking: false });
        return;
    }
    if let Mode::Interrupted { name } = &model.mode {
        let text = format!("✗ {}", crate::list::one_line(&interrupted_text(model, name)));
        return long_notice(model, &text, canvas);
    }
    let mut x = 1;
    match &model.notice {
        Some(notice) => {
            let mark = if notice.is_error { "✗ " } else { "" };
            let text = format!("{mark}{}", crate::list::one_line(&notice.text));
            if text_width(&text) as u16 + 2 > left_edge {
                long_notice(model, &text, canvas);
                return;
            }
            canvas.put(x, y, left_edge, &text, &model.theme().bar);
        }
        None => {
            if let Some(problem) = &model.snapshot.disk_problem {
                x = canvas.put_cut(x, y, left_edge, &format!("✗ {problem}"), &error_style(model))
                    + 2;
            }
            let parts = summary(model);
            // On a narrow terminal, urgent parts come before the keys.
            let urgent = !model.connected || !model.needing_attention().is_empty();
            if let Some(first) = parts.first().filter(|_| urgent && model.mode == Mode::Typing)
                && x + text_width(first) as u16 + 2 >= left_edge
            {
                canvas.put_cut(x, y, edge, first, &model.theme().bar);
                return;
            }
            for part in parts {
                if x + text_width(&part) as u16 + 2 < left_edge {
                    x = canvas.put(x, y, left_edge, &part, &model.theme().bar) + 2;
                }
            }
        }
    }
    canvas.put(edge.saturating_sub(right_width), y, edge, &right, &model.theme().bar);
}

/// The style of errors in the status bar.
fn error_style(model: &Model) -> Style {
    let mut style = model.theme().bar.clone();
    style.foreground = model.theme().bad.foreground;
    style
}

/// A notice that is too long for one row takes more rows above it.
fn long_notice(model: &Model, text: &str, canvas: &mut Canvas) {
    let width = usize::from(model.width).saturating_sub(2).max(1);
    let lines = super::tree::wrap(text, width);
    let rows = (lines.len() as u16).min(model.height / 2).max(1);
    let top = model.height - rows;
    canvas.clear(crate::canvas::Rect::new(0, top, model.width, rows), &model.theme().bar);
    for (row, line) in lines.iter().take(usize::from(rows)).enumerate() {
        canvas.put(1, top + row as u16, model.width, line, &model.theme().bar);
    }
}

/// The prompt and the text that is being typed.
fn line(model: &Model) -> Option<(String, String)> {
    let scroll = model.focused_pane().and_then(|pane| pane.scroll.as_ref());
    match (&model.mode, scroll) {
        (Mode::Line { question: Question::Rename(_), text }, _) => {
            Some(("new name: ".to_owned(), text.clone()))
        }
        (Mode::Line { question: Question::Prompt(agent), text }, _) => {
            let shown = text.replace('\n', "⏎");
            Some((format!("first prompt for {agent} (may be empty): "), shown))
        }
        (Mode::Confirm(confirmation), _) => Some((confirm(model, confirmation), String::new())),
        (Mode::Typing, Some(scroll)) if scroll.typing => {
            Some(("search: ".to_owned(), scroll.search.clone()))
        }
        _ => None,
    }
}

fn summary(model: &Model) -> Vec<String> {
    if !model.connected {
        let text =
            if model.has_snapshot { "no server; waiting for it…" } else { "connecting…" };
        return vec![text.to_owned()];
    }
    let mut parts = Vec::new();
    if model.settings_error.is_some() {
        parts.push("✗ tui.toml".to_owned());
    }
    let attention = model.needing_attention();
    if let [first, rest @ ..] = attention.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" +{}", rest.len()) };
        parts.push(format!(
            "! {}{more} ({})",
            first.name,
            model.settings.keys.press(Action::Attention)
        ));
    }
    if let Some(process) = model.marked.last().and_then(|id| model.process(id)) {
        let press = model.settings.keys.press(Action::Marked);
        parts.push(format!("→ {} ({press})", process.name));
    }
    parts.extend(super::trust::badge(model));
    if let Some(process) = model.selected() {
        let (sign, word, _) = style::state(process, model.theme());
        let preset = process.preset.as_deref().map(|p| format!(" {p}")).unwrap_or_default();
        parts.push(format!("{} {}{preset} {sign} {word}", process.id, process.name));
    }
    let alive = model.snapshot.processes.iter().filter(|process| is_alive(process)).count();
    parts.push(format!("{alive} running"));
    match model.offered().len() {
        0 => {}
        count => parts.push(format!("{count} to restore")),
    }
    if model.zoomed {
        parts.push("zoomed".to_owned());
    }
    match model.snapshot.timers.len() {
        0 => {}
        1 => parts.push("1 timer".to_owned()),
        count => parts.push(format!("{count} timers")),
    }
    parts
}

fn keys(model: &Model) -> String {
    let scrolls = model.focused_pane().is_some_and(|pane| pane.scroll.is_some());
    match &model.mode {
        Mode::Typing if scrolls => " / search  n next  v select  y copy  q close ".to_owned(),
        Mode::Typing => format!(" {}: keys ", model.settings.keys.leader_name()),
        Mode::Leader => " esc cancel ".to_owned(),
        Mode::Restore { .. } => " esc later ".to_owned(),
        Mode::List { .. } => " type to filter  enter  esc ".to_owned(),
        Mode::Text { title, .. } if title.starts_with("scratchpad ") => {
            " e edit  esc close ".to_owned()
        }
        Mode::Text { .. } | Mode::Help { .. } => " esc close ".to_owned(),
        Mode::Trust(panel) => super::trust::keys(model, panel).to_owned(),
        Mode::Line { .. } | Mode::Confirm(_) | Mode::Interrupted { .. } => String::new(),
    }
}

fn confirm(model: &Model, confirmation: &Confirmation) -> String {
    let (verb, id, note) = match confirmation {
        Confirmation::Close(id) => ("close", id, " and everything it started"),
        Confirmation::Stop(id) => ("stop", id, ""),
        Confirmation::Restart(id) => ("restart", id, ""),
    };
    let name = model.process(id).map_or(id, |process| &process.name);
    format!("{verb} {name}{note}? y/n ")
}

/// The notice while keys are ignored.
fn interrupted_text(model: &Model, name: &str) -> String {
    let next = model.selected().map_or("patterm", |process| &process.name);
    let leader = model.settings.keys.press(Action::Help);
    format!("{name} was closed while you were typing; esc continues in {next} ({leader}: keys)")
}
