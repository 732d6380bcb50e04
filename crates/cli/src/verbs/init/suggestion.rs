//! A process that a project file could declare, and helpers to find one.

use std::io::Read;
use std::path::Path;

use crate::toml_string::quoted;

/// The number of bytes read from a file; the files of interest are shorter.
const FILE_BYTES: u64 = 1 << 20;

/// A process that the project file could declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) name: String,
    pub(super) command: String,
    /// The file it was found in.
    pub(super) from: &'static str,
    /// Why it is suggested, for the comment above it.
    pub(super) why: String,
    /// Where it starts, if not in the project's folder.
    pub(super) directory: Option<String>,
    /// The port that it listens on once it is ready.
    pub(super) port: Option<u16>,
    /// More settings.
    pub(super) settings: Vec<Setting>,
    /// It is written as a comment: it seems to end by itself and may do anything (`make clean`), or the file that it
    /// was found in does not start it; `patterm up` starts everything that is declared.
    pub(super) is_comment: bool,
    /// The group that it belongs to.
    pub(super) group: Option<String>,
    /// Its name in its file and why it has another one here.
    pub(super) renamed: Option<String>,
}

/// A setting of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// A line of TOML.
    Line(String),
    /// What is started first, by the names in the file it was found in.
    DependsOn(Vec<String>),
}

impl Suggestion {
    pub(super) fn new(name: &str, command: &str, from: &'static str) -> Self {
        let (name, command) = (name.to_owned(), command.to_owned());
        let (why, settings) = (String::new(), Vec::new());
        let (directory, port, group, renamed) = (None, None, None, None);
        let is_comment = false;
        Self { name, command, from, why, directory, port, settings, is_comment, group, renamed }
    }

    /// Adds a remark to the comment above it.
    pub(super) fn add_why(&mut self, why: &str) {
        let separator = if self.why.is_empty() { "" } else { "; " };
        self.why = format!("{}{separator}{why}", self.why);
    }

    /// Its other settings, as lines of TOML.
    pub(super) fn setting_lines(&self) -> Vec<String> {
        let line = |setting: &Setting| match setting {
            Setting::Line(line) => line.clone(),
            Setting::DependsOn(needs) => {
                let needs: Vec<_> = needs.iter().map(|need| quoted(need)).collect();
                format!("depends_on = [{}]", needs.join(", "))
            }
        };
        self.settings.iter().map(line).collect()
    }
}

/// Names of scripts, targets and recipes that keep running, by habit.
const LASTING: [&str; 9] =
    ["dev", "develop", "run", "serve", "server", "start", "up", "watch", "worker"];

/// Whether a script, target or recipe with this name usually keeps running: `dev`, `start:web`, `watch-css`.
pub(super) fn is_lasting(name: &str) -> bool {
    name.split([':', '-', '_', '.', '/']).next().is_some_and(|first| LASTING.contains(&first))
}

/// A file's beginning, if it is text.
pub(super) fn read(path: &Path) -> Option<String> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(FILE_BYTES.min(meta.len())).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A word, quoted for a shell if necessary.
pub(super) fn word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    match !text.is_empty() && text.chars().all(safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
