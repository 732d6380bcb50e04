//! The mock model, which follows instructions in the prompt (`tests/agents/mock-model`), and its
//! record of what it received.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Place;

/// The model on loopback. It is ended on drop.
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
    /// The API through which it came.
    pub(super) api: String,
    /// The user's newest text.
    pub(super) text: String,
    /// The beginnings of all texts of the user in this conversation, trimmed.
    pub(super) said: Vec<String>,
    /// How many texts of the user the conversation has, and those since the model's last message.
    users: usize,
    group: Vec<String>,
    /// The answer ends with a tool call: the turn continues.
    calls: bool,
    /// When and how the answer ended.
    pub(super) ended: Option<(Instant, String)>,
    /// The tools' results since the text.
    pub(super) results: Vec<String>,
    /// patterm's instructions, if the CLI passed them on.
    pub(super) instructions: String,
    /// The tools that the model got, with the size of each definition.
    pub(super) tools: Vec<(String, u64)>,
}

impl Turn {
    /// Whether the model has finished its answer to this text.
    pub(super) fn is_final(&self) -> bool {
        !self.calls && self.ended.as_ref().is_some_and(|(_, how)| how == "complete")
    }
}

impl Mock {
    pub(super) fn start(place: &Place) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/mock-model");
        let mut command = place.command(&program);
        // Its log comes through the pipe, so that it is known immediately.
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

    /// The texts of users in conversations through this API, each as often as it occurred. opencode
    /// adds a blank after pasted text, and claude a line feed between texts that it passes to the
    /// model together: trailing white space does not count.
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

    /// The number of events so far.
    pub(super) fn events(&self) -> usize {
        self.log.events.lock().unwrap().len()
    }

    /// Waits, for a limited time, until there are more events than these.
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
