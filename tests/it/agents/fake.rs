//! A fake agent (`tests/agents/fake-agent`) in place of a real CLI: for requirements on all agents,
//! tested quickly.

use std::path::Path;

use serde_json::json;

use super::bench::{Receipt, receipt_of, send};
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Spawned};

/// A project with a server that knows the fake agent as several presets.
pub(super) struct Fake {
    pub(super) place: Place,
    pub(super) server: Spawned,
    pub(super) tools: ToolClient,
}

/// The presets of the fake agents, some of which misbehave.
const SETTINGS: &str = concat!(
    include_str!("../../agents/fake.toml"),
    r#"
[agents.never]
like = "fake"
args = ["--never"]

[agents.ends]
like = "fake"
args = ["--exit", "3"]

[agents.drops]
like = "fake"
args = ["--drops"]

[agents.late]
like = "fake"
args = ["--late"]

[agents.interrupts]
like = "fake"
args = ["--interrupts"]

[agents.keeps]
like = "fake"
args = ["--keeps"]

[agents.tabbed]
like = "fake"
[agents.tabbed.input]
submit_while_working = "tab"
hold_ms = 6000

[agents.hooked]
like = "fake"
[agents.hooked.inject.env]
FAKE_HOOK = "{{part:hook}}"
[agents.hooked.hooks.turn]
prompt = "/prompt"

[agents.plain]
program = "{{program}}"

[agents.missing]
like = "fake"
program = "no-such-program"
"#
);

impl Fake {
    pub(super) fn new() -> Self {
        Self::with_limits("")
    }

    /// The same with a server that has these limits.
    pub(super) fn with_limits(limits: &str) -> Self {
        let mut place = Place::new();
        settle(&mut place, "");
        if !limits.is_empty() {
            place.set("PATTERM_LIMITS", limits);
        }
        let server = place.serve();
        let tools = ToolClient::at(&server.socket());
        Self { place, server, tools }
    }

    #[track_caller]
    pub(super) fn spawn(&mut self, preset: &str) -> String {
        id_of(&self.tools.ok("spawn_agent", json!({"agent": preset})))
    }

    /// Starts a fake agent and waits until it is ready.
    #[track_caller]
    pub(super) fn spawn_ready(&mut self) -> String {
        let id = self.spawn("fake");
        self.until_state(&id, "idle");
        id
    }

    #[track_caller]
    pub(super) fn send(&mut self, id: &str, message: &str) -> Receipt {
        send(&mut self.tools, id, message)
    }

    #[track_caller]
    pub(super) fn until_state(&mut self, id: &str, state: &str) {
        until(&format!("{id} is {state}"), || {
            (self.tools.status(id)["activity"]["state"] == state).then_some(())
        });
    }

    /// Waits until a receipt has this state and contains these words.
    #[track_caller]
    pub(super) fn until_receipt(&mut self, message: u64, state: &str, words: &str) -> Receipt {
        until(&format!("message {message} is {state}: {words}"), || {
            let receipt = receipt_of(&mut self.tools, message);
            (receipt.state == state && receipt.evidence.contains(words)).then_some(receipt)
        })
    }

    /// The turns of fake agents.
    pub(super) fn turns(&self) -> Vec<String> {
        turns(&self.place)
    }

    pub(super) fn until_turns(&self, count: usize) -> Vec<String> {
        until(&format!("{count} turns"), || Some(self.turns()).filter(|t| t.len() >= count))
    }
}

/// Configures the fake agents in a place, with additional settings.
pub(crate) fn settle(place: &mut Place, more: &str) {
    place.set("FAKE_LOG", place.path("fake.log"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/fake-agent");
    let settings = format!("{SETTINGS}{more}").replace("{{program}}", program.to_str().unwrap());
    let folder = place.path("home/.config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
}

/// The turns of fake agents there.
pub(crate) fn turns(place: &Place) -> Vec<String> {
    let log = std::fs::read_to_string(place.path("fake.log")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
