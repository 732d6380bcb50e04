//! `patterm mcp-stdio`: the command that an agent's CLI runs as its MCP server. It finds or starts the
//! project's server, identifies the caller, and relays whole messages in both directions. It survives a crash
//! of the server: the client never sees a broken pipe.

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

use clap::Args;
use patterm_host::Project;
use patterm_store::project::is_key;

use crate::identity::Identity;
use crate::limits::MessageLimit;
use output::ClientOutput;

/// Speak MCP on standard input and output, for an agent's CLI
#[derive(Debug, Args)]
pub(crate) struct McpStdioVerb {
    /// The server's socket [env: PATTERM_SOCKET]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The project's key [env: PATTERM_PROJECT_KEY]
    #[arg(long, value_name = "KEY", value_parser = project_key)]
    project_key: Option<String>,
    /// A file with the caller's identity token [env: PATTERM_IDENTITY_FILE]
    #[arg(long, value_name = "PATH")]
    identity_file: Option<PathBuf>,
    #[command(flatten)]
    limits: MessageLimit,
}

fn project_key(text: &str) -> Result<String, &'static str> {
    match is_key(text) {
        true => Ok(text.to_owned()),
        false => Err("a project key has 16 hexadecimal digits"),
    }
}

/// The server to connect to, and the caller.
#[derive(Debug)]
struct Target {
    socket: Option<PathBuf>,
    project_key: Option<String>,
    identity: Identity,
    /// The project of the working directory.
    project: Option<Project>,
    message_bytes: usize,
}

impl Target {
    fn new(options: McpStdioVerb) -> anyhow::Result<Self> {
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

impl McpStdioVerb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let target = Target::new(self)?;
        let output = ClientOutput::claim_stdout()?;
        proxy::Proxy::new(target, output)?.run()
    }
}
