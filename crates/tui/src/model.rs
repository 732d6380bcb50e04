//! Everything that is known at a moment, as a value: the project, the panes, and what the person is
//! about.

use std::collections::{BTreeMap, BTreeSet};

use patterm_screen::keys::KeyCode;
use patterm_screen::{Screen, Size};
use patterm_wire::follow::{ProcessInfo, ProcessStatus, ProjectSnapshot};
use patterm_wire::restore::RestoreOffer;
use patterm_wire::servers::ServerInfo;
use serde::Deserialize;

use crate::canvas::Rect;
use crate::layout::{Divider, Layout, PaneId};
use crate::saved_layout::{Part, SavedLayout};
use crate::scroll::Scroll;
use crate::settings::{Settings, Theme};
use crate::trust::Sheet;

/// Below this width the tree would leave no room for a pane.
const TREE_MIN_WIDTH: u16 = 60;

/// A pane: one process, on a screen of its own.
#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) process: String,
    pub(crate) screen: Screen,
    /// Which life of the process it shows, or is to show; 0 for none yet.
    pub(crate) run: u64,
    /// It shows what the server sent.
    pub(crate) live: bool,
    /// Why it shows nothing.
    pub(crate) refused: Option<String>,
    /// The size it asked for.
    pub(crate) asked: Option<Size>,
    /// Somebody goes through its rows.
    pub(crate) scroll: Option<Scroll>,
}

/// An agent that can be started, or why not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Agent {
    pub(crate) agent: String,
    pub(crate) title: String,
    pub(crate) found: bool,
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// A scratchpad in a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Pad {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) changed_by: String,
    #[serde(default)]
    pub(crate) size: u64,
}

/// A port that a process serves at.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Port {
    #[serde(default)]
    pub(crate) process: String,
    #[serde(default)]
    pub(crate) url: Option<String>,
    pub(crate) port: u16,
    #[serde(default)]
    pub(crate) listening: bool,
}

/// What a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Palette,
    Agents,
    Attention,
    Messages,
    Timers,
    Pads,
    Ports,
    Servers,
}

/// What a line of text is typed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Another name for this process.
    Rename(String),
    /// The first instructions for an agent of this preset.
    Prompt(String),
}

/// What must be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    Close(String),
    Stop(String),
    Restart(String),
}

/// What the person is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything typed goes to the pane.
    #[default]
    Typing,
    /// The leader was typed.
    Leader,
    /// A list to choose from.
    List { listed: Listed, chosen: usize, filter: String },
    /// A text to read.
    Text { title: String, text: String, top: usize },
    /// All keys.
    Help { top: usize },
    /// A line is being typed.
    Line { question: Question, text: String },
    /// Something must be confirmed.
    Confirm(Doubt),
    /// What ran when everything was ended, to be restored; some of it may be left out.
    Restore { chosen: usize, left_out: BTreeSet<String> },
    /// What the project file would run, to be trusted or not.
    Trust(Sheet),
    /// The process that was typed into is gone; keys wait until the person has seen it.
    Interrupted { name: String },
}

/// What the mouse holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    /// The line between panes.
    Line(Divider),
    /// The edge of the tree.
    TreeEdge,
    /// A selection in a pane that began here.
    Selection(PaneId, u16, u16),
    /// A button that a program was told of.
    Program(PaneId),
}

/// What is told at the bottom, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

