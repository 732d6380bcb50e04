//! Agents: a real CLI with the tests' mock model, and the tests' own small agent.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::harness::Harness;
use super::{TIMEOUT, Worker};
use crate::session::Tools;

/// A fake API key; claude accepts only a known one.
const KEY: &str = "sk-mock-0123456789-abcdefghij";

/// How often a receipt is polled.
const POLL: Duration = Duration::from_millis(250);

/// The preset of the small agent.
const FAKE: &str = include_str!("../../../tests/agents/fake.toml");

/// The model on loopback; ends when dropped.
pub(super) struct Mock {
    pub(super) url: String,
    child: Child,
}

impl Mock {
    #[expect(clippy::disallowed_methods, reason = "benchmarks start what they measure")]
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(tests().join("agents/mock-model"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)?;
        Ok(Self { url: told["url"].as_str().context("no address")?.to_owned(), child })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// The folder of the real CLIs, if `scripts/bench` installed them.
pub(super) fn installed() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("PATTERM_BENCH_CLIENTS")?);
    let programs = folder.join("node_modules/.bin");
    programs.join("claude").exists().then_some(programs)
}

pub(super) fn settings() -> anyhow::Result<String> {
    let program = tests().join("agents/fake-agent").canonicalize()?;
    Ok(FAKE.replace("{{program}}", program.to_str().context("not UTF-8")?))
}

/// A home in which claude asks nothing, with the mock as its model and no other network access.
pub(super) fn home(
    folder: &Path,
    url: &str,
    programs: Option<&Path>,
) -> anyhow::Result<HashMap<String, String>> {
    let home = folder.join("home");
    let project = folder.canonicalize()?;
    let release = programs.and_then(|programs| {
        let package = programs.join("../@anthropic-ai/claude-code/package.json");
        let package: Value = serde_json::from_slice(&std::fs::read(package).ok()?).ok()?;
        Some(package["version"].clone())
    });
    let known = json!({
        "lastReleaseNotesSeen": release,
        "hasCompletedOnboarding": true,
        "numStartups": 5,
        "hasSeenAutoDefaultNotice": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {project.to_str().context("not UTF-8")?: {"hasTrustDialogAccepted": true}},
        "officialMarketplaceAutoInstallAttempted": true,
        "officialMarketplaceAutoInstalled": true,
    });
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join(".claude.json"), known.to_string())?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = programs.map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders)?.into_string();
    let path = path.map_err(|_| anyhow::anyhow!("PATH is not UTF-8"))?;
    let inside = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let pairs = [
        ("HOME", inside("home")),
        ("PATH", path),
        ("FAKE_LOG", inside("fake.log")),
        ("HTTP_PROXY", url.to_owned()),
        ("HTTPS_PROXY", url.to_owned()),
        ("NO_PROXY", "127.0.0.1,localhost".into()),
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        ("ANTHROPIC_API_KEY", KEY.into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
    ];
    Ok(pairs.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Sends messages to the small agents.
pub(super) struct Messages {
    harness: Arc<Harness>,
    tools: Tools,
    sent: usize,
}

impl Messages {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, sent: 0 })
    }
}

impl Worker for Messages {
    const NAME: &str = "messages";
    const PAUSE: Duration = Duration::from_secs(5);

    fn step(&mut self) -> anyhow::Result<()> {
        let target = &self.harness.fakes[self.sent % self.harness.fakes.len()];
        self.sent += 1;
        deliver(&mut self.tools, target, &format!("soak-{}", self.sent))?;
        self.harness.journal.did("messages delivered");
        Ok(())
    }

    /// Each arrived once, complete.
    fn finish(&mut self) -> anyhow::Result<()> {
        let log = std::fs::read_to_string(self.harness.workspace.folder().join("fake.log"))?;
        let turns: Vec<String> = log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        for number in 1..=self.sent {
            let text = format!("[external] soak-{number}");
            let times = turns.iter().filter(|turn| **turn == text).count();
            anyhow::ensure!(times == 1, "`{text}` arrived {times} times");
        }
        Ok(())
    }
}

/// Gives the real CLI turns with calls of patterm's tools, and sometimes a sub-agent.
pub(super) struct Rounds {
    harness: Arc<Harness>,
    tools: Tools,
    claude: String,
    turns: usize,
}

impl Rounds {
    pub(super) fn new(harness: &Arc<Harness>, claude: &str) -> anyhow::Result<Self> {
        let tools = harness.connect()?;
        Ok(Self { harness: harness.clone(), tools, claude: claude.to_owned(), turns: 0 })
    }
}

impl Worker for Rounds {
    const NAME: &str = "claude";
    const PAUSE: Duration = Duration::from_secs(30);

    fn step(&mut self) -> anyhow::Result<()> {
        self.turns += 1;
        let turn = self.turns;
        let team = r#" ;; call spawn_agent {"agent": "fake", "name": "sub"} ;; call close_process {"process_id": "{{result.1.process_id}}"}"#;
        let team = if turn.is_multiple_of(4) { team } else { "" };
        let note = format!("turn {turn};");
        let text = format!(
            "mock: call scratchpad_append {{\"name\": \"claude\", \"content\": \"{note}\"}}{team} \
             ;; say turn {turn} is over"
        );
        deliver(&mut self.tools, &self.claude, &text)?;
        let claude = json!({"process_id": self.claude});
        until(&format!("the end of turn {turn}"), || {
            let pad = self.tools.call("scratchpad_read", &json!({"name": "claude"}));
            // There is no scratchpad before the first turn.
            let content = pad.unwrap_or_default()["content"].as_str().unwrap_or("").to_owned();
            let state = self.tools.call("get_process_status", &claude)?["activity"].take();
            let done = content.ends_with(&note) && state["state"] == "idle";
            Ok(if done { Ok(()) } else { Err(format!("{state}, pad {content}")) })
        })?;
        self.harness.journal.did("claude's turns");
        if !team.is_empty() {
            let listed = self.tools.call("list_processes", &json!({"kind": "agent"}))?;
            let agents = listed["processes"].as_array().map_or(0, Vec::len);
            anyhow::ensure!(agents == self.harness.fakes.len() + 1, "{agents} agents are left");
            self.harness.journal.did("sub-agents started and closed");
        }
        Ok(())
    }
}

/// Sends a message and waits until it is delivered.
fn deliver(tools: &mut Tools, target: &str, message: &str) -> anyhow::Result<()> {
    let arguments = json!({"target_process_id": target, "message": message});
    let sent = tools.call("send_message", &arguments)?;
    let id = sent["message_id"].clone();
    until(&format!("the delivery of {message} to {target}"), || {
        let status = tools.call("get_project_status", &json!({}))?;
        let messages = status["messages"].as_array().context("no messages")?;
        let found = messages.iter().find(|known| known["message_id"] == id);
        let receipt = found.context("the message is forgotten")?["receipt"].clone();
        match receipt["state"].as_str() {
            Some("delivered") => Ok(Ok(())),
            Some("queued") => Ok(Err(receipt.to_string())),
            _ => anyhow::bail!("{message}: {receipt}"),
        }
    })
}

/// Polls until it is so; the error contains what was seen last.
pub(super) fn until(
    what: &str,
    mut look: impl FnMut() -> anyhow::Result<Result<(), String>>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let Err(seen) = look()? else { return Ok(()) };
        anyhow::ensure!(start.elapsed() < TIMEOUT, "timed out: {what}; last seen: {seen}");
        crate::proc::pause(POLL);
    }
}
