//! What tools answered.

use patterm_wire::base64;
use patterm_wire::servers::ServerInfo;
use serde::Deserialize;
use serde_json::Value;

use super::{Asked, Effect, keyboard, panes, restore, tell, trust};
use crate::layout::PaneId;
use crate::model::{Agent, Mode, Model, Pad, Port};

/// Takes an answer for what it was asked for.
pub(super) fn take(
    model: &mut Model,
    asked: Asked,
    answer: Result<Value, String>,
    effects: &mut Vec<Effect>,
) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            failed(model, &asked, &why, effects);
            return;
        }
    };
    match asked {
        Asked::Nothing => {}
        Asked::Start => {
            let id = answer["process_id"].as_str().unwrap_or_default().to_owned();
            model.notice = None;
            match model.process(&id) {
                Some(_) => panes::show_asked(model, &id, effects),
                // It will be told of.
                None => model.wanted = Some(id),
            }
        }
        Asked::Agents => model.agents = Some(read::<Agent>(&answer["agents"])),
        Asked::Pads => model.pads = read::<Pad>(&answer["scratchpads"]),
        Asked::Pad(name) => {
            if keyboard::comes_late(model) {
                tell(
                    model,
                    &format!("scratchpad {name} is here; choose it again to read it"),
                    false,
                );
                return;
            }
            let text = answer["content"].as_str().unwrap_or_default().to_owned();
            model.mode = Mode::Text { title: format!("scratchpad {name}"), text, top: 0 };
        }
        Asked::Ports(process) => {
            let ports = read::<Port>(&answer["ports"]);
            model
                .ports
                .extend(ports.into_iter().map(|port| Port { process: process.clone(), ..port }));
        }
        Asked::Servers => model.servers = read::<ServerInfo>(&answer["servers"]),
        Asked::ProjectFile => trust::answered(model, &answer["project_file"]),
        Asked::Older(pane) => older(model, pane, &answer),
        Asked::Restore => restore::done(model, answer, effects),
    }
}

fn failed(model: &mut Model, asked: &Asked, why: &str, effects: &mut Vec<Effect>) {
    // Ports and older rows are extras: without them nothing is wrong.
    if matches!(asked, Asked::Ports(_) | Asked::Older(_)) {
        return;
    }
    tell(model, why, true);
    if *asked == Asked::Start {
        let empty = model.panes.iter().find(|(_, pane)| pane.process.is_empty());
        if let Some(id) = empty.map(|(id, _)| *id) {
            let had_focus = model.focus == id;
            panes::remove(model, id, effects);
            if had_focus {
                keyboard::taken_away(model, "the new shell");
            }
        }
    }
}

fn read<T: for<'a> Deserialize<'a>>(list: &Value) -> Vec<T> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|item| T::deserialize(item).ok()).collect()
}

/// Puts older rows above those that are gone through.
fn older(model: &mut Model, id: PaneId, answer: &Value) {
    let Some(pane) = model.panes.get_mut(&id) else { return };
    let Some(scroll) = &mut pane.scroll else { return };
    let bytes = match (answer["text"].as_str(), answer["base64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(coded)) => base64::decode(coded),
        (None, None) => return,
    };
    let cut = answer["offset"].as_u64().unwrap_or(0) > 0;
    scroll.add_older(&bytes, cut, &pane.screen);
}
