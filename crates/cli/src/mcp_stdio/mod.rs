//! `patterm mcp-stdio`: what an agent's CLI launches as its MCP server. It finds the project's
//! server, or starts it, says who calls, and relays whole messages both ways. It outlives the
//! server: the client never sees a broken pipe.

mod batches;
mod client;
mod ledger;
mod link;
mod output;
mod proxy;
mod relay;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use patterm_host::Project;

use crate::args::{McpStdio, project_key};
use crate::identity::Identity;
use crate::said::complain;
use output::Output;

/// Which server is meant, and who calls it.
#[derive(Debug)]
struct Wanted {
    socket: Option<PathBuf>,
    project_key: Option<String>,
    identity: Identity,
    /// The project of the working directory.
    project: Option<Project>,
    message_bytes: usize,
}

impl Wanted {
    fn new(options: McpStdio) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let message_bytes = options.limits.bytes()?;
        let project_key = match (options.project_key, variable("PATTERM_PROJECT_KEY")) {
            (None, Some(key)) => {
                let key = key.to_string_lossy();
                let wrong = |why| anyhow::anyhow!("PATTERM_PROJECT_KEY is {key:?}, but {why}");
                Some(project_key(&key).map_err(wrong)?)
            }
            (flag, _) => flag,
        };
        Ok(Self {
            socket: options.socket.or_else(|| variable("PATTERM_SOCKET").map(PathBuf::from)),
            project_key,
            identity: Identity::find(options.identity_file),
            project: std::env::current_dir().ok().and_then(|folder| Project::of(&folder).ok()),
            message_bytes,
        })
    }
}

pub(crate) fn run(options: McpStdio) -> ExitCode {
    let relayed = (|| {
        let wanted = Wanted::new(options)?;
        let output = Output::claim_stdout()?;
        proxy::Proxy::new(wanted, output)?.run()
    })();
    match relayed {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}
