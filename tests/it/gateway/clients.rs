//! Real MCP clients over HTTP: each lists the tools of the tests' server through its endpoint, and
//! of patterm through its own, and calls one.

use std::path::Path;

use serde_json::Value;

use super::client::Client;
use super::harness::{Harness, ServerConfig};
use crate::clients::{installed, report};

/// Runs one client in each of these modes, or in its own.
#[track_caller]
fn check(client: &str, modes: &[&str]) {
    let harness = Harness::of(ServerConfig::default());
    let modes: Vec<_> = match modes.is_empty() {
        true => vec![None],
        false => modes.iter().copied().map(Some).collect(),
    };
    for mode in &modes {
        let seen = drive(&harness, client, *mode, Client::PATH);
        assert_eq!(seen["whoami"]["server"]["name"], "everything-mcp", "{seen}");
        let tools = seen["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool == "test_simple_text"), "{seen}");
        report(&seen);
    }
    assert_eq!(harness.log.starts(), 1, "all of them share one server");
    let seen = drive(&harness, client, modes[modes.len() - 1], "/mcp");
    assert_eq!(seen["whoami"]["server"]["name"], "patterm", "{seen}");
    assert_eq!(seen["whoami"]["caller"]["role"], "external", "{seen}");
}

#[track_caller]
fn drive(harness: &Harness, client: &str, mode: Option<&str>, path: &str) -> Value {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/drivers").join(client);
    let mut driver = harness.place.command(&driver);
    driver.arg("--install").arg(installed());
    driver.args(mode.iter().flat_map(|mode| ["--mode", mode]));
    let url = format!("http://{}{path}", harness.address);
    driver.args(["--url", &url, "--token", &harness.tokens[0]]);
    let output = driver.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client}: {errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let revision = match mode {
        Some("legacy") => Some("2025-11-25"),
        Some(_) => Some("2026-07-28"),
        None => None,
    };
    if revision.is_some() {
        assert_eq!(seen["revision"].as_str(), revision, "{seen}");
    }
    seen
}

#[test]
fn inspector_over_http() {
    check("inspector", &["legacy", "auto", "modern"]);
}

#[test]
fn typescript_sdk_over_http() {
    check("ts-sdk", &["legacy", "auto", "modern"]);
}

#[test]
fn python_sdk_over_http() {
    check("python-sdk", &["legacy", "auto", "modern"]);
}

#[test]
fn claude_over_http() {
    check("claude", &[]);
}

#[test]
fn codex_over_http() {
    check("codex", &[]);
}

#[test]
fn opencode_over_http() {
    check("opencode", &[]);
}

#[test]
fn gemini_over_http() {
    check("gemini", &[]);
}
