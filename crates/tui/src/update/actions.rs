//! What actions do.

use patterm_wire::method::Empty;
use patterm_wire::servers::{Servers, ServersRequest};
use patterm_wire::tools::{
    CloseProcess, GetProcessPorts, ListAgents, ListPads, PadRef, ProcessRef, ReadPad, RenameArgs,
    RenameProcess, RestartProcess, SpawnAgent, SpawnAgentArgs, StopArgs, StopProcess,
};

use super::panes::{attend, fit, focus, remove, show, split, start_shell};
use super::{CallPurpose, Effect, keyboard, notify, restore, scrolling, trust};
use crate::action::Action;
use crate::layout::Direction;
use crate::list::{self, Choice};
use crate::model::{Confirmation, ListKind, Mode, Model, Question, is_alive};

/// Performs an action.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    model.mode = Mode::Typing;
    match action {
        Action::Shell => {
            keyboard::note_request(model);
            start_shell(effects);
        }
        Action::Agent => {
            request_agents(effects);
            open(model, ListKind::Agents);
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
        Action::Messages => open(model, ListKind::Messages),
        Action::Timers => open(model, ListKind::Timers),
        Action::Pads => {
            effects.push(Effect::call::<ListPads>(&Empty {}, CallPurpose::Pads));
            open(model, ListKind::Pads);
        }
        Action::Ports => ports(model, effects),
        Action::Servers => {
            let request = ServersRequest::default();
            effects.push(Effect::call::<Servers>(&request, CallPurpose::Servers));
            open(model, ListKind::Servers);
        }
        Action::Trust => trust::open(model, effects),
        Action::Rename => {
            if let Some(process) = model.selected() {
                let (question, text) = (Question::Rename(process.id.clone()), process.name.clone());
                model.mode = Mode::Line { question, text };
            }
        }
        Action::Restart | Action::Stop | Action::Close => ask_to_confirm(model, action),
        Action::Restore => restore::open(model),
        Action::Palette => open(model, ListKind::Palette),
        Action::Help => model.mode = Mode::Help { top: 0 },
        Action::SendLeader => effects.push(Effect::Send(model.focus, leader(model))),
        Action::Detach => effects.push(Effect::Quit(None)),
    }
}

/// The leader key, encoded for the pane's program.
fn leader(model: &Model) -> Vec<u8> {
    let modes = model.focused_pane().map(|pane| pane.screen.modes()).unwrap_or_default();
    model.settings.keys.leader().encode(&modes)
}

pub(super) fn request_agents(effects: &mut Vec<Effect>) {
    effects.push(Effect::call::<ListAgents>(&Empty {}, CallPurpose::Agents));
}

pub(super) fn open(model: &mut Model, kind: ListKind) {
    model.mode = Mode::List { kind, chosen: 0, filter: String::new() };
}

/// Shows the process that is this far from the selected one in the tree.
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

/// Moves the focus by this many panes.
fn step_pane(model: &mut Model, by: isize, effects: &mut Vec<Effect>) {
    let order = model.layout.as_ref().map(crate::layout::Layout::panes).unwrap_or_default();
    let at = order.iter().position(|pane| *pane == model.focus).unwrap_or(0);
    let count = order.len().max(1);
    if let Some(next) = order.get((at + count).saturating_add_signed(by) % count) {
        focus(model, *next, effects);
    }
}

/// Lists the agents that need the user, even a single one: if that were shown at once, the Enter meant for the
/// list would answer its dialog unread.
fn attention(model: &mut Model) {
    match model.needing_attention().is_empty() {
        true => notify(model, "no agent needs you", false),
        false => open(model, ListKind::Attention),
    }
}

/// Shows a process that needs the user. Its reason stays visible until a key is pressed, since showing the
/// process clears it.
fn show_attention(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let text = model.process(id).map(|process| {
        let reason = process.attention.as_deref().unwrap_or(&process.reason);
        format!("{}: {reason}", process.name)
    });
    attend(model, id, effects);
    if let Some(text) = text {
        notify(model, &text, false);
    }
}

fn ports(model: &mut Model, effects: &mut Vec<Effect>) {
    model.ports.clear();
    for process in model.snapshot.processes.iter().filter(|process| is_alive(process)) {
        let process_id = process.id.clone();
        let purpose = CallPurpose::Ports(process_id.clone());
        effects.push(Effect::call::<GetProcessPorts>(&ProcessRef { process_id }, purpose));
    }
    open(model, ListKind::Ports);
}

fn ask_to_confirm(model: &mut Model, action: Action) {
    let Some(id) = model.selected().map(|process| process.id.clone()) else { return };
    model.mode = Mode::Confirm(match action {
        Action::Restart => Confirmation::Restart(id),
        Action::Stop => Confirmation::Stop(id),
        _ => Confirmation::Close(id),
    });
}

/// The user has confirmed.
pub(super) fn confirmed(model: &mut Model, confirmation: Confirmation, effects: &mut Vec<Effect>) {
    model.mode = Mode::Typing;
    let purpose = CallPurpose::Nothing;
    effects.push(match confirmation {
        Confirmation::Close(process_id) => {
            model.closing.insert(process_id.clone());
            Effect::call::<CloseProcess>(&ProcessRef { process_id }, purpose)
        }
        Confirmation::Stop(process_id) => {
            Effect::call::<StopProcess>(&StopArgs { process_id, signal: None }, purpose)
        }
        Confirmation::Restart(process_id) => {
            Effect::call::<RestartProcess>(&ProcessRef { process_id }, purpose)
        }
    });
}

/// The user has entered a line.
pub(super) fn answered(
    model: &mut Model,
    question: &Question,
    text: &str,
    effects: &mut Vec<Effect>,
) {
    model.mode = Mode::Typing;
    match question {
        Question::Rename(id) => {
            let args = RenameArgs { process_id: id.clone(), name: text.to_owned() };
            effects.push(Effect::call::<RenameProcess>(&args, CallPurpose::Nothing));
        }
        Question::Prompt(agent) => {
            let args = SpawnAgentArgs {
                agent: agent.clone(),
                agent_instructions: Some(text.to_owned()).filter(|text| !text.trim().is_empty()),
                name: None,
            };
            notify(model, &format!("starting {agent}…"), false);
            keyboard::note_request(model);
            effects.push(Effect::call::<SpawnAgent>(&args, CallPurpose::Start));
        }
    }
}

/// The user has chosen an item of a list.
pub(super) fn choose(model: &mut Model, kind: ListKind, at: usize, effects: &mut Vec<Effect>) {
    let Mode::List { filter, .. } = &model.mode else { return };
    let Some(item) = list::items(model, kind, filter).into_iter().nth(at) else { return };
    match item.choice {
        Choice::Do(action) => act(model, action, effects),
        Choice::Show(id) => {
            model.mode = Mode::Typing;
            match kind {
                ListKind::Attention => show_attention(model, &id, effects),
                _ => attend(model, &id, effects),
            }
        }
        Choice::Start(agent) => {
            model.mode = Mode::Line { question: Question::Prompt(agent), text: String::new() };
        }
        Choice::Read(name) => {
            keyboard::note_request(model);
            let purpose = CallPurpose::Pad(name.clone());
            effects.push(Effect::call::<ReadPad>(&PadRef { name }, purpose));
        }
        Choice::Notify(text) => notify(model, &text, true),
    }
}
