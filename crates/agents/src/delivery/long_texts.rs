//! Texts that are too long to be typed: they are written to files in the project, and the prompt
//! refers to them.

use std::path::{Path, PathBuf};

use super::error::TextError;
use patterm_panes::process::ProcessId;
use patterm_store::state::{self, StateError};

/// The longest text that is typed or passed as an argument. One argument of a program may have 128
/// KiB, and CLIs were seen to accept pastes of 20 kB.
pub(crate) const PROMPT_BYTES: usize = 32 << 10;

/// The longest text at all: more than any model reads.
pub const TEXT_BYTES: usize = 4 << 20;

/// The folder for them in the project, ignored by git. Agents may read there without asking.
const FOLDER: &str = ".patterm";

/// Removes control characters except tabs and line feeds, for a text that is given to an agent.
pub fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect()
}

/// The text without control characters; fails if it is too long or empty.
pub fn check(text: &str) -> Result<String, TextError> {
    if text.len() > TEXT_BYTES {
        return Err(TextError::TooLong(text.len()));
    }
    let clean = clean(text);
    match clean.trim().is_empty() {
        true => Err(TextError::Empty),
        false => Ok(clean),
    }
}

/// The text as a prompt: itself, or if it is too long, a reference to a file that contains it.
pub(crate) fn as_prompt(root: &Path, to: &ProcessId, text: &str) -> Result<String, StateError> {
    if text.len() <= PROMPT_BYTES {
        return Ok(text.to_owned());
    }
    let folder = folder_of(root);
    std::fs::create_dir_all(&folder).map_err(state::failed("make", &folder))?;
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").map_err(state::failed("write", &ignore))?;
    }
    let taken = |number: &u64| folder.join(file_name(to, *number)).exists();
    let number = (1..).find(|number| !taken(number)).unwrap_or(1);
    let path = folder.join(file_name(to, number));
    state::write_whole(&path, text.as_bytes()).map_err(state::failed("write", &path))?;
    let begin: String = text.chars().take_while(|letter| *letter != '\n').take(200).collect();
    Ok(format!(
        "{begin}\n\n(This text has {} bytes, which is too long for a prompt. The complete text is in the file \
             {}: read that file to its end first, then do what it says.)",
        text.len(),
        path.display()
    ))
}

/// Removes the files for a closed process.
pub(crate) fn remove(root: &Path, to: &ProcessId) {
    let folder = folder_of(root);
    let begin = format!("{to}-");
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn folder_of(root: &Path) -> PathBuf {
    root.join(FOLDER)
}

fn file_name(to: &ProcessId, number: u64) -> String {
    format!("{to}-{number}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_removed_from_texts() {
        assert_eq!(clean("a\r\nb\rc\td\x1b[201~\x07é\u{9b}"), "a\nb\nc\td[201~é");
        assert_eq!(check(" \n\x01"), Err(TextError::Empty));
        let long = TEXT_BYTES + 1;
        assert_eq!(check(&"x".repeat(long)), Err(TextError::TooLong(long)));
    }
}
