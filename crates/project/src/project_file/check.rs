//! Validates a file against its schema, and records the position of every key.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::fault::{Fault, nearest};
use super::limits::{FAULTS, MOST_SECONDS, NAME_CHARS};
use super::name::{NameFault, is_name, name_fault};
use super::schema::Schema;

/// A file that is valid TOML, with its other errors.
#[derive(Debug)]
pub(super) struct Checked<'t> {
    text: &'t str,
    pub(super) table: Table,
    pub(super) faults: Vec<Fault>,
    /// The position of each value, by its path, such as `processes.web.watch[1]`.
    positions: BTreeMap<String, Range<usize>>,
}

impl<'t> Checked<'t> {
    /// Validates a text; fails if it is not TOML.
    pub(super) fn new(text: &'t str, schema: &Schema) -> Result<Self, Fault> {
        let syntax = |error: toml::de::Error| {
            let at = error.span().unwrap_or(0..0);
            Fault::new(text, &at, error.message())
        };
        let spanned = DeTable::parse(text).map_err(syntax)?;
        let table: Table = text.parse().map_err(syntax)?;
        let mut checked =
            Self { text, table: Table::new(), faults: Vec::new(), positions: BTreeMap::new() };
        checked.table_of(schema, &table, spanned.get_ref(), "");
        checked.table = table;
        checked.faults.sort_by_key(|fault| (fault.line, fault.column));
        Ok(checked)
    }

    /// Adds an error in the value at a path.
    pub(super) fn fault(&mut self, path: &str, message: String, hint: Option<String>) {
        let at = self.positions.get(path).cloned().unwrap_or(0..0);
        self.wrong(&at, message, hint);
    }

    fn wrong(&mut self, at: &Range<usize>, message: String, hint: Option<String>) {
        if self.faults.len() >= FAULTS {
            return;
        }
        self.faults.push(Fault::new(self.text, at, message).hint(hint));
    }

    fn value(&mut self, schema: &Schema, value: &Value, place: &Spanned<DeValue<'_>>, path: &str) {
        let at = place.span();
        self.positions.insert(path.to_owned(), at.clone());
        if !schema.is_for(value) {
            let found = found(value);
            let quotes = matches!(schema, Schema::Text) && !value.is_table() && !value.is_array();
            let hint = quotes.then(|| format!("put it in quotes: \"{found}\""));
            let message = format!("`{path}` must be {}, not {found}", schema.words());
            return self.wrong(&at, message, hint);
        }
        let refuse = |this: &mut Self, hint| {
            let message = format!("`{path}` must be {}, not {}", schema.words(), found(value));
            this.wrong(&at, message, hint);
        };
        match (schema, value, place.get_ref()) {
            (Schema::Whole { least, most }, Value::Integer(number), _)
                if !(least..=most).contains(&number) =>
            {
                refuse(self, None);
            }
            (Schema::Seconds, value, _) => {
                let whole = value.as_integer().map(|n| n as f64);
                let seconds = whole.or_else(|| value.as_float()).unwrap_or(-1.0);
                if !(0.0..=MOST_SECONDS).contains(&seconds) {
                    refuse(self, None);
                }
            }
            (Schema::Choice(choices), Value::String(word), _)
                if !choices.contains(&word.as_str()) =>
            {
                let meant = nearest(word, choices.iter().copied());
                refuse(self, meant.map(|meant| format!("did you mean \"{meant}\"?")));
            }
            (Schema::Pattern, Value::String(pattern), _) => {
                if let Err(error) = regex::Regex::new(pattern) {
                    let why = last_line(&error.to_string());
                    self.wrong(&at, format!("the pattern does not compile: {why}"), None);
                }
            }
            (Schema::List { of, least }, Value::Array(values), DeValue::Array(places)) => {
                if values.len() < *least {
                    refuse(self, None);
                }
                for (n, (value, place)) in values.iter().zip(places.iter()).enumerate() {
                    self.value(of, value, place, &format!("{path}[{n}]"));
                }
            }
            (Schema::Either(..), value, _) => {
                self.value(schema.fitting(value), value, place, path);
            }
            (_, Value::Table(table), DeValue::Table(places)) => {
                self.table_of(schema, table, places, path);
            }
            _ => {}
        }
    }

    /// Validates the keys of a table.
    fn table_of(&mut self, schema: &Schema, table: &Table, places: &DeTable<'_>, path: &str) {
        let counts = Schema::Whole { least: 1, most: i64::MAX };
        let keys = schema.keys();
        let mut entries: Vec<_> = places.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, place) in entries {
            let name: &str = key.get_ref();
            let Some(value) = table.get(name) else { continue };
            let within = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            match schema {
                Schema::Table(_) | Schema::Groups(_) => {
                    let Some(known) = keys.iter().find(|known| known.name == name) else {
                        self.unknown(&key.span(), path, name, keys.iter().map(|key| key.name));
                        continue;
                    };
                    self.value(&known.schema, value, place, &within);
                    self.missing(known.schema.fitting(value), value, &key.span(), &within);
                }
                Schema::Counts(names) => match names.contains(&name) {
                    true => self.value(&counts, value, place, &within),
                    false => self.unknown(&key.span(), path, name, names.iter().copied()),
                },
                Schema::Named(of) => {
                    if !is_name(name) {
                        let message = format!(
                            "`{name}` is not a valid name: use 1 to {NAME_CHARS} letters, digits, \
                             dots, dashes and underscores"
                        );
                        self.wrong(&key.span(), message, None);
                    }
                    let named = match path {
                        "processes" => Some("process"),
                        "groups" => Some("group"),
                        _ => None,
                    };
                    let is_like_id = name_fault(name) == Some(NameFault::LikeId);
                    if let Some(named) = named.filter(|_| is_like_id) {
                        let message = format!(
                            "`{name}` looks like a process's id, such as p1 or 1; give the {named} another name"
                        );
                        self.wrong(&key.span(), message, None);
                    }
                    self.value(of, value, place, &within);
                    // Errors of the whole table are shown at its name.
                    self.positions.insert(within.clone(), key.span());
                    self.missing(of, value, &key.span(), &within);
                }
                Schema::Strings => self.value(&Schema::Text, value, place, &within),
                _ => {}
            }
        }
    }

    fn missing(&mut self, schema: &Schema, value: &Value, at: &Range<usize>, path: &str) {
        let Value::Table(table) = value else { return };
        let keys = schema.keys().into_iter();
        for key in keys.filter(|key| key.required && !table.contains_key(key.name)) {
            let message =
                format!("`{path}` has no `{}`; it must be {}", key.name, key.schema.words());
            self.wrong(at, message, None);
        }
    }

    fn unknown<'a>(
        &mut self,
        at: &Range<usize>,
        path: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        let hint = match nearest(name, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the keys are {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.wrong(at, format!("unknown key `{name}`{place}"), Some(hint));
    }
}

/// The reason in an error of the regex crate; the lines before it draw the pattern.
pub(super) fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// A value in an error message.
fn found(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) if values.is_empty() => "an empty array".into(),
        Value::Array(_) => "an array".into(),
        Value::Table(_) => "a table".into(),
    }
}
