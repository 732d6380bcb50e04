//! The items of lists, and what choosing them does.

use patterm_wire::follow::{MessageInfo, TimerInfo};
use patterm_wire::printable::is_active;
use patterm_wire::servers::ServerInfo;

use crate::action::{ACTIONS, Action};
use crate::model::{ListKind, Model, is_blocked};

/// What choosing an item does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Do(Action),
    Show(String),
    Start(String),
    Read(String),
    Notify(String),
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// At the left: a key or a state.
    pub(crate) mark: String,
    pub(crate) text: String,
    /// At the right, dimmed.
    pub(crate) detail: String,
    pub(crate) choice: Choice,
}

impl Item {
    fn new(mark: &str, text: &str, detail: &str, choice: Choice) -> Self {
        let [mark, text, detail] = [mark, text, detail].map(ToOwned::to_owned);
        Self { mark, text, detail, choice }
    }
}

pub(crate) fn title(listed: ListKind) -> &'static str {
    match listed {
        ListKind::Palette => "actions",
        ListKind::Agents => "start an agent",
        ListKind::Attention => "agents that need you",
        ListKind::Messages => "messages",
        ListKind::Timers => "timers",
        ListKind::Pads => "scratchpads",
        ListKind::Ports => "ports",
        ListKind::Servers => "shared MCP servers",
    }
}

/// The text of an empty list.
pub(crate) fn when_empty(listed: ListKind) -> &'static str {
    match listed {
        ListKind::Palette => "no matching action or process",
        ListKind::Agents => "looking for agents…",
        ListKind::Attention => "no agent needs you",
        ListKind::Messages => "no messages between agents yet",
        ListKind::Timers => "no timers",
        ListKind::Pads => "no scratchpads",
        ListKind::Ports => "no process has printed an address",
        ListKind::Servers => "none; declare one with [servers.NAME] in patterm.toml",
    }
}

/// The items that contain what was typed.
pub(crate) fn items(model: &Model, listed: ListKind, filter: &str) -> Vec<Item> {
    let mut items = all(model, listed);
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    items.retain(|item| {
        let text = format!("{} {} {}", item.mark, item.text, item.detail).to_lowercase();
        words.iter().all(|word| text.contains(word))
    });
    items
}

fn all(model: &Model, listed: ListKind) -> Vec<Item> {
    match listed {
        ListKind::Palette => palette(model),
        ListKind::Agents => agents(model),
        ListKind::Attention => attention(model),
        ListKind::Messages => {
            model.snapshot.messages.iter().rev().map(|m| message(model, m)).collect()
        }
        ListKind::Timers => {
            model.snapshot.timers.iter().map(|timer| timer_item(model, timer)).collect()
        }
        ListKind::Pads => {
            let pads = model.pads.iter();
            pads.map(|pad| {
                let detail = format!("{} bytes, {}", pad.size, pad.changed_by);
                Item::new("", &pad.name, &detail, Choice::Read(pad.name.clone()))
            })
            .collect()
        }
        ListKind::Ports => {
            let ports = model.ports.iter();
            ports
                .map(|(process, port)| {
                    let mark = if port.listening { "●" } else { "○" };
                    let name = name_of(model, process);
                    let url = port.url.clone().unwrap_or_else(|| format!("port {}", port.port));
                    Item::new(mark, &url, &name, Choice::Show(process.clone()))
                })
                .collect()
        }
        ListKind::Servers => model.servers.iter().map(server).collect(),
    }
}

fn server(server: &ServerInfo) -> Item {
    let mark = match server.state.as_str() {
        "running" => "●",
        "starting" => "◐",
        "failed" => "✗",
        _ => "○",
    };
    let owner = server.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let text = format!("{}{owner}  {}", server.name, one_line(&server.place));
    let tools = server.tools.map(|tools| format!("{tools} tools, ")).unwrap_or_default();
    let detail = format!("{}, {tools}{} in flight", server.state, server.in_flight);
    let mut text_below = format!("{}: {}", server.name, detail);
    if server.restarts > 0 {
        text_below.push_str(&format!(", {} restarts", server.restarts));
    }
    if let Some(error) = &server.last_error {
        text_below.push_str(&format!("; {}", one_line(error)));
    }
    Item::new(mark, &text, &detail, Choice::Notify(text_below))
}

