//! The model that does what the prompt tells it (`tests/agents/mock-model`), and what it saw.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Place;

/// The model on loopback. It ends with this value.
pub(super) struct Mock {
    pub(super) url: String,
    child: Child,
    stdin: Option<ChildStdin>,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Log {
    events: Mutex<Vec<(Instant, Value)>>,
    grown: Condvar,
}

/// A request of a conversation, side turns excluded.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    /// Which of the model's interfaces it came by.
    pub(super) api: String,
    /// The newest text of the user's.
    pub(super) text: String,
    /// How all texts of the user's in this conversation begin, trimmed at their ends.
    pub(super) said: Vec<String>,
    /// How many texts of the user's the conversation has, and those since the model last spoke.
    users: usize,
    group: Vec<String>,
    /// The answer ends with a call of a tool: there is more to come.
    calls: bool,
    /// When the answer was over, and how.
    pub(super) ended: Option<(Instant, String)>,
    /// What the tools answered since the text.
    pub(super) results: Vec<String>,
    /// What patterm told it first, if the CLI passed that on.
    pub(super) instructions: String,
    /// The tools that the model was given, and the bytes of each definition.
    pub(super) tools: Vec<(String, u64)>,
}

impl Turn {
    /// The model has said all that it was told to say to this text.
    pub(super) fn is_final(&self) -> bool {
        !self.calls && self.ended.as_ref().is_some_and(|(_, how)| how == "complete")
    }
}

impl Mock {
    pub(super) fn start(place: &Place) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/mock-model");
        let mut command = place.command(&program);
        // What it writes down comes by the pipe, and is known as it happens.
        command.args(["--log", "/dev/stdout"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let log = Arc::<Log>::default();
        let reader = std::thread::spawn({
            let log = log.clone();
            move || read(stdout, &log)
        });
        let (url, stdin) = (told["url"].as_str().unwrap().to_owned(), child.stdin.take());
        Self { url, child, stdin, log, reader: Some(reader) }
    }

    /// The requests of the conversations, in order.
    pub(super) fn turns(&self) -> Vec<Turn> {
        let events = self.log.events.lock().unwrap();
        let mut turns: Vec<(u64, Turn)> = Vec::new();
        for (at, event) in events.iter() {
            let number = event["turn"].as_u64().unwrap_or_default();
            match event["event"].as_str() {
                Some("turn") if event["side"].is_null() => turns.push((number, turn(event))),
                Some("end") => {
                    if let Some((_, turn)) = turns.iter_mut().find(|(n, _)| *n == number) {
                        let how = event["how"].as_str().unwrap_or_default().to_owned();
                        turn.ended = Some((*at, how));
                    }
                }
                _ => {}
            }
        }
        turns.into_iter().map(|(_, turn)| turn).collect()
    }

    /// The texts that users said in conversations by this interface, each as often as it was said.
    /// opencode puts a blank behind what was pasted, and claude a line end between texts that it gives
    /// to the model at once: what stands behind a text does not count.
    pub(super) fn arrived(&self, api: &str) -> Vec<String> {
        let mut texts = Vec::new();
        let mut before: Option<Turn> = None;
        for turn in self.turns().into_iter().filter(|turn| turn.api == api) {
            let (users, last) = before.map_or((0, String::new()), |b| (b.users, b.text));
            let anew = turn.users <= users && turn.text != last;
            let new = if anew { 1 } else { turn.users.saturating_sub(users) };
            let from = turn.group.len().saturating_sub(new);
            texts.extend(turn.group[from..].iter().map(|text| text.trim_end().to_owned()));
            before = Some(turn);
        }
        texts
    }

    /// How much has happened.
    pub(super) fn events(&self) -> usize {
        self.log.events.lock().unwrap().len()
    }

    /// Waits until something more happened than so many events, but not for long.
    pub(super) fn more_than(&self, seen: usize, patience: Duration) {
        let events = self.log.events.lock().unwrap();
        let few = |events: &mut Vec<_>| events.len() <= seen;
        drop(self.log.grown.wait_timeout_while(events, patience, few).unwrap());
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn read(stdout: BufReader<ChildStdout>, log: &Log) {
    for line in stdout.lines() {
        let Ok(line) = line else { return };
        let Ok(event) = serde_json::from_str(&line) else { continue };
        log.events.lock().unwrap().push((Instant::now(), event));
        log.grown.notify_all();
    }
}

fn turn(event: &Value) -> Turn {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let since = event["since"].as_u64().unwrap_or_default();
    let results = list(&event["results"]);
    let before = results.len().saturating_sub(usize::try_from(since).unwrap());
    Turn {
        api: text(&event["api"]),
        text: text(&event["text"]),
        said: list(&event["said"]).iter().map(|said| text(said).trim_end().to_owned()).collect(),
        users: usize::try_from(event["users"].as_u64().unwrap_or_default()).unwrap(),
        group: list(&event["group"]).iter().map(text).collect(),
        calls: list(&event["steps"]).iter().any(|step| !step["call"].is_null()),
        ended: None,
        results: results[before..].iter().map(|result| text(&result["text"])).collect(),
        instructions: text(&event["instructions"]),
        tools: list(&event["tools"])
            .iter()
            .zip(list(&event["tool_bytes"]))
            .map(|(name, bytes)| (text(name), bytes.as_u64().unwrap_or_default()))
            .collect(),
    }
}
