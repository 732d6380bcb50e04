//! The time bar: its keys, its requests, and their answers. Nothing that is typed reaches a program meanwhile.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::ErrorObject;
use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::past::{EventGroup, PastDirection, PastResult, PastStep, ReadPast};

use super::{CallPurpose, Effect, keys, notify};
use crate::action::typed;
use crate::model::{Mode, Model};
use crate::past::{Arrival, TimeBar, TimeScope, TimeTyping};
use crate::view;
use patterm_screen::input::MouseEvent;

/// Steps by a duration.
const SECOND_MS: i64 = 1_000;
const TEN_SECONDS_MS: i64 = 10_000;
const MINUTE_MS: i64 = 60_000;

/// Opens the bar for the pane with the focus, or for all panes.
pub(super) fn open(model: &mut Model, scope: TimeScope, effects: &mut Vec<Effect>) {
    if model.panes.is_empty() {
        notify(model, "there is no pane whose past could be shown", false);
        return;
    }
    model.last_time_bar += 1;
    model.past = Some(TimeBar::new(model.last_time_bar, scope));
    model.mode = Mode::Past;
    send(model, effects);
}

/// Sends the steps that wait, unless a request is under way.
fn send(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(scope) = model.past.as_ref().map(|bar| bar.scope) else { return };
    let panes: Vec<_> = match scope {
        TimeScope::Pane(pane) => vec![pane],
        TimeScope::Page => model.places().0.into_iter().map(|(pane, _)| pane).collect(),
    };
    let processes = panes.iter().filter_map(|pane| Some(model.panes.get(pane)?.process.clone()));
    let processes: Vec<String> = processes.filter(|process| !process.is_empty()).collect();
    let Some(bar) = &mut model.past else { return };
    let purpose = CallPurpose::Past(bar.number);
    if let Some(request) = bar.request(processes) {
        effects.push(Effect::call::<ReadPast>(&request, purpose));
    }
}

/// The screens have come.
pub(super) fn answered(
    model: &mut Model,
    number: u64,
    result: PastResult,
    effects: &mut Vec<Effect>,
) {
    let Some(bar) = model.past.as_mut().filter(|bar| bar.number == number) else { return };
    let arrival = bar.take(result);
    let has_more = bar.has_more();
    match arrival {
        Arrival::Shown => {}
        Arrival::Missed(step) => {
            let text = missed(&step);
            notify(model, &text, false);
        }
        Arrival::Twice(again_ms) => {
            let again = view::time_of(model, again_ms);
            let text = format!(
                "the clock was set back and showed this time again, at what is {again} here"
            );
            notify(model, &text, false);
        }
    }
    if has_more {
        send(model, effects);
    }
}

/// What a step did not find.
fn missed(step: &PastStep) -> String {
    let (what, direction) = match step {
        PastStep::Event { group, direction } => {
            let what = match group {
                EventGroup::All => "event",
                EventGroup::Messages => "message",
                EventGroup::States => "change of a state",
                EventGroup::Attention => "request for attention",
            };
            (what.to_owned(), direction)
        }
        PastStep::Search { text, direction } => (format!("line with `{text}`"), direction),
        _ => return "there is nothing further".to_owned(),
    };
    match direction {
        PastDirection::Back => format!("no {what} before this"),
        PastDirection::Forward => format!("no {what} after this"),
    }
}

/// The request failed: an old server cannot do this at all.
pub(super) fn failed(model: &mut Model, number: u64, error: &ErrorObject, text: &str) {
    let Some(bar) = model.past.as_mut().filter(|bar| bar.number == number) else { return };
    bar.failed();
    if error.code == METHOD_NOT_FOUND {
        model.mode = Mode::Typing;
        let text = "this server is older and cannot go back in time; `patterm upgrade`";
        return notify(model, text, true);
    }
    notify(model, text, true);
}

/// Drops the screens when the bar was closed, however that happened, and closes it if its pane is gone.
pub(super) fn forget(model: &mut Model) {
    let Some(bar) = &model.past else { return };
    let is_gone = match bar.scope {
        TimeScope::Pane(pane) => !model.panes.contains_key(&pane),
        TimeScope::Page => model.panes.is_empty(),
    };
    if is_gone && model.mode == Mode::Past {
        model.mode = Mode::Typing;
    }
    if model.mode != Mode::Past {
        model.past = None;
    }
}

