//! Processes that the project file declares: nothing before the person trusts its content, and then
//! as it says.

mod changes;
mod order;
mod owners;
mod restarts;
mod survival;
mod trust;

use patterm_project::project_file::Content;
use rustix::event::{Timespec, poll};
use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Serving};

/// Writes the project file of a place.
fn write(place: &Place, text: &str) {
    std::fs::write(place.path("project").join("patterm.toml"), text).unwrap();
}

/// The hash of what the file holds.
fn hash(place: &Place) -> String {
    Content::read(place.project().root()).unwrap().unwrap().hash
}

/// A server of a project whose file is trusted.
#[track_caller]
fn trusted(text: &str) -> (Place, Serving, ToolClient) {
    let place = Place::new();
    write(&place, text);
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    trust(&place, &mut tools);
    (place, server, tools)
}

/// Trusts the file as it is now.
#[track_caller]
fn trust(place: &Place, tools: &mut ToolClient) {
    tools.ok("patterm/trust", json!({"hash": hash(place)}));
}

/// How the file stands.
#[track_caller]
fn standing(tools: &mut ToolClient) -> Value {
    tools.ok("get_project_status", json!({}))["project_file"].take()
}

/// The process of a name in the file, as it is listed.
#[track_caller]
fn named(tools: &mut ToolClient, name: &str) -> Option<Value> {
    let listed = tools.ok("list_processes", json!({}));
    let all = listed["processes"].as_array().unwrap().clone();
    all.into_iter().find(|process| process["preset"] == name && process["declared"] == true)
}

/// Its id.
#[track_caller]
fn id(tools: &mut ToolClient, name: &str) -> String {
    let process = named(tools, name).unwrap_or_else(|| panic!("no declared process {name}"));
    process["process_id"].as_str().unwrap().to_owned()
}

/// Looks at a process until it stands as wanted; returns everything known of it.
#[track_caller]
fn once(tools: &mut ToolClient, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let id = id(tools, name);
    let mut last = Value::Null;
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until(what, || {
            // No event tells of it; what is looked at is done by threads that give way to this one.
            let turn = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            poll(&mut [], Some(&turn)).unwrap();
            last = tools.status(&id);
            wanted(&last).then(|| last.clone())
        })
    }));
    seen.unwrap_or_else(|_| panic!("{name} is not {what}: {last}"))
}
