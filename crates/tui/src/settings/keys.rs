//! The keys in the settings file.

use std::ops::Range;

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keymap::{Keymap, default_keys, name, of, plain};
use super::reader::{SettingsReader, SpannedValue, in_order};
use crate::action::{ACTIONS, Action, ActionInfo, named};

/// The values that `[keys]` accepts.
const TAKES: &str = "a key like \"z\", a list of keys, or false for none";

/// A key and the action it is assigned to.
struct AssignedKey {
    key: Key,
    by: &'static str,
    at: Range<usize>,
}

/// Reads the keys.
pub(super) fn read(reader: &mut SettingsReader<'_>, top: &DeTable<'_>) -> Keymap {
    let leader = top.get("leader").and_then(|value| global_key(reader, value));
    let leader = leader.unwrap_or(Keymap::default().leader);
    let mut map = Keymap { leader, after: Vec::new(), direct: Vec::new() };
    let mut taken = Vec::new();
    let mut set: Vec<(&str, Vec<Key>)> = Vec::new();
    let table = reader.table(top, "keys");
    for (key, value) in in_order(table) {
        let Some(entry) = find_action(reader, key) else { continue };
        let keys = keys_of(reader, value, entry, &mut taken);
        set.push((entry.name, keys));
    }
    for entry in &ACTIONS {
        let keys = match set.iter().find(|(name, _)| *name == entry.name) {
            Some((_, keys)) => keys.clone(),
            None => remaining_keys(reader, entry, leader, &taken),
        };
        map.after.extend(of(entry, &keys));
    }
    map.direct = direct(reader, top, leader);
    map
}

/// The action with this name.
fn find_action<'a>(
    reader: &mut SettingsReader<'_>,
    key: &Spanned<impl AsRef<str>>,
) -> Option<&'a ActionInfo> {
    let name = key.get_ref().as_ref();
    let entry = named(name);
    if entry.is_none() {
        let names: Vec<_> = ACTIONS.iter().map(|entry| entry.name).collect();
        let message = format!("there is no action `{name}`; the actions are {}", names.join(", "));
        reader.report(&key.span(), message);
    }
    entry
}

/// The keys that a value assigns to an action.
fn keys_of(
    reader: &mut SettingsReader<'_>,
    value: SpannedValue<'_>,
    entry: &'static ActionInfo,
    taken: &mut Vec<AssignedKey>,
) -> Vec<Key> {
    let values: Vec<SpannedValue<'_>> = match value.get_ref() {
        DeValue::Boolean(false) => return Vec::new(),
        DeValue::Array(values) => values.iter().collect(),
        DeValue::String(_) => vec![value],
        _ => {
            reader.report(&value.span(), format!("`{}` takes {TAKES}", entry.name));
            return Vec::new();
        }
    };
    if let Some(why) = entry.action.key_count().and_then(|count| count.refuse(values.len())) {
        reader.report(&value.span(), format!("`{}` {why}", entry.name));
    }
    let mut keys = Vec::new();
    for value in values {
        let Some(key) = any_key(reader, value) else { continue };
        let at = value.span();
        if key.code == KeyCode::Escape {
            reader.report(&at, "escape cancels the leader; it cannot be assigned");
        } else if let Some(twice) = taken.iter().find(|taken| taken.key == key) {
            let (key, first) = (name(key), twice.by);
            let message = format!("`{key}` is assigned to both `{first}` and `{}`", entry.name);
            reader.report(&at, message);
        } else {
            taken.push(AssignedKey { key, by: entry.name, at });
            keys.push(key);
        }
    }
    keys
}

/// The default keys of an action that the file has not assigned to others. If none is left, the palette still has
/// the action; only the essential ones must keep a key.
fn remaining_keys(
    reader: &mut SettingsReader<'_>,
    entry: &'static ActionInfo,
    leader: Key,
    taken: &[AssignedKey],
) -> Vec<Key> {
    let own = default_keys(entry, leader);
    let is_taken = |key: &Key| taken.iter().find(|taken| taken.key == *key);
    let left: Vec<Key> = own.iter().filter(|key| is_taken(key).is_none()).copied().collect();
    if left.is_empty()
        && entry.action.is_essential()
        && let Some(lost) = own.first().and_then(is_taken)
    {
        let (name, by) = (name(lost.key), lost.by);
        let message = format!(
            "`{name}` is assigned to `{by}` but is the only key of `{other}`; assign another key to \
             `{other}`, or set `{other} = false`",
            other = entry.name
        );
        reader.report(&lost.at, message);
    }
    left
}

/// Keys without the leader.
fn direct(reader: &mut SettingsReader<'_>, top: &DeTable<'_>, leader: Key) -> Vec<(Key, Action)> {
    let mut direct: Vec<(Key, Action, &str)> = Vec::new();
    let table = reader.table(top, "direct");
    for (written, value) in in_order(table) {
        let Some(key) = parse(reader, written.get_ref(), &written.span(), true) else { continue };
        let Some(action) = reader.text(value, "the name of an action") else { continue };
        let action = Spanned::new(value.span(), action);
        let Some(entry) = find_action(reader, &action) else { continue };
        let first = direct.iter().find(|(known, ..)| *known == key).map(|(.., by)| *by);
        let first = first.or((key == leader).then_some("leader"));
        if let Some(first) = first {
            let message =
                format!("`{}` is assigned to both `{first}` and `{}`", name(key), entry.name);
            reader.report(&written.span(), message);
        }
        direct.push((key, entry.action, entry.name));
    }
    direct.into_iter().map(|(key, action, _)| (key, action)).collect()
}

fn any_key(reader: &mut SettingsReader<'_>, value: SpannedValue<'_>) -> Option<Key> {
    let text = reader.text(value, TAKES)?;
    parse(reader, text, &value.span(), false)
}

/// A key that programs no longer get.
fn global_key(reader: &mut SettingsReader<'_>, value: SpannedValue<'_>) -> Option<Key> {
    let text = reader.text(value, "a key like \"ctrl+b\"")?;
    parse(reader, text, &value.span(), true)
}

fn parse(
    reader: &mut SettingsReader<'_>,
    text: &str,
    at: &Range<usize>,
    global: bool,
) -> Option<Key> {
    let key = match text.parse::<Key>() {
        Ok(key) => plain(key),
        Err(error) => {
            reader.report(at, error.to_string());
            return None;
        }
    };
    let held = key.ctrl || key.alt || key.logo;
    let types = match key.code {
        KeyCode::Char(_) => !held,
        KeyCode::Function(_) => false,
        _ => !held && !key.shift,
    };
    if global && types {
        let message = format!(
            "programs could no longer get `{}`; use a key with ctrl+, alt+ or super+, or one of f1 to \
             f20",
            name(key)
        );
        reader.report(at, message);
        return None;
    }
    Some(key)
}
