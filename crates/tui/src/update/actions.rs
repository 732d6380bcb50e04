//! What actions do.

use patterm_wire::follow::ProcessInfo;
use patterm_wire::method::Empty;
use patterm_wire::requests::{Dismiss, DismissRequest, Messages, MessagesRequest};
use patterm_wire::servers::{Servers, ServersRequest};
use patterm_wire::tools::{
    CloseProcess, GetProcessPorts, ListAgents, ListPads, PadRef, ProcessRef, ReadPad, RenameArgs,
    RenameProcess, RestartProcess, SpawnAgentArgs, StopArgs, StopProcess,
};

use super::panes::{fit, put_here, remove, show, show_here};
use super::{
    CallPurpose, Effect, answering, arranging, dashboard, digest, keyboard, logs, notify, overview,
    pages, past, restore, scrolling, split, trust,
};
use crate::action::Action;
use crate::layout::Direction;
use crate::list::{self, Choice};
use crate::model::{AgentToStart, Confirmation, ListKind, Mode, Model, Question, is_alive, need};
use crate::past::TimeScope;

/// Performs an action.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    model.mode = Mode::Typing;
    match action {
        Action::Shell => {
            keyboard::note_request(model);
            split::start_shell(None, effects);
        }
        Action::Agent => {
            request_agents(effects);
            open(model, ListKind::Agents);
        }
        Action::AgentBeside => {
            request_agents(effects);
            open(model, ListKind::AgentsBeside);
        }
        Action::Next => step(model, 1, effects),
        Action::Previous => step(model, -1, effects),
        Action::Go(number) => go(model, number, effects),
        Action::Dashboard => dashboard::open(model, effects),
        Action::ChooseProcess if model.snapshot.processes.is_empty() => {
            let keys = &model.settings.keys;
            let (shell, agent) = (keys.press(Action::NewPage), keys.press(Action::Agent));
            notify(
                model,
                &format!("nothing to show yet; {shell} starts a shell, {agent} an agent"),
                false,
            );
        }
        Action::ChooseProcess => open(model, ListKind::Processes),
        Action::Scrollback => scrolling::begin(model, model.focus, effects),
        Action::Past => past::open(model, TimeScope::Pane(model.focus), effects),
        Action::PastOfAll => past::open(model, TimeScope::Page, effects),
        Action::Paste => scrolling::paste(model, effects),
        Action::Attention => attention(model, effects),
        Action::Dismiss => dismiss(model, effects),
        Action::Overview => overview::open(model, effects),
        Action::Digest => digest::open(model, effects),
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
        Action::Logs => logs::open(model, effects),
        Action::Trust => trust::open(model, effects),
        Action::Rename => {
            if let Some(process) = model.selected() {
                let (question, text) = (Question::Rename(process.id.clone()), process.name.clone());
                model.mode = Mode::Line { question, text };
            }
        }
        Action::Restart | Action::Stop | Action::Close => {
            let id = model.selected().map(|process| process.id.clone());
            let asks = id.and_then(|id| ask_to_confirm(model, &id, action, effects));
            model.mode = asks.map_or(Mode::Typing, Mode::Confirm);
        }
        Action::Restore => restore::open(model),
        Action::Palette => open(model, ListKind::Palette),
        Action::Help => model.mode = Mode::Help { top: 0 },
        Action::SendLeader => effects.push(Effect::Send(model.focus, leader(model))),
        Action::Detach => effects.push(Effect::Quit(None)),
        _ => act_on_layout(model, action, effects),
    }
}

/// Performs an action on pages and panes.
fn act_on_layout(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::NewPage => split::new_page(model, effects),
        Action::NextPage => pages::step(model, 1, effects),
        Action::PreviousPage => pages::step(model, -1, effects),
        Action::LastPage => pages::go_to_last(model, effects),
        Action::Page(number) => pages::go_to_number(model, u32::from(number), effects),
        Action::Pages => open_pages(model, ListKind::Pages),
        Action::RenamePage => rename_page(model),
        Action::ClosePage => ask_to_close_page(model),
        Action::BreakPane => pages::break_out(model, effects),
        Action::JoinPane => open_pages(model, ListKind::Join),
        Action::MovePane => open_pages(model, ListKind::Move),
        Action::SplitBeside => split::ask(model, Direction::Beside, effects),
        Action::SplitBelow => split::ask(model, Direction::Below, effects),
        Action::ClosePane => match model.panes.len() > 1 || model.pages.len() > 1 {
            true => remove(model, model.focus, effects),
            false => notify(model, "the only pane cannot be removed", false),
        },
        Action::Zoom => {
            model.zoomed = !model.zoomed && model.panes.len() > 1;
            fit(model, effects);
        }
        Action::Broadcast => model.broadcast = !model.broadcast && model.panes.len() > 1,
        Action::Tree => {
            model.tree_hidden = !model.tree_hidden;
            fit(model, effects);
        }
        _ => arranging::act(model, action, effects),
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
        show_here(model, id, effects);
    }
}

