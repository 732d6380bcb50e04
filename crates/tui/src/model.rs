//! The state of the TUI as a value: the project, the panes, and what the user is doing.

use std::collections::{BTreeMap, BTreeSet};

use patterm_screen::keys::KeyCode;
use patterm_screen::{Screen, Size};
use patterm_wire::follow::{ProcessInfo, ProjectSnapshot};
use patterm_wire::restore::RestoreOffer;
use patterm_wire::servers::ServerInfo;
use patterm_wire::tools::{AgentInfo, PadInfo, PortInfo};

use crate::canvas::Rect;
use crate::layout::{Divider, Layout, PaneId};
use crate::saved_layout::{SavedLayout, SavedNode};
use crate::scroll::Scroll;
use crate::settings::{Settings, Theme};
use crate::trust::TrustPanel;

/// On a narrower terminal the tree would leave no space for a pane.
const TREE_MIN_WIDTH: u16 = 60;

/// A pane: one process on its own screen.
#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) process: String,
    pub(crate) screen: Screen,
    /// Which run of the process it shows, or will show; 0 for none yet.
    pub(crate) run: u64,
    /// It shows output from the server.
    pub(crate) live: bool,
    /// Why it shows nothing.
    pub(crate) refused: Option<String>,
    /// The size it requested.
    pub(crate) requested: Option<Size>,
    /// Its scrollback, if that is open.
    pub(crate) scroll: Option<Scroll>,
}

/// What a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Palette,
    Agents,
    Attention,
    Messages,
    Timers,
    Pads,
    Ports,
    Servers,
}

/// What a line of text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// The new name of this process.
    Rename(String),
    /// The first prompt for an agent of this preset.
    Prompt(String),
}

/// What the user is asked to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Close(String),
    Stop(String),
    Restart(String),
}

/// What the user is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything typed goes to the pane.
    #[default]
    Typing,
    /// The leader was typed.
    Leader,
    /// A list to choose from.
    List { kind: ListKind, chosen: usize, filter: String },
    /// A text to read.
    Text { title: String, text: String, top: usize },
    /// All keys.
    Help { top: usize },
    /// A line is being typed.
    Line { question: Question, text: String },
    /// The user is asked to confirm.
    Confirm(Confirmation),
    /// The processes that can be restored; some of them may be left out.
    Restore { chosen: usize, left_out: BTreeSet<String> },
    /// What the project file would run, for the user to trust it.
    Trust(TrustPanel),
    /// The process that the user typed into was closed; keys are ignored until the user has noticed.
    Interrupted { name: String },
}

/// What the user drags with the mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MouseGrab {
    /// The line between panes.
    Line(Divider),
    /// The edge of the tree.
    TreeEdge,
    /// A selection in a pane, from this position.
    Selection(PaneId, u16, u16),
    /// A program gets the events until the button is released.
    Program(PaneId),
}

/// A text at the bottom, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// The state of the TUI.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) snapshot: ProjectSnapshot,
    /// The server has sent at least one snapshot.
    pub(crate) has_snapshot: bool,
    /// The connection to the server is up.
    pub(crate) connected: bool,
    pub(crate) panes: BTreeMap<PaneId, Pane>,
    pub(crate) layout: Option<Layout>,
    pub(crate) focus: PaneId,
    pub(crate) last_pane: PaneId,
    pub(crate) zoomed: bool,
    pub(crate) tree_hidden: bool,
    /// The width of the tree, if the user has changed it.
    pub(crate) tree_width: Option<u16>,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
    pub(crate) settings: Settings,
    /// What is wrong with the settings file; the settings before stay in effect.
    pub(crate) settings_error: Option<String>,
    pub(crate) agents: Option<Vec<AgentInfo>>,
    pub(crate) pads: Vec<PadInfo>,
    /// Ports with their processes.
    pub(crate) ports: Vec<(String, PortInfo)>,
    /// The shared MCP servers, once they were requested.
    pub(crate) servers: Vec<ServerInfo>,
    pub(crate) grab: Option<MouseGrab>,
    /// The terminal has the focus.
    pub(crate) focused: bool,
    /// The layout of the last attachment, until it is restored.
    pub(crate) saved_layout: Option<SavedLayout>,
    /// The process to show as soon as it is in a snapshot.
    pub(crate) to_show: Option<String>,
    /// The processes that can be restored and that the user has postponed.
    pub(crate) postponed: Vec<String>,
    /// Keys that were not sent to the program: their release is not sent either.
    pub(crate) consumed_keys: Vec<KeyCode>,
    /// Processes whose bell rang while another pane had the focus.
    pub(crate) bells: BTreeSet<String>,
    /// Processes that agents have marked for the user, the newest last.
    pub(crate) marked: Vec<String>,
    /// The number of the last answered call of `select_process`.
    pub(crate) last_selection: u64,
    /// When the user last typed anything, and last typed into a pane.
    pub(crate) typed_at: Option<u64>,
    pub(crate) sent_at: Option<u64>,
    /// When the user last requested something that takes a while.
    pub(crate) requested_at: Option<u64>,
    /// Processes that the user is closing.
    pub(crate) closing: BTreeSet<String>,
    /// When the bell was last rung.
    pub(crate) last_bell: u64,
    /// When a program's last notification was passed on.
    pub(crate) last_notification: u64,
    /// Milliseconds since 1970, as of the last event.
    pub(crate) now: u64,
}

