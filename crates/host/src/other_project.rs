//! Starts the server of another project for a caller in one of our panes: outside all panes, so
//! that it does not end with one, and without that pane's environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use patterm_wire::requests::{ServerEntry, StartRequest};
use tokio::sync::Semaphore;

use patterm_panes::Panes;
use patterm_panes::environment::minimal_environment;
use patterm_panes::tree;
use patterm_store::project::Project;

/// How long a server may take to start: the keeper that starts it has 20 s, and may try once more.
const START_PATIENCE: Duration = Duration::from_secs(45);

/// How many servers are started at once. Each start blocks a thread, possibly on a lock that
/// another process holds, and other work needs threads too.
static STARTING: Semaphore = Semaphore::const_new(2);

/// Starts the servers of other projects.
#[derive(Debug, Clone)]
pub(crate) struct OtherProjectStarter {
    pub(crate) panes: Arc<Panes>,
    /// This project.
    pub(crate) project: Project,
    /// The patterm binary.
    pub(crate) program: PathBuf,
}

impl OtherProjectStarter {
    /// Starts the server of another project, or finds it. `None` if this server cannot start one.
    pub(crate) async fn start(self, request: StartRequest) -> Result<Option<ServerEntry>, String> {
        let turn = STARTING.acquire().await.map_err(|e| e.to_string())?;
        let work = move || {
            // Held until the start is finished, even if the caller has gone.
            let _turn = turn;
            self.start_now(&request)
        };
        tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string())?
    }

    fn start_now(&self, request: &StartRequest) -> Result<Option<ServerEntry>, String> {
        let shown = request.folder.display();
        let project = Project::of(&request.folder).map_err(|e| format!("{shown}: {e}"))?;
        if project.key() == self.project.key() {
            return Err(format!("{shown} belongs to this project, which this server serves"));
        }
        // A keeper of 0.1.0 starts servers as its children, and would end the programs they start.
        let own =
            i32::try_from(std::process::id()).ok().and_then(tree::line_of).unwrap_or_default();
        if self.panes.keeper.pid().is_some_and(|keeper| own.contains(&keeper)) {
            return Ok(None);
        }
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--json".into()];
        let messages = request.message_bytes.map(|bytes| format!("--max-message-bytes={bytes}"));
        let log = request.log_bytes.map(|bytes| format!("--max-log-bytes={bytes}"));
        arguments.extend(messages.into_iter().chain(log).map(OsString::from));
        let environment = minimal_environment();
        tracing::info!(project = %project.root().display(), "starting a server for another project");
        let output = patterm_keeper::start_server(
            &self.program,
            &arguments,
            project.root(),
            &environment,
            START_PATIENCE,
        )
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::TimedOut => format!(
                "the server of {shown} did not start within {} s; another start may be in progress, or \
                 another process holds its lock. Run `patterm doctor` there",
                START_PATIENCE.as_secs()
            ),
            _ => format!("cannot start a server: {e}"),
        })?;
        serde_json::from_slice(&output.stdout).map(Some).map_err(|_| {
            let why = String::from_utf8_lossy(&output.stderr);
            format!("cannot start a server: {}", why.trim().trim_start_matches("patterm: "))
        })
    }
}
