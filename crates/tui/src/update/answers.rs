//! The results of calls.

use patterm_wire::ErrorObject;
use patterm_wire::digest::ReadDigest;
use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::method::Method;
use patterm_wire::past::ReadPast;
use patterm_wire::requests::{AnswerDialog, Messages};
use patterm_wire::restore::Restore;
use patterm_wire::servers::Servers;
use patterm_wire::tools::{
    GetProcessPorts, GetProjectStatus, GetRawOutput, ListAgents, ListPads, OutputPart, ReadPad,
    RestartProcess, SpawnProcess,
};
use patterm_wire::usage::Usage;
use serde_json::Value;

use super::{
    CallPurpose, Effect, answering, dashboard, digest, keyboard, local_error, notify, panes, past,
    restore, split, trust,
};
use crate::action::Action;
use crate::layout::PaneId;
use crate::list;
use crate::model::{Mode, Model};

/// Handles the outcome of a call.
pub(super) fn take(
    model: &mut Model,
    purpose: CallPurpose,
    outcome: Result<Value, ErrorObject>,
    effects: &mut Vec<Effect>,
) {
    let handled = outcome.and_then(|result| use_result(model, &purpose, result, effects));
    if let Err(error) = handled {
        failed(model, &purpose, &error, effects);
    }
}

/// Reads the result of a method.
fn read<M: Method>(result: Value) -> Result<M::Result, ErrorObject> {
    serde_json::from_value(result)
        .map_err(|error| local_error(&format!("unexpected result of {}: {error}", M::NAME)))
}

fn use_result(
    model: &mut Model,
    purpose: &CallPurpose,
    result: Value,
    effects: &mut Vec<Effect>,
) -> Result<(), ErrorObject> {
    match purpose {
        CallPurpose::Nothing | CallPurpose::SignOfLife => {}
        CallPurpose::Start(Some(pane)) => {
            model.notice = None;
            model.to_place.push((read::<SpawnProcess>(result)?.process_id, *pane));
            split::place_started(model, effects);
        }
        CallPurpose::Start(None) => {
            let id = read::<SpawnProcess>(result)?.process_id;
            model.notice = None;
            match model.process(&id) {
                Some(_) => panes::show_requested(model, &id, effects),
                // A later snapshot will have it.
                None => model.to_show = Some(id),
            }
        }
        CallPurpose::Agents => model.agents = Some(read::<ListAgents>(result)?.agents),
        CallPurpose::Pads => model.pads = read::<ListPads>(result)?.scratchpads,
        CallPurpose::Pad(name) => {
            let text = read::<ReadPad>(result)?.content;
            if keyboard::is_late(model) {
                let notice = format!("scratchpad {name} has loaded; choose it again to read it");
                notify(model, &notice, false);
                return Ok(());
            }
            model.mode = Mode::Pad { name: name.clone(), text, top: 0 };
        }
        CallPurpose::Message(id) => {
            let messages = read::<Messages>(result)?.messages;
            let Some(message) = messages.first().filter(|_| !keyboard::is_late(model)) else {
                return Ok(());
            };
            let text = list::whole_message(model, message);
            model.mode = Mode::Text { title: format!("message {id}"), text, top: 0 };
        }
        CallPurpose::Ports(process) => {
            let ports = read::<GetProcessPorts>(result)?.ports;
            model.ports.extend(ports.into_iter().map(|port| (process.clone(), port)));
        }
        CallPurpose::Past(number) => {
            past::answered(model, *number, read::<ReadPast>(result)?, effects);
        }
        CallPurpose::Servers => model.servers = read::<Servers>(result)?.servers,
        CallPurpose::ProjectFile => {
            trust::answered(model, read::<GetProjectStatus>(result)?.project_file);
        }
        CallPurpose::Older(pane) => add_older(model, *pane, read::<GetRawOutput>(result)?),
        CallPurpose::Answer(name) => {
            answering::answered(model, name, &read::<AnswerDialog>(result)?);
        }
        CallPurpose::Digest { by_user } => {
            digest::answered(model, *by_user, read::<ReadDigest>(result)?);
        }
        CallPurpose::Looked => {}
        CallPurpose::Usage => dashboard::measured(model, read::<Usage>(result)?),
        CallPurpose::Restore => restore::done(model, &read::<Restore>(result)?, effects),
    }
    Ok(())
}

fn failed(
    model: &mut Model,
    purpose: &CallPurpose,
    error: &ErrorObject,
    effects: &mut Vec<Effect>,
) {
    if let CallPurpose::Digest { by_user: false } = purpose {
        return digest::failed(model, error.code == METHOD_NOT_FOUND);
    }
    if let CallPurpose::Past(number) = purpose {
        let text = error_text(model, error);
        return past::failed(model, *number, error, &text);
    }
    // Ports and older rows are extras: it does not matter if they are missing.
    if matches!(purpose, CallPurpose::Ports(_) | CallPurpose::Older(_) | CallPurpose::Looked) {
        return;
    }
    // The dashboard asks again by itself.
    if *purpose == CallPurpose::Usage {
        model.dashboard.problem = Some(match error.code {
            METHOD_NOT_FOUND => {
                "this server is too old to measure processes; `patterm upgrade` replaces it"
                    .to_owned()
            }
            _ => error_text(model, error),
        });
        return;
    }
    let is_old = matches!(purpose, CallPurpose::Digest { .. }) && error.code == METHOD_NOT_FOUND;
    let text = match is_old {
        true => {
            "this server is older and cannot sum up what happened; `patterm upgrade`".to_owned()
        }
        false => error_text(model, error),
    };
    notify(model, &text, true);
    if let CallPurpose::Start(Some(id)) = purpose {
        let had_focus = model.focus == *id;
        panes::remove(model, *id, effects);
        if had_focus {
            keyboard::focus_lost(model, "the new pane");
        }
    }
}

/// An error for the user, who knows keys and not tools.
fn error_text(model: &Model, error: &ErrorObject) -> String {
    let keys = |tool: &str| match tool {
        "start_process" | RestartProcess::NAME => Some(model.settings.keys.press(Action::Restart)),
        _ => None,
    };
    error.details().render(keys).unwrap_or_else(|| error.message.clone())
}

/// Adds older rows above a pane's scrollback.
fn add_older(model: &mut Model, id: PaneId, part: OutputPart) {
    let Some(pane) = model.panes.get_mut(&id) else { return };
    let Some(scroll) = &mut pane.scroll else { return };
    let offset = part.offset;
    scroll.add_older(&part.into_bytes(), offset, &pane.screen);
}
