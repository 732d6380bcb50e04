//! An evening with four real CLIs: everything that happens is in a script, and the digest of the time is compared with
//! it line by line.

use std::collections::BTreeMap;

use patterm_wire::Method;
use patterm_wire::digest::ReadDigest;
use patterm_wire::requests::AnswerDialog;
use serde_json::{Value, json};

use super::answers::observe;
use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, Cli, GEMINI, OPENCODE};
use super::report::row;
use super::truth::times;
use crate::support::tool_client::{id_of, until};

const TEAM: [Cli; 4] = [CLAUDE, CODEX, OPENCODE, GEMINI];

/// What a digest must say about an agent.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    turns: u64,
    delivered: u64,
    sent: u64,
    commits: u64,
    /// Its entries in order; a word in braces stands for what cannot be known before.
    entries: Vec<String>,
}

struct Evening {
    bench: Bench,
    ids: Vec<String>,
    agents: Vec<Expected>,
    processes: Vec<String>,
    pads: Vec<String>,
}

/// Whether a text is what was expected, where `{…}` stands for anything.
fn is_as_expected(text: &str, expected: &str) -> bool {
    let mut rest = text;
    let mut parts = expected.split("{…}");
    if let Some(first) = parts.next() {
        let Some(after) = rest.strip_prefix(first) else { return false };
        rest = after;
    }
    for part in parts {
        if part.is_empty() {
            return true;
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

fn texts(entries: &Value) -> Vec<String> {
    entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["text"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn check(what: &str, entries: &Value, expected: &[String]) {
    let found = texts(entries);
    let is_same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(text, expected)| is_as_expected(text, expected));
    assert!(is_same, "{what}: {found:#?}\nexpected: {expected:#?}");
}

/// claude's model must find most tools first.
fn search(cli: Cli, words: &str) -> String {
    match cli == CLAUDE {
        true => format!("call ToolSearch {{\"query\": \"{words}\"}} ;; "),
        false => String::new(),
    }
}

impl Evening {
    fn begin() -> Self {
        let settings: String = TEAM.iter().map(|cli| cli.asking.as_str()).collect();
        let mut bench = Bench::with_settings(CLAUDE, &settings);
        let git = "git init -q -b main . && git config user.name n && git config user.email e@example.org";
        let id = bench.tools.sh(git);
        bench.tools.ended(&id);
        bench.tools.close(&id);
        let mut ids = Vec::new();
        for cli in TEAM {
            let arguments = json!({"agent": cli.name, "name": format!("the {}", cli.name),
                "agent_instructions": "mock: say ready"});
            ids.push(id_of(&bench.tools.ok("spawn_agent", arguments)));
        }
        for id in &ids {
            bench.until_state(id, "idle");
        }
        let agents = TEAM.map(|_| Expected::default()).into();
        Self { bench, ids, agents, processes: Vec::new(), pads: Vec::new() }
    }

    /// Gives an agent work, and waits until its turn has ended. A person allows what it asks. Returns what it asked.
    fn turn(&mut self, agent: usize, work: &str) -> Vec<String> {
        self.send(agent, work);
        self.until_turns(agent)
    }

    fn send(&mut self, agent: usize, work: &str) {
        self.bench.send(&self.ids[agent].clone(), work);
        self.agents[agent].turns += 1;
        self.agents[agent].delivered += 1;
    }

    /// Waits until as many turns of an agent have ended as were begun, and answers its dialogs meanwhile.
    fn until_turns(&mut self, agent: usize) -> Vec<String> {
        let (id, turns) = (self.ids[agent].clone(), self.agents[agent].turns);
        let socket = self.bench.server.socket.clone();
        let mut person = self.bench.person();
        let entries = &self.agents[agent].entries;
        let before = entries.iter().filter(|entry| entry.starts_with("blocked: ")).count();
        let (mut asked, mut answered) = (Vec::new(), None);
        self.bench.until(&format!("turn {turns} of {id}"), |bench| {
            let process = observe(&socket).processes.into_iter().find(|process| process.id == id);
            let dialog = process.and_then(|process| process.dialog);
            let dialog = dialog.filter(|dialog| {
                dialog.is_answerable() && answered.as_ref() != Some(&dialog.version)
            });
            // A person reads it first.
            let of_agent = |types: &[&str]| {
                json!({"types": types, "process_id": id, "since": 1, "limit": 1000})
            };
            let blocked = bench.tools.ok("get_events", of_agent(&["agent.blocked"]));
            let is_recorded = blocked["events"].as_array().unwrap().len() > before + asked.len();
            if let Some(dialog) = dialog.filter(|_| is_recorded) {
                let mut labels = dialog.options.iter().map(|option| &option.label);
                let yes =
                    |label: &&String| ["Yes", "Allow"].iter().any(|word| label.contains(word));
                let option = labels.clone().position(|label| yes(&label));
                let option = option.unwrap_or_else(|| panic!("{dialog:?}"));
                let request =
                    json!({"process_id": id, "dialog": dialog.version, "option": option + 1});
                if person.ok(AnswerDialog::NAME, request)["state"] == "accepted" {
                    answered = Some(dialog.version.clone());
                    asked.push(labels.nth(option).unwrap().clone());
                }
            }
            let ended = bench.tools.ok("get_events", of_agent(&["agent.turn_ended"]))["events"].as_array().unwrap().len();
            // The one with which it began is not counted.
            (ended as u64 > turns).then_some(()).ok_or_else(|| ended.to_string())
        });
        self.bench.until_state(&id, "idle");
        for label in &asked {
            let entries = &mut self.agents[agent].entries;
            entries.push("blocked: {…}".to_owned());
            entries.push(format!("person answered “{{…}}”: {{…}}{label}{{…}}"));
        }
        asked
    }

    /// An agent asks to run something, and a person allows it.
    fn dialog(&mut self, agent: usize) {
        let file = self.bench.place.path("project/made");
        let asked = self.turn(agent, &TEAM[agent].ask.clone());
        assert_eq!(asked.len(), 1, "{asked:?}");
        std::fs::remove_file(&file).unwrap();
        let blocked = self.agents[agent].entries.iter_mut().nth_back(1).unwrap();
        *blocked = "blocked: {…}touch made{…}".to_owned();
    }

    /// An agent writes to the next one.
    fn message(&mut self, agent: usize, round: usize) {
        let next = (agent + 1) % TEAM.len();
        let text = format!("mock: say thanks for {round}");
        let call = json!({"target_process_id": self.ids[next], "message": text});
        self.agents[next].turns += 1;
        self.agents[next].delivered += 1;
        self.agents[agent].sent += 1;
        self.turn(agent, &format!("mock: call send_message {call} ;; say sent {round}"));
        self.until_turns(next);
    }

    /// An agent has a process commit something, and one that fails.
    fn processes(&mut self, agent: usize, round: usize) {
        let (name, cli) = (format!("commit-{agent}-{round}"), TEAM[agent].name);
        let script =
            format!("echo {round} >{name} && git add {name} && git commit -qm 'by {cli} {round}'");
        let commit = json!({"argv": ["sh", "-c", script], "name": name});
        let failing = format!("failing-{agent}-{round}");
        let search = search(TEAM[agent], "spawn process");
        let fails = json!({"argv": ["sh", "-c", "exit 3"], "name": failing});
        self.turn(
            agent,
            &format!("mock: {search}call spawn_process {commit} ;; call spawn_process {fails} ;; say started {round}"),
        );
        self.bench.until("the ends of both", |bench| {
            let ended =
                json!({"types": ["process.exited", "git.commit"], "since": 1, "limit": 1000});
            let events = bench.tools.ok("get_events", ended);
            let events = events["events"].as_array().unwrap();
            let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
            let expected = (self.processes.len() + 2, self.processes.len() / 2 + 1);
            // The process that made the repository had ended before.
            let found = (count("process.exited") - 1, count("git.commit"));
            (found == expected).then_some(()).ok_or_else(|| format!("{found:?}"))
        });
        let by = format!("the {cli}");
        let subject = format!("by {cli} {round} on main");
        // git's traces are read beside it, so that its end may come first.
        self.processes.push(format!("{name}: created by {by}, {{…}}commit {{…}} {subject}{{…}}"));
        self.processes.push(format!("{failing}: created by {by}, exited with code 3"));
    }

    fn pad(&mut self, agent: usize, round: usize) {
        let name = format!("notes-{agent}-{round}");
        let write = json!({"name": name, "content": "what was found"});
        self.turn(
            agent,
            &format!(
                "mock: {}call scratchpad_write {write} ;; say written {round}",
                search(TEAM[agent], "scratchpad write")
            ),
        );
        self.pads.push(format!("{name}: created by the {}", TEAM[agent].name));
    }
}

#[test]
fn the_digest_of_an_evening_with_four_clis_is_what_happened() {
    let mut evening = Evening::begin();
    let next =
        evening.bench.tools.ok("get_events", json!({"since": 1, "limit": 1000}))["next"].clone();
    let rounds = times(1, 25);
    for round in 0..rounds {
        for agent in 0..TEAM.len() {
            evening.turn(agent, &format!("mock: say hello {round}"));
            evening.dialog(agent);
            evening.message(agent, round);
            evening.processes(agent, round);
            evening.pad(agent, round);
        }
    }
    let Evening { mut bench, ids, agents, processes, pads } = evening;
    let last = ids.last().unwrap();
    bench.place.run(&["stop", last]);
    let digest = until("the end of the last one", || {
        let digest = bench.tools.ok(ReadDigest::NAME, json!({"since": next}));
        let entries = texts(&digest["agents"][TEAM.len() - 1]["entries"]);
        entries.iter().any(|text| text.starts_with("was stopped")).then_some(digest)
    });
    let found: BTreeMap<&str, &Value> = digest["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["process_id"].as_str().unwrap(), agent))
        .collect();
    assert_eq!(found.len(), TEAM.len(), "{digest:#}");
    for (index, mut expected) in agents.into_iter().enumerate() {
        let agent = found[ids[index].as_str()];
        if ids[index] == *last {
            expected.entries.push("was stopped by person".to_owned());
        }
        let number = |value: &Value| value.as_u64().unwrap();
        let counts = (
            number(&agent["turns"]),
            &agent["messages"],
            number(&agent["sent"]),
            number(&agent["commits"]),
        );
        let messages =
            json!({"delivered": expected.delivered, "waiting": 0, "stalled": 0, "dropped": 0});
        assert_eq!(
            counts,
            (expected.turns, &messages, expected.sent, expected.commits),
            "{agent:#}"
        );
        check(&format!("the {}", TEAM[index].name), &agent["entries"], &expected.entries);
        let time = &agent["time"];
        let sum: u64 = time.as_object().unwrap().values().map(number).sum();
        assert!(sum > 0 && number(&time["unknown_ms"]) == 0, "{time}");
    }
    check("processes", &digest["processes"], &processes);
    let ended = texts(&digest["processes"]);
    let well = ended.iter().filter(|text| text.contains("exited with code 0")).count();
    assert_eq!(well, processes.len() / 2, "{ended:#?}");
    check("scratchpads", &digest["scratchpads"], &pads);
    // One of the two processes of each agent and round failed, which a person may want to know.
    let needs = texts(&digest["needs_you"]);
    assert_eq!(needs.len(), processes.len() / 2, "{needs:?}");
    assert!(needs.iter().all(|text| text.contains("exited with code 3")), "{needs:?}");
    for section in ["ports", "servers", "project"] {
        assert_eq!(digest[section], json!([]), "{section}");
    }
    assert_eq!((&digest["missing"], &digest["lost"]), (&json!(0), &json!(0)));
    let entries = processes.len() + pads.len() + rounds * TEAM.len() * 2 + 1;
    row(
        CLAUDE,
        "the digest of an evening with four CLIs",
        &format!("{entries} of {entries} entries, none invented"),
    );
}
