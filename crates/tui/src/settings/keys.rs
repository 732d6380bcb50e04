//! Keys as the file has them.

use std::ops::Range;

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keymap::{Keymap, name, of, own_keys, plain};
use super::reading::{Placed, Reading, in_order};
use crate::action::{ACTIONS, Action, Entry, named};

/// What a value of `[keys]` may be.
const TAKES: &str = "a key like \"z\", a list of keys, or false for none";

/// A key that is taken, and by whom.
struct Taken {
    key: Key,
    by: &'static str,
    at: Range<usize>,
}

/// The keys of a file.
pub(super) fn read(reading: &mut Reading<'_>, top: &DeTable<'_>) -> Keymap {
    let leader = top.get("leader").and_then(|value| bare_key(reading, value));
    let leader = leader.unwrap_or(Keymap::default().leader);
    let mut map = Keymap { leader, after: Vec::new(), direct: Vec::new() };
    let mut taken = Vec::new();
    let mut set: Vec<(&str, Vec<Key>)> = Vec::new();
    let table = reading.table(top, "keys");
    for (key, value) in in_order(table) {
        let Some(entry) = known(reading, key) else { continue };
        let keys = keys_of(reading, value, entry, &mut taken);
        set.push((entry.name, keys));
    }
    for entry in &ACTIONS {
        let keys = match set.iter().find(|(name, _)| *name == entry.name) {
            Some((_, keys)) => keys.clone(),
            None => left_of(reading, entry, leader, &taken),
        };
        map.after.extend(of(entry, &keys));
    }
    map.direct = direct(reading, top, leader);
    map
}

/// The entry that a key of the file names.
fn known<'a>(reading: &mut Reading<'_>, key: &Spanned<impl AsRef<str>>) -> Option<&'a Entry> {
    let name = key.get_ref().as_ref();
    let entry = named(name);
    if entry.is_none() {
        let names: Vec<_> = ACTIONS.iter().map(|entry| entry.name).collect();
        let message = format!("there is no action `{name}`; there are {}", names.join(", "));
        reading.fault(&key.span(), message);
    }
    entry
}

/// The keys that a value gives an action.
fn keys_of(
    reading: &mut Reading<'_>,
    value: Placed<'_>,
    entry: &'static Entry,
    taken: &mut Vec<Taken>,
) -> Vec<Key> {
    let values: Vec<Placed<'_>> = match value.get_ref() {
        DeValue::Boolean(false) => return Vec::new(),
        DeValue::Array(values) => values.iter().collect(),
        DeValue::String(_) => vec![value],
        _ => {
            reading.fault(&value.span(), format!("`{}` takes {TAKES}", entry.name));
            return Vec::new();
        }
    };
    let mut keys = Vec::new();
    for value in values {
        let Some(key) = any_key(reading, value) else { continue };
        let at = value.span();
        if key.code == KeyCode::Escape {
            reading.fault(&at, "escape leaves the leader's keys; it cannot do anything else");
        } else if let Some(twice) = taken.iter().find(|taken| taken.key == key) {
            let (key, first) = (name(key), twice.by);
            let message = format!("`{key}` is given to `{first}` and to `{}`", entry.name);
            reading.fault(&at, message);
        } else {
            taken.push(Taken { key, by: entry.name, at });
            keys.push(key);
        }
    }
    keys
}

/// What the file leaves an action of its own keys. It must not lose all of them without a word.
fn left_of(
    reading: &mut Reading<'_>,
    entry: &'static Entry,
    leader: Key,
    taken: &[Taken],
) -> Vec<Key> {
    let own = own_keys(entry, leader);
    let is_taken = |key: &Key| taken.iter().find(|taken| taken.key == *key);
    let left: Vec<Key> = own.iter().filter(|key| is_taken(key).is_none()).copied().collect();
    if left.is_empty()
        && let Some(lost) = own.first().and_then(is_taken)
    {
        let (name, by) = (name(lost.key), lost.by);
        let message = format!(
            "`{name}` is given to `{by}` and is the key of `{other}`; give that another one, or \
             say `{other} = false`",
            other = entry.name
        );
        reading.fault(&lost.at, message);
    }
    left
}

/// Keys that need no leader.
fn direct(reading: &mut Reading<'_>, top: &DeTable<'_>, leader: Key) -> Vec<(Key, Action)> {
    let mut direct: Vec<(Key, Action, &str)> = Vec::new();
    let table = reading.table(top, "direct");
    for (written, value) in in_order(table) {
        let Some(key) = parse(reading, written.get_ref(), &written.span(), true) else { continue };
        let Some(action) = reading.text(value, "the name of an action") else { continue };
        let action = Spanned::new(value.span(), action);
        let Some(entry) = known(reading, &action) else { continue };
        let first = direct.iter().find(|(known, ..)| *known == key).map(|(.., by)| *by);
        let first = first.or((key == leader).then_some("leader"));
        if let Some(first) = first {
            let message = format!("`{}` is `{first}` and `{}`", name(key), entry.name);
            reading.fault(&written.span(), message);
        }
        direct.push((key, entry.action, entry.name));
    }
    direct.into_iter().map(|(key, action, _)| (key, action)).collect()
}

fn any_key(reading: &mut Reading<'_>, value: Placed<'_>) -> Option<Key> {
    let text = reading.text(value, TAKES)?;
    parse(reading, text, &value.span(), false)
}

/// A key that no program gets any more.
fn bare_key(reading: &mut Reading<'_>, value: Placed<'_>) -> Option<Key> {
    let text = reading.text(value, "a key like \"ctrl+b\"")?;
    parse(reading, text, &value.span(), true)
}

fn parse(reading: &mut Reading<'_>, text: &str, at: &Range<usize>, bare: bool) -> Option<Key> {
    let key = match text.parse::<Key>() {
        Ok(key) => plain(key),
        Err(error) => {
            reading.fault(at, error.to_string());
            return None;
        }
    };
    let held = key.ctrl || key.alt || key.logo;
    let types = match key.code {
        KeyCode::Char(_) => !held,
        KeyCode::Function(_) => false,
        _ => !held && !key.shift,
    };
    if bare && types {
        let message = format!(
            "`{}` alone would be lost to programs; put ctrl+, alt+ or super+ before it, or take f1 \
             to f20",
            name(key)
        );
        reading.fault(at, message);
        return None;
    }
    Some(key)
}
