//! The trusted contents of a project file, by hash. They are stored in the user's own state folder, so a
//! cloned project cannot bring its own trust.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::limits::{FILE_BYTES, TRUSTED};
use patterm_store::private::PrivateDir;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "trust.json";
const VERSION: u32 = 1;

/// The folder with copies of trusted contents, to show a person what has changed since.
const CONTENTS: &str = "trusted";

/// The number of contents that are kept: a change is compared with the content that was trusted last, which may
/// be that of another branch.
const KEPT_CONTENTS: usize = 8;

/// Why a file could not be trusted.
#[derive(Debug, Error)]
pub enum TrustError {
    /// It changed after it was shown.
    #[error("patterm.toml changed after it was shown; review it again")]
    Changed,
    /// There is no file.
    #[error("this project has no patterm.toml; `patterm init` writes one")]
    Absent,
    /// It has errors and could not take effect.
    #[error("patterm.toml has errors; fix them first\n{0}")]
    Faulty(String),
    /// The trust could not be stored.
    #[error(transparent)]
    State(#[from] StateError),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The project folder: in another folder, the same file would run other programs.
    project: PathBuf,
    /// Hashes of trusted contents, the newest last.
    trusted: Vec<String>,
}

/// The trusted contents of one project.
#[derive(Debug)]
pub struct Trust {
    file: PathBuf,
    /// The folder with trusted contents.
    contents: PathBuf,
    project: PathBuf,
}

impl Trust {
    /// The trust of a project, stored in its state folder.
    pub fn of(project: &Path, state: &StateDir) -> Self {
        let (file, contents) = (state.file(FILE), state.file(CONTENTS));
        Self { file, contents, project: project.to_owned() }
    }

    /// Whether this content is trusted; `false` if that cannot be read.
    pub fn holds(&self, hash: &str) -> bool {
        match self.read() {
            Ok(record) => record.trusted.iter().any(|known| known == hash),
            Err(error) => {
                tracing::error!(%error, "cannot read which project files are trusted, so none is");
                false
            }
        }
    }

    /// Whether no content is trusted, or ever was: then there is nothing that a change could be compared with.
    pub fn is_empty(&self) -> bool {
        self.read().map_or(true, |record| record.trusted.is_empty())
    }

    /// The content that was trusted last, if it was kept: 0.1 kept only hashes.
    pub fn last_content(&self) -> Option<String> {
        let record = self.read().ok()?;
        let hash = record.trusted.last()?;
        let folder = PrivateDir::open(&self.contents).ok()?;
        String::from_utf8(folder.read(&content_file(hash), FILE_BYTES).ok()?).ok()
    }

    /// Trusts this content from now on.
    pub fn add(&self, hash: &str, text: &str) -> Result<(), StateError> {
        self.add_hash(hash)?;
        // The copy is only used for comparison; a failure does not affect what is trusted.
        if let Err(error) = self.keep_content(hash, text) {
            tracing::warn!(%error, "cannot keep a copy of the trusted content");
        }
        Ok(())
    }

    /// Keeps this content, and removes contents that are too old.
    fn keep_content(&self, hash: &str, text: &str) -> io::Result<()> {
        let folder = PrivateDir::make(&self.contents).map_err(io::Error::other)?;
        folder.write(&content_file(hash), text.as_bytes())?;
        let record = self.read().map_err(io::Error::other)?;
        let kept: Vec<_> = record
            .trusted
            .iter()
            .rev()
            .take(KEPT_CONTENTS)
            .map(|hash| content_file(hash))
            .collect();
        for name in folder.names()? {
            if let Some(name) = name.to_str().filter(|name| !kept.iter().any(|kept| kept == name)) {
                folder.remove(name)?;
            }
        }
        Ok(())
    }

    fn add_hash(&self, hash: &str) -> Result<(), StateError> {
        let mut record = self.read()?;
        record.trusted.retain(|known| known != hash);
        record.trusted.push(hash.to_owned());
        let beyond = record.trusted.len().saturating_sub(TRUSTED);
        record.trusted.drain(..beyond);
        state::write(&self.file, VERSION, &record)
    }

    fn read(&self) -> Result<Record, StateError> {
        let found: Option<Record> = state::read(&self.file, VERSION)?;
        let own = found.filter(|record| record.project == self.project);
        Ok(own.unwrap_or_else(|| Record { project: self.project.clone(), trusted: Vec::new() }))
    }
}

/// The file that keeps the content with this hash.
fn content_file(hash: &str) -> String {
    format!("{hash}.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_stays_trusted_in_its_project_until_many_others_follow() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let trust = Trust::of(Path::new("/a"), &state);
        assert!(!trust.holds("h1"));
        assert!(trust.is_empty());
        trust.add("h1", "one").unwrap();
        assert_eq!(trust.last_content().as_deref(), Some("one"));
        trust.add("h2", "two").unwrap();
        assert!(trust.holds("h1") && trust.holds("h2") && !trust.holds("h"));
        assert!(!Trust::of(Path::new("/b"), &state).holds("h1"), "another project's");
        for n in 0..TRUSTED {
            trust.add(&format!("x{n}"), &n.to_string()).unwrap();
        }
        assert_eq!(trust.last_content(), Some((TRUSTED - 1).to_string()));
        let kept = std::fs::read_dir(state.file(CONTENTS)).unwrap().count();
        assert_eq!(kept, KEPT_CONTENTS, "older contents are removed");
        std::fs::remove_dir_all(state.file(CONTENTS)).unwrap();
        assert!(trust.last_content().is_none() && trust.holds("x0"), "as 0.1 left it");
        assert!(!trust.holds("h2") && trust.holds("x0"));
        std::fs::write(state.file(FILE), "{").unwrap();
        assert!(!trust.holds("x0"), "a damaged file trusts nothing");
    }
}
