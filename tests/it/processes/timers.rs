//! Timers as agents and people use them: who may set what for whom, what arrives, and that it
//! arrives once, whatever crashes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::survival::{desk_of, kill, moment};
use crate::support::tool_client::{ToolClient, strings, tools, until};
use crate::support::{Place, Rng, Serving};

/// The deliveries of timers: the target, and the beginning of the text.
fn handed_in(place: &Place) -> Vec<(String, String)> {
    let Ok(file) = std::fs::read(place.state().file("deliveries.json")) else { return Vec::new() };
    let file: Value = serde_json::from_slice(&file).unwrap();
    let deliveries = file["deliveries"].as_array().unwrap().iter();
    let of_timers = deliveries.filter(|delivery| delivery["source"]["kind"] == "timer");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_timers.map(|delivery| (text(&delivery["to"]), text(&delivery["excerpt"]))).collect()
}

/// Waits until there are this many deliveries.
fn until_handed_in(place: &Place, texts: usize) -> Vec<(String, String)> {
    until("a timer's text", || Some(handed_in(place)).filter(|handed| handed.len() >= texts))
}

fn agent(server: &Serving, name: &str, parent: Option<&str>) -> (String, ToolClient) {
    let parent = parent.map(|parent| parent.parse().unwrap());
    let (process, token) = server.agent(name, parent.as_ref());
    (process.id.as_str().to_owned(), ToolClient::of_agent(server, &token))
}

