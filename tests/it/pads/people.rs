//! People and agents on the same pad: the author of each change is named, and no text is lost.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::tool_client::{ToolClient, file, files, string, tools, writing};
use crate::support::Place;

/// An editor that writes into the file.
fn save_in_place(place: &Place, pad: &str, content: &str) {
    std::fs::write(file(place, pad), content).unwrap();
}

/// An editor that writes another file and renames it.
fn save_by_rename(place: &Place, pad: &str, content: &str) {
    let beside = file(place, pad).with_extension("md~");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(beside, file(place, pad)).unwrap();
}

fn authors(tools: &mut ToolClient) -> Vec<(String, String)> {
    tools.pads().iter().map(|pad| (string(&pad["name"]), string(&pad["changed_by"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(pad, by)| ((*pad).to_owned(), (*by).to_owned())).collect()
}

#[test]
fn the_list_shows_who_changed_what_and_when() {
    let (place, server, mut tools) = tools();
    let (lead, token) = server.agent("lead", None);
    let (_, sub_token) = server.agent("sub", Some(&lead.id));
    let mut lead = ToolClient::of_agent(&server, &token);
    let mut sub = ToolClient::of_agent(&server, &sub_token);
    lead.ok("scratchpad_write", writing("plan", "# Plan\n", None));
    tools.append("from outside", "x\n");
    sub.append("findings", "- é\n");
    save_in_place(&place, "todo", "by hand\n");
    let expected = [
        ("findings", "p2 (sub)"),
        ("from outside", "external"),
        ("plan", "p1 (lead)"),
        ("todo", "a person's editor"),
    ];
    assert_eq!(authors(&mut sub), pairs(&expected));
    let listed = tools.pads();
    assert_eq!(listed[0]["size"], 5, "bytes, not characters");
    let now = u64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
    );
    for pad in &listed {
        let age = now.unwrap().checked_sub(pad["changed_at"].as_u64().unwrap()).unwrap();
        assert!(age < 60_000, "{pad}");
        assert_eq!(lead.read(&string(&pad["name"]))["revision"], pad["revision"]);
    }
    assert_eq!(tools.ok("get_project_status", json!({}))["scratchpads"], Value::from(listed));
    sub.append("plan", "- mine too\n");
    assert_eq!(authors(&mut lead)[2].1, "p2 (sub)");
}

#[test]
fn a_persons_edit_between_read_and_write_is_a_conflict() {
    let (place, _server, mut tools) = tools();
    for save in [save_in_place, save_by_rename] {
        let read = tools.append("plan", "agents' words\n");
        save(&place, "plan", "the person's words\n");
        let refused = writing("plan", "on top of it\n", Some(&read));
        let error = tools.refused("conflict", "scratchpad_write", refused);
        assert_eq!(error["changed_by"], "a person's editor");
        assert_eq!(tools.content("plan"), "the person's words\n");
        let now = string(&error["revision"]);
        tools.ok("scratchpad_write", writing("plan", "both\n", Some(&now)));
        assert_eq!(std::fs::read_to_string(file(&place, "plan")).unwrap(), "both\n");
    }
    assert_eq!(files(&place), ["plan.md"]);
}

#[test]
fn edits_and_removals_while_no_server_runs_are_noticed() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    let mut tools = ToolClient::at(server.socket());
    let [edited, removed, kept] = ["edited", "removed", "kept"].map(|pad| tools.append(pad, "one"));
    server.stop();
    save_in_place(&place, "edited", "two");
    std::fs::remove_file(file(&place, "removed")).unwrap();
    let server = place.serve_in_process();
    let mut tools = ToolClient::at(server.socket());
    let expected = [("edited", "a person's editor"), ("kept", "external")];
    assert_eq!(authors(&mut tools), pairs(&expected));
    tools.refused("conflict", "scratchpad_write", writing("edited", "x", Some(&edited)));
    tools.refused("conflict", "scratchpad_write", writing("removed", "x", Some(&removed)));
    tools.ok("scratchpad_write", writing("kept", "x", Some(&kept)));
    let again = string(&tools.ok("scratchpad_write", writing("removed", "one", None))["revision"]);
    assert_ne!(again, removed, "a new pad, although its content is the same");
}

#[test]
fn links_are_not_followed() {
    let (place, _server, mut tools) = tools();
    tools.append("plan", "x");
    let outside = place.path("outside.md");
    std::fs::write(&outside, "outside").unwrap();
    symlink(&outside, file(&place, "link")).unwrap();
    symlink("../processes.json", file(&place, "inner")).unwrap();
    for pad in ["link", "inner"] {
        for tool in ["scratchpad_read", "scratchpad_write", "scratchpad_append"] {
            tools.refused("unavailable", tool, json!({"name": pad, "content": "x"}));
        }
    }
    assert_eq!(authors(&mut tools).len(), 1);
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "outside");
}

/// A person saves at the very moment when an agent appends. The agent's line may come before the
/// person's save, which then overwrites it; but never the other way round.
#[test]
fn a_persons_save_while_an_agent_appends_is_not_lost() {
    let (place, server, mut tools) = tools();
    tools.append("plan", "begin\n");
    let rounds = super::tool_client::short_or_long(500, 20_000);
    // Both end with the one that fails.
    let (begin, begun) = std::sync::mpsc::sync_channel::<()>(0);
    let (end, ended) = std::sync::mpsc::sync_channel::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut agent = ToolClient::at(server.socket());
            for () in begun {
                agent.append("plan", "agent\n");
                end.send(()).unwrap();
            }
        });
        let begin = begin;
        let mut appended = 0;
        for round in 0..rounds {
            begin.send(()).unwrap();
            // At another moment of the append each time.
            (0..round % 50 * 100).for_each(|_| std::hint::spin_loop());
            save_by_rename(&place, "plan", &format!("person {round}\n"));
            ended.recv().unwrap();
            let content = tools.content("plan");
            let rest = content.strip_prefix(&format!("person {round}\n"));
            let rest = rest.unwrap_or_else(|| panic!("round {round}: {content:?}"));
            assert!(["", "agent\n"].contains(&rest), "round {round}: {rest:?}");
            appended += usize::from(!rest.is_empty());
        }
        assert!(appended > 0, "both had their turn");
    });
    assert_eq!(files(&place), ["plan.md"]);
}
