//! Permissions: agents act on themselves and on their descendants.

use serde_json::json;

use crate::support::tool_client::{ToolClient, id_of, tools};

#[test]
fn processes_that_an_agent_spawns_are_below_it() {
    let (_place, server, mut person) = tools();
    let (lead, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let child = agent.run(&["cat"]);
    assert_eq!(agent.status(&child)["parent_id"], json!(lead.id));
    assert_eq!(person.run(&["cat"]), "p3");
    assert_eq!(
        person.status("p3").get("parent_id"),
        None,
        "an external caller's process is at the top level"
    );
}

#[test]
fn an_agent_acts_only_on_itself_and_its_descendants() {
    let (_place, server, mut person) = tools();
    let (lead, lead_token) = server.agent("lead", None);
    let (_sub, sub_token) = server.agent("sub", Some(&lead.id));
    let mut lead = ToolClient::of_agent(&server, &lead_token);
    let mut sub = ToolClient::of_agent(&server, &sub_token);
    let foreign = person.run(&["cat"]);
    let above = lead.run(&["cat"]);
    let below = sub.run(&["cat"]);
    for target in [&foreign, &above] {
        for (tool, more) in [
            ("stop_process", json!({})),
            ("start_process", json!({})),
            ("restart_process", json!({})),
            ("close_process", json!({})),
            ("rename_process", json!({"name": "mine"})),
            ("send_input", json!({"kind": "text", "text": "x"})),
        ] {
            let mut arguments = more;
            arguments["process_id"] = json!(target);
            sub.refused("not_owner", tool, arguments);
        }
        // Everyone may read everything, and select it.
        for tool in [
            "get_process_status",
            "get_process_output",
            "get_process_raw_output",
            "get_process_ports",
            "select_process",
        ] {
            sub.ok(tool, json!({"process_id": target}));
        }
        assert_eq!(person.status(target)["status"], "running");
    }
    lead.ok("rename_process", json!({"process_id": below, "name": "of-sub"}));
    lead.line(&below, "typed from above");
    sub.wait(&below, "typed from above");
    sub.ok("stop_process", json!({"process_id": below}));
    person.ok("close_process", json!({"process_id": above}));
}

#[test]
fn closing_an_agent_closes_its_descendants_youngest_first() {
    let (_place, server, mut tools) = tools();
    let (lead, token) = server.agent("lead", None);
    let (sub, sub_token) = server.agent("sub", Some(&lead.id));
    let mut agent = ToolClient::of_agent(&server, &token);
    let first = agent.run(&["cat"]);
    let deep = id_of(
        &ToolClient::of_agent(&server, &sub_token).ok("spawn_process", json!({"argv": ["cat"]})),
    );
    let bystander = tools.run(&["cat"]);
    let closed = tools.close(lead.id.as_str());
    assert_eq!(closed, [&*deep, &*first, sub.id.as_str(), lead.id.as_str()]);
    assert_eq!(tools.ids(), [bystander]);
    let mut late = ToolClient::of(&server);
    late.peer.greet(&sub_token.reveal(), None);
    assert_eq!(late.peer.receive()["error"]["data"]["reason"], "unknown_token");
}

#[test]
fn an_agent_is_not_started_again_by_this_version() {
    let (_place, server, mut tools) = tools();
    let (lead, _) = server.agent("lead", None);
    server
        .host()
        .panes
        .processes
        .update(&lead.id, |process| {
            process.status = patterm_panes::process::Status::Exited;
        })
        .unwrap();
    tools.refused("unavailable", "start_process", json!({"process_id": lead.id}));
    tools.refused("unavailable", "get_process_output", json!({"process_id": lead.id}));
}
