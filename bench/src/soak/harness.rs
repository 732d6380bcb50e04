//! The project of the soak test: a server with its HTTP endpoint, and fifty panes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use anyhow::Context;
use serde_json::json;

use super::agents::{self, Mock};
use super::journal::Journal;
use crate::session::{Tools, Workspace};
use crate::text;

/// Panes of each kind; with the agents they are fifty.
const SHELLS: usize = 10;
const CATS: usize = 2;
const COUNTERS: usize = 12;
const BURSTS: usize = 8;
const DRAWINGS: usize = 8;
const BRIEF: usize = 6;
const FAKES: usize = 3;

/// Output of each pane kept on disk: little enough that bursts exceed it.
const LOG_BYTES: u64 = 4 << 20;

/// The history budget of all panes: small enough to be full in the first minutes, so that later growth
/// has another cause.
const HISTORY: (&str, &str) = ("PATTERM_LIMITS", "history_bytes=16777216");

/// What a burst prints, and how often.
const BURST_BYTES: usize = 200_000;
const BURST_SECONDS: &str = "20";

/// The workspace and its participants. Programs end before their model.
pub(super) struct Harness {
    pub(super) workspace: Workspace,
    pub(super) journal: Journal,
    pub(super) shells: Vec<String>,
    pub(super) cats: Vec<String>,
    pub(super) counters: Vec<String>,
    pub(super) bursts: Vec<String>,
    pub(super) drawings: Vec<String>,
    pub(super) brief: Vec<String>,
    pub(super) fakes: Vec<String>,
    /// The real CLI, if it is installed.
    pub(super) claude: Option<String>,
    /// The token for HTTP.
    pub(super) token: String,
    pub(super) port: u16,
    /// The process of the user's TUI; 0 if there is none.
    pub(super) tui: AtomicU32,
    _mock: Mock,
}

impl Harness {
    pub(super) fn new() -> anyhow::Result<Arc<Self>> {
        let mock = Mock::start()?;
        let clients = agents::installed();
        let plain = std::env::current_exe()?.with_file_name("plain-server");
        let settings = format!(
            "[servers.plain]\ncommand = [{plain:?}]\nidle_seconds = 20\n{}",
            agents::settings()?
        );
        let flags = ["--http=127.0.0.1:0", &format!("--max-log-bytes={LOG_BYTES}")];
        let home = |folder: &Path| {
            let mut home = agents::home(folder, &mock.url, clients.as_deref())?;
            home.insert(HISTORY.0.to_owned(), HISTORY.1.to_owned());
            Ok(home)
        };
        let workspace = Workspace::serving_with(&flags, &settings, home)?;
        let made = workspace.patterm(&["token", "new", "soak"]).output()?;
        let token = String::from_utf8(made.stdout)?.trim().to_owned();
        let port = workspace.http.context("the endpoint is not open")?.port();
        let file = workspace.folder().join("text");
        text::write(&file, BURST_BYTES)?;
        let file = file.to_str().context("no text")?.to_owned();
        let pane = workspace.program("pane").get_program().to_string_lossy().into_owned();
        let mut tools = workspace.connect()?;
        let mut many = |count: usize, argv: &[&str]| -> anyhow::Result<Vec<String>> {
            (0..count).map(|_| tools.spawn(argv)).collect()
        };
        let cats = many(CATS, &["cat"])?;
        let counters = many(COUNTERS, &[&pane, "count", "200"])?;
        let bursts = many(BURSTS, &[&pane, "burst", &file, BURST_SECONDS])?;
        let drawings = many(DRAWINGS, &[&pane, "draw", "250"])?;
        let brief = many(BRIEF, &[&pane, "brief", "3"])?;
        let shell = |tools: &mut Tools| {
            let argv = ["bash", "--norc", "--noprofile"];
            spawned(tools, "spawn_process", &json!({"kind": "terminal", "argv": argv}))
        };
        let shells = (0..SHELLS).map(|_| shell(&mut tools)).collect::<Result<_, _>>()?;
        let agent = |tools: &mut Tools, preset: &str| {
            spawned(tools, "spawn_agent", &json!({"agent": preset}))
        };
        let fakes = (0..FAKES).map(|_| agent(&mut tools, "fake")).collect::<Result<_, _>>()?;
        let claude = clients.map(|_| agent(&mut tools, "claude")).transpose()?;
        Ok(Arc::new(Self {
            workspace,
            journal: Journal::default(),
            shells,
            cats,
            counters,
            bursts,
            drawings,
            brief,
            fakes,
            claude,
            token,
            port,
            tui: AtomicU32::new(0),
            _mock: mock,
        }))
    }

    /// All panes that print by themselves.
    pub(super) fn printing(&self) -> impl Iterator<Item = &String> {
        let steady = self.counters.iter().chain(&self.bursts);
        steady.chain(&self.drawings).chain(&self.brief)
    }

    /// A connection with a timeout.
    pub(super) fn connect(&self) -> anyhow::Result<Tools> {
        let tools = self.workspace.connect()?;
        tools.set_timeout(super::TIMEOUT)?;
        Ok(tools)
    }
}

fn spawned(tools: &mut Tools, tool: &str, arguments: &serde_json::Value) -> anyhow::Result<String> {
    let started = tools.call(tool, arguments)?;
    Ok(started["process_id"].as_str().context("no id")?.to_owned())
}
