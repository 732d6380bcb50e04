//! The real program with its HTTP endpoint and a test server behind it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::client::Client;
use crate::support::Place;

/// A timeout longer than anything here takes; a test that reaches it has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The configuration of a server.
#[derive(Default)]
pub(super) struct ServerConfig {
    /// Lines in its settings.
    pub(super) settings: &'static str,
    /// The arguments of `everything-mcp`.
    pub(super) arguments: &'static [&'static str],
    /// Another program to run instead.
    pub(super) command: Option<&'static [&'static str]>,
}

impl ServerConfig {
    /// A server with these settings.
    pub(super) fn with(settings: &'static str) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A server with these arguments.
    pub(super) fn started(arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..Self::default() }
    }
}

/// A running server with its endpoint.
pub(super) struct Harness {
    pub(super) address: SocketAddr,
    pub(super) place: Place,
    pub(super) log: Log,
    /// Two valid tokens of different clients.
    pub(super) tokens: [String; 2],
}

impl Harness {
    /// One server, `everything`, from the user's settings.
    pub(super) fn of(config: ServerConfig) -> Self {
        let place = Place::new();
        let log = place.path("everything.log");
        let ours = || {
            let program = env!("CARGO_BIN_EXE_everything-mcp");
            let own = [program, "--log", log.to_str().unwrap()];
            own.into_iter().chain(config.arguments.iter().copied()).collect::<Vec<_>>()
        };
        // A JSON list is also a TOML list.
        let command = json!(config.command.map_or_else(ours, <[_]>::to_vec));
        let settings = place.path("home/.config/patterm");
        std::fs::create_dir_all(&settings).unwrap();
        let text = format!("[servers.everything]\ncommand = {command}\n{}\n", config.settings);
        std::fs::write(settings.join("config.toml"), text).unwrap();
        let log = Log::follow(&log);
        let entry = place.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
        let entry: Value = serde_json::from_str(&entry).unwrap();
        let address = entry["http"].as_str().unwrap().parse().unwrap();
        let token = |name| place.run(&["token", "new", name]).trim().to_owned();
        let tokens = ["one", "two"].map(token);
        Self { address, place, log, tokens }
    }

    /// The address of the endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.address, Client::PATH)
    }

    /// The status of the server from `GET /servers`.
    pub(super) fn status(&self) -> Value {
        let mut status = Client::of(self).get("/servers", &[]).json();
        status["servers"][0].take()
    }

    /// Polls the status until it matches.
    pub(super) fn until_status(&self, wanted: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        while !wanted(&self.status()) {
            assert!(begun.elapsed() < PATIENCE, "it never came: {}", self.status());
        }
    }
}

/// The log of everything that a server read, over all its runs.
pub(super) struct Log {
    pipe: File,
    written: Arc<(Mutex<Vec<String>>, Condvar)>,
}

/// A marker that a test writes, to know that everything before it was read.
const MARK: &str = "mark";

impl Log {
    /// A named pipe, so that a waiting test is woken by each write.
    fn follow(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Also open for writing, so that the end of one server is not the end of the log.
        let pipe = File::options().read(true).write(true).open(path).unwrap();
        let written = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        let (reader, lines) = (BufReader::new(pipe.try_clone().unwrap()), written.clone());
        std::thread::spawn(move || {
            for line in reader.lines() {
                lines.0.lock().unwrap().push(line.unwrap());
                lines.1.notify_all();
            }
        });
        Self { pipe, written }
    }

    /// Waits until this many messages of a method were read; returns all of them.
    #[track_caller]
    pub(super) fn until(&self, method: &str, times: usize) -> Vec<Value> {
        let lines = self.written.0.lock().unwrap();
        let few = |lines: &mut Vec<String>| of(lines, method).len() < times;
        let (lines, late) = self.written.1.wait_timeout_while(lines, PATIENCE, few).unwrap();
        assert!(!late.timed_out(), "not {times} of {method}; what came: {lines:#?}");
        of(&lines, method)
    }

    /// All lines up to now.
    #[track_caller]
    pub(super) fn lines(&self) -> Vec<String> {
        (&self.pipe).write_all(format!("{MARK}\n").as_bytes()).unwrap();
        let lines = self.written.0.lock().unwrap();
        let unread = |lines: &mut Vec<String>| !lines.iter().any(|line| line == MARK);
        let (mut lines, late) = self.written.1.wait_timeout_while(lines, PATIENCE, unread).unwrap();
        assert!(!late.timed_out(), "the log is not read");
        lines.retain(|line| line != MARK);
        lines.clone()
    }

    /// How often a server was started.
    pub(super) fn starts(&self) -> usize {
        self.lines().iter().filter(|line| line.starts_with("{\"started\"")).count()
    }

    /// How many messages of a method were read.
    pub(super) fn count(&self, method: &str) -> usize {
        of(&self.lines(), method).len()
    }
}

/// The messages of one method among those that were read.
fn of(lines: &[String], method: &str) -> Vec<Value> {
    let messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}
