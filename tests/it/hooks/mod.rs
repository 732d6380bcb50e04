//! Hooks of the real server: commands, requests, and who may do what.

mod commands;
mod requests;
mod rights;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};

/// Writes the user's settings.
fn configure(place: &Place, text: &str) {
    let folder = place.path("home/.config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

/// A hook as `patterm hooks --json` shows it.
fn hook(tools: &mut ToolClient, name: &str) -> Option<Value> {
    let list = tools.ok("patterm/hooks", json!({}))["hooks"].take();
    list.as_array().unwrap().iter().find(|hook| hook["name"] == name).cloned()
}

/// Waits until a hook looks as wanted.
fn hook_until(tools: &mut ToolClient, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    until(name, || hook(tools, name).filter(&is_wanted))
}

/// The events of a type.
fn events(tools: &mut ToolClient, kind: &str) -> Vec<Value> {
    let page = tools.ok("get_events", json!({"since": 1, "types": [kind], "limit": 1000}));
    page["events"].as_array().unwrap().clone()
}

/// Runs a program to its end.
fn exit_once(tools: &mut ToolClient) {
    let id = tools.run(&["true"]);
    tools.ended(&id);
}

/// The lines of a file, which may not exist yet.
fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
