//! Starts, ends and failures of shared servers, as events.

use serde_json::{Value, json};

use super::all;
use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Spawned};

/// A server of patterm, with shared servers that the project declares.
fn serve(place: &Place) -> (Spawned, ToolClient) {
    let program = env!("CARGO_BIN_EXE_everything-mcp");
    let text = format!(
        "[servers.all]\ncommand = ['{program}', '--log', 'all.log']\n\
         [servers.none]\ncommand = ['/none/such']\n"
    );
    std::fs::write(place.path("project/patterm.toml"), text).unwrap();
    let server = place.serve();
    place.run(&["trust", "--yes"]);
    let tools = ToolClient::at(&server.socket());
    (server, tools)
}

/// The events about shared servers: what happened to which, and whether it was found out later.
fn seen(tools: &mut ToolClient) -> Vec<(String, Value, bool)> {
    let (events, _) = all(tools);
    let of = events.iter().filter_map(|event| {
        let kind = event["type"].as_str().filter(|kind| kind.starts_with("server."))?;
        let recovered = event["recovered"] == true;
        Some((kind.to_owned(), event["data"]["server"].clone(), recovered))
    });
    of.collect()
}

fn event(kind: &str, server: &str, recovered: bool) -> (String, Value, bool) {
    (kind.to_owned(), json!(server), recovered)
}

#[test]
fn starts_ends_and_failures_of_shared_servers_are_recorded() {
    let place = Place::new();
    let (server, mut tools) = serve(&place);
    tools.ok("all__echo", json!({}));
    for _ in 0..2 {
        assert!(tools.call("none__echo", json!({})).is_err());
    }
    until("the failure", || {
        seen(&mut tools).contains(&event("server.failed", "none", false)).then_some(())
    });
    place.run(&["servers", "restart", "all"]);
    until("the end", || {
        seen(&mut tools).contains(&event("server.stopped", "all", false)).then_some(())
    });
    tools.ok("all__echo", json!({}));
    // Shared servers end with patterm's server, which cannot record it when it is killed.
    server.kill();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    until("what was missed", || {
        seen(&mut tools).contains(&event("server.stopped", "all", true)).then_some(())
    });
    let all: Vec<_> = seen(&mut tools).into_iter().filter(|(_, name, _)| name == "all").collect();
    let expected = [
        event("server.started", "all", false),
        event("server.stopped", "all", false),
        event("server.started", "all", false),
        event("server.stopped", "all", true),
    ];
    assert_eq!(all[..4], expected, "{all:?}");
}