fn palette(model: &Model) -> Vec<Item> {
    let several = |action: Action| matches!(action, Action::Go(_) | Action::SendLeader);
    let actions = ACTIONS.iter().filter(|entry| !several(entry.action));
    let keys = &model.settings.keys;
    let actions = actions.map(|entry| {
        let mark = keys.shown(entry).unwrap_or_default();
        Item::new(&mark, entry.description, entry.name, Choice::Do(entry.action))
    });
    let processes = model.tree().into_iter().map(|(_, process)| {
        let text = format!("show {}", process.name);
        Item::new("", &text, &process.id, Choice::Show(process.id.clone()))
    });
    // First, while there is something to restore: nobody would look for it.
    let waiting = model.offered().len();
    let back = (waiting > 0).then(|| {
        let detail = format!("{waiting} processes");
        Item::new("", "restore processes", &detail, Choice::Do(Action::Restore))
    });
    back.into_iter().chain(actions).chain(processes).collect()
}

fn agents(model: &Model) -> Vec<Item> {
    let agents = model.agents.iter().flatten();
    agents
        .map(|agent| match agent.found {
            true => Item::new("●", &agent.title, &agent.agent, Choice::Start(agent.agent.clone())),
            false => {
                let why = agent.why.clone().unwrap_or_default();
                Item::new("○", &agent.title, &why, Choice::Notify(why.clone()))
            }
        })
        .collect()
}

fn attention(model: &Model) -> Vec<Item> {
    let processes = model.needing_attention().into_iter();
    processes
        .map(|process| {
            let mark = if is_blocked(process) { "◆" } else { "!" };
            let why = process.attention.as_deref().unwrap_or(&process.reason);
            Item::new(mark, &process.name, why, Choice::Show(process.id.clone()))
        })
        .collect()
}

fn message(model: &Model, message: &MessageInfo) -> Item {
    let (from, to) = (name_of(model, &message.from), name_of(model, &message.to));
    let mark = match message.state.as_str() {
        "delivered" => "✓",
        "queued" => "…",
        _ => "✗",
    };
    let text = format!("{from} → {to}: {}", one_line(&message.excerpt));
    let detail = if message.state == "delivered" { "" } else { &message.evidence };
    Item::new(mark, &text, detail, Choice::Show(message.to.clone()))
}

fn timer_item(model: &Model, timer: &TimerInfo) -> Item {
    let left = |due: u64| if timer.paused { due } else { due.saturating_sub(model.now) };
    let mut when = timer.due.map(|due| duration(left(due))).unwrap_or_default();
    if timer.paused {
        when = format!("paused {when}");
    }
    let waiting: Vec<_> = timer.waiting_on.iter().map(|id| name_of(model, id)).collect();
    if !waiting.is_empty() {
        let all = if timer.kind == "idle_all" { "all of" } else { "any of" };
        when = format!("{when} when {all} {} idle", waiting.join(", "));
    }
    let what = timer.label.as_deref().or(timer.excerpt.as_deref()).unwrap_or_default();
    let text = format!("{}: {}", name_of(model, &timer.owner), one_line(what));
    Item::new(&timer.id, &text, when.trim(), Choice::Show(timer.owner.clone()))
}

/// The time until something happens.
fn duration(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    match seconds {
        0..60 => format!("in {seconds} s"),
        60..3600 => format!("in {} min", seconds.div_ceil(60)),
        _ => format!("in {} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The name of a process; other ids are returned unchanged.
fn name_of(model: &Model, id: &str) -> String {
    model.process(id).map_or(id, |process| &process.name).to_owned()
}

pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_active(c) { ' ' } else { c }).collect()
}
