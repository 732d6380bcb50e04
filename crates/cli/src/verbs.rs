//! The verbs that are thin over a tool: what they ask, and how they print the answer.

use anyhow::Context;
use patterm_wire::base64;
use serde_json::{Value, json};

use crate::args::{
    Agent, Agents, Call, Key, Logs, Message, One, Ps, Restart, Run, Screen, Search, Send, Shell,
    Status, Stop, Wait,
};
use crate::client::{Client, text};
use crate::restore;
use crate::said::{
    one_line, say, say_bytes, say_content, say_json, say_json_text, say_red, shown, warn,
};
use crate::start;
use crate::tui;
use crate::words::for_people;

/// How much of the output is asked for at once.
const LOG_BYTES: u64 = 256 << 10;

/// How long one round of following waits: then it asks again.
const FOLLOW_SECONDS: u64 = 3_600;

pub(crate) fn run(options: &Run) -> anyhow::Result<()> {
    let here = start::here()?;
    let mut arguments = json!({"argv": options.command, "working_dir": here});
    if let Some(name) = &options.name {
        arguments["name"] = json!(name);
    }
    start("spawn_process", &arguments, options.json, options.attach)
}

pub(crate) fn shell(options: &Shell) -> anyhow::Result<()> {
    let here = start::here()?;
    let arguments = json!({"kind": "terminal", "working_dir": here});
    start("spawn_process", &arguments, options.json, options.attach)
}

pub(crate) fn agent(options: &Agent) -> anyhow::Result<()> {
    let mut arguments = json!({"agent": options.preset});
    for (field, value) in [("agent_instructions", &options.prompt), ("name", &options.name)] {
        if let Some(value) = value {
            arguments[field] = json!(value);
        }
    }
    start("spawn_agent", &arguments, options.json, options.attach)
}

pub(crate) fn agents(options: &Agents) -> anyhow::Result<()> {
    let answer = Client::connect()?.look("list_agents", &json!({}))?;
    if options.json {
        return say_json(&answer["agents"]);
    }
    for agent in answer["agents"].as_array().into_iter().flatten() {
        let place = if agent["found"] == true { &agent["program"] } else { &agent["why"] };
        let mark = if agent["found"] == true { "yes" } else { "no" };
        say(&format!("{:<10} {mark:<4} {}", shown(&agent["agent"]), shown(place)));
    }
    if let Some(fault) = answer["fault"].as_str() {
        say(&format!("settings: {}", one_line(fault)));
    }
    Ok(())
}

pub(crate) fn message(options: &Message) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let arguments = json!({"target_process_id": id, "message": options.text});
    let answer = client.call("send_message", &arguments)?;
    let receipt = &answer["receipt"];
    match options.json {
        true => say_json(&answer)?,
        false => say(&format!("{}: {}", shown(&receipt["state"]), shown(&receipt["evidence"]))),
    }
    anyhow::ensure!(receipt["state"] != "stalled", "the message was not delivered");
    Ok(())
}

/// Starts something, and prints its id or shows it.
fn start(tool: &str, arguments: &Value, as_json: bool, attach: bool) -> anyhow::Result<()> {
    if attach {
        // Before anything is started.
        tui::must_have_terminal()?;
    }
    let answer = Client::connect()?.call(tool, arguments)?;
    let id = text(&answer["process_id"]);
    match (attach, as_json) {
        (true, _) => return tui::run(Some(id)),
        (false, true) => say_json(&answer)?,
        (false, false) => say(&one_line(&id)),
    }
    Ok(())
}

pub(crate) fn ps(options: &Ps) -> anyhow::Result<()> {
    let answer = Client::connect()?.look("list_processes", &json!({}))?;
    if options.json {
        return say_json(&answer["processes"]);
    }
    let processes = answer["processes"].as_array().cloned().unwrap_or_default();
    if processes.is_empty() {
        say("no processes; `patterm run -- COMMAND` starts one");
        return Ok(());
    }
    say(&table(&processes));
    for process in processes.iter().filter(|process| process["output_problem"].is_string()) {
        let [id, problem] = ["process_id", "output_problem"].map(|field| text(&process[field]));
        say_red(&format!("{id}: {problem}"));
    }
    if let Some(hint) = restore::hint(&processes) {
        say(&hint);
    }
    Ok(())
}

