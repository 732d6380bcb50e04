//! Texts that are too long to be typed: they become files of the project, and the turn points to
//! them.

use std::path::PathBuf;

use crate::host::Host;
use crate::process::ProcessId;
use crate::tools::{ErrorKind, ToolError};
use patterm_store::state;

/// The longest text that is given as it is. One argument of a program may hold 128 KiB, and CLIs
/// were seen to take pastes of 20 kB whole.
pub(crate) const LETTER_BYTES: usize = 32 << 10;

/// The longest text at all: more than any model reads.
pub(crate) const TEXT_BYTES: usize = 4 << 20;

/// The folder in the project, beside its own files and outside its history. Agents may read there
/// without asking.
const FOLDER: &str = ".patterm";

/// Texts to be given to an agent hold no control characters but tabs and line ends.
pub(crate) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect()
}

/// Refuses what is too long or empty.
pub(crate) fn check(field: &str, text: &str) -> Result<String, ToolError> {
    if text.len() > TEXT_BYTES {
        let message = format!(
            "`{field}` has {} bytes, and at most {TEXT_BYTES} are taken; put it into a file and \
             name that",
            text.len()
        );
        return Err(ToolError::new(ErrorKind::Limit, message).with("limit_bytes", TEXT_BYTES));
    }
    let clean = clean(text);
    match clean.trim().is_empty() {
        true => Err(ToolError::invalid(field, "says nothing")),
        false => Ok(clean),
    }
}

impl Host {
    /// The text as a turn: itself, or where it is too long, a file and the words that point to it.
    pub(crate) fn as_prompt(&self, to: &ProcessId, text: &str) -> Result<String, ToolError> {
        if text.len() <= LETTER_BYTES {
            return Ok(text.to_owned());
        }
        let folder = self.letter_folder();
        std::fs::create_dir_all(&folder).map_err(state::failed("make", &folder))?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").map_err(state::failed("write", &ignore))?;
        }
        let taken = |number: &u64| folder.join(letter_name(to, *number)).exists();
        let number = (1..).find(|number| !taken(number)).unwrap_or(1);
        let path = folder.join(letter_name(to, number));
        state::write_whole(&path, text.as_bytes()).map_err(state::failed("write", &path))?;
        let begin: String = text.chars().take_while(|letter| *letter != '\n').take(200).collect();
        Ok(format!(
            "{begin}\n\n(This text has {} bytes, too long for a prompt. All of it is in the file \
             {}: read that file to its end first, then do what it says.)",
            text.len(),
            path.display()
        ))
    }

    /// Removes the letters to a process that is gone.
    pub(crate) fn forget_letters(&self, to: &ProcessId) {
        let folder = self.letter_folder();
        let begin = format!("{to}-");
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&begin) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn letter_folder(&self) -> PathBuf {
        self.project.root().join(FOLDER)
    }
}

fn letter_name(to: &ProcessId, number: u64) -> String {
    format!("{to}-{number}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_control_characters_and_nothing_else() {
        assert_eq!(clean("a\r\nb\rc\td\x1b[201~\x07é\u{9b}"), "a\nb\nc\td[201~é");
        assert!(check("message", " \n\x01").is_err());
        assert_eq!(
            check("message", &"x".repeat(TEXT_BYTES + 1)).unwrap_err().kind,
            ErrorKind::Limit
        );
    }
}
