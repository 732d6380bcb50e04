//! The official conformance suite against the tests' server, through its endpoint: a check that
//! passes here passes through the relay as if the server spoke HTTP itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::harness::{Harness, ServerConfig};
use crate::clients::installed;

/// The suite, as `tests/clients/package.json` pins it.
const SUITE: &str = "0.2.0-alpha.12";

/// The scenarios that may fail, with the runs and the reasons. A listed scenario that passes fails
/// the test. Nothing that a revision requires fails in the two runs that are named after it alone.
const EXCEPTIONS: [(&[&str], &[&str], &str); 4] = [
    (
        &["2026-07-28", "2026-07-28 of an older server"],
        &[
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        ],
        "tasks are an extension that no revision requires, and that the server of the tests does \
         not have; through the relay they are requests like all others",
    ),
    (
        &["2025-11-25 shared by all", "2025-11-25 of a stateless server"],
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
        "a server that all share is told that clients have no capabilities: it is not known whom it would ask; \
         `share = \"session\"` is for servers that ask",
    ),
    (
        &["2025-11-25 of a stateless server"],
        &["resources-subscribe", "resources-unsubscribe"],
        "a stateless server has `subscriptions/listen` in their place; the refusal says so",
    ),
    (
        &["2026-07-28 of an older server"],
        &["input-required-result-capability-check"],
        "an older server hears of its clients' capabilities once, for all of them",
    ),
];

#[derive(Deserialize)]
struct Run {
    version: String,
    scenarios: BTreeMap<String, Vec<Check>>,
}

#[derive(Deserialize)]
struct Check {
    id: String,
    name: String,
    status: String,
    #[serde(default)]
    message: Option<String>,
}

/// Runs everything that a revision requires, and the suite's extra scenarios for that revision.
#[track_caller]
fn check(run: &str, revision: &str, least: usize, config: ServerConfig) {
    let harness = Harness::of(config);
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/drivers/conformance");
    let mut driver = harness.place.command(&driver);
    driver.args([
        "--install",
        &installed(),
        "--url",
        &harness.url(),
        "--token",
        &harness.tokens[0],
    ]);
    driver.args(["--requirements", revision]);
    let output = driver.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let ran: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ran.version, SUITE);

    let excuses: Vec<_> = EXCEPTIONS.iter().filter(|(runs, ..)| runs.contains(&run)).collect();
    let mut passed = 0;
    let mut failed = Vec::new();
    let mut excused = BTreeSet::new();
    for (scenario, checks) in &ran.scenarios {
        for Check { id, name, status, message } in checks {
            match status.as_str() {
                "SUCCESS" => passed += 1,
                "FAILURE" | "WARNING" => {
                    let excuse = excuses.iter().find(|(_, of, _)| of.contains(&scenario.as_str()));
                    match excuse {
                        Some(_) => drop(excused.insert(scenario.as_str())),
                        None => {
                            failed.push(format!("{status} {scenario}: {id} ({name}): {message:?}"));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let scenarios = ran.scenarios.len();
    let summary = format!(
        "{run}: {passed} checks passed in {scenarios} scenarios, {} excused",
        excused.len()
    );
    assert!(failed.is_empty(), "{summary}\n{}", failed.join("\n"));
    let stale: Vec<_> = excuses
        .iter()
        .flat_map(|(_, scenarios, ..)| scenarios.iter())
        .filter(|scenario| !excused.contains(**scenario))
        .collect();
    assert!(stale.is_empty(), "{summary}; these need no exception: {stale:?}");
    assert!(passed >= least, "{summary}; there were {least} once");
    if let Some(folder) = std::env::var_os("PATTERM_CLIENT_REPORT") {
        let file = format!("conformance {run}").replace(' ', "-");
        std::fs::write(Path::new(&folder).join(file), format!("conformance {summary}\n")).unwrap();
    }
}

#[test]
fn conformance_of_2025_11_25() {
    check("2025-11-25", "2025-11-25", 80, ServerConfig::with("share = 'session'"));
}

#[test]
fn conformance_of_2025_11_25_shared_by_all() {
    check("2025-11-25 shared by all", "2025-11-25", 66, ServerConfig::default());
}

#[test]
fn conformance_of_2025_11_25_with_a_stateless_server() {
    let config = ServerConfig::started(&["--era", "modern"]);
    check("2025-11-25 of a stateless server", "2025-11-25", 64, config);
}

#[test]
fn conformance_of_2026_07_28() {
    check("2026-07-28", "2026-07-28", 164, ServerConfig::default());
}

#[test]
fn conformance_of_2026_07_28_with_an_older_server() {
    let config = ServerConfig::started(&["--era", "legacy"]);
    check("2026-07-28 of an older server", "2026-07-28", 160, config);
}