/// Processes as a table, those below another indented under it.
/// Each process with what it started below it.
fn in_order<'a>(processes: &'a [Value], below: Option<&str>) -> Vec<&'a Value> {
    let known = |id: &Value| processes.iter().any(|process| process["process_id"] == *id);
    let is_below = |process: &&Value| match below {
        Some(id) => process["parent_id"] == id,
        None => !known(&process["parent_id"]),
    };
    let each = processes.iter().filter(is_below);
    each.flat_map(|process| {
        let started = in_order(processes, process["process_id"].as_str().or(Some("")));
        std::iter::once(process).chain(started)
    })
    .collect()
}

fn table(processes: &[Value]) -> String {
    let mut rows = vec!["ID     STATUS    ACTIVITY  EXIT  KIND      NAME".to_owned()];
    let depth = |process: &Value| {
        let mut depth = 0;
        let mut parent = process["parent_id"].as_str();
        while let Some(above) = processes.iter().find(|p| p["process_id"].as_str() == parent) {
            depth += 1;
            parent = above["parent_id"].as_str();
            if parent.is_none() || depth > processes.len() {
                break;
            }
        }
        depth
    };
    for process in in_order(processes, None) {
        let exit = match (process["exit"]["code"].as_i64(), process["exit"]["signal"].as_i64()) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => format!("sig{signal}"),
            (None, None) => String::new(),
        };
        let field = |name: &str| shown(&process[name]);
        // What ended is idle, which says nothing more than that it ended.
        let alive = matches!(process["status"].as_str(), Some("running" | "starting"));
        let activity = if alive { shown(&process["activity"]["state"]) } else { String::new() };
        let called = process["attention"]["reason"].as_str();
        let row = format!(
            "{:<6} {:<9} {activity:<9} {exit:<5} {:<9} {}{}{}",
            field("process_id"),
            field("status"),
            field("kind"),
            "  ".repeat(depth(process)),
            field("name") + &note(process),
            called.map(|reason| format!("  ! {}", one_line(reason))).unwrap_or_default()
        );
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

/// What else is to be said of a process that the project file declares.
fn note(process: &Value) -> String {
    let waits: Vec<_> =
        process["waiting_for"].as_array().into_iter().flatten().map(shown).collect();
    if !waits.is_empty() {
        return format!("  (waits for {})", waits.join(", "));
    }
    if let Some(seconds) = process["next_restart_in"].as_f64() {
        return format!("  (again in {seconds:.0} s, {} in a row)", process["restarts"]);
    }
    let outdated = (process["outdated"] == true).then_some("patterm.toml changed since");
    let problem = process["problem"].as_str().or(outdated);
    problem.map(|problem| format!("  ({})", one_line(&for_people(problem)))).unwrap_or_default()
}

pub(crate) fn status(options: &Status) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let answer = client.look("get_process_status", &json!({"process_id": id}))?;
    match options.json {
        true => say_json(&answer)?,
        false => say(&lines_of(&answer, "")),
    }
    Ok(())
}

/// A value as lines of `name: value`.
fn lines_of(value: &Value, before: &str) -> String {
    let Some(members) = value.as_object() else { return String::new() };
    let mut lines = Vec::new();
    for (name, value) in members {
        match value {
            Value::Object(_) => lines.push(lines_of(value, &format!("{before}{name}."))),
            Value::String(text) => lines.push(format!("{before}{name}: {}", one_line(text))),
            other => lines.push(format!("{before}{name}: {}", one_line(&other.to_string()))),
        }
    }
    lines.join("\n")
}

pub(crate) fn screen(options: &Screen) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let answer = client.look("get_process_output", &json!({"process_id": id}))?;
    if options.json {
        return say_json(&answer);
    }
    let rows: Vec<_> = answer["rows"].as_array().into_iter().flatten().map(shown).collect();
    say(rows.join("\n").trim_end());
    Ok(())
}

