//! Tools that report accurately: signals, offsets, pages, names, keys, and who is watching.

use patterm_panes::process::Status;
use patterm_store::limits::Limits;
use patterm_wire::Method;
use patterm_wire::{Framing, follow};
use serde_json::{Value, json};

use crate::support::tool_client::{self, ToolClient, id_of, strings, until};
use crate::support::{Place, Spawned, Transport, schema};

/// The real program with a client.
fn tools() -> (Place, Spawned, ToolClient) {
    let place = Place::new();
    let server = place.serve();
    let tools = ToolClient::at(&server.socket());
    (place, server, tools)
}

/// Prints a line for each signal that it gets, and exits only on SIGKILL.
const TELLS_SIGNALS: &str = "for s in HUP USR1 TERM; do trap \"echo got $s\" $s; done; echo set; \
    while :; do sleep 0.05; done";

#[test]
fn a_signal_that_is_not_meant_to_end_a_process_is_only_sent() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh(TELLS_SIGNALS);
    tools.wait(&id, "set");
    let stop = |signal: Value| json!({"process_id": id, "signal": signal});
    for (number, signal) in [json!("USR1"), json!(10), json!("SIGUSR1")].into_iter().enumerate() {
        assert_eq!(tools.ok("stop_process", stop(signal)), json!({"status": "running"}));
        let pattern = "(got USR1)";
        tools.wait(&id, pattern);
        let found = json!({"process_id": id, "pattern": "got USR1"});
        until("the signal", || {
            let total = tools.ok("search_output", found.clone())["total"].as_u64().unwrap();
            (total == number as u64 + 1).then_some(())
        });
    }
    // Longer than the grace period of a stop: nothing was killed afterwards.
    let never = json!({"process_id": id, "pattern": "[^\\s\\S]", "timeout_seconds": 6});
    assert_eq!(tools.ok("wait_for_pattern", never)["timed_out"], true);
    assert_eq!(tools.status(&id)["status"], "running");
    // A signal that is meant to end it does.
    let ended = tools.ok("stop_process", stop(json!("KILL")));
    assert_eq!(ended, json!({"status": "stopped", "exit": {"signal": 9}}));
}

#[test]
fn signal_process_sends_a_signal_by_name_or_number_and_nothing_more() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh(TELLS_SIGNALS);
    tools.wait(&id, "set");
    for (signal, line) in [(json!("HUP"), "got HUP"), (json!(15), "got TERM")] {
        let arguments = json!({"process_id": id, "signal": signal});
        assert_eq!(tools.ok("signal_process", arguments), json!({"status": "running"}));
        tools.wait(&id, line);
    }
    assert_eq!(tools.status(&id)["status"], "running");
    let nonsense = json!({"process_id": id, "signal": "NONSENSE"});
    let message = tools.refused("invalid_argument", "signal_process", nonsense);
    assert!(message.contains("NONSENSE") && message.contains("\"HUP\""), "{message}");
    let missing = json!({"process_id": id});
    assert!(tools.refused("invalid_argument", "signal_process", missing).contains("signal"));
    tools.close(&id);
}

#[test]
fn an_offset_beyond_the_end_is_clamped_and_that_is_reported() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty -echo; echo one; read x; echo two; exec cat");
    tools.wait(&id, "one");
    let end = tools.status(&id)["output_offset"].as_u64().unwrap();
    let beyond = json!({"process_id": id, "mode": "stream", "since_offset": end + 1000});
    let wait = json!({"process_id": id, "since_offset": end + 1000, "timeout_seconds": 0});
    for tool in ["get_process_output", "get_process_raw_output"] {
        let answer = tools.ok(tool, beyond.clone());
        let printed = (&answer["offset"], &answer["next_offset"], &answer["clamped"]);
        assert_eq!(printed, (&json!(end), &json!(end), &json!(true)), "{tool}: {answer}");
    }
    let waited = tools.ok("wait_for_output", wait);
    assert_eq!((&waited["next_offset"], &waited["clamped"]), (&json!(end), &json!(true)));
    // A follower from there misses nothing.
    tools.line(&id, "");
    tools.wait(&id, "two");
    let more = json!({"process_id": id, "mode": "stream", "since_offset": end});
    assert_eq!(tools.ok("get_process_output", more)["text"], "two\n");
}

