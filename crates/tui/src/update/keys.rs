//! Keys: for the pane, or for the TUI.

use patterm_screen::keys::KeyCode;
use patterm_screen::{Key, Modes};

use super::{
    Effect, actions, answering, arranging, dashboard, digest, keyboard, logs, mouse, notify,
    overview, panes, past, restore, scrolling, trust,
};
use crate::action::{Action, typed};
use crate::list;
use crate::logs::LogsView;
use crate::model::{ListKind, Mode, Model, Question, is_alive};
use crate::past::TimeBar;
use crate::{send, view};
use patterm_screen::input::{InputEvent, KeyEvent};

/// Keys held down at the same time; more are not tracked.
const HELD_KEYS: usize = 8;

/// Handles input from the terminal.
pub(super) fn input(model: &mut Model, token: InputEvent, effects: &mut Vec<Effect>) {
    digest::note_input(model, &token, effects);
    if token.is_typed() {
        keyboard::continue_after_pause(model);
        model.typed_at = Some(model.now);
    }
    match token {
        InputEvent::Key(stroke) => key(model, &stroke, effects),
        InputEvent::Paste(text) => paste(model, &text, effects),
        InputEvent::Focus(gained) => {
            model.focused = gained;
            panes::send_focus(model, gained, effects);
        }
        InputEvent::Mouse(event) => mouse::take(model, event, effects),
        // The outer loop takes them.
        InputEvent::Reply(_) => {}
    }
}

fn key(model: &mut Model, stroke: &KeyEvent, effects: &mut Vec<Effect>) {
    if stroke.released {
        let code = stroke.key.map(|key| key.code);
        let before = model.consumed_keys.len();
        model.consumed_keys.retain(|consumed| Some(*consumed) != code);
        if model.consumed_keys.len() == before && model.mode == Mode::Typing {
            send(model, stroke, effects);
        }
        return;
    }
    model.notice = None;
    digest::let_through(model, stroke.key.as_ref(), effects);
    let scrolls = model.focused_pane().is_some_and(|pane| pane.scroll.is_some());
    let keys = &model.settings.keys;
    let leads = stroke.key.as_ref().is_some_and(|key| keys.is_leader(key));
    let typing = model.mode == Mode::Typing;
    let direct = stroke.key.as_ref().filter(|_| typing).and_then(|key| keys.direct(key));
    let direct = direct.or_else(|| repeated(model, stroke).filter(|_| typing));
    if direct.is_none() {
        model.repeat_until = 0;
    }
    if typing && !leads && !scrolls && direct.is_none() {
        send(model, stroke, effects);
        return;
    }
    let Some(key) = stroke.key else { return };
    if model.consumed_keys.len() < HELD_KEYS {
        model.consumed_keys.push(key.code);
    }
    if let Some(action) = direct {
        actions::act(model, action, effects);
        return;
    }
    match (&model.mode, leads) {
        // Over what only shows or asks something, the leader works as everywhere else.
        (
            Mode::Typing
            | Mode::Interrupted { .. }
            | Mode::List { .. }
            | Mode::Text { .. }
            | Mode::Help { .. }
            | Mode::Labels
            | Mode::Digest(_)
            | Mode::Past
            | Mode::Confirm(_),
            true,
        ) => {
            (model.mode, model.leader_at) = (Mode::Leader, model.now);
        }
        (Mode::Typing, false) => scrolling::key(model, &key, effects),
        (Mode::Leader, _) => {
            model.mode = Mode::Typing;
            match model.settings.keys.after_leader(&key) {
                Some(action) => actions::act(model, action, effects),
                None if key.code == KeyCode::Escape => {}
                None => {
                    let keys = &model.settings.keys;
                    let (pressed, help) = (keys.after_leader_name(&key), keys.press(Action::Help));
                    notify(model, &format!("{pressed} does nothing; {help} shows all keys"), false);
                }
            }
        }
        _ => overlay(model, &key, effects),
    }
}

/// The action that a key repeats without the leader, right after that action.
fn repeated(model: &Model, stroke: &KeyEvent) -> Option<Action> {
    if model.now >= model.repeat_until {
        return None;
    }
    model.settings.keys.after_leader(stroke.key.as_ref()?).filter(|action| action.repeats())
}

