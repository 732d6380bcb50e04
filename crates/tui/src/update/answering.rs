//! Answering an agent's dialog without going to its pane. The answer names the dialog as it was shown; the server
//! refuses it if another one is on the screen.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::Method;
use patterm_wire::follow::ProcessInfo;
use patterm_wire::requests::{AnswerDialog, AnswerState, DialogAnswer, DialogAnswered, OptionRef};

use super::{CallPurpose, Effect, notify};
use crate::model::{ListKind, Mode, Model};
use crate::overview::{AnswerPanel, Place};

/// Opens the question of a process of this project (`None`) or another one.
pub(super) fn open(model: &mut Model, project: Option<String>, process: &ProcessInfo) {
    let name = process.name.clone();
    match process.dialog.as_ref().filter(|_| process.status.is_alive()) {
        Some(dialog) if dialog.is_answerable() => {
            let (process, dialog) = (process.id.clone(), dialog.clone());
            let (chosen, list) = (0, None);
            let panel = AnswerPanel { project, process, name, dialog, chosen, list };
            model.mode = Mode::Answer(panel);
        }
        Some(dialog) if dialog.options.is_empty() => {
            let text = format!("{name} shows no options completely; answer it in its pane");
            notify(model, &text, false);
        }
        Some(_) => {
            let text = format!("patterm does not know the keys of this dialog; enter shows {name}");
            notify(model, &text, false);
        }
        None => notify(model, &format!("{name} is not showing a question with options"), false),
    }
}

/// Closes the question if it is not the one on the screen any more.
pub(super) fn refresh(model: &mut Model) {
    let Mode::Answer(panel) = &model.mode else { return };
    let now = match &panel.project {
        None => model.process(&panel.process),
        Some(key) => {
            let place = Place { key: key.clone(), process: Some(panel.process.clone()) };
            model.overview.as_ref().and_then(|overview| overview.process(&place))
        }
    };
    let now = now.and_then(|process| process.dialog.as_ref());
    if now.is_some_and(|dialog| dialog.version == panel.dialog.version) {
        return;
    }
    let what = if now.is_some() { "asks something else now" } else { "no longer asks anything" };
    let text = format!("{} {what}; nothing was answered", panel.name);
    let title = format!("{} asks", panel.name);
    let from_overview = panel.project.is_some();
    close(model);
    match from_overview {
        true => notify(model, &text, true),
        // The next key was meant for the question, not for the pane behind it: it closes this text.
        false => model.mode = Mode::Text { title, text, top: 0 },
    }
}

/// Goes back to where the question was opened.
fn close(model: &mut Model) {
    let Mode::Answer(panel) = std::mem::take(&mut model.mode) else { return };
    if let Some(key) = panel.project {
        model.mode = Mode::Overview(Place { key, process: Some(panel.process) });
    }
}

/// The letters that are keys of the window.
const OWN_KEYS: [char; 3] = ['j', 'k', 'q'];

/// The only option whose label is this character.
fn labelled(panel: &AnswerPanel, letter: char) -> Option<usize> {
    let is_it = |at: &usize| {
        let mut label = panel.dialog.options[*at].label.chars();
        label.next() == Some(letter) && label.next().is_none()
    };
    let mut found = (0..panel.dialog.options.len()).filter(is_it);
    found.next().filter(|_| found.next().is_none())
}

/// A key while a question is open.
pub(super) fn key(model: &mut Model, mut panel: AnswerPanel, key: &Key, effects: &mut Vec<Effect>) {
    let last = panel.dialog.options.len().saturating_sub(1);
    let number = match key.code {
        KeyCode::Char(digit) if !key.ctrl && !key.alt => {
            digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok())
        }
        _ => None,
    };
    let number = number.and_then(|number| number.checked_sub(1)).filter(|at| *at <= last);
    panel.chosen = match key.code {
        KeyCode::Up | KeyCode::Char('k') => panel.chosen.checked_sub(1).unwrap_or(last),
        KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => {
            if panel.chosen >= last {
                0
            } else {
                panel.chosen + 1
            }
        }
        _ => number.unwrap_or(panel.chosen),
    };
    // The window's own keys keep their meaning; such an option is chosen by its number.
    let letter = match key.code {
        KeyCode::Char(letter) if !key.ctrl && !key.alt && !OWN_KEYS.contains(&letter) => {
            labelled(&panel, letter)
        }
        _ => None,
    };
    let number = letter.or(number);
    panel.chosen = letter.unwrap_or(panel.chosen);
    let chosen = panel.chosen;
    let goes_back = matches!(key.code, KeyCode::Left | KeyCode::Char('q'));
    let sends = number.is_some() || key.code == KeyCode::Enter;
    let answer = panel.dialog.options.get(chosen).filter(|_| sends).map(|option| {
        let answer = DialogAnswer {
            process_id: panel.process.clone(),
            dialog: panel.dialog.version.clone(),
            option: OptionRef::Number(chosen + 1),
        };
        (option.answerable, answer, panel.project.clone(), panel.name.clone())
    });
    model.mode = Mode::Answer(panel);
    match answer {
        Some((false, ..)) => {
            notify(
                model,
                "patterm does not know the keys of this option; answer it in its pane",
                true,
            );
        }
        Some((true, answer, project, name)) => {
            close(model);
            let text = format!("answering {name}…");
            effects.push(send(project, &answer, name));
            notify(model, &text, false);
        }
        None if goes_back => cancel(model),
        None => {}
    }
}

/// Leaves the question unanswered: back to the list or the overview, so that the next key is not the program's.
pub(super) fn cancel(model: &mut Model) {
    let list = match &mut model.mode {
        Mode::Answer(panel) => panel.list.take(),
        _ => None,
    };
    close(model);
    if let Some((chosen, filter)) = list {
        model.mode = Mode::List { kind: ListKind::Attention, chosen, filter };
    }
}

fn send(project: Option<String>, answer: &DialogAnswer, name: String) -> Effect {
    let purpose = CallPurpose::Answer(name);
    match project {
        None => Effect::call::<AnswerDialog>(answer, purpose),
        Some(project) => {
            // Parameters are plain data, which can always be serialized.
            let params = serde_json::to_value(answer).unwrap_or_default();
            Effect::CallAt { project, method: AnswerDialog::NAME, params, purpose }
        }
    }
}

/// Reports the outcome of an answer.
pub(super) fn answered(model: &mut Model, name: &str, answered: &DialogAnswered) {
    let reason = &answered.reason;
    match &answered.state {
        AnswerState::Accepted => notify(model, &format!("{name} was answered: {reason}"), false),
        AnswerState::Refused => notify(model, &format!("{name} was not answered: {reason}"), true),
        AnswerState::Unconfirmed | AnswerState::Other(_) => {
            notify(model, &format!("{name}: {reason}"), true);
        }
    }
}
