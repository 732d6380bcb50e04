//! A client that calls tools by their names, and what tests ask for again and again.

use std::time::{Duration, Instant};

use patterm_agents::identity::Token;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Door, Peer, Place, Serving};

/// Longer than anything here takes; a test that gets there has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const SOCKET: Door = Door::Socket(Framing::Newline);

/// A connection to a server, for tool calls one after the other.
pub(crate) struct ToolClient {
    pub(crate) peer: Peer,
    asked: u64,
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
        Self { peer, asked: 0 }
    }

    /// The same for an agent.
    pub(crate) fn of_agent(server: &Serving, token: &Token) -> Self {
        let mut tools = Self::of(server);
        tools.peer.greet(&token.reveal(), None);
        tools
    }

    /// Sends a call and does not wait for its answer.
    pub(crate) fn ask(&mut self, tool: &str, arguments: Value) -> u64 {
        self.asked += 1;
        self.peer.ask(self.asked, tool, arguments);
        self.asked
    }

    /// Waits for the answer to the oldest call that was not answered yet.
    pub(crate) fn hear(&mut self) -> Result<Value, Refusal> {
        outcome(self.peer.receive())
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Refusal> {
        self.asked += 1;
        outcome(self.peer.answer(self.asked, tool, arguments))
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

    /// Waits for a pattern that must come; returns its line.
    #[track_caller]
    pub(crate) fn wait(&mut self, id: &str, pattern: &str) -> String {
        let seconds = PATIENCE.as_secs();
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": seconds});
        let answer = self.ok("wait_for_pattern", arguments);
        if answer["matched"] != true {
            let screen = self.rows(id).join("\n");
            panic!("{pattern:?} never came to {id}: {answer}\n{screen}");
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

    /// The rows on the screen, without the empty ones at its end.
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

    /// Everything that a process printed and that is still kept.
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

/// Looks until there is something to see. Only for what gives no event of its own.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::yield_now();
    }
}

/// Whether a process lives; a zombie does not.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

/// Whether the long forms are asked for.
pub(crate) fn long() -> bool {
    std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1")
}
