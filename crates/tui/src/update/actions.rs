//! Carrying out actions.

use patterm_wire::servers;
use serde_json::json;

use super::panes::{attend, fit, focus, remove, show, split, start_shell};
use super::{Asked, Effect, keyboard, restore, scrolling, tell, trust};
use crate::action::Action;
use crate::layout::Direction;
use crate::list::{self, Choice};
use crate::model::{Doubt, Listed, Mode, Model, Question, is_alive};

/// Does something.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    model.mode = Mode::Typing;
    match action {
        Action::Shell => {
            keyboard::asks(model);
            start_shell(effects);
        }
        Action::Agent => {
            ask_agents(effects);
            open(model, Listed::Agents);
        }
        Action::Next => step(model, 1, effects),
        Action::Previous => step(model, -1, effects),
        Action::Go(number) => go(model, usize::from(number), effects),
        Action::SplitBeside => split(model, Direction::Beside, effects),
        Action::SplitBelow => split(model, Direction::Below, effects),
        Action::OtherPane => step_pane(model, 1, effects),
        Action::PaneBefore => step_pane(model, -1, effects),
        Action::ClosePane => {
            if model.panes.len() > 1 {
                remove(model, model.focus, effects);
            }
        }
        Action::Zoom => {
            model.zoomed = !model.zoomed && model.panes.len() > 1;
            fit(model, effects);
        }
        Action::Tree => {
            model.tree_hidden = !model.tree_hidden;
            fit(model, effects);
        }
        Action::Scrollback => scrolling::begin(model, model.focus, effects),
        Action::Attention => attention(model),
        Action::Marked => keyboard::go_to_marked(model, effects),
        Action::Messages => open(model, Listed::Messages),
        Action::Timers => open(model, Listed::Timers),
        Action::Pads => {
            call("scratchpad_list", json!({}), Asked::Pads, effects);
            open(model, Listed::Pads);
        }
        Action::Ports => ports(model, effects),
        Action::Servers => {
            call(servers::METHOD, json!({}), Asked::Servers, effects);
            open(model, Listed::Servers);
        }
        Action::Trust => trust::open(model, effects),
        Action::Rename => {
            if let Some(process) = model.selected() {
                let (question, text) = (Question::Rename(process.id.clone()), process.name.clone());
                model.mode = Mode::Line { question, text };
            }
        }
        Action::Restart | Action::Stop | Action::Close => doubt(model, action),
        Action::Restore => restore::open(model),
        Action::Palette => open(model, Listed::Palette),
        Action::Help => model.mode = Mode::Help { top: 0 },
        Action::SendLeader => effects.push(Effect::Send(model.focus, leader(model))),
        Action::Detach => effects.push(Effect::Quit(None)),
    }
}

/// The leader as the program of the pane wants it.
fn leader(model: &Model) -> Vec<u8> {
    let modes = model.focused_pane().map(|pane| pane.screen.modes()).unwrap_or_default();
    model.settings.keys.leader().encode(&modes)
}

fn call(tool: &'static str, arguments: serde_json::Value, asked: Asked, effects: &mut Vec<Effect>) {
    effects.push(Effect::Call { tool, arguments, asked });
}

pub(super) fn ask_agents(effects: &mut Vec<Effect>) {
    call("list_agents", json!({}), Asked::Agents, effects);
}

pub(super) fn open(model: &mut Model, listed: Listed) {
    model.mode = Mode::List { listed, chosen: 0, filter: String::new() };
}

/// The process that is this far from the selected one in the tree.
fn step(model: &mut Model, by: isize, effects: &mut Vec<Effect>) {
    let ids: Vec<String> = model.tree().iter().map(|(_, process)| process.id.clone()).collect();
    let now = model.selected().map(|process| process.id.clone());
    let at = ids.iter().position(|id| Some(id) == now.as_ref()).unwrap_or(0);
    let count = ids.len().max(1);
    let next = (at + count).saturating_add_signed(by) % count;
    if let Some(id) = ids.get(next) {
        show(model, id, effects);
    }
}

fn go(model: &mut Model, number: usize, effects: &mut Vec<Effect>) {
    let id = model.tree().get(number.saturating_sub(1)).map(|(_, process)| process.id.clone());
    if let Some(id) = id {
        attend(model, &id, effects);
    }
}