/// Prints what a process printed, and with `-f` goes on as it comes.
pub(crate) fn logs(options: &Logs) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let tool = if options.raw { "get_process_raw_output" } else { "get_process_output" };
    let mut since = None;
    let mut ended = false;
    // Up to where its output is known to have come.
    let mut waited = 0;
    let mut whole = options.json.then(Vec::new);
    let mut dropped = 0;
    loop {
        let mut arguments = json!({"process_id": id, "max_bytes": LOG_BYTES});
        if !options.raw {
            arguments["mode"] = json!("stream");
        }
        if let Some(since) = since {
            arguments["since_offset"] = json!(since);
        }
        let answer = client.look(tool, &arguments)?;
        let next = answer["next_offset"].as_u64().context("no offset in the answer")?;
        let begin = answer["offset"].as_u64().unwrap_or(next);
        since = Some(next);
        let gone = answer["dropped"].as_u64().unwrap_or(0);
        dropped += gone;
        if gone > 0 && whole.is_none() {
            warn(&format!(
                "{gone} bytes of its output before this are gone: the log was full, or could not be kept"
            ));
        }
        let printed = match answer["base64"].as_str() {
            Some(encoded) => base64::decode(encoded),
            None => text(&answer["text"]).into_bytes(),
        };
        match &mut whole {
            Some(whole) => whole.extend(printed),
            None if !print(&printed, options.raw) => return Ok(()),
            None => {}
        }
        if next > begin {
            continue;
        }
        if let Some(whole) = whole {
            let text = String::from_utf8_lossy(&whole);
            let mut answer = json!({"process_id": id, "text": text, "next_offset": next});
            if dropped > 0 {
                answer["dropped"] = json!(dropped);
            }
            return say_json(&answer);
        }
        if !options.follow || ended {
            return Ok(());
        }
        // Asked before the last look at the output, so that nothing printed at the end is missed.
        ended = !is_alive(&mut client, &id)?;
        if ended {
            continue;
        }
        let since = waited.max(next);
        let arguments =
            json!({"process_id": id, "since_offset": since, "timeout_seconds": FOLLOW_SECONDS});
        let answer = client.look("wait_for_output", &arguments)?;
        waited = answer["next_offset"].as_u64().unwrap_or(since);
    }
}

/// Prints output, with `raw` as unchanged bytes. Returns false once the reader is gone.
fn print(printed: &[u8], raw: bool) -> bool {
    match raw {
        true => say_bytes(printed),
        false => say_content(&String::from_utf8_lossy(printed)),
    }
}

fn is_alive(client: &mut Client, id: &str) -> anyhow::Result<bool> {
    let status = client.look("get_process_status", &json!({"process_id": id}))?;
    Ok(matches!(status["status"].as_str(), Some("running" | "starting")))
}

pub(crate) fn search(options: &Search) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let mut arguments = json!({"process_id": id, "pattern": options.pattern});
    if let Some(limit) = options.limit {
        arguments["limit"] = json!(limit);
    }
    let answer = client.look("search_output", &arguments)?;
    let matches = answer["matches"].as_array().cloned().unwrap_or_default();
    if options.json {
        say_json(&answer)?;
    } else {
        for found in &matches {
            say(&format!("{}: {}", found["line"], shown(&found["text"])));
        }
    }
    anyhow::ensure!(!matches.is_empty(), "no line matches");
    Ok(())
}

pub(crate) fn wait(options: &Wait) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let arguments = json!({
        "process_id": id, "pattern": options.pattern, "timeout_seconds": options.timeout,
        "scope": "scrollback",
    });
    let answer = client.look("wait_for_pattern", &arguments)?;
    if options.json {
        say_json(&answer)?;
    } else if answer["matched"] == true {
        say(&shown(&answer["line"]));
    }
    anyhow::ensure!(answer["exited"] != true, "{id} ended before the pattern came");
    anyhow::ensure!(answer["matched"] == true, "it did not come within {} s", options.timeout);
    Ok(())
}