#[test]
fn stream_and_raw_begin_at_the_current_run_without_an_offset() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("echo run; exec cat");
    tools.wait(&id, "run");
    tools.ok("restart_process", json!({"process_id": id}));
    tools.wait(&id, "run");
    let stream = json!({"process_id": id, "mode": "stream"});
    let answers =
        ["get_process_output", "get_process_raw_output"].map(|tool| tools.ok(tool, stream.clone()));
    let [text, raw] = &answers;
    assert!(text["offset"].as_u64() > Some(0), "{text}");
    assert_eq!((&text["offset"], &text["text"]), (&raw["offset"], &json!("run\n")), "{raw}");
    assert_eq!(raw["text"], "run\r\n");
    let all = json!({"process_id": id, "since_offset": 0});
    assert_eq!(tools.ok("get_process_raw_output", all)["offset"], 0);
}

#[test]
fn a_truncated_stream_says_so_and_can_be_paged_from_both_ends() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("seq 1 400");
    tools.ended(&id);
    let whole: String = (1..=400).map(|n| format!("{n}\n")).collect();
    let mut page = |mut arguments: Value| {
        arguments["process_id"] = json!(id);
        arguments["mode"] = json!("stream");
        arguments["max_bytes"] = json!(200);
        tools.ok("get_process_output", arguments)
    };
    let (mut forward, mut since) = (String::new(), json!(0));
    loop {
        let answer = page(json!({"since_offset": since}));
        forward.push_str(answer["text"].as_str().unwrap());
        since = answer["next_offset"].clone();
        if answer.get("more").is_none() {
            break;
        }
    }
    assert_eq!(forward, whole);
    let last = page(json!({"order": "last"}));
    assert!(last["text"].as_str().unwrap().ends_with("399\n400\n"), "{last}");
    let (mut backward, mut until) = (String::new(), Value::Null);
    loop {
        let answer = page(json!({"order": "last", "until_offset": until}));
        backward.insert_str(0, answer["text"].as_str().unwrap());
        until = answer["offset"].clone();
        if answer.get("more").is_none() {
            break;
        }
    }
    assert_eq!(backward, whole);
    let few = json!({"process_id": id, "mode": "scrollback", "lines": 3});
    assert_eq!(tools.ok("get_process_output", few)["more"], true);
    let all = json!({"process_id": id, "mode": "scrollback", "lines": 1000});
    assert_eq!(tools.ok("get_process_output", all).get("more"), None);
}

#[test]
fn a_stream_read_from_its_end_never_begins_inside_an_escape_sequence() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh(r"for n in $(seq 100 199); do printf '\033[38;5;%smw%s\033]8;;http://host/%s\033\\é ' $n $n $n; done");
    tools.ended(&id);
    let whole: String = (100..200).map(|n| format!("w{n}é ")).collect();
    for size in 60..80 {
        let (mut pages, mut until) = (Vec::new(), Value::Null);
        loop {
            let answer = tools.ok(
                "get_process_output",
                json!({"process_id": id, "mode": "stream", "max_bytes": size, "order": "last",
                    "until_offset": until}),
            );
            pages.insert(0, answer["text"].as_str().unwrap().to_owned());
            until = answer["offset"].clone();
            if answer.get("more").is_none() {
                break;
            }
        }
        assert_eq!(pages.concat().trim_end(), whole.trim_end(), "pages of {size} bytes");
    }
}

