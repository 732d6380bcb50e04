//! Everything a person can do: its name, its keys after the leader, and its words. Keys, palette,
//! help and what settings may say come from this one table.

/// Something to do.
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

/// An action, its keys after the leader, and what it does.
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// As settings name it; it stays as it is.
    pub(crate) name: &'static str,
    /// The keys it has where nothing else is set; the first is shown.
    pub(crate) keys: &'static [&'static str],
    /// In a word or two.
    pub(crate) short: &'static str,
    /// In a sentence.
    pub(crate) words: &'static str,
}

const fn entry(
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    short: &'static str,
    words: &'static str,
) -> Entry {
    Entry { action, name, keys, short, words }
}

/// All of them, in the order in which they are shown.
#[rustfmt::skip]
pub(crate) const ACTIONS: [Entry; 29] = [
    entry(Action::Shell, "new-shell", &["c"], "new shell", "start a shell"),
    entry(Action::Agent, "new-agent", &["a"], "new agent", "start an agent"),
    entry(Action::Next, "next-process", &["n", "down"], "next", "show the next process"),
    entry(Action::Previous, "previous-process", &["p", "up"], "previous", "show the previous process"),
    entry(Action::Go(1), "go-to", &["1", "2", "3", "4", "5", "6", "7", "8", "9"], "go to", "show the process with this number"),
    entry(Action::SplitBeside, "split-right", &["|", "%", "\\"], "split right", "put another pane beside this one"),
    entry(Action::SplitBelow, "split-down", &["-", "\"", "_"], "split down", "put another pane below this one"),
    entry(Action::OtherPane, "next-pane", &["o", "right", "tab"], "next pane", "go to the next pane"),
    entry(Action::PaneBefore, "previous-pane", &["O", "left", ";"], "pane before", "go to the previous pane"),
    entry(Action::ClosePane, "unsplit", &["q"], "unsplit", "take this pane away; its process goes on"),
    entry(Action::Zoom, "zoom", &["z"], "zoom", "show this pane alone, and all again"),
    entry(Action::Tree, "tree", &["b"], "tree", "hide or show the tree"),
    entry(Action::Scrollback, "scroll", &["[", "page-up"], "scroll", "scroll back, search, copy"),
    entry(Action::Attention, "attention", &["!"], "attention", "who asks for you"),
    entry(Action::Marked, "marked", &["g", "end"], "marked", "go to the process that an agent wants you to see"),
    entry(Action::Messages, "messages", &["m"], "messages", "what agents told each other"),
    entry(Action::Timers, "timers", &["t"], "timers", "what will wake whom, and when"),
    entry(Action::Pads, "scratchpads", &["s"], "scratchpads", "notes that agents and people share"),
    entry(Action::Ports, "ports", &["P"], "ports", "where processes serve"),
    entry(Action::Servers, "servers", &["M"], "MCP servers", "shared MCP servers, and how they stand"),
    entry(Action::Trust, "project-file", &["T"], "patterm.toml", "see what patterm.toml would run, and trust it"),
    entry(Action::Rename, "rename", &["r", ","], "rename", "give this process another name"),
    entry(Action::Restart, "restart", &["R"], "restart", "end this process and start it again"),
    entry(Action::Stop, "stop", &["X"], "stop", "end this process and keep its output"),
    entry(Action::Close, "close", &["x", "&"], "close", "end this process with all it started and remove it"),
    entry(Action::Palette, "palette", &[":", "space", "w"], "palette", "find any action by typing"),
    entry(Action::Help, "help", &["?"], "help", "all keys"),
    // Its own key is the leader itself.
    entry(Action::SendLeader, "send-leader", &[], "itself", "send the leader key itself"),
    entry(Action::Detach, "detach", &["d"], "detach", "leave; everything goes on"),
];

/// The action with a name.
pub(crate) fn named(name: &str) -> Option<&'static Entry> {
    ACTIONS.iter().find(|entry| entry.name == name)
}

/// What a key with shift types, where the terminal tells them apart.
pub(crate) fn typed(character: char, shift: bool) -> char {
    if shift { character.to_ascii_uppercase() } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_every_name_and_its_first_key() {
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