impl Model {
    pub(crate) fn new(width: u16, height: u16, to_show: Option<String>) -> Self {
        Self {
            width,
            height,
            snapshot: ProjectSnapshot::default(),
            has_snapshot: false,
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
            settings_error: None,
            agents: None,
            pads: Vec::new(),
            ports: Vec::new(),
            servers: Vec::new(),
            grab: None,
            focused: true,
            saved_layout: None,
            to_show,
            postponed: Vec::new(),
            consumed_keys: Vec::new(),
            bells: BTreeSet::new(),
            marked: Vec::new(),
            last_selection: 0,
            typed_at: None,
            sent_at: None,
            requested_at: None,
            closing: BTreeSet::new(),
            last_bell: 0,
            last_notification: 0,
            now: 0,
        }
    }

    pub(crate) fn theme(&self) -> &Theme {
        &self.settings.theme
    }

    /// The width of the tree, 0 if it is hidden.
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

    /// The area of the tree, without its edge.
    pub(crate) fn tree_area(&self) -> Rect {
        Rect::new(0, 0, self.tree_columns(), self.height.saturating_sub(1))
    }

    /// The area of all panes.
    pub(crate) fn panes_area(&self) -> Rect {
        let columns = self.tree_columns();
        let left = if columns > 0 { columns + 1 } else { 0 };
        let height = self.height.saturating_sub(1);
        Rect::new(left, 0, self.width.saturating_sub(left), height)
    }

    /// The area of each pane, with its title if it has one, and the lines between them.
    pub(crate) fn places(&self) -> (Vec<(PaneId, Rect)>, Vec<Divider>) {
        let area = self.panes_area();
        match &self.layout {
            None => (Vec::new(), Vec::new()),
            Some(_) if self.zoomed => (vec![(self.focus, area)], Vec::new()),
            Some(layout) => layout.place(area),
        }
    }

    /// Panes have titles if there are several.
    pub(crate) fn has_titles(&self) -> bool {
        self.panes.len() > 1 && !self.zoomed
    }

    /// The area of a pane's content, without its title.
    pub(crate) fn body(&self, area: Rect) -> Rect {
        if self.has_titles() { area.cut_top(1).1 } else { area }
    }

    pub(crate) fn process(&self, id: &str) -> Option<&ProcessInfo> {
        self.snapshot.processes.iter().find(|process| process.id == id)
    }

    pub(crate) fn focused_pane(&self) -> Option<&Pane> {
        self.panes.get(&self.focus)
    }

    /// The layout to save for the next attachment; `None` before the first snapshot.
    pub(crate) fn layout_to_save(&self) -> Option<SavedLayout> {
        let process = |id| {
            let process = &self.panes.get(&id)?.process;
            (!process.is_empty()).then(|| process.clone())
        };
        self.has_snapshot.then(|| SavedLayout {
            panes: self.layout.as_ref().and_then(|layout| SavedNode::of(layout, &process)),
            focus: self.focused_pane().map(|pane| pane.process.clone()),
            zoomed: self.zoomed,
            tree_hidden: self.tree_hidden,
            tree_width: self.tree_width,
        })
    }

    /// The process of the pane with the focus.
    pub(crate) fn selected(&self) -> Option<&ProcessInfo> {
        self.process(&self.focused_pane()?.process)
    }

    /// The processes in tree order, each with its depth.
    pub(crate) fn tree(&self) -> Vec<(usize, &ProcessInfo)> {
        let mut tree = Vec::new();
        let known = |id: &String| self.process(id).is_some();
        let is_top = |p: &&ProcessInfo| p.parent.as_ref().is_none_or(|id| !known(id));
        for process in self.snapshot.processes.iter().filter(is_top) {
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
        // There are no cycles, but one must not hang us.
        if tree.len() > self.snapshot.processes.len() {
            return;
        }
        tree.push((depth, process));
        let children = self.snapshot.processes.iter();
        for child in children.filter(|child| child.parent.as_ref() == Some(&process.id)) {
            self.add_below(child, depth + 1, tree);
        }
    }

    /// The processes that can be restored, in tree order, each with its depth.
    pub(crate) fn offered(&self) -> Vec<(usize, &ProcessInfo, &RestoreOffer)> {
        let offer = |id: &str| self.snapshot.offers.iter().find(|offer| offer.id == id);
        let tree = self.tree().into_iter();
        tree.filter_map(|(depth, process)| Some((depth, process, offer(&process.id)?))).collect()
    }

    /// The processes that need the user's attention.
    pub(crate) fn needing_attention(&self) -> Vec<&ProcessInfo> {
        let tree = self.tree().into_iter().map(|(_, process)| process);
        tree.filter(|process| process.attention.is_some() || is_blocked(process)).collect()
    }
}

/// Whether a process waits for the user.
pub(crate) fn is_blocked(process: &ProcessInfo) -> bool {
    use patterm_wire::follow::ActivityState;
    is_alive(process) && process.activity == ActivityState::Blocked
}

pub(crate) fn is_alive(process: &ProcessInfo) -> bool {
    process.status.is_alive()
}