pub(crate) fn send(options: &Send) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    let kind = if options.paste { "paste" } else { "text" };
    let arguments = json!({
        "process_id": id, "kind": kind, "text": options.text, "submit": !options.no_enter,
    });
    client.call("send_input", &arguments)?;
    say(&format!("typed into {id}"));
    Ok(())
}

pub(crate) fn key(options: &Key) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    for key in &options.keys {
        let arguments = json!({"process_id": id, "kind": "key", "key": key});
        client.call("send_input", &arguments)?;
    }
    say(&format!("pressed {} in {id}", options.keys.join(" ")));
    Ok(())
}

pub(crate) fn stop(options: &Stop) -> anyhow::Result<()> {
    let mut arguments = json!({});
    if let Some(signal) = &options.signal {
        arguments["signal"] = json!(signal);
    }
    let mut client = Client::connect()?;
    let id = client.resolve(&options.process)?;
    arguments["process_id"] = json!(id);
    let answer = client.call("stop_process", &arguments)?;
    // A signal that is not meant to end it is only sent.
    let lives = matches!(answer["status"].as_str(), Some("running" | "starting"));
    say(&format!("{} {id}", if lives { "signalled" } else { "stopped" }));
    Ok(())
}

pub(crate) fn restart(options: &Restart) -> anyhow::Result<()> {
    match &options.process {
        Some(process) if options.json => {
            let mut client = Client::connect()?;
            let id = client.resolve(process)?;
            say_json(&client.call("restart_process", &json!({"process_id": id}))?)
        }
        Some(process) => act("restart_process", process, json!({}), "restarted"),
        None => restore::run(options.json),
    }
}

pub(crate) fn close(options: &One) -> anyhow::Result<()> {
    act("close_process", &options.process, json!({}), "closed")
}

fn act(tool: &str, process: &str, mut arguments: Value, done: &str) -> anyhow::Result<()> {
    let mut client = Client::connect()?;
    let id = client.resolve(process)?;
    arguments["process_id"] = json!(id);
    let answer = client.call(tool, &arguments)?;
    match answer["began_anew"].as_str() {
        Some(why) => say(&format!("{done} {id}, with a new conversation: {}", one_line(why))),
        None => say(&format!("{done} {id}")),
    }
    Ok(())
}

pub(crate) fn call(Call { tool, arguments }: &Call) -> anyhow::Result<()> {
    let arguments = arguments.clone().unwrap_or_else(|| json!({}));
    let answer = Client::connect_as_program()?.call_tool(tool, &arguments)?;
    say_json_text(&serde_json::to_string_pretty(&answer)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_processes() {
        let processes = json!([
            {"process_id": "p1", "name": "lead", "kind": "agent", "status": "running",
                "activity": {"state": "blocked"}, "attention": {"reason": "may I?"}},
            {"process_id": "p2", "name": "dev", "kind": "command", "status": "exited",
                "parent_id": "p1", "exit": {"code": 1}},
            {"process_id": "p3", "name": "sh", "kind": "terminal", "status": "stopped",
                "exit": {"signal": 15}},
            {"process_id": "p4", "name": "web", "kind": "command", "status": "stopped",
                "waiting_for": ["db"]},
            {"process_id": "p5", "name": "db", "kind": "command", "status": "exited",
                "exit": {"code": 1}, "restarts": 2, "next_restart_in": 1.9},
            {"process_id": "p6", "name": "late", "kind": "agent", "status": "running",
                "parent_id": "p1", "activity": {"state": "idle"}},
        ]);
        assert_eq!(
            table(processes.as_array().unwrap()),
            "ID     STATUS    ACTIVITY  EXIT  KIND      NAME\n\
             p1     running   blocked         agent     lead  ! may I?\n\
             p2     exited              1     command     dev\n\
             p6     running   idle            agent       late\n\
             p3     stopped             sig15 terminal  sh\n\
             p4     stopped                   command   web  (waits for db)\n\
             p5     exited              1     command   db  (again in 2 s, 2 in a row)"
        );
    }
}
