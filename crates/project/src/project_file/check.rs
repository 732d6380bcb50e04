//! Holds a file against its shape: every mistake with its place, and where every key stands.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::fault::{Fault, nearest};
use super::limits::{FAULTS, MOST_SECONDS, NAME_CHARS};
use super::schema::{FILE, Schema, SchemaKey};

/// A file that is TOML, and what is wrong with it beyond that.
#[derive(Debug)]
pub(super) struct Checked<'t> {
    text: &'t str,
    pub(super) table: Table,
    pub(super) faults: Vec<Fault>,
    /// Where the value of a key stands, by its path, as in `processes.web.watch[1]`.
    places: BTreeMap<String, Range<usize>>,
}

impl<'t> Checked<'t> {
    /// Reads a text; the error is what keeps it from being TOML at all.
    pub(super) fn new(text: &'t str) -> Result<Self, Fault> {
        let no_toml = |error: toml::de::Error| {
            let at = error.span().unwrap_or(0..0);
            Fault::new(text, &at, error.message())
        };
        let spanned = DeTable::parse(text).map_err(no_toml)?;
        let table: Table = text.parse().map_err(no_toml)?;
        let mut checked =
            Self { text, table: Table::new(), faults: Vec::new(), places: BTreeMap::new() };
        checked.table_of(&FILE, &table, spanned.get_ref(), "");
        checked.table = table;
        checked.faults.sort_by_key(|fault| (fault.line, fault.column));
        Ok(checked)
    }

    /// Adds a mistake in the value at a path.
    pub(super) fn fault(&mut self, path: &str, message: String, hint: Option<String>) {
        let at = self.places.get(path).cloned().unwrap_or(0..0);
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
        self.places.insert(path.to_owned(), at.clone());
        if !schema.is_for(value) {
            let found = found(value);
            let quotes = matches!(schema, Schema::Text) && !value.is_table() && !value.is_array();
            let hint = quotes.then(|| format!("write \"{found}\", in quotes"));
            let message = format!("`{path}` takes {}, not {found}", schema.words());
            return self.wrong(&at, message, hint);
        }
        let refuse = |this: &mut Self, hint| {
            let message = format!("`{path}` takes {}, not {}", schema.words(), found(value));
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
            (Schema::Either(one, other), value, _) => {
                let fitting = if one.is_for(value) { one } else { other };
                self.value(fitting, value, place, path);
            }
            (_, Value::Table(table), DeValue::Table(places)) => {
                self.table_of(schema, table, places, path);
            }
            _ => {}
        }
    }

    /// Looks at the keys of a table.
    fn table_of(&mut self, schema: &Schema, table: &Table, places: &DeTable<'_>, path: &str) {
        let counts = Schema::Whole { least: 1, most: i64::MAX };
        let mut inside: Vec<_> = places.iter().collect();
        inside.sort_by_key(|(key, _)| key.span().start);
        for (key, place) in inside {
            let name: &str = key.get_ref();
            let Some(value) = table.get(name) else { continue };
            let within = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            match schema {
                Schema::Table(keys) => match keys.iter().find(|known| known.name == name) {
                    Some(known) => self.value(&known.schema, value, place, &within),
                    None => self.unknown(&key.span(), path, name, keys.iter().map(|key| key.name)),
                },
                Schema::Counts(names) => match names.contains(&name) {
                    true => self.value(&counts, value, place, &within),
                    false => self.unknown(&key.span(), path, name, names.iter().copied()),
                },
                Schema::Named(of) => {
                    if !is_name(name) {
                        let message = format!(
                            "`{name}` is no name: it takes 1 to {NAME_CHARS} letters, digits, \
                             dots, dashes and underscores"
                        );
                        self.wrong(&key.span(), message, None);
                    }
                    self.value(of, value, place, &within);
                    // Mistakes of the whole are shown where its name stands.
                    self.places.insert(within.clone(), key.span());
                    self.missing(of, value, &key.span(), &within);
                }
                Schema::Strings => self.value(&Schema::Text, value, place, &within),
                _ => {}
            }
            if let Schema::Table(keys) = schema
                && let Some(SchemaKey { schema, .. }) = keys.iter().find(|known| known.name == name)
            {
                let schema = match schema {
                    Schema::Either(one, other) => {
                        if one.is_for(value) {
                            one
                        } else {
                            other
                        }
                    }
                    schema => schema,
                };
                self.missing(schema, value, &key.span(), &within);
            }
        }
    }

    fn missing(&mut self, schema: &Schema, value: &Value, at: &Range<usize>, path: &str) {
        let (Schema::Table(keys), Value::Table(table)) = (schema, value) else { return };
        for key in keys.iter().filter(|key| key.required && !table.contains_key(key.name)) {
            let message =
                format!("`{path}` has no `{}`; it takes {}", key.name, key.schema.words());
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
        let place = if path.is_empty() { "here".to_owned() } else { format!("in `{path}`") };
        let hint = match nearest(name, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.wrong(at, format!("there is no `{name}` {place}"), Some(hint));
    }
}

/// What a compiler of patterns says in the end; before that it draws the pattern.
pub(super) fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-')
}

/// A value as a message names it.
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
