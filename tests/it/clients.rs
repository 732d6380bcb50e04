//! Real MCP clients, pinned and installed by `tests/clients/install`: each connects through
//! `patterm mcp-stdio`, lists the tools and calls `whoami`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::Place;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// The folder where the clients are installed. Installation takes a minute the first time.
#[expect(clippy::disallowed_methods, reason = "tests start what they test")]
pub(crate) fn installed() -> String {
    let output = Command::new(clients().join("install")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/clients/install: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs one client in an empty project without a server, and checks what it saw.
#[track_caller]
fn check(client: &str, mode: Option<&str>, revision: Option<&str>) {
    let place = Place::new();
    let mut driver = place.command(&clients().join("drivers").join(client));
    driver.arg("--install").arg(installed());
    driver.args(mode.iter().flat_map(|mode| ["--mode", mode]));
    driver.arg("--").arg(place.patterm(&[]).get_program()).arg("mcp-stdio");
    let output = driver.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client}: {errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    for tool in ["whoami", "help"] {
        assert!(seen["tools"].as_array().unwrap().iter().any(|t| t == tool), "{seen}");
    }
    let me = &seen["whoami"];
    assert_eq!(me["caller"]["role"], "external", "{seen}");
    assert_eq!(me["project"]["path"], place.project().root().to_str().unwrap(), "{seen}");
    assert_eq!(me["server"]["name"], "patterm", "{seen}");
    if revision.is_some() {
        assert_eq!(seen["revision"].as_str(), revision, "{seen}");
    }
    report(&seen);
}

/// One line for the summary that `scripts/test` prints.
pub(crate) fn report(seen: &Value) {
    let Some(folder) = std::env::var_os("PATTERM_CLIENT_REPORT") else { return };
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let did: Vec<_> = seen["did"].as_array().into_iter().flatten().map(text).collect();
    let (client, mode) = (text(&seen["client"]), text(&seen["mode"]));
    let transport = text(&seen["transport"]);
    let line = format!(
        "{client:<11} {:<9} {transport:<5} mode {mode:<7} revision {:<11} {}\n",
        text(&seen["version"]),
        text(&seen["revision"]),
        did.join("; ")
    );
    std::fs::write(Path::new(&folder).join(format!("{client}-{transport}-{mode}")), line).unwrap();
}

#[test]
fn inspector() {
    check("inspector", Some("legacy"), Some("2025-11-25"));
    check("inspector", Some("auto"), Some("2026-07-28"));
    check("inspector", Some("modern"), Some("2026-07-28"));
}

#[test]
fn typescript_sdk() {
    check("ts-sdk", Some("legacy"), Some("2025-11-25"));
    check("ts-sdk", Some("auto"), Some("2026-07-28"));
    check("ts-sdk", Some("modern"), Some("2026-07-28"));
}

#[test]
fn python_sdk() {
    check("python-sdk", Some("legacy"), Some("2025-11-25"));
    check("python-sdk", Some("auto"), Some("2026-07-28"));
    check("python-sdk", Some("modern"), Some("2026-07-28"));
}

#[test]
fn claude() {
    check("claude", None, None);
}

#[test]
fn codex() {
    check("codex", Some("legacy"), None);
    check("codex", Some("modern"), None);
}

#[test]
fn opencode() {
    check("opencode", None, None);
}

#[test]
fn gemini() {
    check("gemini", None, None);
}
