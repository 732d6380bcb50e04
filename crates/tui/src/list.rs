//! The items of lists, and what choosing them does.

use patterm_wire::follow::{MessageInfo, ProcessKind, TimerInfo, TimerKind};
use patterm_wire::printable::is_active;
use patterm_wire::requests::MessageText;
use patterm_wire::servers::ServerInfo;
use patterm_wire::tools::AgentInfo;

use crate::action::{ACTIONS, Action, tmux_names};
use crate::layout::{Direction, PaneId};
use crate::model::{ListKind, Model, is_alive, is_blocked, need};
use crate::overview::Place;

/// What choosing an item does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Do(Action),
    Show(String),
    /// Start a shell in a new pane.
    Shell(Direction),
    /// The page with this number.
    Page(u32),
    /// The pane of another page.
    Pane(PaneId),
    /// A process of another project.
    Elsewhere(Place),
    Start(String),
    MoreAgents,
    ReadMessage(u64),
    Read(String),
    Notify(String),
    /// Say how it is done.
    Hint(String),
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// At the left: a key or a state.
    pub(crate) mark: String,
    pub(crate) text: String,
    /// At the right, dimmed.
    pub(crate) detail: String,
    /// More words that find it.
    pub(crate) aliases: &'static str,
    pub(crate) choice: Choice,
}

impl Item {
    fn new(mark: &str, text: &str, detail: &str, choice: Choice) -> Self {
        let [mark, text, detail] = [mark, text, detail].map(ToOwned::to_owned);
        Self { mark, text, detail, aliases: "", choice }
    }
}

pub(crate) fn title(listed: ListKind) -> &'static str {
    match listed {
        ListKind::Palette => "actions",
        ListKind::Agents => "start an agent",
        ListKind::AgentsBeside => "start an agent beside this pane, in its folder",
        ListKind::MoreAgents => "agents that are not installed",
        ListKind::Split(Direction::Beside) => "put into a pane to the right",
        ListKind::Split(Direction::Below) => "put into a pane below",
        ListKind::Processes => "show in this pane",
        ListKind::Pages => "pages",
        ListKind::Join => "bring a pane to this page",
        ListKind::Move => "move this pane to a page",
        ListKind::Attention => "agents that need you",
        ListKind::Messages => "messages",
        ListKind::Timers => "timers",
        ListKind::Pads => "scratchpads",
        ListKind::Ports => "ports",
        ListKind::Servers => "shared MCP servers",
    }
}

/// The text of an empty list.
pub(crate) fn when_empty(model: &Model, listed: ListKind) -> &'static str {
    match listed {
        ListKind::Palette => "no matching action or process",
        ListKind::Agents | ListKind::AgentsBeside => "looking for agents…",
        ListKind::MoreAgents => "all are installed",
        ListKind::Split(_) => "no matching process or agent",
        ListKind::Processes => "no matching process",
        ListKind::Pages | ListKind::Move => "no matching page",
        ListKind::Join => "no matching pane on another page",
        ListKind::Attention => nobody_needs_you(model),
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
        let Item { mark, text, detail, aliases, .. } = item;
        let text = format!("{mark} {text} {detail} {aliases}").to_lowercase();
        words.iter().all(|word| text.contains(word))
    });
    // A number or a name that was typed completely comes first.
    let exact = |item: &Item| item.mark.eq_ignore_ascii_case(filter.trim()) || item.text == filter;
    if !filter.is_empty() {
        items.sort_by_key(|item| !exact(item));
    }
    items
}

/// The number of a process, as it is shown: its id without the letter.
pub(crate) fn number(id: &str) -> &str {
    id.strip_prefix('p').unwrap_or(id)
}

/// The processes in tree order.
fn processes(model: &Model, wanted: impl Fn(&str) -> bool) -> Vec<Item> {
    let tree = model.tree().into_iter().map(|(_, process)| process);
    tree.filter(|process| wanted(&process.id))
        .map(|process| {
            let is_here = model.panes.values().any(|pane| pane.process == process.id);
            let place = match (is_here, page_of(model, &process.id)) {
                (true, _) => ", on this page".to_owned(),
                (false, Some(page)) => format!(", on page {page}"),
                (false, None) => String::new(),
            };
            let state = match (is_alive(process), &process.kind) {
                (false, _) => process.status.name(),
                (true, ProcessKind::Terminal) => "shell",
                (true, kind) => kind.name(),
            };
            let detail = format!("{state}{place}");
            Item::new(number(&process.id), &process.name, &detail, Choice::Show(process.id.clone()))
        })
        .collect()
}

