//! The types of events: those that the contract lists are known, recorded and tested.

use std::collections::BTreeSet;
use std::path::Path;

use patterm_wire::events::Fact;

/// The contract, in its own form.
const CONTRACT: &str = "process.{created,started,exited,stopped,signalled,restarted,renamed,closed,lost} \
    agent.{ready,working,idle,blocked,failed,limited,resumed,turn_ended} dialog.{answered} input.{sent} \
    message.{accepted,delivered,queued,stalled,dropped} timer.{set,fired,paused,resumed,cancelled} \
    pad.{created,written,appended,edited_outside} attention.{raised,cleared} port.{opened,closed} \
    server.{started,failed,stopped} tool.{called} git.{commit,branch} worktree.{created,merged,removed} \
    project_file.{changed,trusted} view.{attached,detached} system.{started,upgraded,recovered,clock_changed}";

/// Where the types are declared.
const FACTS: &str = "crates/wire/src/events/fact.rs";

/// Types that the contract does not list.
const FURTHER: [&str; 2] = ["hook.failed", "pad.deleted"];

/// Types that nothing records yet.
const NOT_BUILT: [&str; 3] = ["worktree.created", "worktree.merged", "worktree.removed"];

/// Where events are recorded.
const RECORDERS: [&str; 18] = [
    "crates/agents/src/agent_recorder.rs",
    "crates/agents/src/answer.rs",
    "crates/agents/src/delivery/recorder.rs",
    "crates/events/src/store.rs",
    "crates/events/src/timeline.rs",
    "crates/hooks/src/worker.rs",
    "crates/host/src/git_recorder/recording.rs",
    "crates/host/src/port_recorder.rs",
    "crates/host/src/server.rs",
    "crates/host/src/shared/server_recorder.rs",
    "crates/host/src/socket/dispatch.rs",
    "crates/host/src/socket/view.rs",
    "crates/host/src/tools/registry.rs",
    "crates/host/src/tools/send_input.rs",
    "crates/host/src/tools/signal_process.rs",
    "crates/pads/src/recorder.rs",
    "crates/panes/src/process/recorder.rs",
    "crates/timers/src/recorder.rs",
];

/// Types that take more than a call of a tool, with a file whose tests name them.
const TESTED: [(&str, &str); 17] = [
    ("agent.failed", "crates/agents/src/agent_recorder.rs"),
    ("agent.limited", "crates/agents/src/agent_recorder.rs"),
    ("agent.resumed", "crates/agents/src/agent_recorder.rs"),
    ("dialog.answered", "crates/agents/src/agent_recorder.rs"),
    ("git.branch", "tests/it/events/commits.rs"),
    ("git.commit", "tests/it/events/mod.rs"),
    ("hook.failed", "tests/it/hooks/requests.rs"),
    ("message.stalled", "tests/it/agents/left_in_prompt.rs"),
    ("port.closed", "tests/it/events/ports.rs"),
    ("port.opened", "tests/it/events/ports.rs"),
    ("process.lost", "crates/panes/src/process/recorder.rs"),
    ("server.failed", "tests/it/events/servers.rs"),
    ("server.started", "tests/it/events/servers.rs"),
    ("server.stopped", "tests/it/events/servers.rs"),
    ("system.clock_changed", "crates/events/src/timeline.rs"),
    ("system.recovered", "crates/events/src/store_tests.rs"),
    ("system.upgraded", "crates/host/src/server.rs"),
];

/// The name of a type in the code.
fn variant(facts: &str, kind: &str) -> String {
    let (before, _) = facts.split_once(&format!(" = \"{kind}\" in")).unwrap();
    before.rsplit(char::is_whitespace).next().unwrap().to_owned()
}

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn the_types_of_the_contract_are_known_and_recorded() {
    let groups = CONTRACT.split_whitespace().map(|group| group.split_once('.').unwrap());
    let contract: BTreeSet<String> = groups
        .flat_map(|(group, names)| {
            let names = names.trim_matches(['{', '}']).split(',');
            names.map(move |name| format!("{group}.{name}"))
        })
        .chain(FURTHER.map(str::to_owned))
        .collect();
    let known: BTreeSet<String> = Fact::TYPES.iter().map(ToString::to_string).collect();
    assert_eq!(contract, known);
    let facts = text(FACTS);
    let recorders: String = RECORDERS.map(text).concat();
    for kind in Fact::TYPES {
        let variant = variant(&facts, kind);
        let is_recorded = recorders.contains(&format!("Fact::{variant} "));
        assert_eq!(is_recorded, !NOT_BUILT.contains(kind), "{kind}, {variant}");
    }
}

#[test]
fn types_that_a_short_session_does_not_cause_have_a_test() {
    let facts = text(FACTS);
    for (kind, file) in TESTED {
        let (text, variant) = (text(file), variant(&facts, kind));
        let (_, tests) = text.split_once("#[cfg(test)]").unwrap_or(("", &text));
        let names = [format!("\"{kind}\""), format!("Fact::{variant} ")];
        assert!(names.iter().any(|name| tests.contains(name)), "{kind} is not in {file}");
    }
}
