//! The state of the TUI as a value: the project, the panes, and what the user is doing.

use std::collections::{BTreeMap, BTreeSet};

use patterm_screen::keys::KeyCode;
use patterm_wire::follow::{ProcessInfo, ProjectSnapshot};
use patterm_wire::restore::RestoreOffer;
use patterm_wire::servers::ServerInfo;
use patterm_wire::tools::{AgentInfo, PadInfo, PortInfo};

use crate::away::{Away, DigestPanel};
use crate::canvas::Rect;
use crate::dashboard::Dashboard;
use crate::layout::{Direction, Divider, Layout, PaneId};
use crate::logs::LogsView;
use crate::overview::{AnswerPanel, Overview, Place};
use crate::past::TimeBar;
use crate::saved_layout::SavedLayout;
use crate::settings::{Settings, Theme};
use crate::trust::TrustPanel;

pub(crate) use crate::page::{Pane, PanePage};

/// On a narrower terminal the tree would leave no space for a pane.
const TREE_MIN_WIDTH: u16 = 60;

/// Where the user's settings are if nothing else is known.
const SETTINGS_PATH: &str = "~/.config/patterm/tui.toml";

/// What a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Palette,
    Agents,
    /// Which agent to start beside this pane, in its folder.
    AgentsBeside,
    MoreAgents,
    /// What to put into a new pane.
    Split(Direction),
    /// Which process this pane shows.
    Processes,
    Pages,
    /// Which pane to bring to this page.
    Join,
    /// To which page to move this pane.
    Move,
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
    /// The new name of the page with this number.
    RenamePage(u32),
    /// The first prompt for this agent, which may have several lines.
    Prompt(AgentToStart),
}

/// An agent that the user is about to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentToStart {
    /// Its preset.
    pub(crate) preset: String,
    /// Where to split the pane for it.
    pub(crate) direction: Option<Direction>,
    /// The process in whose folder it is started.
    pub(crate) folder_of: Option<String>,
}

/// What the user is asked to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Close(String),
    /// The page with this number.
    ClosePage(u32),
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
    /// Each pane has a label; its key goes there.
    Labels,
    /// A list to choose from.
    List { kind: ListKind, chosen: usize, filter: String },
    /// Lines to read.
    Text { title: String, text: String, top: usize },
    /// A scratchpad, rendered as Markdown.
    Pad { name: String, text: String, top: usize },
    /// All keys.
    Help { top: usize },
    /// The logs of all processes.
    Logs,
    /// Panes show the past.
    Past,
    /// A line is being typed.
    Line { question: Question, text: String },
    /// The user is asked to confirm.
    Confirm(Confirmation),
    /// The processes that can be restored; some of them may be left out.
    Restore { chosen: usize, left_out: BTreeSet<String> },
    /// All processes in a table; the user may be asked to confirm something, or have typed the leader.
    Dashboard { confirmation: Option<Confirmation>, leader: bool },
    /// What happened while the user was away.
    Digest(DigestPanel),
    /// What the project file would run, for the user to trust it.
    Trust(TrustPanel),
    /// All projects; this place is chosen.
    Overview(Place),
    /// A question of an agent, to answer it without going there.
    Answer(AnswerPanel),
    /// The process that the user typed into was closed; keys are ignored until the user has noticed.
    Interrupted {
        name: String,
        /// Keys that went nowhere since.
        ignored: usize,
    },
}

/// What the user drags with the mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MouseGrab {
    /// The line between panes.
    Line(Divider),
    /// The edge of the tree.
    TreeEdge,
    /// A selection in a pane, from this position; a click there opens a link if the last is true.
    Selection(PaneId, u16, u16, bool),
    /// A word or a line of a pane, which was selected by a double or triple click.
    Chosen(PaneId),
    /// A program gets the events until the button is released.
    Program(PaneId),
}

/// A click in a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Click {
    pub(crate) pane: PaneId,
    pub(crate) place: (u16, u16),
    pub(crate) at: u64,
    /// 1, 2 or 3 for a single, double or triple click.
    pub(crate) count: u8,
}

