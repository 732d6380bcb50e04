//! Starting another project's server for somebody in one of our panes: outside of all panes, so that it
//! does not end with one, and without what that pane's environment holds.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::environment::minimal_environment;
use crate::host::Host;
use crate::project::Project;
use crate::registry::Entry;
use crate::tree;

/// The request with which somebody in a pane has another project's server started.
pub const START_METHOD: &str = "patterm/start";

/// What it takes. It names no program and no HTTP door: those are a person's to choose.
#[derive(Debug, Serialize, Deserialize)]
pub struct StartWish {
    /// The other project's folder.
    pub folder: PathBuf,
    /// The longest message that its server is to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<usize>,
    /// The longest log that it is to keep for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
}

impl Host {
    /// Starts the server of another project, or finds it; an error in words.
    pub(crate) fn start_elsewhere(&self, wish: &StartWish) -> Result<Entry, String> {
        let shown = wish.folder.display();
        let project = Project::of(&wish.folder).map_err(|e| format!("{shown}: {e}"))?;
        if project.key() == self.project.key() {
            return Err(format!("{shown} is this project, and this is its server"));
        }
        // A keeper of 0.1.0 starts servers as its children, and ends what they leave to it.
        let own = i32::try_from(std::process::id()).map(tree::line_of).unwrap_or_default();
        if self.keeping.pid().is_some_and(|keeper| own.contains(&keeper)) {
            return Err("the keeper of an older patterm would end what is started here".into());
        }
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--json".into()];
        let messages = wish.message_bytes.map(|bytes| format!("--max-message-bytes={bytes}"));
        let log = wish.log_bytes.map(|bytes| format!("--max-log-bytes={bytes}"));
        arguments.extend(messages.into_iter().chain(log).map(OsString::from));
        let environment = minimal_environment();
        tracing::info!(project = %project.root().display(), "starts a server for another project");
        let said =
            patterm_keeper::start_server(&self.program, &arguments, project.root(), &environment)
                .map_err(|e| format!("cannot start a server: {e}"))?;
        serde_json::from_slice(&said.stdout).map_err(|_| {
            let why = String::from_utf8_lossy(&said.stderr);
            format!("cannot start a server: {}", why.trim().trim_start_matches("patterm: "))
        })
    }
}
