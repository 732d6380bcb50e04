//! Everything the user can do: its name, its keys after the leader, and its description. Keys, palette, help
//! and the settings use this one table.

use crate::arrange::{Arrangement, Side};

/// Something the user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    NewPage,
    Shell,
    Agent,
    AgentBeside,
    NextPage,
    PreviousPage,
    LastPage,
    /// Shows the page with this number.
    Page(u8),
    Pages,
    RenamePage,
    ClosePage,
    SplitBeside,
    SplitBelow,
    /// Goes to the pane on this side.
    PaneTo(Side),
    OtherPane,
    PaneBefore,
    LastPane,
    Labels,
    ChooseProcess,
    Dashboard,
    ClosePane,
    Zoom,
    /// Moves a line between panes by one cell.
    Resize(Side),
    /// Moves a line between panes by several cells.
    ResizeMore(Side),
    NextLayout,
    Arrange(Arrangement),
    SwapNext,
    SwapPrevious,
    Rotate,
    BreakPane,
    JoinPane,
    MovePane,
    Next,
    Previous,
    /// Shows the process with this number.
    Go(u8),
    Broadcast,
    Tree,
    Scrollback,
    Past,
    PastOfAll,
    Paste,
    Attention,
    Dismiss,
    Overview,
    Digest,
    Marked,
    Messages,
    Timers,
    Pads,
    Ports,
    Servers,
    Logs,
    Trust,
    Rename,
    Restart,
    Stop,
    Close,
    Restore,
    Palette,
    Help,
    SendLeader,
    Detach,
}

impl Action {
    /// The action of the key at this position in the list of an action's keys: the second key of `go-to` goes to
    /// the second process.
    pub(crate) fn nth(self, at: usize) -> Self {
        let number = u8::try_from(at).unwrap_or(u8::MAX);
        let side = Side::ALL[at.min(Side::ALL.len() - 1)];
        match self {
            Self::Go(_) => Self::Go(number.saturating_add(1)),
            Self::Page(_) => Self::Page(number),
            Self::PaneTo(_) => Self::PaneTo(side),
            Self::Resize(_) => Self::Resize(side),
            Self::ResizeMore(_) => Self::ResizeMore(side),
            Self::Arrange(_) => Self::Arrange(Arrangement::ALL[at.min(Arrangement::ALL.len() - 1)]),
            other => other,
        }
    }

    /// How many keys its list may have, and whether it must have all of them; `None` if there is no limit.
    pub(crate) fn key_count(self) -> Option<KeyCount> {
        match self {
            Self::PaneTo(_) | Self::Resize(_) | Self::ResizeMore(_) => {
                Some(KeyCount::OneForEachSide)
            }
            Self::Arrange(_) => Some(KeyCount::AtMost(Arrangement::ALL.len())),
            _ => None,
        }
    }

    /// Whether each of its keys does something different.
    pub(crate) fn is_family(self) -> bool {
        self.nth(0) != self.nth(1)
    }

    /// Whether both are the same action, perhaps with different numbers or directions.
    pub(crate) fn is_same_kind(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Whether its key works again without the leader, for a moment.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::Resize(_) | Self::ResizeMore(_))
    }

    /// Whether it ends or leaves something.
    pub(crate) fn ends_something(self) -> bool {
        matches!(
            self,
            Self::Close
                | Self::Stop
                | Self::Restart
                | Self::ClosePane
                | Self::ClosePage
                | Self::Detach
        )
    }

    /// Whether it must have a key: without these, a user could not find out about the others, or leave.
    pub(crate) fn is_essential(self) -> bool {
        matches!(self, Self::Detach | Self::Help | Self::Palette)
    }
}

/// How many keys a list of an action's keys has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyCount {
    /// Left, down, up and right.
    OneForEachSide,
    /// At most this many.
    AtMost(usize),
}

impl KeyCount {
    /// Why a list of this length is wrong; an empty one means no keys.
    pub(crate) fn refuse(self, count: usize) -> Option<String> {
        match self {
            Self::OneForEachSide if count != 0 && count != Side::ALL.len() => Some(format!(
                "takes a list of {} keys, for left, down, up and right, but this has {count}",
                Side::ALL.len()
            )),
            Self::AtMost(most) if count > most => {
                Some(format!("takes at most {most} keys, but this list has {count}"))
            }
            Self::OneForEachSide | Self::AtMost(_) => None,
        }
    }
}

/// An action, its keys after the leader, and its description.
pub(crate) struct ActionInfo {
    pub(crate) action: Action,
    /// Its name in the settings, which must not change.
    pub(crate) name: &'static str,
    /// The default keys; the first is shown.
    pub(crate) keys: &'static [&'static str],
    /// One or two words.
    pub(crate) short: &'static str,
    /// A sentence.
    pub(crate) description: &'static str,
}