/// Shows the process with this number, which is part of its id and never changes.
fn go(model: &mut Model, number: u8, effects: &mut Vec<Effect>) {
    let id = format!("p{number}");
    match model.process(&id) {
        Some(_) => show(model, &id, effects),
        None => notify(model, &format!("there is no process {number}"), false),
    }
}

/// Opens a list of pages or of their panes, if there are several pages.
fn open_pages(model: &mut Model, kind: ListKind) {
    if model.pages.len() < 2 && kind != ListKind::Pages {
        let press = model.settings.keys.press(Action::BreakPane);
        let text = format!("there is only this page; {press} moves this pane to a new one");
        notify(model, &text, false);
        return;
    }
    open(model, kind);
    if let (ListKind::Pages, Mode::List { chosen, .. }) = (kind, &mut model.mode) {
        *chosen = model.page;
    }
}

fn rename_page(model: &mut Model) {
    let Some(page) = model.pages.get(model.page) else { return };
    let text = page.name.clone().unwrap_or_default();
    model.mode = Mode::Line { question: Question::RenamePage(page.number), text };
}

fn ask_to_close_page(model: &mut Model) {
    match model.pages.get(model.page) {
        Some(page) if model.pages.len() > 1 => {
            model.mode = Mode::Confirm(Confirmation::ClosePage(page.number));
        }
        _ => notify(model, "the only page cannot be closed", false),
    }
}

/// Lists the agents that need the user, also in other projects; even a single one: if that were shown at once, the
/// Enter meant for the list would answer its dialog unread. The list stays open if nobody needs the user, since the
/// other projects answer a little later.
fn attention(model: &mut Model, effects: &mut Vec<Effect>) {
    open(model, ListKind::Attention);
    overview::look(model, effects);
}

/// Shows a process that needs the user, with the reason until a key is pressed.
fn show_attention(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let text = model.process(id).map(|process| format!("{}: {}", process.name, need(process)));
    show(model, id, effects);
    if let Some(text) = text {
        notify(model, &text, false);
    }
}

