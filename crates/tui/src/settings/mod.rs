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

/// Keys, colours and choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) keys: Keymap,
    pub(crate) theme: Theme,
    pub(crate) sizes: SizePolicy,
    pub(crate) split: SplitPolicy,
    pub(crate) ended_shells: EndedShells,
    pub(crate) layout: LayoutPolicy,
    /// After so many minutes of absence, the user sees what happened meanwhile; 0 for never.
    pub(crate) digest_minutes: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keys: Keymap::default(),
            theme: Theme::default(),
            sizes: SizePolicy::Last,
            split: SplitPolicy::Ask,
            ended_shells: EndedShells::Leave,
            layout: LayoutPolicy::Own,
            digest_minutes: DIGEST_MINUTES,
        }
    }
}

/// After a shorter absence, a look at the panes is enough.
const DIGEST_MINUTES: u16 = 5;

/// A week: who is away for longer wants to know what happened, too.
const MOST_DIGEST_MINUTES: u16 = 7 * 24 * 60;

/// What a new pane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitPolicy {
    /// The user chooses.
    Ask,
    /// A new shell.
    Shell,
}

/// Whether the terminals that show a project have the same pages and layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayoutPolicy {
    Own,
    Shared,
}

/// Whether the pane of a shell that has ended leaves the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedShells {
    Leave,
    /// Only if its exit code is 0.
    LeaveIfZero,
    Keep,
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
const TOP: [&str; 9] = [
    "leader",
    "sizes",
    "split",
    "ended_shells",
    "layout",
    "digest_minutes",
    "keys",
    "direct",
    "theme",
];

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
        let default = Self::default();
        let sizes = [("last", SizePolicy::Last), ("smallest", SizePolicy::Smallest)];
        let sizes = choice(&mut reader, top, "sizes", &sizes).unwrap_or(default.sizes);
        let split = [("ask", SplitPolicy::Ask), ("shell", SplitPolicy::Shell)];
        let split = choice(&mut reader, top, "split", &split).unwrap_or(default.split);
        let ended = [
            ("leave", EndedShells::Leave),
            ("leave-if-0", EndedShells::LeaveIfZero),
            ("keep", EndedShells::Keep),
        ];
        let ended_shells = choice(&mut reader, top, "ended_shells", &ended);
        let ended_shells = ended_shells.unwrap_or(default.ended_shells);
        let layout = [("own", LayoutPolicy::Own), ("shared", LayoutPolicy::Shared)];
        let layout = choice(&mut reader, top, "layout", &layout).unwrap_or(default.layout);
        let minutes = top.get("digest_minutes");
        let minutes = minutes.and_then(|value| reader.number(value, MOST_DIGEST_MINUTES));
        let digest_minutes = minutes.unwrap_or(default.digest_minutes);
        reader.done(Self { keys, theme, sizes, split, ended_shells, layout, digest_minutes })
    }
}

/// One of several words; `None` if the file does not have it, or has an error there.
fn choice<T: Copy>(
    reader: &mut SettingsReader<'_>,
    top: &DeTable<'_>,
    name: &str,
    choices: &[(&str, T)],
) -> Option<T> {
    let value = top.get(name)?;
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let (last, others) = words.split_last()?;
    let takes = format!("{} or {last}", others.join(", "));
    let text = reader.text(value, &takes)?;
    let found = choices.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        reader.report(&value.span(), format!("this must be {takes}"));
    }
    found.map(|(_, choice)| *choice)
}