const fn info(
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    short: &'static str,
    description: &'static str,
) -> ActionInfo {
    ActionInfo { action, name, keys, short, description }
}

/// All actions, in the order in which they are shown. If tmux has a default key for an action, it is the same here.
#[rustfmt::skip]
pub(crate) const ACTIONS: [ActionInfo; 61] = [
    info(Action::NewPage, "new-page", &["c"], "new page", "start a shell on a new page"),
    info(Action::Agent, "new-agent", &["a"], "new agent", "start an agent in this pane"),
    info(Action::AgentBeside, "new-agent-beside", &["A"], "agent beside", "start an agent beside this pane, in its folder"),
    info(Action::Shell, "new-shell", &["C"], "new shell", "start a shell in this pane"),
    info(Action::SplitBeside, "split-right", &["|", "%", "\\"], "split right", "add a pane to the right of this one"),
    info(Action::SplitBelow, "split-down", &["-", "\"", "_"], "split down", "add a pane below this one"),
    info(Action::PaneTo(Side::Left), "go-to-pane", &["left", "down", "up", "right"], "go to pane", "go to the pane on this side"),
    info(Action::OtherPane, "next-pane", &["o", "tab"], "next pane", "go to the next pane"),
    info(Action::PaneBefore, "previous-pane", &["O"], "prev. pane", "go to the previous pane"),
    info(Action::LastPane, "last-pane", &[";"], "last pane", "go back to the pane that had the focus before"),
    info(Action::Labels, "labels", &["q"], "pane labels", "show a label on each pane; its key goes there"),
    info(Action::ChooseProcess, "choose-process", &["s", "'"], "pick process", "choose the process that this pane shows"),
    info(Action::ClosePane, "unsplit", &["Q"], "unsplit", "remove this pane; its process keeps running"),
    info(Action::Zoom, "zoom", &["z"], "zoom", "show only this pane, or all panes again"),
    info(Action::Resize(Side::Left), "resize-pane", &["ctrl+left", "ctrl+down", "ctrl+up", "ctrl+right"], "resize", "resize this pane by one cell; repeat without the leader"),
    info(Action::ResizeMore(Side::Left), "resize-pane-more", &["alt+left", "alt+down", "alt+up", "alt+right"], "resize by 5", "resize this pane by five cells; repeat without the leader"),
    info(Action::NextLayout, "next-layout", &["space"], "next layout", "arrange the panes in the next preset layout"),
    info(Action::Arrange(Arrangement::EvenHorizontal), "layout", &["alt+1", "alt+2", "alt+3", "alt+4", "alt+5"], "layout", "even columns, even rows, main on top, main left, tiled"),
    info(Action::SwapNext, "swap-next", &["}"], "swap next", "swap this pane with the next one"),
    info(Action::SwapPrevious, "swap-previous", &["{"], "swap prev.", "swap this pane with the previous one"),
    info(Action::Rotate, "rotate", &["ctrl+o"], "rotate", "move every pane to the place of the one before it"),
    info(Action::BreakPane, "break-pane", &["!"], "break out", "move this pane to a new page"),
    info(Action::JoinPane, "join-pane", &["J"], "join a pane", "bring a pane from another page to this one"),
    info(Action::MovePane, "move-pane", &["."], "move pane", "move this pane to another page"),
    info(Action::Broadcast, "broadcast", &["B"], "broadcast", "send keys to all panes of this page; again to stop"),
    info(Action::NextPage, "next-page", &["n"], "next page", "show the next page"),
    info(Action::PreviousPage, "previous-page", &["p"], "prev. page", "show the previous page"),
    info(Action::LastPage, "last-page", &["l"], "last page", "go back to the page that was shown before"),
    info(Action::Page(0), "page", &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "page", "show the page with this number"),
    info(Action::Pages, "pages", &["w"], "pages", "list the pages"),
    info(Action::RenamePage, "rename-page", &[","], "name page", "rename this page"),
    info(Action::ClosePage, "close-page", &["&"], "close page", "close this page; its processes keep running"),
    info(Action::Next, "next-process", &["j"], "next proc.", "show the next process in this pane"),
    info(Action::Previous, "previous-process", &["k"], "prev. proc.", "show the previous process in this pane"),
    info(Action::Go(1), "go-to", &["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"], "go to", "show the process with this number"),
    info(Action::Dashboard, "dashboard", &["D"], "dashboard", "all processes with CPU, memory, ports and last lines"),
    info(Action::Tree, "tree", &["b"], "tree", "hide or show the tree"),
    info(Action::Scrollback, "scroll", &["[", "page-up"], "scroll", "scroll back, search, copy"),
    info(Action::Past, "past", &["h"], "back in time", "show this pane as it was; everything keeps running"),
    info(Action::PastOfAll, "past-of-all", &["H"], "all back", "show all panes as they were at the same moment"),
    info(Action::Paste, "paste", &["]"], "paste", "type what was copied last"),
    info(Action::Attention, "attention", &["u"], "attention", "jump to an agent that needs you"),
    info(Action::Overview, "overview", &["L"], "projects", "all projects: jump to one, or answer a question there"),
    info(Action::Digest, "while-away", &["W"], "while away", "what happened while you were away"),
    info(Action::Dismiss, "dismiss", &["i"], "dismiss", "dismiss this process's request for attention"),
    info(Action::Marked, "marked", &["g", "end"], "marked", "go to the process that an agent marked for you"),
    info(Action::Messages, "messages", &["m"], "messages", "messages between agents"),
    info(Action::Timers, "timers", &["t"], "timers", "timers, with the time left"),
    info(Action::Pads, "scratchpads", &["S"], "scratchpads", "notes that agents and people share"),
    info(Action::Ports, "ports", &["P"], "ports", "addresses where processes listen"),
    info(Action::Servers, "servers", &["M"], "MCP servers", "shared MCP servers and their status"),
    info(Action::Logs, "logs", &["v"], "logs", "follow the output of all processes, merged"),
    info(Action::Trust, "project-file", &["T"], "patterm.toml", "review what patterm.toml would run, and trust it"),
    info(Action::Rename, "rename", &["r"], "rename", "rename this process"),
    info(Action::Restart, "restart", &["R"], "restart", "end this process and start it again"),
    info(Action::Stop, "stop", &["X"], "stop", "end this process and keep its output"),
    info(Action::Close, "close", &["x"], "close", "end this process and all it started, and remove it"),
    info(Action::Palette, "palette", &[":"], "palette", "find any action by typing"),
    info(Action::Help, "help", &["?"], "help", "all keys"),
    // Its key is the leader itself.
    info(Action::SendLeader, "send-leader", &[], "leader key", "send the leader key to the program"),
    info(Action::Detach, "detach", &["d"], "detach", "leave; everything keeps running"),
];

