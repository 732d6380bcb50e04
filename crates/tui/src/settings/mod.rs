//! What a person has set for themselves: keys and colours, from `tui.toml`. A file is taken whole or
//! not at all.

pub(crate) mod file;
mod keymap;
mod keys;
mod reading;
#[cfg(test)]
mod tests;
mod theme;

use std::fmt;
use std::ops::Range;

use toml::de::DeTable;

pub(crate) use keymap::Keymap;
pub(crate) use theme::Theme;

use reading::Reading;

/// Keys and colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) keys: Keymap,
    pub(crate) theme: Theme,
    pub(crate) sizes: Sizes,
}

/// Which size a process has where several people look at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// One that suits all.
    #[default]
    Smallest,
    /// That of whoever was active last.
    Last,
}

impl Sizes {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Last => "last",
        }
    }
}

/// A mistake, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    line: usize,
    column: usize,
    message: String,
}

impl Fault {
    fn new(text: &str, at: &Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..at.start.min(text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let begun = before.rsplit('\n').next().unwrap_or_default();
        Self { line, column: begun.chars().count() + 1, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tui.toml:{}:{}: {}", self.line, self.column, self.message)
    }
}

/// What may stand at the top of the file.
const TOP: [&str; 5] = ["leader", "sizes", "keys", "direct", "theme"];

impl Settings {
    /// Reads a file's text; every mistake, or all of it.
    pub(crate) fn read(text: &str) -> Result<Self, Vec<Fault>> {
        let parsed = DeTable::parse(text).map_err(|error| {
            vec![Fault::new(text, &error.span().unwrap_or(0..0), error.message())]
        })?;
        let mut reading = Reading::new(text);
        let top = parsed.get_ref();
        reading.refuse_unknown(top, "", &TOP);
        let keys = keys::read(&mut reading, top);
        let theme = theme::read(&mut reading, top);
        let sizes = sizes(&mut reading, top);
        reading.done(Self { keys, theme, sizes })
    }
}

fn sizes(reading: &mut Reading<'_>, top: &DeTable<'_>) -> Sizes {
    const TAKES: &str = "\"smallest\" or \"last\"";
    let Some(value) = top.get("sizes") else { return Sizes::default() };
    match reading.text(value, TAKES) {
        Some("last") => Sizes::Last,
        Some("smallest") | None => Sizes::Smallest,
        Some(_) => {
            reading.fault(&value.span(), format!("this takes {TAKES}"));
            Sizes::Smallest
        }
    }
}
