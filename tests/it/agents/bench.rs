//! A project with a server, real CLIs configured for it, and the mock model.

use std::time::{Duration, Instant};

use patterm_host::PERSON;
use patterm_wire::requests::ServerEntry;
use patterm_wire::view::FromView;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::cli::{self, Cli};
use super::mock::{Mock, Turn};
use crate::support::tool_client::{ToolClient, id_of};
use crate::support::{Place, Running};
use crate::view::View;

/// A timeout longer than a CLI takes to start on a busy machine; a test that reaches it has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The polling interval for changes without events.
const LOOK: Duration = Duration::from_millis(50);

/// The test bench. Fields are dropped in this order: processes end before their model.
pub(super) struct Bench {
    pub(super) place: Place,
    pub(super) mock: Mock,
    /// A client without an identity.
    pub(super) tools: ToolClient,
    pub(super) server: ServerEntry,
    pub(super) cli: Cli,
}

/// The receipt of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Receipt {
    pub(super) message: u64,
    pub(super) state: String,
    pub(super) evidence: String,
}

impl Bench {
    pub(super) fn new(cli: Cli) -> Self {
        Self::with_settings(cli, "")
    }

    /// A bench with these user settings.
    pub(super) fn with_settings(cli: Cli, settings: &str) -> Self {
        let mut place = Place::new();
        let mock = Mock::start(&place);
        cli::settle(&mut place, &mock, settings);
        let server = serve(&place);
        let tools = ToolClient::at(&server.socket);
        Self { place, mock, tools, server, cli }
    }

    /// A client that acts as the person.
    pub(super) fn person(&self) -> ToolClient {
        let mut tools = ToolClient::at(&self.server.socket);
        tools.peer.send(format!("{PERSON}\n").as_bytes());
        tools
    }

    /// `kill -9` of the server; the next one is running when this returns.
    pub(super) fn kill_server(&mut self) {
        let running = Running::of(self.server.pid);
        running.signal(Signal::KILL);
        running.wait();
        self.server = serve(&self.place);
        self.tools = ToolClient::at(&self.server.socket);
    }

    /// `patterm kill`, as before a reboot; the next server is running when this returns.
    pub(super) fn end_everything(&mut self) {
        self.place.run(&["kill"]);
        self.server = serve(&self.place);
        self.tools = ToolClient::at(&self.server.socket);
    }

    /// Starts the CLI as an agent.
    #[track_caller]
    pub(super) fn spawn(&mut self, instructions: Option<&str>) -> String {
        let mut arguments = json!({"agent": self.cli.name});
        if let Some(instructions) = instructions {
            arguments["agent_instructions"] = instructions.into();
        }
        id_of(&self.tools.ok("spawn_agent", arguments))
    }

    /// Starts it, and waits until its first turn is over and it is idle.
    #[track_caller]
    pub(super) fn spawn_ready(&mut self) -> String {
        let id = self.spawn(Some("mock: say ready"));
        self.until_said("mock: say ready");
        self.until_state(&id, "idle");
        id
    }

    #[track_caller]
    pub(super) fn send(&mut self, id: &str, message: &str) -> Receipt {
        send(&mut self.tools, id, message)
    }

    /// The current receipt of a text.
    #[track_caller]
    pub(super) fn receipt(&mut self, message: u64) -> Receipt {
        receipt_of(&mut self.tools, message)
    }

    /// Waits until a text is delivered or stalled.
    #[track_caller]
    pub(super) fn until_done(&mut self, message: u64) -> Receipt {
        self.until(&format!("the end of message {message}"), |bench| {
            let receipt = bench.receipt(message);
            (receipt.state != "queued").then_some(receipt).ok_or(String::new())
        })
    }

    /// Waits until the receipt of a queued text contains this.
    #[track_caller]
    pub(super) fn until_queued_because(&mut self, message: u64, why: &str) {
        self.until(&format!("message {message} waits because {why:?}"), |bench| {
            let receipt = bench.receipt(message);
            assert_eq!(receipt.state, "queued", "{receipt:?}");
            receipt.evidence.contains(why).then_some(()).ok_or(receipt.evidence)
        });
    }

    /// Waits until an agent is in this state.
    #[track_caller]
    pub(super) fn until_state(&mut self, id: &str, state: &str) -> Value {
        self.until(&format!("{id} is {state}"), |bench| {
            let activity = bench.activity(id);
            (activity["state"] == state).then_some(activity.clone()).ok_or(activity.to_string())
        })
    }

    #[track_caller]
    pub(super) fn activity(&mut self, id: &str) -> Value {
        self.tools.status(id)["activity"].take()
    }

