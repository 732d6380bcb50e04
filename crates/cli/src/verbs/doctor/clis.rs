//! Checks which agents' CLIs are installed, and their versions.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use patterm_wire::tools::{AgentInfo, AgentList};

use super::{Finding, broken, fair, good};
use crate::print::one_line;

const CHECK: &str = "agents";

/// The versions that patterm is tested with, by the names of the presets.
const TESTED: [(&str, &str); 4] =
    [("claude", "2.1.325"), ("codex", "0.166.0"), ("gemini", "0.61.0"), ("opencode", "1.18.33")];

/// How long the CLIs may take to print their versions: most of them start Node.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a version that are read: more than any CLI prints.
const VERSION_BYTES: u64 = 4096;

/// Checks the CLIs, and the server's settings about them unless the same file was found to have errors already.
pub(super) fn check(list: &AgentList, shows_fault: bool) -> Vec<Finding> {
    let found: Vec<_> = list.agents.iter().filter(|agent| agent.found).collect();
    let mut findings = match found.is_empty() {
        false => versions(&found),
        true => vec![fair(
            CHECK,
            "no agent CLI was found",
            "install Claude Code, Codex, opencode or Gemini CLI, or configure another in config.toml; \
             `patterm agents` says why each was not found",
        )],
    };
    findings.extend(invalid(&list.agents));
    if let Some(fault) = list.fault.as_ref().filter(|_| shows_fault) {
        findings.push(broken(
            "settings",
            fault.trim_end().lines().map(one_line).collect::<Vec<_>>().join("\n"),
            "fix this file; it is your own, not the project's",
        ));
    }
    findings
}

/// The presets that are invalid: nothing else says why they cannot be started.
fn invalid(agents: &[AgentInfo]) -> impl Iterator<Item = Finding> {
    let whys = agents.iter().filter(|agent| !agent.found).filter_map(|agent| agent.why.as_ref());
    // The words of `AgentError::BadPreset`.
    let whys = whys.filter(|why| why.starts_with("the preset ") && why.contains(" is invalid: "));
    whys.map(|why| {
        broken("settings", one_line(why), "fix this preset in config.toml or patterm.toml")
    })
}

/// The CLIs that were found; those whose version may be a problem have a finding of their own.
fn versions(found: &[&AgentInfo]) -> Vec<Finding> {
    let until = Instant::now() + PATIENCE;
    // All of them start at the same time.
    let asked: Vec<_> = found.iter().map(|agent| (*agent, ask(agent))).collect();
    let (mut fine, mut findings) = (Vec::new(), Vec::new());
    for (agent, asked) in asked {
        let name = one_line(&agent.agent);
        let tested = TESTED.iter().find(|(known, _)| *known == agent.agent).map(|(_, v)| *v);
        let printed = asked.map(|asked| asked.answer(until));
        match (tested, printed) {
            (Some(tested), Some(printed)) => match finding(&name, tested, printed.as_deref()) {
                Ok(version) => fine.push(format!("{name} {version}")),
                Err(finding) => findings.push(finding),
            },
            _ => fine.push(name),
        }
    }
    if !fine.is_empty() {
        findings.insert(0, good(CHECK, fine.join(", ")));
    }
    findings
}

/// The version of a CLI, or a finding if it is too old or unknown.
fn finding(name: &str, tested: &str, printed: Option<&str>) -> Result<String, Finding> {
    match printed.and_then(version_in) {
        Some(version) if numbers(version) < numbers(tested) => Err(fair(
            CHECK,
            format!("{name} {version} is older than {tested}, with which patterm is tested"),
            "update it if patterm misreads its screen or its tools are missing",
        )),
        Some(version) => Ok(version.to_owned()),
        None => Err(fair(
            CHECK,
            format!("`{name} --version` prints no version"),
            "it may not start; run it once in a terminal, and reinstall it if it fails",
        )),
    }
}

/// The first word of a text that is a version.
fn version_in(text: &str) -> Option<&str> {
    let words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
    let is_version = |word: &&str| {
        word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()) && word.len() < 40
    };
    words.into_iter().find(is_version)
}

/// Its numbers, as far as they are numbers.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit()).take(3);
    parts.map_while(|part| part.parse().ok()).collect()
}

/// A CLI that was asked for its version.
struct Asked {
    child: Child,
    printed: mpsc::Receiver<String>,
}

/// Starts a CLI that is tested, to print its version.
#[expect(clippy::disallowed_methods, reason = "asks a program of the user's for its version")]
fn ask(agent: &AgentInfo) -> Option<Asked> {
    TESTED.iter().find(|(name, _)| *name == agent.agent)?;
    let mut command = Command::new(agent.program.as_ref()?);
    let command = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, printed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.take(VERSION_BYTES).read_to_end(&mut text);
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    Some(Asked { child, printed })
}

impl Asked {
    /// What it has printed by then. It is ended in any case.
    fn answer(mut self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        let printed = self.printed.recv_timeout(left).ok();
        let _ = self.child.kill();
        let _ = self.child.wait();
        printed
    }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn an_old_cli_and_one_without_a_version_are_found() {
        let check = |printed: Option<&str>| finding("claude", "2.1.325", printed);
        assert_eq!(check(Some("2.1.325 (Claude Code)\n")).unwrap(), "2.1.325");
        assert_eq!(check(Some("codex-cli v10.0.0\n")).unwrap(), "10.0.0");
        assert_eq!(check(Some("2.2.0-beta.1")).unwrap(), "2.2.0-beta.1");
        let old = check(Some("2.1.99 (Claude Code)")).unwrap_err();
        assert_eq!(old.health, Health::Fair);
        assert!(old.text.contains("claude 2.1.99 is older than 2.1.325"), "{}", old.text);
        for printed in [None, Some(""), Some("Error: cannot find module")] {
            assert!(check(printed).unwrap_err().text.contains("prints no version"), "{printed:?}");
        }
    }

    #[test]
    fn an_invalid_preset_is_reported_with_its_reason() {
        let agent = |why: &str| AgentInfo {
            agent: "fake".into(),
            title: String::new(),
            found: false,
            program: None,
            why: Some(why.into()),
        };
        let why = "the preset fake is invalid: unknown variant `enter`";
        let list = [agent(why), agent("Fake is not installed: fake was not found on PATH")];
        let found: Vec<_> = invalid(&list).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].health, found[0].text.as_str()), (Health::Broken, why));
    }

    #[test]
    fn the_tested_versions_are_those_of_the_tests() {
        let packages: serde_json::Value =
            serde_json::from_str(include_str!("../../../../../tests/clients/package.json"))
                .unwrap();
        let packages = &packages["dependencies"];
        for (name, package) in [
            ("claude", "@anthropic-ai/claude-code"),
            ("codex", "@openai/codex"),
            ("gemini", "@google/gemini-cli"),
            ("opencode", "opencode-ai"),
        ] {
            let tested = TESTED.iter().find(|(known, _)| *known == name).unwrap().1;
            assert_eq!(packages[package], tested, "{name}");
        }
    }
}