/// Sends a key to the program, in the form it expects.
fn send(model: &mut Model, stroke: &KeyEvent, effects: &mut Vec<Effect>) {
    let Some(pane) = model.focused_pane() else {
        begin_without_pane(model, stroke, effects);
        return;
    };
    match model.broadcast {
        false => push(effects, model.focus, send::key(stroke, &pane.screen.modes())),
        true => send_to_all(model, |modes| send::key(stroke, modes), effects),
    }
    model.sent_at = Some(model.now);
    model.sent_line = stroke.key.is_some_and(|key| match key.code {
        KeyCode::Enter => true,
        KeyCode::Char(letter) => key.ctrl && letter == 'd',
        _ => false,
    });
    if let Some(ended) = model.selected().filter(|process| !is_alive(process)) {
        let shell = model.settings.keys.press(Action::Shell);
        let text =
            format!("{} has ended and no longer reads keys; {shell} starts a shell", ended.name);
        notify(model, &text, false);
    }
}

/// Sends something to the programs of all panes on this page, each in the form it expects.
fn send_to_all(model: &Model, encode: impl Fn(&Modes) -> Vec<u8>, effects: &mut Vec<Effect>) {
    for (id, pane) in &model.panes {
        if model.process(&pane.process).is_some_and(is_alive) {
            push(effects, *id, encode(&pane.screen.modes()));
        }
    }
}

fn push(effects: &mut Vec<Effect>, pane: u32, bytes: Vec<u8>) {
    if !bytes.is_empty() {
        effects.push(Effect::Send(pane, bytes));
    }
}

/// Without a pane, the keys on the welcome screen work without the leader.
fn begin_without_pane(model: &mut Model, stroke: &KeyEvent, effects: &mut Vec<Effect>) {
    let action = stroke.key.as_ref().and_then(|key| model.settings.keys.after_leader(key));
    if let Some(action) = action {
        actions::act(model, action, effects);
    }
}

fn paste(model: &mut Model, text: &[u8], effects: &mut Vec<Effect>) {
    digest::let_through(model, None, effects);
    let plain = String::from_utf8_lossy(text);
    let first_line = plain.split(['\r', '\n']).next().unwrap_or_default();
    match &mut model.mode {
        // A prompt may have many lines.
        Mode::Line { question: Question::Prompt(..), text } => {
            text.push_str(&plain.replace("\r\n", "\n").replace('\r', "\n"));
        }
        Mode::Line { text, .. } | Mode::List { filter: text, .. } => text.push_str(first_line),
        Mode::Logs => {
            if let Some(text) = model.logs.as_mut().and_then(LogsView::typed) {
                text.push_str(first_line);
            }
        }
        Mode::Past => {
            if let Some(text) = model.past.as_mut().and_then(TimeBar::typed) {
                text.push_str(first_line);
            }
        }
        Mode::Typing => {
            if let Some(pane) = model.focused_pane().filter(|pane| pane.scroll.is_none()) {
                match model.broadcast {
                    false => push(effects, model.focus, send::paste(text, &pane.screen.modes())),
                    true => send_to_all(model, |modes| send::paste(text, modes), effects),
                }
                (model.sent_at, model.sent_line) = (Some(model.now), false);
            }
        }
        _ => {}
    }
}

