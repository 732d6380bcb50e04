//! `patterm setup` changes one thing in a client's settings, once.

use serde_json::{Value, json};

use super::fails;
use crate::support::Place;

/// Every client, its settings file, its content before, and the position of patterm's entry.
const JSON_CLIENTS: [(&str, &str, &str); 5] = [
    ("claude", "home/.claude.json", "/mcpServers/patterm"),
    ("opencode", "home/.config/opencode/opencode.json", "/mcp/patterm"),
    ("gemini", "home/.gemini/settings.json", "/mcpServers/patterm"),
    ("cursor", "home/.cursor/mcp.json", "/mcpServers/patterm"),
    ("vscode", "home/.config/Code/User/mcp.json", "/servers/patterm"),
];

#[test]
fn clients_get_one_entry_and_keep_the_rest() {
    let place = Place::new();
    let program = place.binary();
    for (client, file, pointer) in JSON_CLIENTS {
        let path = place.path(file);
        let read =
            || serde_json::from_str::<Value>(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let printed = place.run(&["setup", client, "--print"]);
        assert!(printed.contains("mcp-stdio") && !path.exists(), "{printed}");
        let error = fails(&place, &["setup", client]);
        assert!(error.contains("no terminal to ask on") && !path.exists(), "{error}");
        place.run(&["setup", client, "--yes"]);
        let entry = read().pointer(pointer).unwrap().clone();
        let command = entry["command"].as_array().map_or(&entry["command"], |all| &all[0]);
        assert_eq!(*command, json!(program), "{client}: {entry}");
        assert!(entry.to_string().contains("mcp-stdio"));

        let others = json!({"theme": "dark", "mcpServers": {"x": {"command": "x"}},
            "mcp": {"y": 1}, "servers": {"z": []}});
        std::fs::write(&path, others.to_string()).unwrap();
        place.run(&["setup", client, "--yes"]);
        let once = std::fs::read_to_string(&path).unwrap();
        let mut rest = read();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        rest.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
        assert_eq!(rest, others, "{client}");
        assert!(place.run(&["setup", client, "--yes"]).contains("already contains patterm"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "a second time changes nothing");
    }
}

#[test]
fn codex_gets_a_table_and_keeps_its_comments() {
    let place = Place::new();
    let path = place.path("home/.codex/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"other\"\n";
    std::fs::write(&path, before).unwrap();
    place.run(&["setup", "codex", "--yes"]);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(before) && after.contains("[mcp_servers.patterm]"), "{after}");
    assert!(place.run(&["setup", "codex"]).contains("already contains patterm"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
}

#[test]
fn unparsable_settings_are_left_alone() {
    let place = Place::new();
    let path = place.path("home/.claude.json");
    std::fs::write(&path, "{ // mine\n}").unwrap();
    let error = fails(&place, &["setup", "claude", "--yes"]);
    assert!(
        error.contains("was not changed; add this by hand") && error.contains("mcpServers"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ // mine\n}");
}

#[test]
fn a_link_to_settings_stays_a_link() {
    let place = Place::new();
    let (real, link) = (place.path("dotfiles.json"), place.path("home/.claude.json"));
    std::fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    place.run(&["setup", "claude", "--yes"]);
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("patterm"));
}