/// Dismisses the request of the process with the focus.
fn dismiss(model: &mut Model, effects: &mut Vec<Effect>) {
    let is_open =
        |process: &&ProcessInfo| process.attention.is_some() || process.interrupted.is_some();
    match model.selected().filter(is_open) {
        Some(process) => {
            let request = DismissRequest { process_id: process.id.clone() };
            effects.push(Effect::call::<Dismiss>(&request, CallPurpose::Nothing));
        }
        None => notify(model, "this process has not asked for your attention", false),
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

/// Whether something that this process started is running; it would end if the process is closed.
fn has_running_below(model: &Model, id: &str) -> bool {
    let tree = model.tree();
    let mut rest = tree.iter().skip_while(|(_, process)| process.id != id);
    let Some((depth, _)) = rest.next() else { return false };
    rest.take_while(|(below, _)| below > depth).any(|(_, process)| is_alive(process))
}

/// What to ask before something that is running is ended. Anything else is closed, started, or its pending start
/// cancelled, without asking.
pub(super) fn ask_to_confirm(
    model: &mut Model,
    id: &str,
    action: Action,
    effects: &mut Vec<Effect>,
) -> Option<Confirmation> {
    let process = model.process(id)?;
    let (id, name) = (process.id.clone(), process.name.clone());
    let (runs, waits) = (is_alive(process), !process.waiting_for.is_empty());
    let asks = match action {
        Action::Close => runs || has_running_below(model, &id),
        _ => runs,
    };
    let confirmation = match action {
        Action::Restart => Confirmation::Restart(id),
        Action::Stop if !runs && !waits => {
            let again = model.settings.keys.press(Action::Restart);
            notify(model, &format!("{name} is not running; {again} starts it"), false);
            return None;
        }
        Action::Stop => Confirmation::Stop(id),
        _ => Confirmation::Close(id),
    };
    if asks {
        return Some(confirmation);
    }
    confirmed(model, confirmation, effects);
    None
}

/// The user has confirmed.
pub(super) fn confirmed(model: &mut Model, confirmation: Confirmation, effects: &mut Vec<Effect>) {
    model.mode = Mode::Typing;
    let purpose = CallPurpose::Nothing;
    effects.push(match confirmation {
        Confirmation::ClosePage(number) => {
            // Another terminal may have changed the pages while the question was open.
            if pages::index_of(model, number) == Some(model.page) {
                pages::close(model, effects);
            }
            return;
        }
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
        Question::RenamePage(number) => {
            if let Some(at) = pages::index_of(model, *number) {
                model.pages[at].name = pages::page_name(text);
                model.layout_changed = true;
            }
        }
        Question::Prompt(agent) => {
            let args = SpawnAgentArgs {
                agent: agent.preset.clone(),
                agent_instructions: Some(text.to_owned()).filter(|text| !text.trim().is_empty()),
                name: None,
                folder_of: agent.folder_of.clone(),
            };
            split::start_agent(model, agent.direction, &args, effects);
        }
    }
}

/// The user wants to answer the chosen item of the list of agents that need attention.
pub(super) fn answer_chosen(model: &mut Model, at: usize) {
    let Mode::List { kind: ListKind::Attention, filter, .. } = &model.mode else { return };
    let item = list::items(model, ListKind::Attention, filter).into_iter().nth(at);
    let (project, process) = match item.map(|item| item.choice) {
        Some(Choice::Show(id)) => (None, model.process(&id).cloned()),
        Some(Choice::Elsewhere(place)) => {
            let overview = model.overview.as_ref();
            let process = overview.and_then(|overview| overview.process(&place)).cloned();
            (Some(place.key), process)
        }
        _ => return,
    };
    if let Some(process) = process {
        let list = Some((at, filter.clone()));
        answering::open(model, project, &process);
        if let Mode::Answer(panel) = &mut model.mode {
            panel.list = list;
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
                ListKind::Processes => put_here(model, &id, effects),
                ListKind::Split(direction) => split::with_process(model, direction, &id, effects),
                _ => show(model, &id, effects),
            }
        }
        Choice::Shell(direction) => {
            model.mode = Mode::Typing;
            split::with_shell(model, direction, effects);
        }
        Choice::Page(number) => {
            model.mode = Mode::Typing;
            match kind {
                ListKind::Move => pages::move_to(model, number, effects),
                _ => pages::go_to_number(model, number, effects),
            }
        }
        Choice::Pane(pane) => {
            model.mode = Mode::Typing;
            pages::join(model, pane, effects);
        }
        Choice::Elsewhere(place) => {
            model.mode = Mode::Typing;
            overview::go_to(model, &place, effects);
        }
        Choice::Start(agent) => {
            let here = model.selected().map(|process| process.id.clone());
            let (direction, folder_of) = match kind {
                ListKind::Split(direction) => (Some(direction), None),
                ListKind::AgentsBeside => (Some(Direction::Beside), here),
                _ => (None, None),
            };
            let question = Question::Prompt(AgentToStart { preset: agent, direction, folder_of });
            model.mode = Mode::Line { question, text: String::new() };
        }
        Choice::ReadMessage(id) => {
            keyboard::note_request(model);
            let request = MessagesRequest { message_id: Some(id), process_id: None };
            effects.push(Effect::call::<Messages>(&request, CallPurpose::Message(id)));
        }
        Choice::MoreAgents => open(model, ListKind::MoreAgents),
        Choice::Read(name) => {
            keyboard::note_request(model);
            let purpose = CallPurpose::Pad(name.clone());
            effects.push(Effect::call::<ReadPad>(&PadRef { name }, purpose));
        }
        Choice::Notify(text) => notify(model, &text, true),
        Choice::Hint(text) => {
            model.mode = Mode::Typing;
            notify(model, &text, false);
        }
    }
}