/// A key while a dialog is open.
fn overlay(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    if matches!(model.mode, Mode::Restore { .. }) {
        restore::key(model, key, effects);
        return;
    }
    if matches!(model.mode, Mode::Digest(_)) {
        digest::key(model, key, effects);
        return;
    }
    if model.mode == Mode::Logs {
        logs::key(model, key);
        return;
    }
    if model.mode == Mode::Past {
        past::key(model, key, effects);
        return;
    }
    // Escape there also cancels the question without closing it.
    if let Mode::Dashboard { confirmation, leader } = &model.mode {
        let state = (confirmation.clone(), *leader);
        dashboard::key(model, state, key, effects);
        return;
    }
    let cancel = KeyCode::Char('c');
    if key.code == KeyCode::Escape || (key.ctrl && key.code == cancel) {
        if matches!(model.mode, Mode::Answer(_)) {
            return answering::cancel(model);
        }
        model.mode = Mode::Typing;
        return;
    }
    let last = view::last_top(model);
    match std::mem::take(&mut model.mode) {
        Mode::List { kind, chosen, filter } => {
            model.mode = Mode::List { kind, chosen, filter };
            list_key(model, key, effects);
        }
        Mode::Text { title, text, mut top } => {
            if scroll_text(key, &mut top, last) {
                model.mode = Mode::Text { title, text, top };
            }
        }
        Mode::Pad { name, text, mut top } => {
            if matches!(key.code, KeyCode::Char('e')) {
                effects.push(Effect::Edit(name));
            } else if scroll_text(key, &mut top, last) {
                model.mode = Mode::Pad { name, text, top };
            }
        }
        Mode::Help { mut top } => {
            if scroll_text(key, &mut top, last) {
                model.mode = Mode::Help { top };
            }
        }
        Mode::Line { question: question @ Question::Prompt(_), mut text } if !submits(key) => {
            edit_prompt(key, &mut text);
            model.mode = Mode::Line { question, text };
        }
        Mode::Line { question, mut text } => match key.code {
            KeyCode::Enter => actions::answered(model, &question, &text, effects),
            _ => {
                edit_line(key, &mut text);
                model.mode = Mode::Line { question, text };
            }
        },
        Mode::Confirm(confirmation) => {
            if matches!(key.code, KeyCode::Char('y') | KeyCode::Enter) {
                actions::confirmed(model, confirmation, effects);
            }
        }
        Mode::Labels => {
            if let KeyCode::Char(label) = key.code {
                arranging::label_key(model, label, effects);
            }
        }
        Mode::Trust(sheet) => trust::key(model, sheet, key, effects),
        Mode::Overview(place) => overview::key(model, &place, key, effects),
        Mode::Answer(panel) => answering::key(model, panel, key, effects),
        // Only escape and the leader end this mode.
        Mode::Interrupted { name, ignored } => {
            model.mode = Mode::Interrupted { name, ignored: ignored + 1 };
        }
        Mode::Typing
        | Mode::Leader
        | Mode::Logs
        | Mode::Past
        | Mode::Digest(_)
        | Mode::Restore { .. }
        | Mode::Dashboard { .. } => {}
    }
}

fn list_key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let Mode::List { kind, chosen, mut filter } = model.mode.clone() else { return };
    let count = list::items(model, kind, &filter).len();
    let last = count.saturating_sub(1);
    let chosen = match key.code {
        KeyCode::Enter => {
            actions::choose(model, kind, chosen, effects);
            return;
        }
        KeyCode::Right if kind == ListKind::Attention => {
            actions::answer_chosen(model, chosen);
            return;
        }
        KeyCode::Up => chosen.checked_sub(1).unwrap_or(last),
        KeyCode::Down | KeyCode::Tab => {
            if chosen >= last {
                0
            } else {
                chosen + 1
            }
        }
        KeyCode::Char('p') if key.ctrl => chosen.checked_sub(1).unwrap_or(last),
        KeyCode::Char('n') if key.ctrl => {
            if chosen >= last {
                0
            } else {
                chosen + 1
            }
        }
        KeyCode::PageUp => chosen.saturating_sub(10),
        KeyCode::PageDown => (chosen + 10).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => {
            edit_line(key, &mut filter);
            0
        }
    };
    model.mode = Mode::List { kind, chosen, filter };
}

/// Scrolls a text; false for a key that closes it.
fn scroll_text(key: &Key, top: &mut usize, last: usize) -> bool {
    let by: isize = match key.code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -10,
        KeyCode::PageDown | KeyCode::Char(' ') => 10,
        KeyCode::Home | KeyCode::Char('g') if !key.shift => isize::MIN,
        KeyCode::End | KeyCode::Char('G' | 'g') => isize::MAX,
        _ => return false,
    };
    *top = top.saturating_add_signed(by).min(last);
    true
}

/// Whether a key submits a text of several lines.
fn submits(key: &Key) -> bool {
    key.code == KeyCode::Enter && !key.alt && !key.shift && !key.ctrl
}

/// Edits a text of several lines, at its end.
fn edit_prompt(key: &Key, text: &mut String) {
    let is_new_line = match key.code {
        KeyCode::Enter => true,
        KeyCode::Char('j') => key.ctrl,
        _ => false,
    };
    if is_new_line {
        return text.push('\n');
    }
    let begin = text.rfind('\n').map_or(0, |at| at + 1);
    let mut line = text.split_off(begin);
    match line.is_empty() && key.code == KeyCode::Backspace {
        // The end of the line before.
        true => drop(text.pop()),
        false => edit_line(key, &mut line),
    }
    text.push_str(&line);
}

/// Edits a line.
pub(super) fn edit_line(key: &Key, text: &mut String) {
    match key.code {
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if key.ctrl => text.clear(),
        KeyCode::Char('w') if key.ctrl => {
            let kept = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            text.truncate(kept);
        }
        KeyCode::Char(character) if !key.ctrl && !key.alt && !key.logo => {
            text.push(typed(character, key.shift));
        }
        _ => {}
    }
}
