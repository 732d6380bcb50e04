//! The user's keys and colours, from `tui.toml`. A file with an error has no effect.

pub(crate) mod file;
mod keymap;
mod keys;
mod reader;
#[cfg(test)]
mod tests;
mod theme;

use std::fmt;
use std::ops::Range;

use patterm_wire::view::SizePolicy;
use toml::de::DeTable;

pub(crate) use keymap::Keymap;
pub(crate) use theme::Theme;

use reader::SettingsReader;

/// Keys and colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) keys: Keymap,
    pub(crate) theme: Theme,
    pub(crate) sizes: SizePolicy,
}

/// An error in the file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsError {
    line: usize,
    column: usize,
    message: String,
}

impl SettingsError {
    fn new(text: &str, at: &Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..at.start.min(text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let line_start = before.rsplit('\n').next().unwrap_or_default();
        Self { line, column: line_start.chars().count() + 1, message: message.into() }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tui.toml:{}:{}: {}", self.line, self.column, self.message)
    }
}

/// The top-level keys of the file.
const TOP: [&str; 5] = ["leader", "sizes", "keys", "direct", "theme"];

impl Settings {
    /// Parses a file; all its errors if there are any.
    pub(crate) fn read(text: &str) -> Result<Self, Vec<SettingsError>> {
        let parsed = DeTable::parse(text).map_err(|error| {
            vec![SettingsError::new(text, &error.span().unwrap_or(0..0), error.message())]
        })?;
        let mut reader = SettingsReader::new(text);
        let top = parsed.get_ref();
        reader.reject_unknown(top, "", &TOP);
        let keys = keys::read(&mut reader, top);
        let theme = theme::read(&mut reader, top);
        let sizes = sizes(&mut reader, top);
        reader.done(Self { keys, theme, sizes })
    }
}

fn sizes(reader: &mut SettingsReader<'_>, top: &DeTable<'_>) -> SizePolicy {
    const TAKES: &str = "\"smallest\" or \"last\"";
    let Some(value) = top.get("sizes") else { return SizePolicy::default() };
    match reader.text(value, TAKES) {
        Some("last") => SizePolicy::Last,
        Some("smallest") | None => SizePolicy::Smallest,
        Some(_) => {
            reader.report(&value.span(), format!("this must be {TAKES}"));
            SizePolicy::Smallest
        }
    }
}
