//! `get_process_ports`: the addresses of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::{Offset, tree};

pub(super) struct GetProcessPorts;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The ports, printed ones first.
    ports: Vec<Port>,
}

#[derive(Serialize, JsonSchema)]
struct Port {
    /// The address as printed; absent for a port that was never printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The port.
    port: u16,
    /// Whether the process or a descendant listens there now.
    listening: bool,
    /// The offset in the output where it was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<u64>,
}

impl Tool for GetProcessPorts {
    const NAME: &'static str = "get_process_ports";
    const TITLE: &'static str = "Ports of a process";
    const DESCRIPTION: &'static str = "Addresses that a process printed, and the ports that it \
        listens on.";
    const HELP: &'static str = "listening is checked with the operating system: a server that \
        printed its address and died is not listening.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("URL and port of a dev server");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, run) = find_run(&call, &args.process_id).await?;
        run.ports.ask();
        let work = move || {
            let end = Offset::new(run.log.end());
            while !run.ports.look(&run.log, end) {}
            let seen = run.ports.seen();
            let status = run.status();
            let listening = status.map(|status| tree::listening(status.init)).unwrap_or_default();
            let unseen = listening.iter().filter(|port| !seen.iter().any(|s| s.port == **port));
            let unseen: Vec<_> = unseen
                .map(|port| Port { url: None, port: *port, listening: true, seen_at: None })
                .collect();
            let mut ports: Vec<_> = seen
                .into_iter()
                .map(|seen| Port {
                    listening: listening.contains(&seen.port),
                    url: Some(seen.url),
                    port: seen.port,
                    seen_at: Some(seen.offset.get()),
                })
                .collect();
            ports.extend(unseen);
            ports
        };
        Ok(Answer { ports: call.blocking(work).await? })
    }
}
