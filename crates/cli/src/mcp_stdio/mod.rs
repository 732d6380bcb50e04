//! `patterm mcp-stdio`: what an agent's CLI launches as its MCP server. It finds the project's
//! server, or starts it, says who calls, and relays whole messages both ways. It outlives the
//! server: the client never sees a broken pipe.

mod batches;
mod client;
mod identity;
mod ledger;
mod link;
mod output;
mod proxy;
mod relay;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use patterm_host::Project;

use crate::args::McpStdio;
use crate::complain;
use identity::Identity;
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
        let key = options.project_key.or_else(|| {
            variable("PATTERM_PROJECT_KEY").map(|key| key.to_string_lossy().into_owned())
        });
        if let Some(key) = &key {
            anyhow::ensure!(
                patterm_host::project::is_key(key),
                "{key:?} is no project key: it takes 16 hexadecimal digits"
            );
        }
        Ok(Self {
            socket: options.socket.or_else(|| variable("PATTERM_SOCKET").map(PathBuf::from)),
            project_key: key,
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
