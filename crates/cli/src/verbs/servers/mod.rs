//! `patterm servers`: the shared MCP servers.

mod import;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use patterm_wire::servers::{ServerInfo, Servers, ServersRequest, ServersResult};
use serde_json::Value;

use super::timers::duration;
use super::{trust, user_settings};
use crate::client::Client;
use crate::print::{one_line, print, print_json};

pub(super) use import::{ImportedServers, in_mcp_json};

/// List the shared MCP servers, or import them from an .mcp.json
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServersVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<ServersCommand>,
}

#[derive(Debug, Subcommand)]
enum ServersCommand {
    /// End a server once its calls are answered; the next call starts it again
    Restart {
        /// Its name
        name: String,
    },
    /// Add the servers of an .mcp.json to patterm.toml
    Import {
        /// The file [default: the project's .mcp.json]
        file: Option<PathBuf>,
    },
}

impl ServersVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.verb {
            None => list(self.json),
            Some(ServersCommand::Restart { name }) => {
                let request = ServersRequest { restart: Some(name.clone()) };
                Client::connect()?.call::<Servers>(&request)?;
                print(&format!(
                    "{name} ends once its calls are answered; the next call starts it again"
                ));
                Ok(())
            }
            Some(ServersCommand::Import { file }) => import::run(file.as_deref()),
        }
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    let reply = Client::connect_to_read()?.query::<Servers>(&ServersRequest::default())?;
    if json {
        return print_json(&reply.read_as::<ServersResult<Value>>()?.servers);
    }
    let servers = reply.result.servers;
    match servers.is_empty() {
        true => print(
            "no shared servers; declare one with `[servers.NAME]` in patterm.toml, or import them from \
             an .mcp.json with `patterm servers import`",
        ),
        false => print(&table(&servers)),
    }
    trust::hint().inspect(|hint| print(hint));
    user_settings::hint().inspect(|hint| print(hint));
    Ok(())
}

fn table(servers: &[ServerInfo]) -> String {
    let wide = servers.iter().map(|server| named(server).chars().count()).max().unwrap_or(0).max(4);
    let mut rows =
        vec![format!("{:<wide$}  STATE     UP        IN FLIGHT  RESTARTS  TOOLS  WHAT", "NAME")];
    for server in servers {
        let up = server.uptime_seconds.map_or_else(String::new, duration);
        let tools = server.tools.map_or_else(|| "?".to_owned(), |tools| tools.to_string());
        rows.push(format!(
            "{:<wide$}  {:<8}  {up:<8}  {:<9}  {:<8}  {tools:<5}  {}",
            named(server),
            one_line(&server.state),
            server.in_flight,
            server.restarts,
            one_line(&server.place)
        ));
        if server.noise > 0 {
            rows.push(format!(
                "{:wide$}  {} lines of its output were not protocol messages",
                "", server.noise
            ));
        }
        // The error of a running server is from an earlier run.
        let mark = if server.state == "running" { "last error:" } else { "!" };
        for line in server.last_error.iter().flat_map(|error| error.lines()) {
            rows.push(format!("{:wide$}  {mark} {}", "", one_line(line)));
        }
    }
    rows.join("\n")
}

fn named(server: &ServerInfo) -> String {
    let name = one_line(&server.name);
    match &server.owner {
        Some(owner) => format!("{name} ({})", one_line(owner)),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_servers() {
        let server = |name: &str, state: &str| ServerInfo {
            name: name.into(),
            state: state.into(),
            place: "search-mcp --stdio".into(),
            ..ServerInfo::default()
        };
        let servers = [
            ServerInfo {
                uptime_seconds: Some(61),
                in_flight: 2,
                tools: Some(3),
                ..server("search", "running")
            },
            ServerInfo {
                owner: Some("p1".into()),
                restarts: 4,
                noise: 1,
                last_error: Some("exited with code 1\nno key".into()),
                ..server("files", "failed")
            },
        ];
        assert_eq!(
            table(&servers),
            [
                "NAME        STATE     UP        IN FLIGHT  RESTARTS  TOOLS  WHAT",
                "search      running   1m01s     2          0         3      search-mcp --stdio",
                "files (p1)  failed              0          4         ?      search-mcp --stdio",
                "            1 lines of its output were not protocol messages",
                "            ! exited with code 1",
                "            ! no key",
            ]
            .join("\n")
        );
    }
}