/// The state of the TUI.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) seen: ProjectSnapshot,
    /// The project was seen at least once.
    pub(crate) begun: bool,
    /// The server answers.
    pub(crate) connected: bool,
    pub(crate) panes: BTreeMap<PaneId, Pane>,
    pub(crate) layout: Option<Layout>,
    pub(crate) focus: PaneId,
    pub(crate) last_pane: PaneId,
    pub(crate) zoomed: bool,
    pub(crate) tree_hidden: bool,
    /// The width that the person gave the tree.
    pub(crate) tree_width: Option<u16>,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
    pub(crate) settings: Settings,
    /// What is wrong with the file of settings; what it said before counts.
    pub(crate) settings_fault: Option<String>,
    pub(crate) agents: Option<Vec<Agent>>,
    pub(crate) pads: Vec<Pad>,
    pub(crate) ports: Vec<Port>,
    /// The shared MCP servers, once they were asked for.
    pub(crate) servers: Vec<ServerInfo>,
    pub(crate) held: Option<Held>,
    /// The terminal has the focus.
    pub(crate) focused: bool,
    /// The layout of the last attachment, until it is restored.
    pub(crate) saved_layout: Option<SavedLayout>,
    /// Processes to show as soon as they are seen.
    pub(crate) wanted: Option<String>,
    /// What could be restored, and the person did not want to decide about.
    pub(crate) put_off: Vec<String>,
    /// Keys that were pressed for us: their release is not for a program either.
    pub(crate) ours: Vec<KeyCode>,
    /// Processes whose bell rang while another pane had the focus.
    pub(crate) bells: BTreeSet<String>,
    /// Processes that somebody wants seen, the newest last.
    pub(crate) marked: Vec<String>,
    /// The last call of `select_process` that was answered.
    pub(crate) answered: u64,
    /// When the person last typed anything, and anything that went to a pane.
    pub(crate) typed_at: Option<u64>,
    pub(crate) sent_at: Option<u64>,
    /// When the person last asked for something that takes a while.
    pub(crate) asked_at: Option<u64>,
    /// Processes that the person closes.
    pub(crate) closing: BTreeSet<String>,
    /// When the bell was last rung.
    pub(crate) rang: u64,
    /// When a program's notification was last passed on.
    pub(crate) notified: u64,
    /// Milliseconds since 1970, as of the last event.
    pub(crate) now: u64,
}

impl Model {
    pub(crate) fn new(width: u16, height: u16, wanted: Option<String>) -> Self {
        Self {
            width,
            height,
            seen: ProjectSnapshot::default(),
            begun: false,
            connected: false,
            panes: BTreeMap::new(),
            layout: None,
            focus: 0,
            last_pane: 0,
            zoomed: false,
            tree_hidden: false,
            tree_width: None,
            mode: Mode::Typing,
            notice: None,
            settings: Settings::default(),
            settings_fault: None,
            agents: None,
            pads: Vec::new(),
            ports: Vec::new(),
            servers: Vec::new(),
            held: None,
            focused: true,
            saved_layout: None,
            wanted,
            put_off: Vec::new(),
            ours: Vec::new(),
            bells: BTreeSet::new(),
            marked: Vec::new(),
            answered: 0,
            typed_at: None,
            sent_at: None,
            asked_at: None,
            closing: BTreeSet::new(),
            rang: 0,
            notified: 0,
            now: 0,
        }
    }

    pub(crate) fn theme(&self) -> &Theme {
        &self.settings.theme
    }

    /// Columns of the tree, 0 where it is hidden.
    pub(crate) fn tree_columns(&self) -> u16 {
        if self.tree_hidden || self.width < TREE_MIN_WIDTH {
            return 0;
        }
        let usual = match self.width {
            0..100 => 24,
            100..160 => 30,
            _ => 38,
        };
        self.tree_width.unwrap_or(usual).clamp(12, self.width / 2)
    }

    /// Where the tree stands, its edge aside.
    pub(crate) fn tree_area(&self) -> Rect {
        Rect::new(0, 0, self.tree_columns(), self.height.saturating_sub(1))
    }

    /// Where the panes stand.
    pub(crate) fn panes_area(&self) -> Rect {
        let columns = self.tree_columns();
        let left = if columns > 0 { columns + 1 } else { 0 };
        let height = self.height.saturating_sub(1);
        Rect::new(left, 0, self.width.saturating_sub(left), height)
    }