#[test]
fn a_search_pages_from_both_ends_and_counts_lines_from_1() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("seq 1 100");
    tools.ended(&id);
    for kind in ["rendered", "raw"] {
        for (order, expected) in [
            ("first", (1..=100).collect::<Vec<u64>>()),
            ("last", (1..=100).rev().collect::<Vec<u64>>()),
        ] {
            let (mut lines, mut next) = (Vec::new(), Value::Null);
            loop {
                let mut arguments = json!({"process_id": id, "pattern": "^[0-9]+", "limit": 30,
                    "kind": kind, "order": order});
                arguments["from"] = next;
                let answer = tools.ok("search_output", arguments);
                for found in answer["matches"].as_array().unwrap() {
                    let line = found["line"].as_u64().unwrap();
                    assert_eq!(found["text"], line.to_string(), "{kind}");
                    lines.push(line);
                }
                assert_eq!(answer["truncated"] == true, answer["more"] == true);
                assert_eq!(answer["total"], 100);
                next = answer["next"].clone();
                if answer["more"] != true {
                    break;
                }
            }
            assert_eq!(lines, expected, "{kind}, {order}");
        }
    }
}

#[test]
fn a_page_size_of_zero_is_refused() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("seq 1 100");
    tools.ended(&id);
    for kind in ["rendered", "raw"] {
        let none = json!({"process_id": id, "pattern": "1", "limit": 0, "kind": kind});
        let message = tools.refused("invalid_argument", "search_output", none);
        assert!(message.contains("`limit`") && message.contains("`total`"), "{message}");
    }
}

/// However much is requested, no more is copied than fits into a response.
#[test]
fn reading_ends_where_the_answer_ends() {
    let place = Place::new();
    let server = place.serve_with(Limits { answer_bytes: 20_000, ..Limits::default() });
    let mut tools = ToolClient::of(&server);
    let id = tools.sh("seq 1 50000");
    tools.ended(&id);
    for (mode, most) in [("stream", "max_bytes"), ("scrollback", "lines")] {
        let all = json!({"process_id": id, "mode": mode, most: 1_000_000_000_000_u64});
        let message = tools.refused("limit", "get_process_output", all);
        let bytes = message.split("would have ").nth(1).and_then(|rest| rest.split(' ').next());
        let bytes: u64 = bytes.unwrap().parse().unwrap();
        // The text is in a response twice, with its line breaks escaped.
        assert!(bytes < 200_000, "{mode}: {message}");
    }
}

#[test]
fn keys_are_accepted_in_the_spellings_that_models_use() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty raw -echo; echo ready; exec cat -v");
    tools.wait(&id, "ready");
    for key in ["C-a", "ctrl-b", "^E", "ArrowUp", "Escape", "Enter", "S-Tab"] {
        tools.key(&id, key);
    }
    tools.wait(&id, r"\^A\^B\^E\^\[\[A\^\[\^M\^\[\[Z$");
    let unknown = json!({"process_id": id, "kind": "key", "key": "Hyper-X"});
    let message = tools.refused("invalid_argument", "send_input", unknown);
    assert!(message.starts_with("`key` is unknown: there is no key \"Hyper-X\""), "{message}");
    assert!(message.contains("ctrl-c"), "{message}");
    // It is reading, so the length is the problem.
    let long = json!({"process_id": id, "kind": "text", "text": "x".repeat(2_000_000)});
    let message = tools.refused("limit", "send_input", long);
    assert!(message.starts_with("2000000 bytes are more than the "), "{message}");
}

#[test]
fn a_unique_name_is_accepted_in_place_of_an_id() {
    let (_place, _server, mut tools) = tools();
    let started = tools.ok("spawn_process", json!({"argv": ["cat"], "name": "the cat"}));
    let id = id_of(&started);
    let other = tools.run(&["cat"]);
    for tool in ["get_process_status", "get_process_output", "get_process_ports"] {
        tools.ok(tool, json!({"process_id": "the cat"}));
    }
    assert_eq!(tools.status("the cat")["process_id"], id.as_str());
    let timer = json!({"watched": ["the cat"], "body": "x", "owner_process_id": other});
    let timer = tools.ok("timer_fire_when_idle_any", timer);
    let watched = [&timer["waiting_on"], &timer["already_idle"]].map(strings).concat();
    assert_eq!(watched, [id.as_str()]);
    let message = json!({"target_process_id": "the cat", "message": "x"});
    let refused = tools.refused("invalid_argument", "send_message", message);
    assert!(refused.contains(&id), "{refused}");
    assert!(
        tools.refused("not_found", "close_process", json!({"process_id": "nobody"})).contains(&id)
    );
    assert_eq!(tools.close("the cat"), [id]);
}

