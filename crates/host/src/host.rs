//! What a server knows of its project: the one owner of state that tools act on.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use crate::identity::Identities;
use crate::limits::Limits;
use crate::process::Processes;
use crate::project::Project;
use crate::state::{StateDir, StateError};
use crate::tools::Registry;

/// A project's state and everything that can be done with it.
#[derive(Debug)]
pub struct Host {
    /// The project served.
    pub project: Project,
    /// Where this server listens.
    pub socket: PathBuf,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// Its processes.
    pub processes: Processes,
    /// Who its agents are.
    pub identities: Identities,
    /// What callers can do.
    pub tools: Registry,
    /// How much of it.
    pub limits: Limits,
    /// Cancelled when the server is to end.
    pub(crate) shutdown: CancellationToken,
}

impl Host {
    pub(crate) fn load(
        project: Project,
        socket: PathBuf,
        state: &StateDir,
        tools: Registry,
        limits: Limits,
    ) -> Result<Self, StateError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            processes: Processes::load(state)?,
            identities: Identities::load(state)?,
            started_at: now.map_or(0, |d| d.as_secs()),
            shutdown: CancellationToken::new(),
            project,
            socket,
            tools,
            limits,
        })
    }
}
