//! A client that calls tools by their names, with helpers for common steps.

use std::time::{Duration, Instant};

use patterm_agents::identity::Token;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Serving, Transport};

/// A timeout longer than anything here takes; a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const SOCKET: Transport = Transport::Socket(Framing::Newline);

/// A connection to a server, for tool calls one after the other.
pub(crate) struct ToolClient {
    pub(crate) peer: Peer,
    last_id: u64,
}

/// A tool's failure as a program sees it.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl ToolClient {
    pub(crate) fn of(server: &Serving) -> Self {
        Self::new(server.connect(SOCKET))
    }

    pub(crate) fn at(socket: &std::path::Path) -> Self {
        Self::new(Peer::connect(SOCKET, socket))
    }

    pub(crate) fn new(peer: Peer) -> Self {
        Self { peer, last_id: 0 }
    }

    /// A client with the identity of an agent.
    pub(crate) fn of_agent(server: &Serving, token: &Token) -> Self {
        let mut tools = Self::of(server);
        tools.peer.greet(&token.reveal(), None);
        tools
    }

    /// Sends a call without waiting for its result.
    pub(crate) fn ask(&mut self, tool: &str, arguments: Value) -> u64 {
        self.last_id += 1;
        self.peer.ask(self.last_id, tool, arguments);
        self.last_id
    }

    /// Waits for the next result.
    pub(crate) fn receive(&mut self) -> Result<Value, Refusal> {
        outcome(self.peer.receive())
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Refusal> {
        self.last_id += 1;
        outcome(self.peer.answer(self.last_id, tool, arguments))
    }

    /// Calls a tool that must not fail.
    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments.clone()).unwrap_or_else(|e| panic!("{tool} {arguments}: {e:?}"))
    }

    /// Calls a tool that must fail with this kind; returns its message.
    #[track_caller]
    pub(crate) fn refused(&mut self, kind: &str, tool: &str, arguments: Value) -> String {
        let refusal = self.call(tool, arguments.clone()).expect_err(&format!("{tool} {arguments}"));
        assert_eq!(refusal.kind, kind, "{tool} {arguments}: {}", refusal.message);
        refusal.message
    }

    /// Starts a program; returns its id.
    #[track_caller]
    pub(crate) fn run(&mut self, argv: &[&str]) -> String {
        id_of(&self.ok("spawn_process", json!({"argv": argv})))
    }

    #[track_caller]
    pub(crate) fn sh(&mut self, script: &str) -> String {
        self.run(&["sh", "-c", script])
    }

    /// Waits for a pattern that must appear; returns its line.
    #[track_caller]
    pub(crate) fn wait(&mut self, id: &str, pattern: &str) -> String {
        let seconds = PATIENCE.as_secs();
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": seconds});
        let answer = self.ok("wait_for_pattern", arguments);
        if answer["matched"] != true {
            let screen = self.rows(id).join("\n");
            panic!("{pattern:?} never appeared in {id}: {answer}\n{screen}");
        }
        answer["line"].as_str().unwrap().to_owned()
    }

    /// Waits until a process ended; returns its status.
    #[track_caller]
    pub(crate) fn ended(&mut self, id: &str) -> Value {
        let never = r"[^\s\S]";
        let arguments = json!({"process_id": id, "pattern": never,
            "timeout_seconds": PATIENCE.as_secs()});
        let answer = self.ok("wait_for_pattern", arguments);
        assert_eq!(answer["exited"], true, "{answer}");
        self.status(id)
    }

    #[track_caller]
    pub(crate) fn status(&mut self, id: &str) -> Value {
        self.ok("get_process_status", json!({"process_id": id}))
    }

    #[track_caller]
    pub(crate) fn grid(&mut self, id: &str) -> Value {
        self.ok("get_process_output", json!({"process_id": id}))
    }

    /// The rows on the screen, without the empty ones at the end.
    #[track_caller]
    pub(crate) fn rows(&mut self, id: &str) -> Vec<String> {
        let mut rows = strings(&self.grid(id)["rows"]);
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        rows
    }

    /// Types a line.
    #[track_caller]
    pub(crate) fn line(&mut self, id: &str, text: &str) {
        let arguments = json!({"process_id": id, "kind": "text", "text": text, "submit": true});
        self.ok("send_input", arguments);
    }

    #[track_caller]
    pub(crate) fn key(&mut self, id: &str, key: &str) {
        self.ok("send_input", json!({"process_id": id, "kind": "key", "key": key}));
    }

    #[track_caller]
    pub(crate) fn close(&mut self, id: &str) -> Vec<String> {
        strings(&self.ok("close_process", json!({"process_id": id}))["closed"])
    }

    /// The ids of all processes.
    #[track_caller]
    pub(crate) fn ids(&mut self) -> Vec<String> {
        let listed = self.ok("list_processes", json!({}));
        listed["processes"].as_array().unwrap().iter().map(id_of).collect()
    }

    /// All output of a process that is still in its log.
    #[track_caller]
    pub(crate) fn raw(&mut self, id: &str) -> String {
        let mut text = String::new();
        let mut since = 0;
        loop {
            let arguments = json!({"process_id": id, "since_offset": since, "max_bytes": 1 << 20});
            let answer = self.ok("get_process_raw_output", arguments);
            assert_eq!(answer.get("dropped"), None);
            assert_eq!(answer["offset"], since);
            let next = answer["next_offset"].as_u64().unwrap();
            if next == since {
                return text;
            }
            text.push_str(answer["text"].as_str().unwrap());
            since = next;
        }
    }
}

fn outcome(mut answer: Value) -> Result<Value, Refusal> {
    if answer.get("error").is_none() {
        return Ok(answer["result"].take());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &answer["error"];
    Err(Refusal { kind: text(&error["data"]["kind"]), message: text(&error["message"]) })
}

pub(crate) fn id_of(answer: &Value) -> String {
    answer["process_id"].as_str().unwrap().to_owned()
}

pub(crate) fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// A server in this process with a client.
pub(crate) fn tools() -> (Place, Serving, ToolClient) {
    let place = Place::new();
    let server = place.serve_in_process();
    let tools = ToolClient::of(&server);
    (place, server, tools)
}

/// Polls until there is a value. Only for changes that produce no event.
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for: {what}");
        std::thread::yield_now();
    }
}

/// Whether a process is alive; a zombie is not.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

/// Whether the long forms of tests are requested.
pub(crate) fn long() -> bool {
    std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1")
}
