//! Which contents of the project file the person trusts: by hash, in the user's own state folder,
//! where no clone can bring it along.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::limits::TRUSTED;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "trust.json";
const VERSION: u32 = 1;

/// Why a content could not be trusted.
#[derive(Debug, Error)]
pub enum TrustError {
    /// It is another one by now.
    #[error("patterm.toml changed while it was looked at; look at it again")]
    Changed,
    /// There is nothing to trust.
    #[error("this project has no patterm.toml; `patterm init` writes one")]
    Absent,
    /// It would not take effect anyway.
    #[error("patterm.toml has mistakes; mend them first\n{0}")]
    Faulty(String),
    /// It could not be written down.
    #[error(transparent)]
    State(#[from] StateError),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The project: the same file in another folder runs other programs.
    project: PathBuf,
    /// Hashes of contents, the last one trusted last.
    trusted: Vec<String>,
}

/// The contents that are trusted in one project.
#[derive(Debug)]
pub struct Trust {
    file: PathBuf,
    project: PathBuf,
}

impl Trust {
    /// Those of the project whose state lies here.
    pub fn of(project: &Path, state: &StateDir) -> Self {
        Self { file: state.file(FILE), project: project.to_owned() }
    }

    /// Whether a content is trusted. Where that cannot be told, it is not.
    pub fn holds(&self, hash: &str) -> bool {
        match self.read() {
            Ok(record) => record.trusted.iter().any(|known| known == hash),
            Err(error) => {
                tracing::error!(%error, "nothing is trusted");
                false
            }
        }
    }

    /// Trusts a content from now on.
    pub fn add(&self, hash: &str) -> Result<(), StateError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_trusted_in_one_project_until_many_others_were() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let trust = Trust::of(Path::new("/a"), &state);
        assert!(!trust.holds("h1"));
        trust.add("h1").unwrap();
        trust.add("h2").unwrap();
        assert!(trust.holds("h1") && trust.holds("h2") && !trust.holds("h"));
        assert!(!Trust::of(Path::new("/b"), &state).holds("h1"), "another project's");
        for n in 0..TRUSTED {
            trust.add(&format!("x{n}")).unwrap();
        }
        assert!(!trust.holds("h2") && trust.holds("x0"));
        std::fs::write(state.file(FILE), "{").unwrap();
        assert!(!trust.holds("x0"), "what is damaged trusts nothing");
    }
}