/// What tmux calls an action: the palette finds it by these words too.
pub(crate) fn tmux_names(action: Action) -> &'static str {
    match action {
        Action::NewPage => "new-window neww",
        Action::SplitBeside => "split-window -h splitw",
        Action::SplitBelow => "split-window -v splitw",
        Action::PaneTo(_) => "select-pane -L -D -U -R",
        Action::OtherPane | Action::PaneBefore => "select-pane -t",
        Action::LastPane => "last-pane",
        Action::Labels => "display-panes",
        Action::ChooseProcess => "choose-tree find-window",
        Action::ClosePane | Action::Close => "kill-pane",
        Action::Zoom => "resize-pane -Z",
        Action::Resize(_) | Action::ResizeMore(_) => "resize-pane -L -D -U -R",
        Action::NextLayout => "next-layout",
        Action::Arrange(_) => {
            "select-layout even-horizontal even-vertical main-horizontal main-vertical tiled"
        }
        Action::SwapNext => "swap-pane -D",
        Action::SwapPrevious => "swap-pane -U",
        Action::Rotate => "rotate-window",
        Action::BreakPane => "break-pane",
        Action::JoinPane => "join-pane",
        Action::MovePane => "move-pane",
        Action::Broadcast => "set-window-option synchronize-panes",
        Action::NextPage => "next-window",
        Action::PreviousPage => "previous-window",
        Action::LastPage => "last-window",
        Action::Page(_) => "select-window",
        Action::Pages => "choose-tree -w list-windows choose-window",
        Action::RenamePage => "rename-window",
        Action::ClosePage => "kill-window",
        Action::Scrollback => "copy-mode",
        Action::Paste => "paste-buffer",
        Action::Overview => "choose-tree -s switch-client list-sessions choose-session",
        Action::Restart => "respawn-pane",
        Action::Palette => "command-prompt",
        Action::Help => "list-keys",
        Action::SendLeader => "send-prefix",
        Action::Detach => "detach-client",
        _ => "",
    }
}

/// The action with this name.
pub(crate) fn named(name: &str) -> Option<&'static ActionInfo> {
    ACTIONS.iter().find(|entry| entry.name == name)
}

/// The character of a key with shift, for terminals that report them separately.
pub(crate) fn typed(character: char, shift: bool) -> char {
    if shift { character.to_ascii_uppercase() } else { character }
}
