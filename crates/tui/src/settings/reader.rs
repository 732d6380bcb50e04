//! Reads a TOML file with positions, and collects its errors.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::SettingsError;

/// A value and its position.
pub(super) type SpannedValue<'a> = &'a Spanned<DeValue<'a>>;

/// The file and its errors so far.
pub(super) struct SettingsReader<'t> {
    text: &'t str,
    errors: Vec<SettingsError>,
}

impl<'t> SettingsReader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, errors: Vec::new() }
    }

    pub(super) fn report(&mut self, at: &Range<usize>, message: impl Into<String>) {
        self.errors.push(SettingsError::new(self.text, at, message));
    }

    /// The result, if there were no errors.
    pub(super) fn done<T>(mut self, value: T) -> Result<T, Vec<SettingsError>> {
        self.errors.sort_by_key(|error| (error.line, error.column));
        if self.errors.is_empty() { Ok(value) } else { Err(self.errors) }
    }

    /// Reports unknown keys, with the known ones.
    pub(super) fn reject_unknown(&mut self, table: &DeTable<'_>, within: &str, known: &[&str]) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let known = known.join(", ");
                let message = format!("unknown key `{name}`{within}; known are {known}");
                self.report(&key.span(), message);
            }
        }
    }

    /// A table of the file.
    pub(super) fn table<'a>(
        &mut self,
        top: &'a DeTable<'a>,
        name: &str,
    ) -> Option<&'a DeTable<'a>> {
        let value = top.get(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.report(&value.span(), format!("`{name}` must be a table: [{name}]"));
                None
            }
        }
    }

    /// A string; anything else is an error.
    pub(super) fn text<'a>(&mut self, value: SpannedValue<'a>, takes: &str) -> Option<&'a str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => {
                self.report(&value.span(), format!("this must be {takes}"));
                None
            }
        }
    }

    /// A whole number from 0 to `most`; anything else is an error.
    pub(super) fn number(&mut self, value: SpannedValue<'_>, most: u16) -> Option<u16> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| *number <= most);
        if number.is_none() {
            self.report(&value.span(), format!("this must be a whole number from 0 to {most}"));
        }
        number
    }
}

/// The members of a table, in the order of the file.
pub(super) fn in_order<'a>(
    table: Option<&'a DeTable<'a>>,
) -> Vec<(&'a Spanned<DeString<'a>>, SpannedValue<'a>)> {
    let mut all: Vec<_> = table.into_iter().flatten().collect();
    all.sort_by_key(|(key, _)| key.span().start);
    all
}