/// The pane that is this far from the one with the focus.
fn step_pane(model: &mut Model, by: isize, effects: &mut Vec<Effect>) {
    let order = model.layout.as_ref().map(crate::layout::Layout::panes).unwrap_or_default();
    let at = order.iter().position(|pane| *pane == model.focus).unwrap_or(0);
    let count = order.len().max(1);
    if let Some(next) = order.get((at + count).saturating_add_signed(by) % count) {
        focus(model, *next, effects);
    }
}

/// Lists the agents that need the person, also a single one: if that were shown at once, the Enter that
/// chooses from a list would answer its dialog unread.
fn attention(model: &mut Model) {
    match model.calling().is_empty() {
        true => tell(model, "no agent needs you", false),
        false => open(model, Listed::Attention),
    }
}

/// Goes to a process that asks for the person. Its words stay in sight until a key is pressed: who
/// looks at it is not asked any more.
fn answer_call(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let words = model.process(id).map(|process| {
        let why = process.attention.as_deref().unwrap_or(&process.reason);
        format!("{} asks: {why}", process.name)
    });
    attend(model, id, effects);
    if let Some(words) = words {
        tell(model, &words, false);
    }
}

fn ports(model: &mut Model, effects: &mut Vec<Effect>) {
    model.ports.clear();
    for process in model.seen.processes.iter().filter(|process| is_alive(process)) {
        let asked = Asked::Ports(process.id.clone());
        call("get_process_ports", json!({"process_id": process.id}), asked, effects);
    }
    open(model, Listed::Ports);
}

fn doubt(model: &mut Model, action: Action) {
    let Some(id) = model.selected().map(|process| process.id.clone()) else { return };
    model.mode = Mode::Confirm(match action {
        Action::Restart => Doubt::Restart(id),
        Action::Stop => Doubt::Stop(id),
        _ => Doubt::Close(id),
    });
}

/// The person is sure.
pub(super) fn confirmed(model: &mut Model, doubt: &Doubt, effects: &mut Vec<Effect>) {
    let (tool, id) = match doubt {
        Doubt::Close(id) => ("close_process", id),
        Doubt::Stop(id) => ("stop_process", id),
        Doubt::Restart(id) => ("restart_process", id),
    };
    model.mode = Mode::Typing;
    if matches!(doubt, Doubt::Close(_)) {
        model.closing.insert(id.clone());
    }
    call(tool, json!({"process_id": id}), Asked::Nothing, effects);
}

/// A line was typed to its end.
pub(super) fn answered(
    model: &mut Model,
    question: &Question,
    text: &str,
    effects: &mut Vec<Effect>,
) {
    model.mode = Mode::Typing;
    match question {
        Question::Rename(id) => {
            let arguments = json!({"process_id": id, "name": text});
            call("rename_process", arguments, Asked::Nothing, effects);
        }
        Question::Prompt(agent) => {
            let mut arguments = json!({"agent": agent});
            if !text.trim().is_empty() {
                arguments["agent_instructions"] = text.into();
            }
            tell(model, &format!("starting {agent}…"), false);
            keyboard::asks(model);
            call("spawn_agent", arguments, Asked::Start, effects);
        }
    }
}

/// Something of a list was chosen.
pub(super) fn choose(model: &mut Model, listed: Listed, at: usize, effects: &mut Vec<Effect>) {
    let Mode::List { filter, .. } = &model.mode else { return };
    let Some(item) = list::items(model, listed, filter).into_iter().nth(at) else { return };
    match item.choice {
        Choice::Do(action) => act(model, action, effects),
        Choice::Show(id) => {
            model.mode = Mode::Typing;
            match listed {
                Listed::Attention => answer_call(model, &id, effects),
                _ => attend(model, &id, effects),
            }
        }
        Choice::Start(agent) => {
            model.mode = Mode::Line { question: Question::Prompt(agent), text: String::new() };
        }
        Choice::Read(name) => {
            keyboard::asks(model);
            call("scratchpad_read", json!({"name": name}), Asked::Pad(name.clone()), effects);
        }
        Choice::Tell(why) => tell(model, &why, true),
    }
}
