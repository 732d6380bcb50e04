//! Everything the user can do: its name, its keys after the leader, and its description. Keys, palette, help
//! and the settings use this one table.

/// Something the user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Shell,
    Agent,
    Next,
    Previous,
    Go(u8),
    SplitBeside,
    SplitBelow,
    OtherPane,
    PaneBefore,
    ClosePane,
    Zoom,
    Tree,
    Scrollback,
    Attention,
    Marked,
    Messages,
    Timers,
    Pads,
    Ports,
    Servers,
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

/// All actions, in the order in which they are shown.
#[rustfmt::skip]
pub(crate) const ACTIONS: [ActionInfo; 29] = [
    info(Action::Shell, "new-shell", &["c"], "new shell", "start a shell"),
    info(Action::Agent, "new-agent", &["a"], "new agent", "start an agent"),
    info(Action::Next, "next-process", &["n", "down"], "next", "show the next process"),
    info(Action::Previous, "previous-process", &["p", "up"], "previous", "show the previous process"),
    info(Action::Go(1), "go-to", &["1", "2", "3", "4", "5", "6", "7", "8", "9"], "go to", "show the process with this number"),
    info(Action::SplitBeside, "split-right", &["|", "%", "\\"], "split right", "add a pane to the right of this one"),
    info(Action::SplitBelow, "split-down", &["-", "\"", "_"], "split down", "add a pane below this one"),
    info(Action::OtherPane, "next-pane", &["o", "right", "tab"], "next pane", "go to the next pane"),
    info(Action::PaneBefore, "previous-pane", &["O", "left", ";"], "prev. pane", "go to the previous pane"),
    info(Action::ClosePane, "unsplit", &["q"], "unsplit", "remove this pane; its process keeps running"),
    info(Action::Zoom, "zoom", &["z"], "zoom", "show only this pane, or all panes again"),
    info(Action::Tree, "tree", &["b"], "tree", "hide or show the tree"),
    info(Action::Scrollback, "scroll", &["[", "page-up"], "scroll", "scroll back, search, copy"),
    info(Action::Attention, "attention", &["!"], "attention", "jump to an agent that needs you"),
    info(Action::Marked, "marked", &["g", "end"], "marked", "go to the process that an agent marked for you"),
    info(Action::Messages, "messages", &["m"], "messages", "messages between agents"),
    info(Action::Timers, "timers", &["t"], "timers", "timers, with the time left"),
    info(Action::Pads, "scratchpads", &["s"], "scratchpads", "notes that agents and people share"),
    info(Action::Ports, "ports", &["P"], "ports", "addresses that processes serve on"),
    info(Action::Servers, "servers", &["M"], "MCP servers", "shared MCP servers and their status"),
    info(Action::Trust, "project-file", &["T"], "patterm.toml", "review what patterm.toml would run, and trust it"),
    info(Action::Rename, "rename", &["r", ","], "rename", "rename this process"),
    info(Action::Restart, "restart", &["R"], "restart", "end this process and start it again"),
    info(Action::Stop, "stop", &["X"], "stop", "end this process and keep its output"),
    info(Action::Close, "close", &["x", "&"], "close", "end this process and all it started, and remove it"),
    info(Action::Palette, "palette", &[":", "space", "w"], "palette", "find any action by typing"),
    info(Action::Help, "help", &["?"], "help", "all keys"),
    // Its key is the leader itself.
    info(Action::SendLeader, "send-leader", &[], "leader key", "send the leader key to the program"),
    info(Action::Detach, "detach", &["d"], "detach", "leave; everything keeps running"),
];

/// The action with this name.
pub(crate) fn named(name: &str) -> Option<&'static ActionInfo> {
    ACTIONS.iter().find(|entry| entry.name == name)
}

/// The character of a key with shift, for terminals that report them separately.
pub(crate) fn typed(character: char, shift: bool) -> char {
    if shift { character.to_ascii_uppercase() } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_every_action_with_its_first_key() {
        let readme = include_str!("../../../README.md");
        let keys = readme.split("## Keys").nth(1).unwrap().split("\n## ").next().unwrap();
        for entry in &ACTIONS {
            let row = keys.lines().find(|line| line.contains(&format!("`{}`", entry.name)));
            let row = row.unwrap_or_else(|| panic!("the README has no {}", entry.name));
            let first = match entry.action {
                Action::Go(_) => "1-9",
                Action::SendLeader => "ctrl+b",
                _ => entry.keys[0],
            };
            let shown = format!("`{}`", first.replace('|', "\\|"));
            assert!(row.starts_with(&format!("| {shown}")), "{row} has no {shown}");
        }
    }
}