    /// Waits until the model has finished its answer to a text of this CLI's conversation.
    #[track_caller]
    pub(super) fn until_said(&mut self, text: &str) -> Turn {
        self.until_turn(&format!("the answer to {text:?}"), |turn| {
            turn.text == text && turn.is_final()
        })
    }

    /// Waits for a request that matches.
    #[track_caller]
    pub(super) fn until_turn(&mut self, what: &str, is: impl Fn(&Turn) -> bool) -> Turn {
        let api = self.cli.api.clone();
        let found = |bench: &mut Self| {
            let turns = bench.mock.turns();
            let last = turns.last().map(|turn| format!("{turn:?}")).unwrap_or_default();
            let of_cli = turns.into_iter().filter(|turn| turn.api == api);
            of_cli.into_iter().find(|turn| is(turn)).ok_or(last)
        };
        self.until(what, found)
    }

    /// The texts that this CLI's model received.
    pub(super) fn arrived(&self) -> Vec<String> {
        self.mock.arrived(&self.cli.api)
    }

    /// How often the model received exactly this text.
    pub(super) fn count(&self, text: &str) -> usize {
        self.arrived().iter().filter(|arrived| *arrived == text).count()
    }

    /// Waits until the model has received a text at least once.
    #[track_caller]
    pub(super) fn until_arrived(&mut self, text: &str) {
        let start: String = text.chars().take(60).collect();
        self.until(&format!("arrival of {start:?}"), |bench| match bench.count(text) {
            0 => Err(format!("{:?}", bench.arrived().last())),
            _ => Ok(()),
        });
    }

    /// Polls until there is a value; on a timeout, prints everything that is known.
    #[track_caller]
    pub(super) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> T {
        let start = Instant::now();
        loop {
            let seen = self.mock.events();
            let found = match look(self) {
                Ok(found) => return found,
                Err(found) => found,
            };
            if start.elapsed() >= PATIENCE {
                let story = self.story();
                panic!("it never came: {what}; last: {found}\n{story}");
            }
            self.mock.more_than(seen, LOOK);
        }
    }

    /// Everything that is known, to diagnose a failed test.
    pub(super) fn story(&mut self) -> String {
        let mut story = String::new();
        for id in self.tools.ids() {
            let status = self.tools.status(&id);
            let screen = self.tools.rows(&id).join("\n");
            story += &format!("--- {id} {} {}\n{screen}\n", status["title"], status["activity"]);
        }
        let status = self.tools.ok("get_project_status", json!({}));
        for message in status["messages"].as_array().unwrap() {
            story += &format!("{message}\n");
        }
        for text in self.arrived() {
            let start: String = text.chars().take(100).collect();
            story += &format!("arrived {} bytes: {start:?}\n", text.len());
        }
        story
    }

    /// A view of a process, as a person has it.
    pub(super) fn view(&self, id: &str) -> View {
        View::attach_at(&self.server.socket, id, 24, 80)
    }

    /// Presses a key with `send_input`.
    #[track_caller]
    pub(super) fn key(&mut self, id: &str, key: &str) {
        self.tools.key(id, key);
    }

    /// Whether an unwanted text does not arrive for a while.
    #[track_caller]
    pub(super) fn stays_away(&mut self, id: &str, pattern: &str, seconds: f64) {
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": seconds});
        let answer = self.tools.ok("wait_for_pattern", arguments);
        assert_eq!(answer["timed_out"], true, "{answer}\n{}", self.story());
    }
}

/// Types like a person: one key at a time, watching the screen, which already shows `before`. Some
/// CLIs treat faster input as a paste.
pub(super) fn type_by_hand(view: &mut View, before: &str, text: &str) {
    let mut typed = before.to_owned();
    for letter in text.chars() {
        typed.push(letter);
        view.send(&FromView::Input(letter.to_string().into_bytes()));
        view.until(|view| view.shows(typed.trim_end()));
    }
}

#[track_caller]
pub(super) fn send(tools: &mut ToolClient, id: &str, message: &str) -> Receipt {
    receipt(&tools.ok("send_message", json!({"target_process_id": id, "message": message})))
}

/// The current receipt of a text.
#[track_caller]
pub(super) fn receipt_of(tools: &mut ToolClient, message: u64) -> Receipt {
    let status = tools.ok("get_project_status", json!({}));
    let all = status["messages"].as_array().unwrap();
    let found = all.iter().find(|known| known["message_id"] == message);
    receipt(found.unwrap_or_else(|| panic!("no message {message} in {all:?}")))
}

fn receipt(answer: &Value) -> Receipt {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Receipt {
        message: answer["message_id"].as_u64().unwrap(),
        state: text(&answer["receipt"]["state"]),
        evidence: text(&answer["receipt"]["evidence"]),
    }
}

fn serve(place: &Place) -> ServerEntry {
    serde_json::from_str(&place.run(&["serve", "--json"])).unwrap()
}
