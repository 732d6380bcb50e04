//! Scratchpads: Markdown files of the project that agents and people share. The files are the truth,
//! and a person may edit them with anything; the index beside them only says which revision a content
//! is, and whose.

mod digest;
mod error;
mod folder;
mod index;
mod name;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use patterm_store::limits::Limits;
use patterm_store::state::{StateDir, StateError};

pub use error::PadError;
pub use name::PadName;
pub use store::{Listed, Pad, Pads, Revision};

/// The folder of the pads in the state folder.
const FOLDER: &str = "scratchpads";

/// The pads, for whoever's turn it is. Turns are given in the order they are asked for, so that of many
/// writers none starves, and only one of them at a time takes a thread to wait for the disk.
#[derive(Debug, Clone)]
pub struct SharedPads(Arc<Mutex<Pads>>);

impl SharedPads {
    /// Reads what earlier servers of this project left.
    pub fn load(state: &StateDir, limits: &Limits) -> Result<Self, StateError> {
        Ok(Self(Arc::new(Mutex::new(Pads::load(state, limits)?))))
    }

    /// Waits for its turn. What comes of it goes along to the thread that works with it: the turn ends
    /// with the work, though its caller may be gone before.
    pub async fn turn(&self) -> OwnedMutexGuard<Pads> {
        self.0.clone().lock_owned().await
    }
}

/// The file of a pad, for a person's editor. Its folder is made where there is none.
pub fn file_for_editing(state: &StateDir, name: &PadName) -> Result<PathBuf, StateError> {
    let folder = folder::Folder::at(state.file(FOLDER));
    folder.ensure()?;
    Ok(folder.file(name))
}
