//! The log of events of the real server: what is recorded, who did it, and that nothing is lost when the server dies.

mod blame;
mod commits;
mod damage;
mod death;
mod digest;
mod hostile_git;
mod ports;
mod reading;
mod servers;
mod types;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Spawned};

/// All events, and how many are missing.
fn all(tools: &mut ToolClient) -> (Vec<Value>, u64) {
    let (mut events, mut since, mut dropped) = (Vec::new(), 1, 0);
    loop {
        let page = tools.ok("get_events", json!({"since": since, "limit": 1000}));
        let found = page["events"].as_array().unwrap();
        dropped += page["dropped"].as_u64().unwrap();
        if found.is_empty() {
            return (events, dropped);
        }
        events.extend(found.iter().cloned());
        since = page["next"].as_u64().unwrap();
    }
}

/// The events of a type, about anything or about one process.
fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Numbers without gaps or repeats.
#[track_caller]
fn check_numbers(events: &[Value]) {
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

/// Settings for git that every place of these tests has.
const GIT_SETTINGS: &str = "[user]\nname = n\nemail = e@example.org\n[init]\ndefaultBranch = main\n\
    [protocol \"file\"]\nallow = always\n[commit]\ngpgSign = false\n";

/// A place with a repository in its project, and a server.
struct Repository {
    place: Place,
    server: Spawned,
    tools: ToolClient,
}

impl Repository {
    fn new() -> Self {
        Self::in_place(Place::new())
    }

    fn in_place(place: Place) -> Self {
        std::fs::write(place.path("home/.gitconfig"), GIT_SETTINGS).unwrap();
        let server = place.serve();
        let tools = ToolClient::at(&server.socket());
        let repository = Self { place, server, tools };
        repository.git(&["init", "--quiet"]);
        repository
    }

    /// What git prints, run outside of all panes.
    fn git(&self, arguments: &[&str]) -> String {
        let mut git = self.place.command(Path::new("git"));
        let output = git.args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a script in a pane of a person to its end; returns the id of the process.
    fn sh(&mut self, script: &str) -> String {
        let script = format!("set -e\n{script}\necho all is done");
        let id = self.place.run(&["run", "--", "sh", "-c", &script]).trim().to_owned();
        self.tools.wait(&id, "all is done");
        id
    }

    /// Waits until the event about a commit is recorded.
    fn commit(&mut self, hash: &str) -> Value {
        until(&format!("the event about {hash}"), || {
            let commits = self.commits();
            commits.into_iter().find(|event| event["data"]["commit"] == hash)
        })
    }

    /// All events about commits.
    fn commits(&mut self) -> Vec<Value> {
        let (events, _) = all(&mut self.tools);
        of_type(&events, "git.commit").into_iter().cloned().collect()
    }
}
