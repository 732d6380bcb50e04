//! Scratchpads: Markdown files of the project that agents and people share. The files are
//! authoritative, and a person may edit them with any program; the index only records their
//! revisions and authors. The crate knows nothing about processes, agents or
//! tools.

mod digest;
mod error;
mod folder;
mod index;
mod name;
mod recorder;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use patterm_events::EventLog;
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::state::{StateDir, StateError};

pub use error::PadError;
pub use index::Revision;
pub use name::{NameError, PadName};
pub use store::{PadContent, PadList, Pads};

/// The pads' folder, in the state folder.
const FOLDER: &str = "scratchpads";

/// The pads, behind a fair lock: callers get it in the order in which they ask, so that no
/// writer starves, and only one caller at a time blocks a thread on the disk.
#[derive(Debug, Clone)]
pub struct SharedPads(Arc<Mutex<Pads>>);

impl SharedPads {
    /// Reads what earlier servers of this project left.
    pub fn load(state: &StateDir, limits: &Limits, clock: Clock) -> Result<Self, StateError> {
        Ok(Self(Arc::new(Mutex::new(Pads::load(state, limits, clock)?))))
    }

    /// Does the same, and records all changes as events.
    pub fn load_recorded(
        state: &StateDir,
        limits: &Limits,
        clock: Clock,
        events: EventLog,
    ) -> Result<Self, StateError> {
        let mut pads = Pads::load(state, limits, clock)?;
        pads.record_in(events);
        Ok(Self(Arc::new(Mutex::new(pads))))
    }

    /// Waits for the lock. The guard moves to the thread that does the work, so the lock is
    /// held until the work is done, even if its caller has gone.
    pub async fn turn(&self) -> OwnedMutexGuard<Pads> {
        self.0.clone().lock_owned().await
    }
}

/// The path of a pad's file, for a person's editor. Creates the folder if necessary.
pub fn file_for_editing(state: &StateDir, name: &PadName) -> Result<PathBuf, StateError> {
    let folder = folder::Folder::at(state.file(FOLDER));
    folder.ensure()?;
    Ok(folder.file(name))
}
