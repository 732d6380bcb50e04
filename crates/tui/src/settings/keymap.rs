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

/// What each key of an action does.
pub(super) fn of(entry: &ActionInfo, keys: &[Key]) -> Vec<(Key, Action)> {
    keys.iter().enumerate().map(|(at, key)| (*key, entry.action.nth(at))).collect()
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
        // Control may still be pressed from the leader. That must not end anything that tmux would leave alone.
        let held = || {
            let action = find(&self.after, released).filter(|_| key.ctrl && letter);
            action.filter(|action| !action.ends_something())
        };
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
        match keys.as_slice() {
            [] => None,
            all if entry.action.is_family() => Some(family_name(all)),
            [first, ..] => Some(name(*first)),
        }
    }

    /// All keys of an action, for the help.
    pub(crate) fn all(&self, entry: &ActionInfo) -> String {
        let after = match entry.action.is_family() {
            true => self.shown(entry).into_iter().collect(),
            false => self.keys_of(entry, &self.after).into_iter().map(name).collect::<Vec<_>>(),
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
        let same = |action: Action| entry.action.is_same_kind(action);
        map.iter().filter(|(_, action)| same(*action)).map(|(key, _)| *key).collect()
    }
}

fn find(map: &[(Key, Action)], key: Key) -> Option<Action> {
    map.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
}

/// The keys of an action, each of which does something different, as text.
fn family_name(keys: &[Key]) -> String {
    const ARROWS: [KeyCode; 4] = [KeyCode::Left, KeyCode::Down, KeyCode::Up, KeyCode::Right];
    let codes: Vec<KeyCode> = keys.iter().map(|key| key.code).collect();
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return String::new() };
    let all = || keys.iter().map(|key| name(*key));
    let modifiers = |key: &Key| Key { code: KeyCode::Enter, ..*key };
    let same = keys.iter().all(|key| modifiers(key) == modifiers(first));
    if same && codes == ARROWS {
        return name(*first).replace("left", "arrows");
    }
    let digit = |key: &Key| match key.code {
        KeyCode::Char(digit) => digit.to_digit(10),
        KeyCode::Function(number) => Some(u32::from(number)),
        _ => None,
    };
    let steps = keys.windows(2).all(|two| digit(&two[0]).map(|n| n + 1) == digit(&two[1]));
    match same && steps && digit(first).is_some() && keys.len() > 1 {
        true => {
            format!("{}-{}", name(*first), name(Key { code: last.code, ..Key::from(last.code) }))
        }
        false => all().collect::<Vec<_>>().join(" "),
    }
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
