//! The project file, or files that a process watches, change while it runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{id, named, once, trust, trusted, write};
use crate::support::tool_client::{id_of, until};

#[test]
fn a_changed_definition_takes_effect_at_the_next_start() {
    let (place, _server, mut tools) = trusted("[processes.a]\ncommand = 'cat'\n");
    let a = id_of(&tools.ok("spawn_process", json!({"preset": "a"})));
    let pid = tools.status(&a)["pid"].clone();
    write(&place, "[processes.a]\ncommand = 'echo new; cat'\n");
    assert_eq!(tools.status(&a).get("outdated"), None, "not trusted, so not in effect");
    trust(&place, &mut tools);
    let status = tools.status(&a);
    assert_eq!((&status["outdated"], &status["pid"]), (&json!(true), &pid), "it keeps running");
    tools.ok("restart_process", json!({"process_id": a}));
    tools.wait(&a, "^new$");
    assert_eq!(tools.status(&a).get("outdated"), None);
}

#[test]
fn a_process_removed_from_the_file_keeps_running_as_an_ordinary_process() {
    let (place, server, mut tools) =
        trusted("[processes.a]\ncommand = 'cat'\nautostart = true\nrestart = 'always'\n");
    once(&mut tools, "a", "running", |a| a["status"] == "running");
    let a = id(&mut tools, "a");
    write(&place, "[processes.b]\ncommand = 'cat'\nautostart = true\n");
    trust(&place, &mut tools);
    once(&mut tools, "b", "running", |b| b["status"] == "running");
    let status = tools.status(&a);
    assert_eq!((&status["status"], status.get("declared")), (&json!("running"), None));
    let (_, token) = server.agent("lead", None);
    let mut agent = super::ToolClient::of_agent(&server, &token);
    agent.refused("not_owner", "stop_process", json!({"process_id": a}));
    tools.ok("restart_process", json!({"process_id": a}));
    assert_eq!(tools.close(&a), [&*a]);
}

#[test]
fn a_process_that_a_person_stopped_is_not_started_by_a_change() {
    let (place, _server, mut tools) = trusted("[processes.a]\ncommand = 'cat'\nautostart = true\n");
    once(&mut tools, "a", "running", |a| a["status"] == "running");
    let a = id(&mut tools, "a");
    tools.ok("stop_process", json!({"process_id": a}));
    write(
        &place,
        "[processes.a]\ncommand = 'cat -'\nautostart = true\n[processes.b]\ncommand = 'cat'\nautostart = true\n",
    );
    trust(&place, &mut tools);
    once(&mut tools, "b", "running", |b| b["status"] == "running");
    assert_eq!(named(&mut tools, "a").unwrap()["status"], "stopped");
}

/// Longer than the time that counts as right after a start.
fn has_run_for_a_while(process: &Value) -> bool {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let started = Duration::from_millis(process["started_at"].as_u64().unwrap());
    process["status"] == "running" && now.saturating_sub(started) > Duration::from_secs(4)
}

#[test]
fn a_changed_file_restarts_the_processes_that_watch_it() {
    let (place, _server, mut tools) = trusted(
        "[processes.site]\ncommand = 'cat'\nautostart = true\nwatch = ['src/**/*.js', 'late/*.css']\n\
         [processes.other]\ncommand = 'cat'\nautostart = true\nwatch = ['*.txt']\n\
         [processes.off]\ncommand = 'cat'\nwatch = ['src/**/*']\n",
    );
    let root = place.project().root().to_owned();
    once(&mut tools, "site", "running", |site| site["status"] == "running");
    let mut runs = 1;
    let mut touch = |tools: &mut super::ToolClient, file: &str| {
        runs += 1;
        let id = id(tools, "site");
        let mut written: Option<Instant> = None;
        until("restarted", || {
            // The change may come before the folder is watched: then it is written once more. Not
            // right after a start: a process whose files change then is restarted with growing
            // delays.
            if !has_run_for_a_while(&tools.status(&id)) {
                return None;
            }
            if written.is_none_or(|written| written.elapsed() > Duration::from_secs(10)) {
                std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
                std::fs::write(root.join(file), "").unwrap();
                written = Some(Instant::now());
            }
            let site = tools.status(&id);
            let now = site["runs"].as_u64().unwrap();
            if site["status"] == "running" && now >= runs {
                runs = now;
                return Some(());
            }
            None
        });
    };
    touch(&mut tools, "src/deep/er/a.js");
    touch(&mut tools, "late/a.css");
    touch(&mut tools, "src/b.js");
    std::fs::write(root.join("src/readme"), "").unwrap();
    let other = once(&mut tools, "other", "running", |other| other["status"] == "running");
    assert_eq!(other["runs"], 1);
    let off = named(&mut tools, "off").unwrap();
    assert_eq!(off["status"], "stopped", "a stopped process is not started by a change");
}

/// It reports why it waits, and waits longer each time.
#[test]
fn a_process_that_touches_its_own_watched_file_is_not_restarted_forever() {
    let (place, _server, mut tools) = trusted(
        "[processes.loop]\ncommand = 'date >> seen.txt; exec sleep 1000'\nautostart = true\n\
         watch = ['*.txt']\n",
    );
    std::fs::write(place.path("project/first.txt"), "").unwrap();
    let waits = |process: &Value| {
        let held_back = process["problem"].as_str().is_some_and(|why| {
            why.contains("right after each of its last") && why.contains("no sooner than")
        });
        held_back && process["status"] == "running"
    };
    once(&mut tools, "loop", "runs and is held back", waits);
    // The announced delay is the real one: the next start comes that much later.
    let pause = |process: &Value| -> u64 {
        let why = process["problem"].as_str().unwrap_or_default();
        let seconds = why.split("no sooner than ").nth(1).and_then(|rest| rest.split(' ').next());
        seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
    };
    let longer = |process: &Value| waits(process) && pause(process) >= 2;
    let held_back = once(&mut tools, "loop", "is held back for longer", longer);
    let number = |process: &Value, field: &str| process[field].as_u64().unwrap();
    // Between the next two starts: an announcement may precede the start that it belongs to.
    let mut start_after = |process: &Value| {
        let next = number(process, "runs") + 1;
        once(&mut tools, "loop", "started again", |now| {
            now["status"] == "running" && number(now, "runs") >= next
        })
    };
    let before = start_after(&held_back);
    let after = start_after(&before);
    assert_eq!(number(&after, "runs"), number(&before, "runs") + 1, "one start at a time: {after}");
    let between = number(&after, "started_at") - number(&before, "started_at");
    // Half of it, because the two times come from two clocks.
    assert!(between >= pause(&held_back) * 1000 / 2, "{between} ms: {held_back}");
}