/// The number of the hidden page that shows a process.
fn page_of(model: &Model, process: &str) -> Option<u32> {
    let shows = |page: &&crate::model::PanePage| page.panes.values().any(|p| p.process == process);
    model.pages.iter().find(shows).map(|page| page.number)
}

/// What a new pane can show. A shell is first: Enter gives what tmux gives.
fn split(model: &Model, direction: Direction) -> Vec<Item> {
    let shell = Item::new("", "new shell", "", Choice::Shell(direction));
    let is_here = |id: &str| model.panes.values().any(|pane| pane.process == id);
    let others = processes(model, |id| !is_here(id));
    let agents = agents(model).into_iter().filter(|item| matches!(item.choice, Choice::Start(_)));
    let agents =
        agents.map(|item| Item { mark: String::new(), text: format!("new {}", item.text), ..item });
    [shell].into_iter().chain(others).chain(agents).collect()
}

fn pages(model: &Model, wanted: impl Fn(bool) -> bool) -> Vec<Item> {
    let titles = model.page_titles().into_iter().zip(&model.pages);
    titles
        .filter(|((.., is_current), _)| wanted(*is_current))
        .map(|((page, title, is_current), hidden)| {
            let panes = if is_current { &model.panes } else { &hidden.panes };
            let names = panes.values().map(|pane| name_of(model, &pane.process));
            let names = names.collect::<Vec<_>>().join(", ");
            let detail = if is_current { format!("{names} (this page)") } else { names };
            Item::new(&page.to_string(), &title, &detail, Choice::Page(page))
        })
        .collect()
}

/// The panes of the other pages.
fn panes_elsewhere(model: &Model) -> Vec<Item> {
    let titles = model.page_titles().into_iter().zip(&model.pages);
    let panes = titles.flat_map(|((_, title, _), page)| {
        let order = page.layout.as_ref().map(|layout| layout.panes()).unwrap_or_default();
        order.into_iter().filter_map(move |id| {
            let process = &page.panes.get(&id)?.process;
            let detail = format!("page {}: {title}", page.number);
            Some(Item::new(number(process), &name_of(model, process), &detail, Choice::Pane(id)))
        })
    });
    panes.collect()
}

fn all(model: &Model, listed: ListKind) -> Vec<Item> {
    match listed {
        ListKind::Palette => palette(model),
        ListKind::Agents | ListKind::AgentsBeside => agents(model),
        ListKind::MoreAgents => more_agents(model),
        ListKind::Split(direction) => split(model, direction),
        ListKind::Processes => processes(model, |_| true),
        ListKind::Pages => pages(model, |_| true),
        ListKind::Join => panes_elsewhere(model),
        ListKind::Move => pages(model, |is_current| !is_current),
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
    let keys = &model.settings.keys;
    let actions = ACTIONS.iter().filter(|entry| entry.action != Action::SendLeader);
    let actions = actions.filter_map(|entry| {
        let mark = keys.shown(entry).unwrap_or_default();
        // Each key of such an action does something else: the palette can only name them.
        let choice = match entry.action.is_family() {
            true if mark.is_empty() => return None,
            true => {
                let leader = keys.leader_name();
                Choice::Hint(format!("{leader} and {mark}: {}", entry.description))
            }
            false => Choice::Do(entry.action),
        };
        let aliases = tmux_names(entry.action);
        Some(Item { aliases, ..Item::new(&mark, entry.description, entry.name, choice) })
    });
    let processes = model.tree().into_iter().map(|(_, process)| {
        let text = format!("show {}", process.name);
        Item::new("", &text, number(&process.id), Choice::Show(process.id.clone()))
    });
    // First, while there is something to restore: nobody would look for it.
    let waiting = model.offered().len();
    let back = (waiting > 0).then(|| {
        let detail = format!("{waiting} processes");
        Item::new("", "restore processes", &detail, Choice::Do(Action::Restore))
    });
    back.into_iter().chain(actions).chain(processes).collect()
}

/// The agents whose CLIs are installed; the others are behind the last item.
fn agents(model: &Model) -> Vec<Item> {
    let (found, missing): (Vec<_>, Vec<_>) =
        model.agents.iter().flatten().partition(|agent| agent.found);
    let start = |agent: &&AgentInfo| {
        Item::new("●", &agent.title, &agent.agent, Choice::Start(agent.agent.clone()))
    };
    let mut items: Vec<_> = found.iter().map(start).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|agent| agent.title.as_str()).collect();
        items.push(Item::new("", "more…", &names.join(", "), Choice::MoreAgents));
    }
    items
}

