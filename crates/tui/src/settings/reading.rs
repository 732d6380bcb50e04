//! Going through a TOML file with its places, and noting what is wrong.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Fault;

/// A value and where it stands.
pub(super) type Placed<'a> = &'a Spanned<DeValue<'a>>;

/// The file, and its mistakes so far.
pub(super) struct Reading<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

impl<'t> Reading<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, faults: Vec::new() }
    }

    pub(super) fn fault(&mut self, at: &Range<usize>, message: impl Into<String>) {
        self.faults.push(Fault::new(self.text, at, message));
    }

    /// What was read, if nothing was wrong with it.
    pub(super) fn done<T>(mut self, value: T) -> Result<T, Vec<Fault>> {
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        if self.faults.is_empty() { Ok(value) } else { Err(self.faults) }
    }

    /// Names what nobody knows, with what there is.
    pub(super) fn refuse_unknown(&mut self, table: &DeTable<'_>, within: &str, known: &[&str]) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let place = if within.is_empty() { "here" } else { within };
                let known = known.join(", ");
                self.fault(&key.span(), format!("`{name}` is nothing {place}; there are {known}"));
            }
        }
    }

    /// A table of the file; an empty one where there is none.
    pub(super) fn table<'a>(
        &mut self,
        top: &'a DeTable<'a>,
        name: &str,
    ) -> Option<&'a DeTable<'a>> {
        let value = top.get(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.fault(&value.span(), format!("`{name}` is a table: [{name}]"));
                None
            }
        }
    }

    /// A text; anything else is a mistake.
    pub(super) fn text<'a>(&mut self, value: Placed<'a>, takes: &str) -> Option<&'a str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => {
                self.fault(&value.span(), format!("this takes {takes}"));
                None
            }
        }
    }
}

/// What a table holds, as it stands in the file.
pub(super) fn in_order<'a>(
    table: Option<&'a DeTable<'a>>,
) -> Vec<(&'a Spanned<DeString<'a>>, Placed<'a>)> {
    let mut all: Vec<_> = table.into_iter().flatten().collect();
    all.sort_by_key(|(key, _)| key.span().start);
    all
}
