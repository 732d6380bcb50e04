//! Texts that are too long to be typed: they become files of the project, and the turn points to
//! them.

use std::path::{Path, PathBuf};

use super::error::TextError;
use patterm_panes::process::ProcessId;
use patterm_store::state::{self, StateError};

/// The longest text that is given as it is. One argument of a program may hold 128 KiB, and CLIs
/// were seen to take pastes of 20 kB whole.
pub(crate) const PROMPT_BYTES: usize = 32 << 10;

/// The longest text at all: more than any model reads.
pub const TEXT_BYTES: usize = 4 << 20;

/// The folder in the project, beside its own files and outside its history. Agents may read there
/// without asking.
const FOLDER: &str = ".patterm";

/// Texts to be given to an agent hold no control characters but tabs and line ends.
pub fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect()
}

/// The text without control characters, unless it is too long or empty.
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

/// The text as a turn: itself, or where it is too long, a file and the words that point to it.
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
        "{begin}\n\n(This text has {} bytes, too long for a prompt. All of it is in the file \
             {}: read that file to its end first, then do what it says.)",
        text.len(),
        path.display()
    ))
}

/// Removes the files for a process that is gone.
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
    fn texts_lose_control_characters_and_nothing_else() {
        assert_eq!(clean("a\r\nb\rc\td\x1b[201~\x07é\u{9b}"), "a\nb\nc\td[201~é");
        assert_eq!(check(" \n\x01"), Err(TextError::Empty));
        let long = TEXT_BYTES + 1;
        assert_eq!(check(&"x".repeat(long)), Err(TextError::TooLong(long)));
    }
}