/// The agents whose CLIs are not installed.
fn more_agents(model: &Model) -> Vec<Item> {
    let missing = model.agents.iter().flatten().filter(|agent| !agent.found);
    missing
        .map(|agent| {
            let why = agent.why.clone().unwrap_or_default();
            Item::new("○", &agent.title, &why, Choice::Notify(why.clone()))
        })
        .collect()
}

/// Agents that need the user: those of this project, then those of the others.
fn attention(model: &Model) -> Vec<Item> {
    let mark = |process| if is_blocked(process) { "◆" } else { "!" };
    let here = model.needing_attention().into_iter().map(|process| {
        Item::new(mark(process), &process.name, need(process), Choice::Show(process.id.clone()))
    });
    let overview = model.overview.iter();
    let waiting = overview.flat_map(|overview| overview.waiting_outside(&model.project_key));
    let elsewhere = waiting.map(|(project, process)| {
        let detail = format!("in {}: {}", one_line(&project.name()), need(process));
        let place = Place { key: project.server.key.clone(), process: Some(process.id.clone()) };
        Item::new(mark(process), &process.name, &detail, Choice::Elsewhere(place))
    });
    here.chain(elsewhere).collect()
}

/// The text of the list of agents that need the user, while it is empty.
fn nobody_needs_you(model: &Model) -> &'static str {
    match &model.overview {
        Some(overview) if overview.is_complete(&model.project_key) => match overview.has_hung() {
            true => "no agent needs you, but a server does not answer: see the overview",
            false => "no agent needs you, in any of your projects",
        },
        _ => "no agent of this project needs you; asking your other projects…",
    }
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
    Item::new(mark, &text, detail, Choice::ReadMessage(message.id))
}

/// A message with everything known about it.
pub(crate) fn whole_message(model: &Model, message: &MessageText) -> String {
    let (from, to) = (name_of(model, &message.from), name_of(model, &message.to));
    let ago = length(model.now.saturating_sub(message.at));
    let rest = if message.whole { "" } else { "\n… the rest is no longer kept" };
    format!(
        "{from} → {to}, {ago} ago\n{}: {}\n\n{}{rest}",
        message.state, message.evidence, message.text
    )
}

fn timer_item(model: &Model, timer: &TimerInfo) -> Item {
    let left = |due: u64| if timer.paused { due } else { due.saturating_sub(model.now) };
    let mut when = timer.due.map(|due| format!("in {}", length(left(due)))).unwrap_or_default();
    if timer.paused {
        when = format!("paused {when}");
    }
    when = format!("{when} {}", condition(model, timer));
    let what = timer.label.as_deref().or(timer.excerpt.as_deref()).unwrap_or_default();
    let text = format!("{}: {}", name_of(model, &timer.owner), one_line(what));
    Item::new(&timer.id, &text, when.trim(), Choice::Show(timer.owner.clone()))
}

/// The processes that a timer still waits for, and what for.
fn condition(model: &Model, timer: &TimerInfo) -> String {
    let names: Vec<_> = timer.waiting_on.iter().map(|id| name_of(model, id)).collect();
    let names = names.join(", ");
    match (&timer.kind, timer.waiting_on.len()) {
        (TimerKind::Other(kind), _) => format!("{} {names}", one_line(kind)),
        (TimerKind::Delay, _) | (_, 0) => String::new(),
        (TimerKind::IdleAny | TimerKind::IdleAll, 1) => format!("when {names} is idle"),
        (TimerKind::IdleAny, _) => format!("when any of {names} is idle"),
        (TimerKind::IdleAll, _) => format!("when all of {names} are idle"),
        (TimerKind::Exit, 1) => format!("when {names} has exited"),
        (TimerKind::Exit, _) => format!("when all of {names} have exited"),
    }
}

/// The time until something happens.
fn length(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The name of a process; other ids are returned unchanged.
fn name_of(model: &Model, id: &str) -> String {
    model.process(id).map_or(id, |process| &process.name).to_owned()
}

pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_active(c) { ' ' } else { c }).collect()
}