#[test]
fn a_wait_that_ends_with_the_process_reports_its_exit() {
    let (_place, _server, mut tools) = tools();
    for (script, exit) in [("exit 3", json!({"code": 3})), ("kill -9 $$", json!({"signal": 9}))] {
        let id = tools.sh(script);
        let wait = json!({"process_id": id, "pattern": "never", "timeout_seconds": 30});
        let answer = tools.ok("wait_for_pattern", wait.clone());
        assert_eq!((&answer["exited"], &answer["exit"]), (&json!(true), &exit), "{answer}");
        let answer = tools.ok("wait_for_output", wait);
        assert_eq!((&answer["exited"], &answer["exit"]), (&json!(true), &exit), "{answer}");
    }
}

#[test]
fn a_pattern_of_several_lines_is_refused_with_advice() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    for pattern in ["one\\ntwo", "one\ntwo"] {
        for tool in ["wait_for_pattern", "search_output"] {
            let arguments = json!({"process_id": id, "pattern": pattern});
            let message = tools.refused("invalid_argument", tool, arguments);
            assert!(message.contains("a pattern for the last line"), "{message}");
        }
    }
}

#[test]
fn a_tail_without_a_time_waits_for_output() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty -echo; echo before; exec cat");
    tools.wait(&id, "before");
    let typed = json!({"process_id": id, "kind": "text", "text": "one", "submit": true,
        "tail_mode": "stream"});
    let stream = tools.ok("send_input", typed.clone());
    assert_eq!(stream["text"], "one\n", "{stream}");
    let mut grid = typed;
    grid["tail_mode"] = json!("grid");
    let grid = tools.ok("send_input", grid);
    assert_eq!(strings(&grid["rows"]), ["before", "one", "one"], "{grid}");
}

#[test]
fn a_caller_without_the_right_is_told_whom_to_ask() {
    let (_place, server, mut tools) = tool_client::tools();
    let persons = tools.run(&["cat"]);
    let (lead, token) = server.agent("lead", None);
    server.host().panes.processes.note(&lead.id, |lead| {
        lead.status = Status::Running;
    });
    let (_, other_token) = server.agent("other", None);
    let mut lead_desk = ToolClient::of_agent(&server, &token);
    let leads = lead_desk.run(&["cat"]);
    let mut other = ToolClient::of_agent(&server, &other_token);
    let message = other.refused("not_owner", "stop_process", json!({"process_id": leads}));
    let wanted = format!("send_message (target_process_id {})", lead.id);
    assert!(message.contains(&wanted), "{message}");
    let message = other.refused("not_owner", "stop_process", json!({"process_id": lead.id}));
    assert!(message.contains(&wanted), "{message}");
    let message = other.refused("not_owner", "stop_process", json!({"process_id": persons}));
    let wanted = format!("request_human_attention (process_id {persons})");
    assert!(message.contains(&wanted) && !message.contains("send_message"), "{message}");
    other.ok("request_human_attention", json!({"process_id": persons, "reason": "please stop it"}));
}

