//! The names of pads. They are restricted so that no path can leave the folder.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Bytes of a name: a file name may have 255, and a file that is being written has two suffixes.
pub(crate) const NAME_BYTES: usize = 200;

/// The suffix of a pad's file. A name never has it: `plan` and `plan.md` are the same pad.
const ENDING: &str = ".md";

/// The suffix of a file with new content, before it replaces the pad.
const NEW: &str = ".md.new";

/// How many characters of an invalid name an error repeats.
const SHOWN_CHARS: usize = 60;

/// An invalid name for a pad.
#[derive(Debug, Error)]
#[error(
    "takes a plain name of 1 to {NAME_BYTES} bytes: no `/`, `\\` or control characters, no dot at the \
     beginning and no space at either end; not {}", shown(.0)
)]
pub struct NameError(String);

fn shown(name: &str) -> String {
    match name.chars().count() > SHOWN_CHARS {
        true => format!("{:?}…", name.chars().take(SHOWN_CHARS).collect::<String>()),
        false => format!("{name:?}"),
    }
}

/// The name of a pad.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PadName(String);

impl PadName {
    /// The pad that a file of the folder contains, if any.
    pub(crate) fn of_file(file: &str) -> Option<Self> {
        file.strip_suffix(ENDING).and_then(Self::plain)
    }

    /// The pad for which an unfinished new file was written.
    pub(crate) fn of_new_file(file: &str) -> Option<Self> {
        file.strip_prefix('.')?.strip_suffix(NEW).and_then(Self::plain)
    }

    pub(crate) fn file(&self) -> String {
        format!("{}{ENDING}", self.0)
    }

    pub(crate) fn new_file(&self) -> String {
        format!(".{}{NEW}", self.0)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn plain(name: &str) -> Option<Self> {
        let plain = !name.is_empty()
            && name.len() <= NAME_BYTES
            && name == name.trim()
            && !name.starts_with('.')
            && !name.ends_with(ENDING)
            && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
        plain.then(|| Self(name.to_owned()))
    }
}

impl FromStr for PadName {
    type Err = NameError;

    fn from_str(given: &str) -> Result<Self, NameError> {
        let name = given.trim_end_matches(ENDING);
        Self::plain(name).ok_or_else(|| NameError(given.to_owned()))
    }
}

impl fmt::Display for PadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_accepted() {
        let longest = "x".repeat(NAME_BYTES);
        for name in ["plan", "Plan 2", "übersicht", "a.b", "-x", "~", "md", &longest] {
            let pad: PadName = name.parse().unwrap();
            assert_eq!(pad.as_str(), name);
            assert_eq!(PadName::of_file(&pad.file()), Some(pad.clone()));
            assert_eq!(PadName::of_new_file(&pad.new_file()), Some(pad.clone()));
            assert_eq!(PadName::of_file(&pad.new_file()), None, "an unfinished file is not a pad");
            assert!(pad.new_file().len() <= 255);
        }
    }

    #[test]
    fn the_suffix_of_the_file_is_not_part_of_the_name() {
        assert_eq!("plan.md".parse::<PadName>().unwrap().as_str(), "plan");
        assert_eq!("plan.md.md".parse::<PadName>().unwrap().as_str(), "plan");
        assert_eq!(PadName::of_file("plan.md.md"), None, "no request could name it");
    }

    #[test]
    fn paths_and_hidden_names_are_rejected() {
        let long = "x".repeat(NAME_BYTES + 1);
        let wide = "ü".repeat(NAME_BYTES / 2 + 1);
        for name in [
            "",
            ".",
            "..",
            "../x",
            "/x",
            "a/b",
            "a/../../x",
            "a\\b",
            "a\0b",
            "\0",
            "a\nb",
            "a\u{1b}b",
            "\u{7f}",
            ".x",
            ".md",
            "..md",
            " ",
            " x",
            "x ",
            "x .md",
            &long,
            &wide,
        ] {
            let refused = name.parse::<PadName>().unwrap_err();
            assert!(refused.to_string().contains("takes a plain name"), "{name:?}: {refused}");
            assert_eq!(PadName::of_file(&format!("{name}.md")), None, "{name:?}");
        }
    }
}
