//! Everything a person can do: its key after the leader, and its words. Keys, palette and help come
//! from this one table.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;

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
    ClosePane,
    Zoom,
    Tree,
    Scrollback,
    Attention,
    Messages,
    Timers,
    Pads,
    Ports,
    Trust,
    Rename,
    Restart,
    Stop,
    Close,
    BringBack,
    Palette,
    Help,
    SendLeader,
    Detach,
}

/// An action, the key it has, and what it does.
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// As it is shown.
    pub(crate) key: &'static str,
    /// In a word or two.
    pub(crate) short: &'static str,
    /// In a sentence.
    pub(crate) words: &'static str,
}

const fn entry(
    action: Action,
    key: &'static str,
    short: &'static str,
    words: &'static str,
) -> Entry {
    Entry { action, key, short, words }
}

/// All of them, in the order in which they are shown.
pub(crate) const ACTIONS: [Entry; 26] = [
    entry(Action::Shell, "c", "new shell", "start a shell"),
    entry(Action::Agent, "a", "new agent", "start an agent"),
    entry(Action::Next, "n", "next", "show the next process (or down)"),
    entry(Action::Previous, "p", "previous", "show the previous process (or up)"),
    entry(Action::Go(0), "1-9", "go to", "show the process with this number"),
    entry(Action::SplitBeside, "|", "split right", "put another pane beside this one"),
    entry(Action::SplitBelow, "-", "split down", "put another pane below this one"),
    entry(Action::OtherPane, "o", "other pane", "go to the next pane"),
    entry(Action::ClosePane, "q", "unsplit", "take this pane away; its process goes on"),
    entry(Action::Zoom, "z", "zoom", "show this pane alone, and all again"),
    entry(Action::Tree, "b", "tree", "hide or show the tree"),
    entry(Action::Scrollback, "[", "scroll", "scroll back, search, copy"),
    entry(Action::Attention, "!", "attention", "who asks for you"),
    entry(Action::Messages, "m", "messages", "what agents told each other"),
    entry(Action::Timers, "t", "timers", "what will wake whom, and when"),
    entry(Action::Pads, "s", "scratchpads", "notes that agents and people share"),
    entry(Action::Ports, "P", "ports", "where processes serve"),
    entry(Action::Trust, "T", "patterm.toml", "see what patterm.toml would run, and trust it"),
    entry(Action::Rename, "r", "rename", "give this process another name"),
    entry(Action::Restart, "R", "restart", "end this process and start it again"),
    entry(Action::Stop, "X", "stop", "end this process and keep its output"),
    entry(Action::Close, "x", "close", "end this process with all it started and remove it"),
    entry(Action::Palette, ":", "palette", "find any action by typing (or space)"),
    entry(Action::Help, "?", "help", "all keys"),
    entry(Action::SendLeader, "ctrl+b", "ctrl+b", "send the leader key itself"),
    entry(Action::Detach, "d", "detach", "leave; everything goes on"),
];

/// The leader key.
pub(crate) fn is_leader(key: &Key) -> bool {
    *key == Key { ctrl: true, ..Key::from(KeyCode::Char('b')) }
}

/// What a key after the leader does.
pub(crate) fn for_key(key: &Key) -> Option<Action> {
    if is_leader(key) {
        return Some(Action::SendLeader);
    }
    if key.alt || key.logo {
        return None;
    }
    let character = match key.code {
        KeyCode::Down => return Some(Action::Next),
        KeyCode::Up => return Some(Action::Previous),
        KeyCode::Right | KeyCode::Tab => return Some(Action::OtherPane),
        KeyCode::Char(character) if !key.ctrl => typed(character, key.shift),
        // ctrl still held from the leader.
        KeyCode::Char(character @ ('d' | 'c' | 'a' | 'n' | 'p' | 'o' | 'z')) => character,
        _ => return None,
    };
    match character {
        ' ' => Some(Action::Palette),
        '%' | '\\' => Some(Action::SplitBeside),
        '"' | '_' => Some(Action::SplitBelow),
        '1'..='9' => Some(Action::Go(character as u8 - b'0')),
        character => {
            let named = |entry: &&Entry| entry.key.len() == 1 && entry.key.starts_with(character);
            ACTIONS.iter().find(named).map(|entry| entry.action)
        }
    }
}

/// What a key with shift types, where the terminal tells them apart.
pub(crate) fn typed(character: char, shift: bool) -> char {
    if shift { character.to_ascii_uppercase() } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_table_does_what_it_says_and_none_stands_twice() {
        for entry in &ACTIONS {
            if entry.key.len() == 1 {
                let key: Key = entry.key.parse().unwrap();
                assert_eq!(for_key(&key), Some(entry.action), "{}", entry.key);
            }
            let twice = ACTIONS.iter().filter(|other| other.key == entry.key).count();
            assert_eq!(twice, 1, "{}", entry.key);
        }
        let readme = include_str!("../../../README.md");
        let keys = readme.split("## Keys").nth(1).unwrap().split("\n## ").next().unwrap();
        for entry in &ACTIONS {
            let shown = format!("`{}`", entry.key.replace('|', "\\|"));
            assert!(keys.contains(&shown), "the README has no {shown}");
        }
        assert_eq!(for_key(&"7".parse().unwrap()), Some(Action::Go(7)));
        assert_eq!(for_key(&"ctrl+b".parse().unwrap()), Some(Action::SendLeader));
        assert_eq!(for_key(&"shift+p".parse().unwrap()), Some(Action::Ports));
        assert_eq!(for_key(&"k".parse().unwrap()), None);
    }
}