#[test]
fn a_request_for_attention_reports_when_nobody_is_watching() {
    let (_place, server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    let arguments = json!({"process_id": id, "reason": "look"});
    let alone = tools.ok("request_human_attention", arguments.clone());
    assert_eq!((&alone["ok"], &alone["watched"]), (&json!(true), &json!(false)), "{alone}");
    assert!(alone["note"].as_str().unwrap().contains("nobody"), "{alone}");
    let mut screen = server.connect(Transport::Socket(Framing::Newline));
    screen.answer(1, follow::Follow::NAME, json!({"version": follow::VERSION}));
    let seen = tools.ok("request_human_attention", arguments);
    assert_eq!(seen, json!({"ok": true, "watched": true}));
}

#[test]
fn a_terminal_is_a_terminal_with_shell_too() {
    let (_place, _server, mut tools) = tools();
    let plain = id_of(&tools.ok("spawn_process", json!({})));
    let shell = id_of(&tools.ok("spawn_process", json!({"shell": true})));
    let [plain, shell] = [plain, shell].map(|id| tools.status(&id));
    assert_eq!((&shell["kind"], &shell["argv"]), (&json!("terminal"), &plain["argv"]), "{shell}");
}

#[test]
fn callers_without_a_pane_can_wait_for_agents() {
    let (_place, _server, mut tools) = tools();
    let quick = tools.sh("exit 4");
    let slow = tools.run(&["cat"]);
    let wait = |ids: &[&str], until: &str, mode: &str, seconds: f64| json!({"process_ids": ids, "until": until, "mode": mode, "timeout_seconds": seconds});
    let any = tools.ok("wait_for_agents", wait(&[&quick, &slow], "exited", "any", 30.0));
    assert_eq!(any["timed_out"], false, "{any}");
    assert_eq!(any["reached"][0]["process_id"], quick.as_str(), "{any}");
    assert_eq!(any["reached"][0]["exit"], json!({"code": 4}), "{any}");
    assert_eq!(any["waiting_on"][0]["process_id"], slow.as_str(), "{any}");
    assert!(any["waiting_on"][0]["activity"]["reason"].is_string(), "{any}");
    let all = tools.ok("wait_for_agents", wait(&[&quick, &slow], "exited", "all", 0.2));
    assert_eq!(all["timed_out"], true, "{all}");
    // It is woken by the exit, not by the timeout.
    let asked = tools.ask("wait_for_agents", wait(&[&slow], "exited", "all", 600.0));
    tools.ask("stop_process", json!({"process_id": slow}));
    let (mut stopped, mut woken) = (false, false);
    for _ in 0..2 {
        let answer = tools.peer.receive();
        match answer["id"] == asked {
            true => woken = answer["result"]["reached"][0]["process_id"] == slow.as_str(),
            false => stopped = answer["result"]["status"] == "stopped",
        }
    }
    assert!(stopped && woken);
    let idle = tools.ok("wait_for_agents", json!({"process_ids": [quick, slow]}));
    assert_eq!(idle["reached"].as_array().unwrap().len(), 2, "what ended is idle: {idle}");
    let blocked = tools.ok("wait_for_agents", wait(&[&slow], "blocked", "any", 600.0));
    assert_eq!((&blocked["timed_out"], &blocked["reached"]), (&json!(false), &json!([])));
    tools.refused("invalid_argument", "wait_for_agents", json!({"process_ids": []}));
    tools.refused("not_found", "wait_for_agents", json!({"process_ids": ["p99"]}));
}

#[test]
fn failures_fit_the_schema_that_clients_are_given() {
    let (_place, _server, mut tools) = tools();
    for tool in ["get_process_status", "stop_process", "scratchpad_read", "timer_cancel"] {
        let params = json!({"name": tool, "arguments": {"process_id": "p9", "name": "n",
            "timer_id": "t9"}});
        let failed = tools.peer.answer(1, "tools/call", params)["result"].take();
        assert_eq!(failed["isError"], true, "{failed}");
        assert_eq!(schema::listed_misfit(tool, &failed["structuredContent"]), None);
    }
}

#[test]
fn a_parse_error_has_the_standard_message_and_the_detail_as_data() {
    let (_place, _server, mut tools) = tools();
    tools.peer.send_body(b"nonsense");
    let answer = tools.peer.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    assert_eq!(answer["error"]["message"], "Parse error", "{answer}");
    assert!(answer["error"]["data"].as_str().unwrap().contains("JSON"), "{answer}");
}
