//! Which key triggers which action.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;

use crate::action::{ACTIONS, Action, ActionInfo};

/// The keys in effect. Each is contained once, in its normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keymap {
    pub(super) leader: Key,
    /// After the leader.
    pub(super) after: Vec<(Key, Action)>,
    /// Without the leader.
    pub(super) direct: Vec<(Key, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let leader = Key { ctrl: true, ..Key::from(KeyCode::Char('b')) };
        let after = ACTIONS.iter().flat_map(|entry| of(entry, &default_keys(entry, leader)));
        Self { leader, after: after.collect(), direct: Vec::new() }
    }
}

/// The default keys of an action.
pub(super) fn default_keys(entry: &ActionInfo, leader: Key) -> Vec<Key> {
    if entry.action == Action::SendLeader {
        return vec![leader];
    }
    entry.keys.iter().filter_map(|key| key.parse().ok()).collect()
}

/// What each key of an action does: the second key of `go-to` goes to the second process.
pub(super) fn of(entry: &ActionInfo, keys: &[Key]) -> Vec<(Key, Action)> {
    let number = |at: usize| u8::try_from(at + 1).unwrap_or(u8::MAX);
    let action = |at: usize| match entry.action {
        Action::Go(_) => Action::Go(number(at)),
        action => action,
    };
    keys.iter().enumerate().map(|(at, key)| (*key, action(at))).collect()
}

/// The normal form of a key, for comparisons: terminals report shifted characters in two ways.
pub(super) fn plain(key: Key) -> Key {
    match key.code {
        KeyCode::Char(character) => {
            let code = KeyCode::Char(crate::action::typed(character, key.shift));
            Key { code, shift: false, ..key }
        }
        _ => key,
    }
}

impl Keymap {
    pub(crate) fn leader(&self) -> Key {
        self.leader
    }

    pub(crate) fn is_leader(&self, key: &Key) -> bool {
        plain(*key) == self.leader
    }

    /// What a key after the leader does.
    pub(crate) fn after_leader(&self, key: &Key) -> Option<Action> {
        let key = plain(*key);
        let released = Key { ctrl: false, ..key };
        let letter = matches!(key.code, KeyCode::Char(letter) if letter.is_ascii_lowercase());
        // Control may still be pressed from the leader.
        let held = || find(&self.after, released).filter(|_| key.ctrl && letter);
        find(&self.after, key).or_else(held)
    }

    /// What a key does without the leader.
    pub(crate) fn direct(&self, key: &Key) -> Option<Action> {
        find(&self.direct, plain(*key))
    }

    /// The leader's name.
    pub(crate) fn leader_name(&self) -> String {
        name(self.leader)
    }

    /// A key after the leader, as text.
    pub(crate) fn after_leader_name(&self, key: &Key) -> String {
        format!("{} {}", self.leader_name(), name(plain(*key)))
    }

    /// The key of an action after the leader, if it has one.
    pub(crate) fn shown(&self, entry: &ActionInfo) -> Option<String> {
        let keys: Vec<Key> = self.keys_of(entry, &self.after);
        match (entry.action, keys.as_slice()) {
            (_, []) => None,
            (Action::Go(_), [first, .., last]) => Some(format!("{}-{}", name(*first), name(*last))),
            (_, [first, ..]) => Some(name(*first)),
        }
    }

    /// All keys of an action, for the help.
    pub(crate) fn all(&self, entry: &ActionInfo) -> String {
        let after = match entry.action {
            Action::Go(_) => self.shown(entry).into_iter().collect(),
            _ => self.keys_of(entry, &self.after).into_iter().map(name).collect::<Vec<_>>(),
        };
        let direct = self.keys_of(entry, &self.direct).into_iter();
        let direct = direct.map(|key| format!("{} (no leader)", name(key)));
        after.into_iter().chain(direct).collect::<Vec<_>>().join(" ")
    }

    /// The keys to press for an action, with the leader.
    pub(crate) fn press(&self, action: Action) -> String {
        let entry = ACTIONS.iter().find(|entry| entry.action == action);
        let direct = self.direct.iter().find(|(_, does)| *does == action);
        match (entry.and_then(|entry| self.shown(entry)), direct) {
            (Some(key), _) => format!("{} {key}", self.leader_name()),
            (None, Some((key, _))) => name(*key),
            (None, None) => entry.map_or_else(String::new, |entry| format!("`{}`", entry.name)),
        }
    }

    fn keys_of(&self, entry: &ActionInfo, map: &[(Key, Action)]) -> Vec<Key> {
        let same = |action: Action| match (entry.action, action) {
            (Action::Go(_), Action::Go(_)) => true,
            (one, other) => one == other,
        };
        map.iter().filter(|(_, action)| same(*action)).map(|(key, _)| *key).collect()
    }
}

fn find(map: &[(Key, Action)], key: Key) -> Option<Action> {
    map.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
}

/// A key as text.
pub(super) fn name(key: Key) -> String {
    let mut text = String::new();
    for (held, word) in
        [(key.ctrl, "ctrl+"), (key.alt, "alt+"), (key.shift, "shift+"), (key.logo, "super+")]
    {
        if held {
            text.push_str(word);
        }
    }
    match key.code {
        KeyCode::Char(' ') => text.push_str("space"),
        KeyCode::Char(character) => text.push(character),
        KeyCode::Function(number) => text.push_str(&format!("f{number}")),
        KeyCode::PageUp => text.push_str("page-up"),
        KeyCode::PageDown => text.push_str("page-down"),
        other => text.push_str(&format!("{other:?}").to_lowercase()),
    }
    text
}
