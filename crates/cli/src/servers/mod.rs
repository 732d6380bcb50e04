//! `patterm servers`: the shared MCP servers, how they stand, and where they can be taken from.

mod import;

use patterm_wire::servers::{METHOD, ServerInfo, ServersRequest, ServersResult};

use crate::args::{Servers, ServersVerb};
use crate::client::Client;
use crate::said::{one_line, say, say_json};
use crate::timers::duration;

pub(crate) use import::in_mcp_json;

pub(crate) fn run(options: &Servers) -> anyhow::Result<()> {
    match &options.verb {
        None => look(options.json),
        Some(ServersVerb::Restart { name }) => {
            let wish = ServersRequest { restart: Some(name.clone()) };
            Client::connect()?.call(METHOD, &serde_json::to_value(wish)?)?;
            say(&format!("{name} ends once its calls are answered; the next call starts it anew"));
            Ok(())
        }
        Some(ServersVerb::Import { file }) => import::run(file.as_deref()),
    }
}

fn look(as_json: bool) -> anyhow::Result<()> {
    let answer =
        Client::connect()?.look(METHOD, &serde_json::to_value(ServersRequest::default())?)?;
    let ServersResult { servers } = serde_json::from_value(answer.clone())?;
    match (as_json, servers.is_empty()) {
        (true, _) => say_json(&answer["servers"])?,
        (false, true) => {
            say("no shared servers; `[servers.NAME]` in patterm.toml names one, `patterm servers \
             import` takes them from an .mcp.json")
        }
        (false, false) => say(&table(&servers)),
    }
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
                "{:wide$}  {} lines on its output were no protocol",
                "", server.noise
            ));
        }
        // Of one that runs, what is said of it is over.
        let mark = if server.state == "running" { "its last error:" } else { "!" };
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
                "            1 lines on its output were no protocol",
                "            ! exited with code 1",
                "            ! no key",
            ]
            .join("\n")
        );
    }
}