    /// Where each pane stands, with its title if it has one, and the lines between them.
    pub(crate) fn places(&self) -> (Vec<(PaneId, Rect)>, Vec<Divider>) {
        let area = self.panes_area();
        match &self.layout {
            None => (Vec::new(), Vec::new()),
            Some(_) if self.zoomed => (vec![(self.focus, area)], Vec::new()),
            Some(layout) => layout.place(area),
        }
    }

    /// Panes have titles where there are several.
    pub(crate) fn has_titles(&self) -> bool {
        self.panes.len() > 1 && !self.zoomed
    }

    /// Where a pane's own rows stand, out of its whole room.
    pub(crate) fn body(&self, room: Rect) -> Rect {
        if self.has_titles() { room.cut_top(1).1 } else { room }
    }

    pub(crate) fn process(&self, id: &str) -> Option<&ProcessInfo> {
        self.seen.processes.iter().find(|process| process.id == id)
    }

    pub(crate) fn focused_pane(&self) -> Option<&Pane> {
        self.panes.get(&self.focus)
    }

    /// The layout to save for the next attachment; nothing before the project was seen.
    pub(crate) fn layout_to_save(&self) -> Option<SavedLayout> {
        let process = |id| {
            let process = &self.panes.get(&id)?.process;
            (!process.is_empty()).then(|| process.clone())
        };
        self.begun.then(|| SavedLayout {
            panes: self.layout.as_ref().and_then(|layout| Part::of(layout, &process)),
            focus: self.focused_pane().map(|pane| pane.process.clone()),
            zoomed: self.zoomed,
            tree_hidden: self.tree_hidden,
            tree_width: self.tree_width,
        })
    }

    /// The process that is selected: that of the pane with the focus.
    pub(crate) fn selected(&self) -> Option<&ProcessInfo> {
        self.process(&self.focused_pane()?.process)
    }

    /// The processes in the order of the tree, each with its depth.
    pub(crate) fn tree(&self) -> Vec<(usize, &ProcessInfo)> {
        let mut tree = Vec::new();
        let known = |id: &String| self.process(id).is_some();
        let is_top = |p: &&ProcessInfo| p.parent.as_ref().is_none_or(|id| !known(id));
        for process in self.seen.processes.iter().filter(is_top) {
            self.add_below(process, 0, &mut tree);
        }
        tree
    }

    fn add_below<'a>(
        &'a self,
        process: &'a ProcessInfo,
        depth: usize,
        tree: &mut Vec<(usize, &'a ProcessInfo)>,
    ) {
        // A circle cannot be, but must not hang us.
        if tree.len() > self.seen.processes.len() {
            return;
        }
        tree.push((depth, process));
        let children = self.seen.processes.iter();
        for child in children.filter(|child| child.parent.as_ref() == Some(&process.id)) {
            self.add_below(child, depth + 1, tree);
        }
    }

    /// What can be restored, in the order of the tree, each with its depth.
    pub(crate) fn offered(&self) -> Vec<(usize, &ProcessInfo, &RestoreOffer)> {
        let offer = |id: &str| self.seen.offers.iter().find(|offer| offer.id == id);
        let tree = self.tree().into_iter();
        tree.filter_map(|(depth, process)| Some((depth, process, offer(&process.id)?))).collect()
    }

    /// Those who ask for a person, or wait for one.
    pub(crate) fn calling(&self) -> Vec<&ProcessInfo> {
        let tree = self.tree().into_iter().map(|(_, process)| process);
        tree.filter(|process| process.attention.is_some() || is_blocked(process)).collect()
    }
}

/// Whether a process waits for a person.
pub(crate) fn is_blocked(process: &ProcessInfo) -> bool {
    use patterm_wire::follow::ActivityState;
    is_alive(process) && process.activity == ActivityState::Blocked
}

pub(crate) fn is_alive(process: &ProcessInfo) -> bool {
    matches!(process.status, ProcessStatus::Running | ProcessStatus::Starting)
}