/// A key while the bar is open.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let cancels = key.code == KeyCode::Escape || (key.ctrl && key.code == KeyCode::Char('c'));
    let Some(bar) = &mut model.past else { return };
    if bar.typing.is_some() {
        return type_key(model, key, cancels, effects);
    }
    let step = match key.code {
        _ if cancels => return model.mode = Mode::Typing,
        KeyCode::Left => by(-SECOND_MS),
        KeyCode::Right => by(SECOND_MS),
        KeyCode::Up => by(-TEN_SECONDS_MS),
        KeyCode::Down => by(TEN_SECONDS_MS),
        KeyCode::PageUp => by(-MINUTE_MS),
        KeyCode::PageDown => by(MINUTE_MS),
        KeyCode::Home => PastStep::Beginning,
        KeyCode::End => PastStep::Now,
        KeyCode::Tab => return change_scope(model, effects),
        KeyCode::Char(letter) if !key.ctrl && !key.alt => {
            return letter_key(model, typed(letter, key.shift), effects);
        }
        _ => return,
    };
    go(model, step, effects);
}

fn letter_key(model: &mut Model, letter: char, effects: &mut Vec<Effect>) {
    let (back, forward) = (PastDirection::Back, PastDirection::Forward);
    let event = |group, direction| PastStep::Event { group, direction };
    let Some(bar) = &mut model.past else { return };
    let step = match letter {
        'q' => return model.mode = Mode::Typing,
        'h' => by(-SECOND_MS),
        'l' => by(SECOND_MS),
        'k' => by(-TEN_SECONDS_MS),
        'j' => by(TEN_SECONDS_MS),
        'g' => PastStep::Beginning,
        'G' => PastStep::Now,
        ',' => PastStep::Change { direction: back },
        '.' => PastStep::Change { direction: forward },
        'e' => event(EventGroup::All, back),
        'E' => event(EventGroup::All, forward),
        'm' => event(EventGroup::Messages, back),
        'M' => event(EventGroup::Messages, forward),
        's' => event(EventGroup::States, back),
        'S' => event(EventGroup::States, forward),
        'a' => event(EventGroup::Attention, back),
        'A' => event(EventGroup::Attention, forward),
        'n' | 'N' if bar.search.is_empty() => {
            return notify(model, "nothing was searched for yet; / searches", false);
        }
        'n' => PastStep::Search { text: bar.search.clone(), direction: back },
        'N' => PastStep::Search { text: bar.search.clone(), direction: forward },
        '/' => {
            (bar.typing, bar.search) = (Some(TimeTyping::Search), String::new());
            return;
        }
        't' | ':' => {
            (bar.typing, bar.time) = (Some(TimeTyping::Time), String::new());
            return;
        }
        // A digit begins a time.
        '0'..='9' => {
            (bar.typing, bar.time) = (Some(TimeTyping::Time), letter.to_string());
            return;
        }
        _ => return,
    };
    go(model, step, effects);
}

/// A key while a time or a text is typed.
fn type_key(model: &mut Model, key: &Key, cancels: bool, effects: &mut Vec<Effect>) {
    let Some(bar) = &mut model.past else { return };
    match key.code {
        _ if cancels => {
            if let Some(text) = bar.typed() {
                text.clear();
            }
            bar.typing = None;
        }
        KeyCode::Enter => match bar.typing.take() {
            Some(TimeTyping::Time) if !bar.time.trim().is_empty() => {
                effects.push(Effect::ReadTime(bar.time.clone()));
            }
            Some(TimeTyping::Search) if !bar.search.is_empty() => {
                let (text, direction) = (bar.search.clone(), PastDirection::Back);
                go(model, PastStep::Search { text, direction }, effects);
            }
            _ => {}
        },
        _ => {
            if let Some(text) = bar.typed() {
                keys::edit_line(key, text);
            }
        }
    }
}

/// A time that was typed, or why it is not one.
pub(super) fn time_read(model: &mut Model, time: Result<u64, String>, effects: &mut Vec<Effect>) {
    match time {
        Ok(at_ms) => go(model, PastStep::To { at_ms }, effects),
        Err(why) => notify(model, &why, true),
    }
}

/// Shows the past of this pane instead of all, or the other way round.
fn change_scope(model: &mut Model, effects: &mut Vec<Effect>) {
    let focus = model.focus;
    if let Some(bar) = &mut model.past {
        bar.scope = match bar.scope {
            TimeScope::Page => TimeScope::Pane(focus),
            TimeScope::Pane(_) => TimeScope::Page,
        };
        // The same moment, for the other processes.
        go(model, by(0), effects);
    }
}

/// The mouse: the wheel goes from change to change, a click on the bar goes there.
pub(super) fn mouse(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    if let Some(rows) = event.wheel() {
        let direction = if rows < 0 { PastDirection::Back } else { PastDirection::Forward };
        go(model, PastStep::Change { direction }, effects);
    } else if event.pressed_left()
        && let Some(at_ms) = view::moment_at(model, event.x, event.y)
    {
        go(model, PastStep::To { at_ms }, effects);
    }
}

fn by(ms: i64) -> PastStep {
    PastStep::By { ms }
}

/// Makes a step.
fn go(model: &mut Model, step: PastStep, effects: &mut Vec<Effect>) {
    if let Some(bar) = &mut model.past {
        bar.add(step);
        send(model, effects);
    }
}
