//! The full texts of messages, one file each, for people who read them later. The table, which is rewritten at
//! every change, contains only their beginnings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use patterm_store::private::PrivateDir;
use patterm_store::state::StateDir;

use super::long_texts::TEXT_BYTES;

/// The folder of the files, in the state folder.
const FOLDER: &str = "messages";

/// The largest file that is read: a text with its tag.
const FILE_BYTES: u64 = TEXT_BYTES as u64 + (1 << 10);

/// The texts of a project's messages.
#[derive(Debug)]
pub(super) struct Texts(PathBuf);

impl Texts {
    pub(super) fn within(state: &StateDir) -> Self {
        Self(state.file(FOLDER))
    }

    /// Stores a text. Delivery does not depend on it, so a failure is only logged.
    pub(super) fn keep(&self, id: u64, text: &str) {
        let kept = PrivateDir::make(&self.0).map_err(std::io::Error::from);
        let kept = kept.and_then(|folder| folder.write(&id.to_string(), text.as_bytes()));
        if let Err(error) = kept {
            tracing::warn!(id, %error, "cannot store the text of a message; it will not be readable later");
        }
    }

    /// A text, if it is still kept.
    pub(super) fn read(&self, id: u64) -> Option<String> {
        let bytes = PrivateDir::open(&self.0).ok()?.read(&id.to_string(), FILE_BYTES).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Removes the texts of all other messages.
    pub(super) fn retain(&self, known: impl Iterator<Item = u64>) {
        let known: BTreeSet<String> = known.map(|id| id.to_string()).collect();
        let Ok(folder) = PrivateDir::open(&self.0) else { return };
        for name in folder.names().unwrap_or_default() {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            if !known.contains(name) {
                let _ = folder.remove(name);
            }
        }
    }
}
