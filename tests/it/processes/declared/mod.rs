//! Processes that the project file declares: nothing runs before a person trusts its content, and
//! then everything follows the file.

mod changes;
mod health;
mod order;
mod own_verbs;
mod owners;
mod pending;
mod ready;
mod restarts;
mod site;
mod stopping;
mod survival;
mod trust;
mod up;
mod up_wait;

use patterm_project::project_file::Content;
use rustix::event::{Timespec, poll};
use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, alive, until};
use crate::support::{Place, Serving};

/// Writes the project file of a place.
fn write(place: &Place, text: &str) {
    std::fs::write(place.path("project").join("patterm.toml"), text).unwrap();
}

/// The hash of the file's content.
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

/// Trusts the current file.
#[track_caller]
fn trust(place: &Place, tools: &mut ToolClient) {
    tools.ok("patterm/trust", json!({"hash": hash(place)}));
}

/// The status of the file.
#[track_caller]
fn standing(tools: &mut ToolClient) -> Value {
    tools.ok("get_project_status", json!({}))["project_file"].take()
}

/// The list entry of a declared process.
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

/// A program that writes the ids of its processes to `pids`, and hangs with children in its group and in a session of
/// their own. If processes of an earlier run are alive, it writes that to `twice`.
const HANGS: &str = "for pid in $(cat pids 2>/dev/null); do kill -0 $pid 2>/dev/null && echo $pid >>twice; done; \
    echo $$ >>pids; sleep 1000 & echo $! >>pids; setsid sh -c 'echo $$ >>pids; sleep 1000' & wait";

/// Waits until nothing of [`HANGS`] is left; it was never running twice.
#[track_caller]
fn nothing_hangs(place: &Place) {
    let file = |name: &str| std::fs::read_to_string(place.path("project").join(name));
    let pids: Vec<u32> = file("pids").unwrap().lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() >= 2, "{pids:?}");
    until("all are killed", || (!pids.iter().any(|pid| alive(*pid))).then_some(()));
    assert!(file("twice").is_err(), "two were running at once");
}

/// Polls a process until it matches; returns its status.
#[track_caller]
fn once(tools: &mut ToolClient, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let id = id(tools, name);
    let mut last = Value::Null;
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until(what, || {
            // There is no event for it; the work is done by threads that yield to this one.
            let turn = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            poll(&mut [], Some(&turn)).unwrap();
            last = tools.status(&id);
            wanted(&last).then(|| last.clone())
        })
    }));
    seen.unwrap_or_else(|_| panic!("{name} is not {what}: {last}"))
}