/// A text at the bottom, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) subject: NoticeSubject,
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeSubject {
    /// The state of the project file; the notice goes when that changes.
    ProjectFile,
    /// The user's `config.toml`; the notice goes when its problems change.
    UsersSettings,
    Other,
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
    /// The key of the project, and of the one that was shown before it.
    pub(crate) project_key: String,
    pub(crate) last_project: Option<String>,
    /// All projects, while the user looks at them.
    pub(crate) overview: Option<Overview>,
    /// Why the server does not answer, and what to do about it.
    pub(crate) hung: Option<String>,
    /// The pages, by their numbers. The panes, layout and focus of the current one are in the next fields.
    pub(crate) pages: Vec<PanePage>,
    /// The current page, as an index.
    pub(crate) page: usize,
    /// The number of the page that was shown before.
    pub(crate) last_page: Option<u32>,
    pub(crate) panes: BTreeMap<PaneId, Pane>,
    pub(crate) layout: Option<Layout>,
    pub(crate) focus: PaneId,
    /// The pane that had the focus before.
    pub(crate) last_focus: PaneId,
    pub(crate) last_pane: PaneId,
    pub(crate) zoomed: bool,
    /// Keys go to all panes.
    pub(crate) broadcast: bool,
    pub(crate) tree_hidden: bool,
    /// The width of the tree, if the user has changed it.
    pub(crate) tree_width: Option<u16>,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
    pub(crate) settings: Settings,
    /// What is wrong with the settings file; the settings before stay in effect.
    pub(crate) settings_error: Option<String>,
    /// The logs, while they are shown.
    pub(crate) logs: Option<LogsView>,
    /// The past, while it is shown.
    pub(crate) past: Option<TimeBar>,
    /// The number of the last time bar.
    pub(crate) last_time_bar: u64,
    /// Seconds that local times are ahead of UTC.
    pub(crate) utc_offset: i32,
    pub(crate) agents: Option<Vec<AgentInfo>>,
    pub(crate) pads: Vec<PadInfo>,
    /// Ports with their processes.
    pub(crate) ports: Vec<(String, PortInfo)>,
    /// The shared MCP servers, once they were requested.
    pub(crate) servers: Vec<ServerInfo>,
    pub(crate) dashboard: Dashboard,
    pub(crate) away: Away,
    pub(crate) grab: Option<MouseGrab>,
    /// The last click, to tell double and triple clicks.
    pub(crate) click: Option<Click>,
    /// What was copied last.
    pub(crate) buffer: Option<String>,
    /// The prefixes of the tmux around the terminal; one of them may be the leader.
    pub(crate) tmux_prefixes: Vec<String>,
    /// The file with the user's keys and colours, as it is shown.
    pub(crate) settings_path: String,
    /// The terminal has the focus.
    pub(crate) focused: bool,
    /// The pages or their layouts may have changed since they were saved.
    pub(crate) layout_changed: bool,
    /// The layout of the last attachment, until it is restored.
    pub(crate) saved_layout: Option<SavedLayout>,
    /// The process to show as soon as it is in a snapshot.
    pub(crate) to_show: Option<String>,
    /// Processes that were started for a pane, to be shown there as soon as they are in a snapshot.
    pub(crate) to_place: Vec<(String, PaneId)>,
    /// When the leader was typed.
    pub(crate) leader_at: u64,
    /// Until when keys that repeat an action need no leader.
    pub(crate) repeat_until: u64,
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
    /// The last key sent to a pane was Enter or ctrl+D.
    pub(crate) sent_line: bool,
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
            project_key: String::new(),
            last_project: None,
            overview: None,
            hung: None,
            pages: vec![PanePage::default()],
            page: 0,
            last_page: None,
            panes: BTreeMap::new(),
            layout: None,
            focus: 0,
            last_focus: 0,
            last_pane: 0,
            zoomed: false,
            broadcast: false,
            tree_hidden: false,
            tree_width: None,
            mode: Mode::Typing,
            notice: None,
            settings: Settings::default(),
            settings_error: None,
            logs: None,
            past: None,
            last_time_bar: 0,
            utc_offset: 0,
            agents: None,
            pads: Vec::new(),
            ports: Vec::new(),
            servers: Vec::new(),
            dashboard: Dashboard::default(),
            away: Away::default(),
            grab: None,
            click: None,
            buffer: None,
            tmux_prefixes: Vec::new(),
            settings_path: SETTINGS_PATH.to_owned(),
            focused: true,
            layout_changed: false,
            saved_layout: None,
            to_show,
            to_place: Vec::new(),
            leader_at: 0,
            repeat_until: 0,
            postponed: Vec::new(),
            consumed_keys: Vec::new(),
            bells: BTreeSet::new(),
            marked: Vec::new(),
            last_selection: 0,
            typed_at: None,
            sent_at: None,
            sent_line: false,
            requested_at: None,
            closing: BTreeSet::new(),
            last_bell: 0,
            last_notification: 0,
            now: 0,
        }
    }

    /// Whether the tmux around the terminal intercepts the leader.
    pub(crate) fn shares_tmux_prefix(&self) -> bool {
        let leader = self.settings.keys.leader_name();
        self.tmux_prefixes.contains(&leader)
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

/// Why a process needs the user.
pub(crate) fn need(process: &ProcessInfo) -> &str {
    use patterm_wire::reason;
    match (&process.attention, reason::plain(&process.reason)) {
        (Some(why), _) => why,
        (None, "") => reason::WAITS,
        (None, why) => why,
    }
}
