//! Six real CLIs in one project that all talk to each other, with timers on all of them.

use std::collections::BTreeMap;

use serde_json::json;

use super::bench::{Bench, PATIENCE};
use super::cli::{CLAUDE, CODEX, Cli, GEMINI, OPENCODE};
use super::mock::Turn;
use super::report::row;
use super::truth::times;
use crate::support::tool_client::id_of;

const TEAM: [Cli; 6] = [CLAUDE, CODEX, OPENCODE, GEMINI, CLAUDE, CODEX];

/// How much of each text of a conversation the mock records.
const SAID: usize = 200;

/// The first instruction of one agent; it is unique.
fn greeting(agent: usize) -> String {
    format!("mock: say agent {agent} is here")
}

/// The message of one agent to another.
fn words(round: usize, from: usize, to: usize) -> String {
    format!("round {round} from {from} to {to}.")
}

/// The task of one agent: after a pause it writes to all others, and after another pause it is
/// done.
fn work(round: usize, agent: usize, ids: &[String]) -> String {
    let others = (0..ids.len()).filter(|other| *other != agent);
    let calls = others.map(|to| {
        let call = json!({"target_process_id": ids[to], "message": words(round, agent, to)});
        format!("call send_message {call} ;; ")
    });
    let calls: String = calls.collect();
    // CLIs pass messages that arrive meanwhile to the model at once: the work continues
    // nevertheless.
    format!("mock: insist ;; wait 2 ;; {calls}wait 2 ;; say done {round}")
}

/// The requests of each agent's conversation.
fn by_agent(turns: Vec<Turn>) -> BTreeMap<usize, Vec<Turn>> {
    let mut found: BTreeMap<usize, Vec<Turn>> = BTreeMap::new();
    for turn in turns {
        let first = turn.said.first().cloned().unwrap_or_default();
        if let Some(agent) = (0..TEAM.len()).find(|agent| first == greeting(*agent)) {
            found.entry(agent).or_default().push(turn);
        }
    }
    found
}

/// The agents whose model has an unanswered request.
fn asked(bench: &Bench) -> Vec<(usize, String)> {
    let open = |turns: Vec<Turn>| {
        let last = turns.into_iter().last()?;
        last.ended.is_none().then_some(last.text)
    };
    let agents = by_agent(bench.mock.turns()).into_iter();
    agents.filter_map(|(agent, turns)| Some((agent, open(turns)?))).collect()
}

/// How often a text with these words occurs in the conversation of an agent.
fn heard(turns: &BTreeMap<usize, Vec<Turn>>, agent: usize, words: &str) -> usize {
    let said = turns.get(&agent).and_then(|turns| turns.last()).map(|turn| &turn.said);
    said.into_iter().flatten().filter(|text| text.ends_with(words)).count()
}

#[test]
fn six_agents_write_to_each_other_and_each_message_and_timer_arrives_once() {
    let mut bench = Bench::new(CLAUDE);
    let mut ids: Vec<String> = Vec::new();
    for (agent, cli) in TEAM.iter().enumerate() {
        // A CLI that is new in this home sets it up; a second one at the same moment would find it
        // incomplete.
        if let Some(first) = TEAM[..agent].iter().position(|before| before == cli) {
            bench.until_state(&ids[first].clone(), "idle");
        }
        let arguments = json!({"agent": cli.name, "name": format!("agent{agent}"),
            "agent_instructions": greeting(agent)});
        ids.push(id_of(&bench.tools.ok("spawn_agent", arguments)));
    }
    // Without echo, so that a timer's text appears once.
    let log = bench.tools.sh("stty -echo; echo ready; exec cat");
    bench.tools.wait(&log, "ready");
    for id in &ids {
        bench.until_state(id, "idle");
        let status = bench.tools.status(id)["status"].clone();
        assert_eq!(status, "running", "{id}\n{}", bench.story());
    }
    let rounds = times(1, 3);
    let (mut looks, mut at_work) = (0, 0);
    for round in 0..rounds {
        let timer = |watched: &[String], body: &str| json!({"watched": watched, "body": body, "owner_process_id": log});
        for (agent, id) in ids.iter().enumerate() {
            bench.tools.ok(
                "send_message",
                json!({"target_process_id": id,
                "message": work(round, agent, &ids)}),
            );
            let any = timer(std::slice::from_ref(id), &format!("one {round} {agent}."));
            bench.tools.ok("timer_fire_when_idle_any", any);
        }
        bench.tools.ok("timer_fire_when_idle_all", timer(&ids, &format!("all {round}.")));
        // From here on, no agent may count as idle while its model has a request.
        let began = std::time::Instant::now();
        loop {
            let before = asked(&bench);
            let states: Vec<_> = ids.iter().map(|id| bench.activity(id)).collect();
            let after = asked(&bench);
            for (agent, text) in before.into_iter().filter(|open| after.contains(open)) {
                at_work += 1;
                let state = &states[agent];
                assert_ne!(state["state"], "idle", "{text}: {state}\n{}", bench.story());
            }
            looks += 1;
            let fired = bench.tools.raw(&log);
            let turns = by_agent(bench.mock.turns());
            for agent in 0..ids.len() {
                let expected = format!("[external] {}", work(round, agent, &ids));
                // Others may have written to it meanwhile, and their text is the newest.
                let is_done = |turn: &Turn| {
                    turn.is_final()
                        && turn.said.iter().any(|said| *said == expected[..SAID].trim_end())
                };
                let done = turns.get(&agent).is_some_and(|turns| turns.iter().any(is_done));
                let one = fired.contains(&format!("one {round} {agent}."));
                assert!(done || !one, "agent {agent} still worked\n{}", bench.story());
            }
            if fired.contains(&format!("all {round}.")) {
                for (from, to) in pairs() {
                    let count = heard(&turns, to, &words(round, from, to));
                    assert_eq!(count, 1, "{}\n{}", words(round, from, to), bench.story());
                }
                break;
            }
            assert!(began.elapsed() < 2 * PATIENCE, "no end of it\n{}", bench.story());
        }
    }
    // Each arrived once, and that does not change.
    bench.stays_away(&log, "never", 3.0);
    let (fired, turns) = (bench.tools.raw(&log), by_agent(bench.mock.turns()));
    for round in 0..rounds {
        let ones = (0..ids.len()).map(|agent| format!("one {round} {agent}."));
        for body in ones.chain([format!("all {round}.")]) {
            assert_eq!(fired.matches(&body).count(), 1, "{body}\n{fired}");
        }
        for (from, to) in pairs() {
            let words = words(round, from, to);
            assert_eq!(heard(&turns, to, &words), 1, "{words}\n{}", bench.story());
            let others = (0..ids.len()).filter(|other| *other != to);
            let strays: usize = others.map(|other| heard(&turns, other, &words)).sum();
            assert_eq!(strays, 0, "{words} went to another\n{}", bench.story());
        }
    }
    let (messages, timers) = (rounds * pairs().count(), rounds * (ids.len() + 1));
    let found = format!(
        "{messages} of {messages} messages once, {timers} of {timers} timers once, {at_work} looks \
         at working agents in {looks} rounds: none idle"
    );
    row(CLAUDE, "six agents at once", &found);
    assert!(at_work > 0, "somebody was seen at work");
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    let all = 0..TEAM.len();
    all.clone().flat_map(move |from| all.clone().map(move |to| (from, to))).filter(|(a, b)| a != b)
}