/// The ids of the timers that a caller sees.
#[track_caller]
fn listed(tools: &mut ToolClient) -> Vec<String> {
    let timers = tools.ok("timer_list", json!({}))["timers"].take();
    let id = |timer: &Value| timer["timer_id"].as_str().unwrap().to_owned();
    timers.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn a_text_arrives_after_its_time_and_not_before() {
    let (place, server, _) = tools();
    let (id, mut agent) = agent(&server, "lead", None);
    let began = std::time::Instant::now();
    let set = agent.ok("timer_set", json!({"seconds": 0.25, "body": "look\nat it "}));
    let left = set["remaining_seconds"].as_f64().unwrap();
    assert!(left > 0.0 && left <= 0.25, "{set}");
    assert_eq!((&set["timer_id"], &set["owner_process_id"]), (&json!("t1"), &json!(id)));
    assert_eq!(until_handed_in(&place, 1), [(id.clone(), "look at it ".to_owned())]);
    assert!(began.elapsed().as_millis() >= 250);
    agent.ok("timer_wait", json!({"seconds": 0, "label": "build"}));
    let line = "[system] timer t2 (build): 0 seconds have passed.".to_owned();
    assert_eq!(until_handed_in(&place, 2)[1], (id, line));
    let message = agent.refused("not_found", "timer_cancel", json!({"timer_id": "t1"}));
    assert_eq!(message, "timer t1 has already fired");
    assert_eq!(listed(&mut agent), [""; 0]);
}

#[test]
fn a_timer_is_paused_resumed_listed_and_cancelled() {
    let (place, server, mut person) = tools();
    let (id, mut agent) = agent(&server, "lead", None);
    let body = "x".repeat(100);
    let set = json!({"seconds": 600, "body": body, "label": " check "});
    agent.ok("timer_set", set);
    let mut timer = agent.ok("timer_list", json!({}))["timers"][0].take();
    let left = timer["remaining_seconds"].take().as_f64().unwrap();
    assert!(left > 500.0 && left <= 600.0);
    assert!(timer["set_at"].take().as_u64().unwrap() > 1_700_000_000_000);
    let expected = json!({
        "timer_id": "t1", "kind": "delay", "status": "pending", "label": "check",
        "owner_process_id": id, "set_by": id, "remaining_seconds": null, "set_at": null,
        "excerpt": format!("{}…", "x".repeat(80)),
    });
    assert_eq!(timer, expected);
    let one = json!({"timer_id": "t1"});
    let paused = agent.ok("timer_pause", one.clone());
    assert_eq!(paused["status"], "paused");
    let again = agent.ok("timer_pause", one.clone());
    assert_eq!(again["remaining_seconds"], paused["remaining_seconds"], "it does not run");
    let status = person.ok("get_project_status", json!({}));
    assert_eq!(
        (&status["timers"][0]["timer_id"], &status["timers"][0]["status"]),
        (&json!("t1"), &json!("paused"))
    );
    assert_eq!(agent.ok("timer_resume", one.clone())["status"], "pending");
    assert_eq!(agent.ok("timer_resume", one.clone())["status"], "pending");
    assert_eq!(agent.ok("timer_cancel", one.clone()), json!({"ok": true}));
    for tool in ["timer_cancel", "timer_pause", "timer_resume"] {
        assert_eq!(agent.refused("not_found", tool, one.clone()), "timer t1 was cancelled");
        let unknown = agent.refused("not_found", tool, json!({"timer_id": "t9"}));
        assert!(unknown.contains("there is no timer `t9`"), "{unknown}");
    }
    assert_eq!(listed(&mut person), [""; 0]);
    assert_eq!(handed_in(&place), []);
}

#[test]
fn bad_input_is_named() {
    let (_place, server, mut person) = tools();
    let (id, mut agent) = agent(&server, "lead", None);
    server.agent("other", None);
    let idle = "timer_fire_when_idle_any";
    let long = "x".repeat(65_537);
    for (tool, arguments, words) in [
        ("timer_set", json!({"body": "b"}), "`seconds` is missing"),
        ("timer_set", json!({"seconds": 1}), "`body` is missing"),
        ("timer_set", json!({"seconds": "1", "body": "b"}), "`seconds` takes a number"),
        (
            "timer_set",
            json!({"seconds": -1, "body": "b"}),
            "`seconds` takes 0 to 31536000 seconds, not -1",
        ),
        ("timer_set", json!({"seconds": 1e300, "body": "b"}), "`seconds` takes 0 to 31536000"),
        ("timer_set", json!({"seconds": 31_536_001, "body": "b"}), "`seconds` takes 0 to 31536000"),
        ("timer_set", json!({"seconds": 1, "body": " \n"}), "`body` is empty"),
        (
            "timer_set",
            json!({"seconds": 1, "body": long}),
            "`body` takes up to 65536 bytes, not 65537",
        ),
        (
            "timer_set",
            json!({"seconds": 1, "body": "b", "label": "a\nb"}),
            "`label` takes up to 100",
        ),
        (
            "timer_set",
            json!({"seconds": 1, "body": "b", "label": "x".repeat(101)}),
            "`label` takes up to 100",
        ),
        ("timer_wait", json!({}), "`seconds` is missing"),
        ("timer_wait", json!({"seconds": -0.5}), "`seconds` takes 0 to 31536000 seconds, not -0.5"),
        (idle, json!({"body": "b"}), "`watched` is missing"),
        (idle, json!({"watched": "p2", "body": "b"}), "`watched` takes an array of strings"),
        (idle, json!({"watched": [2], "body": "b"}), "`watched[0]` takes a string"),
        (idle, json!({"watched": [], "body": "b"}), "`watched` is empty"),
        (
            idle,
            json!({"watched": vec!["p2"; 101], "body": "b"}),
            "`watched` takes up to 100 processes, not 101",
        ),
        (idle, json!({"watched": [id], "body": "b"}), "`watched` contains p1, which gets the text"),
        (
            idle,
            json!({"watched": ["p2"], "body": "b", "max_wait_seconds": -1}),
            "`max_wait_seconds` takes 0 to",
        ),
        (idle, json!({"watched": ["p2"], "body": ""}), "`body` is empty"),
        ("timer_cancel", json!({}), "`timer_id` is missing"),
        ("timer_pause", json!({"timer_id": 1}), "`timer_id` takes a string"),
    ] {
        let message = agent.refused("invalid_argument", tool, arguments);
        assert!(message.contains(words), "{message}");
    }
    let unknown = json!({"watched": ["p2", "p99"], "body": "b"});
    assert!(agent.refused("not_found", idle, unknown).contains("no process `p99`"));
    let nobody = json!({"seconds": 1, "body": "b", "owner_process_id": "p99"});
    assert!(agent.refused("not_found", "timer_set", nobody).contains("no process `p99`"));
    // An external caller has no pane to be woken in.
    for (tool, arguments) in [
        ("timer_set", json!({"seconds": 1, "body": "b"})),
        (idle, json!({"watched": ["p2"], "body": "b"})),
        ("timer_fire_when_idle_all", json!({"watched": ["p2"], "body": "b"})),
        ("timer_wait", json!({"seconds": 1})),
    ] {
        let message = person.refused("invalid_argument", tool, arguments);
        assert!(message.contains("owner_process_id"), "{message}");
    }
    assert_eq!(listed(&mut person), [""; 0]);
}

#[test]
fn agents_set_timers_only_for_themselves_and_their_descendants() {
    let (_place, server, mut person) = tools();
    let (lead, mut lead_desk) = agent(&server, "lead", None);
    let (sub, mut sub_desk) = agent(&server, "sub", Some(&lead));
    let (_, mut stranger) = agent(&server, "stranger", None);
    let set = |owner: Option<&str>| {
        let mut arguments = json!({"seconds": 600, "body": "b"});
        if let Some(owner) = owner {
            arguments["owner_process_id"] = json!(owner);
        }
        arguments
    };
    lead_desk.ok("timer_set", set(None));
    lead_desk.ok("timer_set", set(Some(&sub)));
    sub_desk.ok("timer_set", set(None));
    sub_desk.refused("not_owner", "timer_set", set(Some(&lead)));
    let watch = json!({"watched": [sub], "body": "b", "owner_process_id": lead});
    stranger.refused("not_owner", "timer_fire_when_idle_any", watch);
    person.ok("timer_set", set(Some(&sub)));
    assert_eq!(listed(&mut lead_desk), ["t1", "t2"], "its own, and what it set");
    assert_eq!(listed(&mut sub_desk), ["t2", "t3", "t4"], "what it owns, whoever set it");
    assert_eq!(listed(&mut stranger), [""; 0]);
    assert_eq!(listed(&mut person), ["t1", "t2", "t3", "t4"]);
    for tool in ["timer_cancel", "timer_pause", "timer_resume"] {
        let message = lead_desk.refused("not_owner", tool, json!({"timer_id": "t3"}));
        assert!(message.contains("belongs to p2"), "{message}");
        sub_desk.refused("not_owner", tool, json!({"timer_id": "t1"}));
    }
    sub_desk.ok("timer_cancel", json!({"timer_id": "t2"}));
    person.ok("timer_pause", json!({"timer_id": "t3"}));
    // Closing an owner removes its timers.
    lead_desk.close(&sub);
    assert_eq!(listed(&mut person), ["t1"]);
    let message = person.refused("not_found", "timer_resume", json!({"timer_id": "t3"}));
    assert_eq!(message, "timer t3 ended when its owner was closed");
}

#[test]
fn idle_timers_count_those_that_ended() {
    let (place, server, mut person) = tools();
    let (lead, mut agent) = agent(&server, "lead", None);
    let ended = agent.sh("exit 4");
    person.ended(&ended);
    let busy = agent.sh("echo up; until [ -e go ]; do echo tick; sleep 0.01; done; exit 3");
    agent.wait(&busy, "up");
    let both = json!({"watched": [ended, busy, ended], "body": "collect"});
    let any = agent.ok("timer_fire_when_idle_any", both.clone());
    assert_eq!((&any["already_idle"], &any["waiting_on"]), (&json!([ended]), &json!([busy])));
    assert_eq!(any.get("remaining_seconds"), None);
    let again = agent.ok("timer_fire_when_idle_any", both.clone());
    assert_eq!((&again["timer_id"], &again["already_set"]), (&any["timer_id"], &json!(true)));
    let mut patient = both;
    patient["max_wait_seconds"] = json!(600);
    let all = agent.ok("timer_fire_when_idle_all", patient);
    assert!(all["remaining_seconds"].as_f64().unwrap() > 500.0);
    let timers = agent.ok("timer_list", json!({}))["timers"].take();
    assert_eq!((&timers[0]["kind"], &timers[1]["kind"]), (&json!("idle_any"), &json!("idle_all")));
    assert_eq!(strings(&timers[0]["watched"]), [&*ended, &*busy], "each once");
    // A timer whose processes have all ended fires at once.
    let now = agent.ok("timer_fire_when_idle_all", json!({"watched": [ended], "body": "now"}));
    assert_eq!(now["waiting_on"], json!([]));
    let first = until_handed_in(&place, 1);
    let line = format!("[system] timer t3: all are idle: sh ({ended}) exited with 4. now");
    assert_eq!(first, [(lead.clone(), line)]);
    std::fs::write(place.path("project/go"), "").unwrap();
    let texts = until_handed_in(&place, 3);
    let line =
        format!("[system] timer t1: sh-2 ({busy}) exited with 3. The others: sh ({ended}) exit");
    assert!(texts.iter().any(|(to, text)| *to == lead && text.starts_with(&line)), "{texts:?}");
    assert_eq!(listed(&mut person), [""; 0]);
}

#[test]
fn a_watched_process_that_is_closed_counts() {
    let (place, server, mut person) = tools();
    let (_, mut agent) = agent(&server, "lead", None);
    let (sub, _token) = server.agent("helper", None);
    let watch = json!({"watched": [sub.id], "body": "collect", "max_wait_seconds": 0});
    let set = agent.ok("timer_fire_when_idle_any", watch);
    assert_eq!(set["waiting_on"], json!([sub.id]), "one that was not started yet is not idle");
    person.close(sub.id.as_str());
    let texts = until_handed_in(&place, 1);
    assert_eq!(texts[0].1, "[system] timer t1: helper (p2) was closed. collect");
}

#[test]
fn an_idle_timer_may_time_out() {
    let (place, server, _) = tools();
    let (_, mut agent) = agent(&server, "lead", None);
    let (sub, _token) = server.agent("helper", None);
    let watch = json!({"watched": [sub.id], "body": "collect", "max_wait_seconds": 0.1});
    agent.ok("timer_fire_when_idle_all", watch);
    let texts = until_handed_in(&place, 1);
    let line = "[system] timer t1: timed out after 0.100 seconds: helper (p2) is";
    assert!(texts[0].1.starts_with(line), "{texts:?}");
}

#[test]
fn the_verb_lists_them() {
    let place = Place::new();
    assert!(place.run(&["timers"]).starts_with("no timers"));
    assert_eq!(place.run(&["timers", "--json"]), "[]\n");
    place.run(&["run", "--", "cat"]);
    let set = r#"{"seconds": 7200, "body": "look at the build", "owner_process_id": "p1"}"#;
    place.run(&["call", "timer_set", set]);
    place.run(&["call", "timer_pause", r#"{"timer_id": "t1"}"#]);
    let table = place.run(&["timers"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..3], ["t1", "paused", "p1"]);
    assert_eq!(rows[1][4..], ["look", "at", "the", "build"]);
    let listed: Value = serde_json::from_str(&place.run(&["timers", "--json"])).unwrap();
    assert_eq!(listed[0]["timer_id"], "t1");
}

/// Rounds of setting timers and killing the server. The total stays below the number of deliveries
/// that are kept, so that each can be counted.
const ROUNDS: usize = 12;

#[test]
fn no_timer_is_lost_or_fires_twice_when_the_server_is_killed() {
    let place = Place::new();
    let mut rng = Rng::new(11);
    let (mut tools, mut process) = desk_of(&place);
    let owners: Vec<String> = (0..4).map(|_| tools.run(&["cat"])).collect();
    let (mut certain, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..ROUNDS {
        let mut timer = |n: usize| {
            let body = format!("wake {round}.{n}");
            asked.insert(body.clone());
            let seconds = rng.within(0..200) as f64 / 1_000.0;
            json!({"seconds": seconds, "body": body, "owner_process_id": owners[n % 4]})
        };
        for n in 0..5 {
            let arguments = timer(n);
            tools.ok("timer_set", arguments.clone());
            certain.insert(arguments["body"].as_str().unwrap().to_owned());
        }
        // These may or may not be set before the server dies.
        for n in 5..10 {
            let arguments = timer(n);
            tools.ask("timer_set", arguments);
        }
        moment(&mut rng);
        kill(&process);
        (tools, process) = desk_of(&place);
    }
    until("all timers to fire", || listed(&mut tools).is_empty().then_some(()));
    let check = || {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for (_, text) in handed_in(&place) {
            *times.entry(text).or_default() += 1;
        }
        assert!(times.values().all(|times| *times == 1), "twice: {times:?}");
        let fired: BTreeSet<String> = times.into_keys().collect();
        let lost: Vec<_> = certain.difference(&fired).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert!(fired.is_subset(&asked));
        fired.len()
    };
    let fired = check();
    kill(&process);
    (tools, _) = desk_of(&place);
    assert_eq!(listed(&mut tools), [""; 0]);
    assert_eq!(check(), fired, "the next server fires nothing again");
}

#[test]
fn a_paused_timer_survives_a_restart_unchanged() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let owner = tools.run(&["cat"]);
    let set = json!({"seconds": 600, "body": "b", "owner_process_id": owner});
    tools.ok("timer_set", set.clone());
    tools.ok("timer_set", set);
    let paused = tools.ok("timer_pause", json!({"timer_id": "t1"}));
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    let timers = tools.ok("timer_list", json!({}))["timers"].take();
    assert_eq!(timers[0], paused);
    let left = timers[1]["remaining_seconds"].as_f64().unwrap();
    assert!(left > 500.0 && left < 600.0 && timers[1]["status"] == "pending", "{timers}");
    let next = json!({"seconds": 600, "body": "b", "owner_process_id": owner});
    assert_eq!(tools.ok("timer_set", next)["timer_id"], "t3");
}

/// For an owner that is not an agent, the text is typed and submitted once.
#[test]
fn a_due_text_is_typed_into_an_ordinary_program_once() {
    let (_place, _server, mut tools) = tools();
    let owner = tools.sh("stty -echo; echo ready; exec cat");
    tools.wait(&owner, "ready");
    let set = |seconds: f64, body: &str| json!({"seconds": seconds, "body": body, "owner_process_id": owner});
    tools.ok("timer_set", set(0.0, "look at the build"));
    tools.wait(&owner, "^look at the build$");
    // A second text comes after the first: if the first had been typed twice, it would be visible
    // by then.
    tools.ok("timer_set", set(0.0, "and at the tests"));
    tools.wait(&owner, "^and at the tests$");
    assert_eq!(tools.rows(&owner), ["ready", "look at the build", "and at the tests"]);
}

/// Whatever crashes meanwhile: a text that was begun and cannot be verified is not typed again.
#[test]
fn a_text_is_typed_at_most_once_whenever_the_server_dies() {
    let place = Place::new();
    let mut rng = Rng::new(13);
    let (mut tools, mut process) = desk_of(&place);
    let owner = tools.sh("stty -echo; echo ready; exec cat");
    tools.wait(&owner, "ready");
    for n in 0..20 {
        let body = format!("text {n};");
        tools.ok("timer_set", json!({"seconds": 0, "body": body, "owner_process_id": owner}));
        moment(&mut rng);
        kill(&process);
        (tools, process) = desk_of(&place);
    }
    until("all timers to fire", || listed(&mut tools).is_empty().then_some(()));
    tools.ok("timer_set", json!({"seconds": 0, "body": "the end", "owner_process_id": owner}));
    tools.wait(&owner, "the end");
    let printed = tools.raw(&owner);
    for n in 0..20 {
        assert!(printed.matches(&format!("text {n};")).count() <= 1, "{n}: {printed}");
    }
}
