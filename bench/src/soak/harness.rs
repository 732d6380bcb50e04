//! The project in which it all happens: a server with its door open, and its fifty panes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use anyhow::Context;
use serde_json::json;

use super::agents::{self, Mock};
use super::journal::Journal;
use crate::session::{Place, Tools};
use crate::text;

/// Panes of each kind; with the agents they are fifty.
const SHELLS: usize = 10;
const CATS: usize = 2;
const COUNTERS: usize = 12;
const BURSTS: usize = 8;
const DRAWINGS: usize = 8;
const BRIEF: usize = 6;
const FAKES: usize = 3;

/// Output of each pane kept on disk: little enough that bursts go over it.
const LOG_BYTES: u64 = 4 << 20;

/// What scrolled off all screens together may take in memory: little enough to be full in the first
/// minutes, so that what grows later is something else.
const HISTORY: (&str, &str) = ("PATTERM_LIMITS", "history_bytes=16777216");

/// What a burst prints, and how often.
const BURST_BYTES: usize = 200_000;
const BURST_SECONDS: &str = "20";

/// Where it happens, and who takes part. What runs ends before its model.
pub(super) struct Harness {
    pub(super) place: Place,
    pub(super) journal: Journal,
    pub(super) shells: Vec<String>,
    pub(super) cats: Vec<String>,
    pub(super) counters: Vec<String>,
    pub(super) bursts: Vec<String>,
    pub(super) drawings: Vec<String>,
    pub(super) brief: Vec<String>,
    pub(super) fakes: Vec<String>,
    /// The real CLI, where it is installed.
    pub(super) claude: Option<String>,
    /// For the HTTP door.
    pub(super) token: String,
    pub(super) port: u16,
    /// The process of the person's TUI, 0 while there is none.
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
        let place = Place::serving_with(&flags, &settings, home)?;
        let made = place.patterm(&["token", "new", "soak"]).output()?;
        let token = String::from_utf8(made.stdout)?.trim().to_owned();
        let port = place.http.context("the door is not open")?.port();
        let file = place.folder().join("text");
        text::write(&file, BURST_BYTES)?;
        let file = file.to_str().context("no text")?.to_owned();
        let pane = place.program("pane").get_program().to_string_lossy().into_owned();
        let mut tools = place.connect()?;
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
            place,
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

    /// All that print on their own.
    pub(super) fn printing(&self) -> impl Iterator<Item = &String> {
        let steady = self.counters.iter().chain(&self.bursts);
        steady.chain(&self.drawings).chain(&self.brief)
    }

    /// A connection on which nobody waits for ever.
    pub(super) fn connect(&self) -> anyhow::Result<Tools> {
        let tools = self.place.connect()?;
        tools.patience(super::PATIENCE)?;
        Ok(tools)
    }
}

fn spawned(tools: &mut Tools, tool: &str, arguments: &serde_json::Value) -> anyhow::Result<String> {
    let started = tools.call(tool, arguments)?;
    Ok(started["process_id"].as_str().context("no id")?.to_owned())
}
