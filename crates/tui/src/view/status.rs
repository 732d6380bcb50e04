//! The status bar: notices, processes that need attention, and keys.

use patterm_screen::Style;

use super::style;
use crate::action::{ACTIONS, Action};
use crate::canvas::{Canvas, text_width};
use crate::list::number;
use crate::model::{Confirmation, ListKind, Mode, Model, Question, is_alive, need};

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
    if let Mode::Interrupted { name, ignored } = &model.mode {
        let text = format!("✗ {}", crate::list::one_line(&interrupted_text(model, name, *ignored)));
        return long_notice(model, &text, model.height, canvas);
    }
    if model.mode == Mode::Past && model.notice.is_none() {
        return super::past::draw_bar(model, canvas);
    }
    let mut x = super::pages::draw(model, canvas);
    match &model.notice {
        Some(notice) => {
            let mark = if notice.is_error { "✗ " } else { "" };
            let text = format!("{mark}{}", crate::list::one_line(&notice.text));
            if text_width(&text) as u16 + 2 > left_edge {
                long_notice(model, &text, model.height, canvas);
                return;
            }
            canvas.put(x, y, left_edge, &text, &model.theme().bar);
        }
        None => {
            if let Some(problem) = &model.snapshot.disk_problem {
                x = canvas.put_cut(x, y, left_edge, &format!("✗ {problem}"), &error_style(model))
                    + 2;
            }
            let parts = summary(model, usize::from(left_edge.saturating_sub(x + 3)));
            // On a narrow terminal, urgent parts come before the keys.
            let urgent =
                !model.connected || model.broadcast || !model.needing_attention().is_empty();
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

/// Says over everything else, right above the status bar, that the server does not answer.
pub(super) fn draw_hung(model: &Model, canvas: &mut Canvas) {
    let Some(advice) = &model.hung else { return };
    let leave = model.settings.keys.press(Action::Detach);
    let text = format!(
        "✗ The server does not answer: {}. What you type is sent when it answers; {leave} leaves.",
        crate::list::one_line(advice)
    );
    long_notice(model, &text, model.height - 1, canvas);
}

/// A notice that is too long for one row takes more rows above this one.
fn long_notice(model: &Model, text: &str, bottom: u16, canvas: &mut Canvas) {
    let width = usize::from(model.width).saturating_sub(2).max(1);
    let lines = super::tree::wrap(text, width);
    let rows = (lines.len() as u16).min(model.height / 2).max(1);
    let top = bottom.saturating_sub(rows);
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
        (Mode::Line { question: Question::RenamePage(number), text }, _) => {
            Some((format!("name of page {number}: "), text.clone()))
        }
        (Mode::Past, _) => super::past::line(model),
        (Mode::Logs, _) => super::logs::line(model.logs.as_ref()?),
        (
            Mode::Confirm(confirmation) | Mode::Dashboard { confirmation: Some(confirmation), .. },
            _,
        ) => Some((confirm(model, confirmation), String::new())),
        (Mode::Typing, Some(scroll)) if scroll.typing => {
            Some(("search: ".to_owned(), scroll.search.clone()))
        }
        _ => None,
    }
}

/// The fewest characters of a reason that say anything.
const REASON_CHARS: usize = 12;

/// Who needs the user, and why, in this many columns.
fn needs(model: &Model, room: usize) -> Option<String> {
    let attention = model.needing_attention();
    let [first, rest @ ..] = attention.as_slice() else { return None };
    let more = if rest.is_empty() { String::new() } else { format!(" +{}", rest.len()) };
    let key = model.settings.keys.press(Action::Attention);
    let (name, end) = (&first.name, format!("{more} ({key})"));
    let why = crate::list::one_line(need(first));
    let left = room.saturating_sub(text_width(name) + text_width(&end) + "! : ".len());
    Some(match left >= REASON_CHARS.min(text_width(&why)) && !why.is_empty() {
        true => format!("! {name}: {}{end}", cut(&why, left)),
        false => format!("! {name}{end}"),
    })
}

/// A text in at most this many columns.
fn cut(text: &str, room: usize) -> String {
    if text_width(text) <= room {
        return text.to_owned();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        shown.push(letter);
        if text_width(&shown) >= room {
            shown.pop();
            break;
        }
    }
    format!("{}…", shown.trim_end())
}

/// The parts of the bar, the most important first, for this many columns.
fn summary(model: &Model, room: usize) -> Vec<String> {
    if !model.connected {
        let text =
            if model.has_snapshot { "no server; waiting for it…" } else { "connecting…" };
        return vec![text.to_owned()];
    }
    let mut parts = Vec::new();
    if model.settings_error.is_some() {
        parts.push("✗ tui.toml".to_owned());
    }
    let mut room = room;
    if model.broadcast {
        let press = model.settings.keys.press(Action::Broadcast);
        let text = format!("keys go to all panes ({press})");
        room = room.saturating_sub(text_width(&text) + 2);
        parts.push(text);
    }
    // An agent that waits is more urgent than settings.
    parts.extend(needs(model, room));
    if model.snapshot.settings_problem.is_some() {
        parts.push("✗ config.toml".to_owned());
    }
    if let Some(process) = model.marked.last().and_then(|id| model.process(id)) {
        let press = model.settings.keys.press(Action::Marked);
        parts.push(format!("→ {} ({press})", process.name));
    }
    parts.extend(super::trust::badge(model));
    if let Some(process) = model.selected() {
        let (sign, word, _) = style::state(process, model.theme());
        // Most agents are named after their preset.
        let preset = process.preset.as_deref().filter(|preset| !process.name.starts_with(*preset));
        let preset = preset.map(|preset| format!(" ({preset})")).unwrap_or_default();
        parts.push(format!("{} {}{preset} {sign} {word}", number(&process.id), process.name));
    }
    // Other panes are hidden.
    if model.zoomed {
        parts.push("zoomed".to_owned());
    }
    if let Some(interrupted) = model.selected().and_then(|process| process.interrupted.as_ref()) {
        let used: usize = parts.iter().map(|part| text_width(part) + 2).sum();
        let text = format!("↺ {}", crate::list::one_line(interrupted));
        // The tree shows all of it, if it is visible.
        parts.push(cut(&text, room.saturating_sub(used).max("↺ interrupted…".chars().count())));
    }
    let alive = model.snapshot.processes.iter().filter(|process| is_alive(process)).count();
    parts.push(format!("{alive} running"));
    match model.offered().len() {
        0 => {}
        count => parts.push(format!("{count} to restore")),
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
        Mode::Typing if scrolls => {
            " / search  n next  v select  o output  y copy  q close ".to_owned()
        }
        Mode::Typing => format!(" {}: keys ", model.settings.keys.leader_name()),
        Mode::Leader | Mode::Labels => " esc cancel ".to_owned(),
        Mode::Restore { .. } => " esc later ".to_owned(),
        Mode::List { kind: ListKind::Attention, .. } => {
            " type to filter  enter  → answer  esc ".to_owned()
        }
        Mode::Digest(_) => " enter go  esc close ".to_owned(),
        Mode::Overview(_) => " enter go  → answer  L last  esc ".to_owned(),
        Mode::Answer(_) => " enter choose  esc back ".to_owned(),
        Mode::List { .. } => " type to filter  enter  esc ".to_owned(),
        Mode::Pad { .. } => " e edit  esc close ".to_owned(),
        Mode::Text { .. } | Mode::Help { .. } => " esc close ".to_owned(),
        Mode::Past => " esc now ".to_owned(),
        Mode::Logs => " / search  f filter  tab process  esc close ".to_owned(),
        Mode::Dashboard { .. } => dashboard_keys(model),
        Mode::Trust(panel) => super::trust::keys(model, panel).to_owned(),
        Mode::Line { question: Question::Prompt(_), .. } => {
            " enter start  alt+enter or ctrl+j new line  esc cancel ".to_owned()
        }
        Mode::Line { .. } | Mode::Confirm(_) | Mode::Interrupted { .. } => String::new(),
    }
}

/// The keys of the dashboard; its actions have the keys that they have after the leader.
fn dashboard_keys(model: &Model) -> String {
    let actions = [Action::Restart, Action::Stop, Action::Close];
    let entries = actions.map(|action| ACTIONS.iter().find(|entry| entry.action == action));
    let keys = entries.into_iter().flatten().filter_map(|entry| {
        Some(format!("{} {}  ", model.settings.keys.shown(entry)?, entry.short))
    });
    format!(" ←→ sort  r reverse  enter show  {}esc ", keys.collect::<String>())
}

fn confirm(model: &Model, confirmation: &Confirmation) -> String {
    if let Confirmation::ClosePage(number) = confirmation {
        return format!("close page {number}? Its processes keep running. y/n ");
    }
    let (verb, id, note) = match confirmation {
        Confirmation::Close(id) => ("close", id, " and everything it started"),
        Confirmation::ClosePage(_) => return String::new(),
        Confirmation::Stop(id) => ("stop", id, ""),
        Confirmation::Restart(id) => ("restart", id, ""),
    };
    let name = model.process(id).map_or(id, |process| &process.name);
    format!("{verb} {name}{note}? y/n ")
}

/// The notice while keys are ignored.
fn interrupted_text(model: &Model, name: &str, ignored: usize) -> String {
    let next = model.selected().map_or("patterm", |process| &process.name);
    let leader = model.settings.keys.press(Action::Help);
    let ignored = match ignored {
        0 => String::new(),
        1 => "; 1 key went nowhere".to_owned(),
        _ => format!("; {ignored} keys went nowhere"),
    };
    format!(
        "{name} was closed while you were typing{ignored}; esc, or a pause, continues in {next} ({leader}: keys)"
    )
}
