//! The view of all logs: its keys, and the lines that come.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::logs::LogLines;

use super::{Effect, keys, notify};
use crate::logs::{LogsView, Typing};
use crate::model::{Mode, Model};
use crate::view;

/// Columns that a key moves the texts by.
const COLUMNS: usize = 16;

/// Opens the view.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    let logs = LogsView::new();
    effects.push(Effect::OpenLogs(logs.request()));
    (model.logs, model.mode) = (Some(logs), Mode::Logs);
}

/// Takes lines from the server.
pub(super) fn take(model: &mut Model, lines: LogLines) {
    if let Some(logs) = &mut model.logs {
        logs.take(lines);
    }
}

/// The connection is lost; the next snapshot opens it again.
pub(super) fn lost(model: &mut Model) {
    if let Some(logs) = &mut model.logs {
        logs.live = false;
    }
}

/// The server refused to send lines.
pub(super) fn refused(model: &mut Model, why: &str) {
    if model.logs.is_some() {
        model.mode = Mode::Typing;
        notify(model, &format!("cannot show the logs: {why}"), true);
    }
}

/// Continues with another server.
pub(super) fn reopen(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(logs) = model.logs.as_mut().filter(|logs| !logs.live) {
        logs.live = true;
        effects.push(Effect::OpenLogs(logs.request()));
    }
}

/// Drops the lines when the view was closed, however that happened.
pub(super) fn forget(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.mode != Mode::Logs && model.logs.take().is_some() {
        effects.push(Effect::CloseLogs);
    }
}

/// A key in the view.
pub(super) fn key(model: &mut Model, key: &Key) {
    let rows = view::log_rows(model);
    let ids: Vec<String> = model.tree().iter().map(|(_, process)| process.id.clone()).collect();
    let Some(logs) = &mut model.logs else { return };
    let cancels = key.code == KeyCode::Escape || (key.ctrl && key.code == KeyCode::Char('c'));
    if logs.typing.is_some() {
        type_key(logs, key, cancels, rows);
        return;
    }
    let mut missing = false;
    let page = isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1);
    match key.code {
        _ if cancels => model.mode = Mode::Typing,
        KeyCode::Char('q') => model.mode = Mode::Typing,
        KeyCode::Up | KeyCode::Char('k') => logs.scroll(-1, rows),
        KeyCode::Down | KeyCode::Char('j') => logs.scroll(1, rows),
        KeyCode::PageUp => logs.scroll(-page, rows),
        KeyCode::PageDown | KeyCode::Char(' ') => logs.scroll(page, rows),
        KeyCode::End | KeyCode::Char('G') => logs.scroll(isize::MAX, rows),
        KeyCode::Char('g') if key.shift => logs.scroll(isize::MAX, rows),
        KeyCode::Home | KeyCode::Char('g') => logs.scroll(isize::MIN, rows),
        KeyCode::Left | KeyCode::Char('h') => logs.left = logs.left.saturating_sub(COLUMNS),
        KeyCode::Right | KeyCode::Char('l') => logs.left += COLUMNS,
        KeyCode::Tab => logs.next_process(&ids, !key.shift),
        KeyCode::Char('&' | 'f') => logs.typing = Some(Typing::Filter),
        KeyCode::Char('/') => {
            (logs.typing, logs.search, logs.found) = (Some(Typing::Search), String::new(), None);
        }
        KeyCode::Char('N') => missing = !logs.find(true, rows),
        KeyCode::Char('n') => missing = !logs.find(key.shift, rows),
        _ => {}
    }
    if missing {
        let text = format!("no more lines with {}", logs.search);
        notify(model, &text, false);
    }
}

/// A key while a filter or a search is typed.
fn type_key(logs: &mut LogsView, key: &Key, cancels: bool, rows: usize) {
    match key.code {
        _ if cancels => {
            if let Some(text) = logs.typed() {
                text.clear();
            }
            logs.typing = None;
        }
        KeyCode::Enter => {
            if logs.typing.take() == Some(Typing::Search) {
                logs.find(false, rows);
            }
        }
        _ => {
            if let Some(text) = logs.typed() {
                keys::edit_line(key, text);
            }
        }
    }
}

/// The mouse wheel.
pub(super) fn wheel(model: &mut Model, by: isize) {
    let rows = view::log_rows(model);
    if let Some(logs) = &mut model.logs {
        logs.scroll(by, rows);
    }
}
