//! Reading from processes: lists, status, screens, streams, bytes, searches.

use patterm_store::limits::Limits;
use serde_json::{Value, json};

use crate::support::Place;
use crate::support::tool_client::{ToolClient, strings, tools};

#[test]
fn lists_and_status_have_every_field() {
    let (place, server, mut tools) = tools();
    let (lead, token) = server.agent("lead", None);
    let id = ToolClient::of_agent(&server, &token).sh("printf '\\033]2;my title\\007ab'; exec cat");
    tools.wait(&id, "ab");
    tools.ok("spawn_process", json!({"env": {"SHELL": "/bin/sh"}}));
    let kinds = |listed: &Value| {
        let listed = listed["processes"].as_array().unwrap();
        listed.iter().map(|process| process["kind"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&tools.ok("list_processes", json!({}))), ["agent", "command", "terminal"]);
    for kind in ["agent", "command", "terminal"] {
        assert_eq!(kinds(&tools.ok("list_processes", json!({"kind": kind}))), [kind]);
    }
    tools.refused("invalid_argument", "list_processes", json!({"kind": "shell"}));

    let listed = tools.ok("list_processes", json!({"kind": "command"}))["processes"][0].take();
    let expected = json!({
        "process_id": id, "name": "sh", "kind": "command", "parent_id": lead.id,
        "status": "running", "ports": [], "activity": listed["activity"],
    });
    assert_eq!(listed, expected);
    let state = listed["activity"]["state"].as_str().unwrap();
    assert!(["unknown", "working", "idle"].contains(&state), "{listed}");
    assert!(listed["activity"]["reason"].is_string());

    let status = tools.status(&id);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&status[name], value, "{name}");
    }
    assert_eq!(status["size"], json!({"rows": 24, "columns": 80}));
    assert_eq!(status["cursor"], json!({"row": 0, "column": 2, "visible": true}));
    assert_eq!(status["title"], "my title");
    assert_eq!(status["alternate_screen"], false);
    assert_eq!(status["screen_version"], tools.grid(&id)["screen_version"]);
    assert_eq!(status["output_offset"], "\x1b]2;my title\x07ab".len());
    assert_eq!(status["working_dir"], json!(place.project().root()));
    assert_eq!(status["argv"][0], "sh");
    assert!(status["pid"].as_u64().unwrap() > 1 && status["started_at"].as_u64().unwrap() > 0);
    assert_eq!(status["usage"]["processes"], 1);
    assert!(status["usage"]["memory_bytes"].as_u64().unwrap() > 100_000);
    assert!(status["usage"]["cpu_seconds"].is_number());

    let project = tools.ok("get_project_status", json!({}));
    assert_eq!(project["project"], json!(place.project().root()));
    assert_eq!(project["caller"], json!({"role": "external"}));
    assert_eq!(project["processes"].as_array().unwrap().len(), 3);
    assert_eq!((&project["scratchpads"], &project["timers"]), (&json!([]), &json!([])));
}

#[test]
fn the_screen_and_whether_it_changed() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty -echo; printf 'one  \\n\\033[1mtwo\\033[m\\n\\nfour'; read x; printf '\\rFOUR'; exec cat");
    tools.wait(&id, "four");
    let grid = tools.grid(&id);
    let rows = strings(&grid["rows"]);
    assert_eq!(rows, ["one", "two", "", "four"]);
    assert_eq!(grid["blank_rows"], 20, "those at the end are counted, not sent");
    assert_eq!(grid["cursor"], json!({"row": 3, "column": 4, "visible": true}));
    assert_eq!(grid["size"], json!({"rows": 24, "columns": 80}));
    let seen = &grid["screen_version"];
    let again = json!({"process_id": id, "mode": "grid", "since_offset": seen});
    let unchanged = tools.ok("get_process_output", again.clone());
    assert_eq!(unchanged, json!({"unchanged": true, "screen_version": seen}));
    tools.line(&id, "");
    tools.wait(&id, "FOUR");
    let changed = tools.ok("get_process_output", again);
    assert_eq!(changed["rows"][3], "FOUR");
    assert!(changed["screen_version"].as_u64() > seen.as_u64());
    assert_eq!(changed.get("unchanged"), None);
}

#[test]
fn the_stream_continues_where_it_was_left() {
    let (_place, _server, mut tools) = tools();
    let id = tools
        .sh("stty -echo; printf '\\033[31mred\\033[m\\r\\n'; read x; printf 'more\\n'; exec cat");
    tools.wait(&id, "red");
    let stream = |since: Option<u64>| {
        let mut arguments = json!({"process_id": id, "mode": "stream"});
        if let Some(since) = since {
            arguments["since_offset"] = json!(since);
        }
        arguments
    };
    let first = tools.ok("get_process_output", stream(None));
    assert_eq!((&first["text"], &first["offset"]), (&json!("red\n"), &json!(0)));
    let next = first["next_offset"].as_u64().unwrap();
    let nothing = tools.ok("get_process_output", stream(Some(next)));
    assert_eq!(nothing, json!({"text": "", "offset": next, "next_offset": next}));
    tools.line(&id, "");
    tools.wait(&id, "more");
    let more = tools.ok("get_process_output", stream(Some(next)));
    assert_eq!((&more["text"], &more["offset"]), (&json!("more\n"), &json!(next)));
    let mut little = stream(Some(0));
    little["max_bytes"] = json!(7);
    let little = tools.ok("get_process_output", little);
    assert_eq!((&little["text"], &little["next_offset"]), (&json!("re"), &json!(7)));
}

#[test]
fn the_scrollback_has_lines_that_scrolled_away_and_joins_wrapped_ones() {
    let (_place, _server, mut tools) = tools();
    let wide = "x".repeat(100);
    let id = tools.sh(&format!("seq 1 100; echo {wide}; printf end"));
    tools.ended(&id);
    let mut last = |lines: u64| {
        let arguments = json!({"process_id": id, "mode": "scrollback", "lines": lines});
        strings(&tools.ok("get_process_output", arguments)["rows"])
    };
    assert_eq!(last(3), ["100", &wide, "end"]);
    let all = last(1000);
    assert_eq!(all.len(), 102);
    assert_eq!((&*all[0], &*all[99]), ("1", "100"));
}

#[test]
fn raw_output_is_returned_byte_for_byte() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty raw; printf 'a\\033[1mb\\303\\251'; printf '\\377\\376'");
    tools.ended(&id);
    let mut raw = |since: u64, most: u64| {
        let arguments = json!({"process_id": id, "since_offset": since, "max_bytes": most});
        tools.ok("get_process_raw_output", arguments)
    };
    let expected = json!({"text": "a\x1b[1mbé", "offset": 0, "next_offset": 8, "more": true});
    assert_eq!(raw(0, 8), expected);
    let cut = json!({"text": "a\x1b[1mb", "offset": 0, "next_offset": 6, "more": true});
    assert_eq!(raw(0, 7), cut, "text is text, wherever it is cut");
    assert_eq!(raw(6, 1), json!({"base64": "ww==", "offset": 6, "next_offset": 7, "more": true}));
    assert_eq!(raw(8, 100), json!({"base64": "//4=", "offset": 8, "next_offset": 10}));
    assert_eq!(raw(10, 100), json!({"text": "", "offset": 10, "next_offset": 10}));
}

#[test]
fn output_that_the_log_dropped_is_reported() {
    let place = Place::new();
    let server = place.serve_with(Limits { log_bytes: 400_000, ..Limits::default() });
    let mut tools = ToolClient::of(&server);
    let id = tools.run(&["seq", "1", "300000"]);
    let status = tools.ended(&id);
    let printed: usize = (1..=300_000).map(|n: u32| n.to_string().len() + 2).sum();
    assert_eq!(status["output_offset"], printed);
    for (tool, mode) in [("get_process_output", "stream"), ("get_process_raw_output", "")] {
        let arguments = json!({"process_id": id, "mode": mode, "since_offset": 10});
        let answer = tools.ok(tool, arguments);
        let (offset, dropped) = (answer["offset"].as_u64(), answer["dropped"].as_u64());
        assert_eq!(dropped.unwrap() + 10, offset.unwrap());
        assert!(dropped.unwrap() > 500_000, "{dropped:?}");
    }
    let kept: u64 = std::fs::read_dir(place.state().file("output").join(&id))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= 400_000 + (1 << 20), "{kept}");
}

#[test]
fn searching_rendered_lines_and_raw_bytes() {
    let (_place, _server, mut tools) = tools();
    let wide = format!("{}needle", "x".repeat(78));
    let id = tools.sh(&format!("seq 1 100; printf '\\033[31mred\\033[m line\\n'; echo {wide}"));
    tools.ended(&id);
    let mut search = |arguments: Value| {
        let mut arguments = arguments;
        arguments["process_id"] = json!(id);
        tools.ok("search_output", arguments)
    };
    let found = search(json!({"pattern": "^9[0-2]$"}));
    assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(false)));
    let lines: Vec<_> = found["matches"].as_array().unwrap().iter().map(|m| &m["text"]).collect();
    assert_eq!(lines, ["90", "91", "92"]);
    let number = |n: usize| found["matches"][n]["line"].as_u64().unwrap();
    assert_eq!((number(0), number(1), number(2)), (90, 91, 92), "counted from 1");
    let begin: usize = (1..90).map(|n: u32| n.to_string().len() + 2).sum();
    assert_eq!(found["matches"][0]["offset"], begin);

    let few = search(json!({"pattern": "1", "limit": 5}));
    assert_eq!(few["matches"].as_array().unwrap().len(), 5);
    assert_eq!((&few["total"], &few["truncated"]), (&json!(20), &json!(true)));
    assert_eq!(search(json!({"pattern": "\\d"}))["matches"].as_array().unwrap().len(), 20);
    let around = search(json!({"pattern": "^50$", "context": 1}));
    assert_eq!(around["matches"][0]["text"], "49\n50\n51");
    assert_eq!(search(json!({"pattern": "red line"}))["total"], 1);
    assert_eq!(search(json!({"pattern": "red line", "kind": "raw"}))["total"], 0);
    let raw = search(json!({"pattern": "\\x1b\\[31mred", "kind": "raw"}));
    assert_eq!(
        (&raw["total"], &raw["matches"][0]["text"]),
        (&json!(1), &json!("\x1b[31mred\x1b[m line"))
    );
    assert_eq!(search(json!({"pattern": "^x+needle$"}))["total"], 1, "a wrapped line is one line");
    assert_eq!(
        search(json!({"pattern": "nothing"})),
        json!({"matches": [], "total": 0, "truncated": false})
    );
}

#[test]
fn a_bad_pattern_is_refused_with_its_position_and_none_hangs_the_server() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("head -c 200000 /dev/zero | tr '\\0' a");
    tools.ended(&id);
    for tool in ["search_output", "wait_for_pattern"] {
        for (pattern, place) in
            [("a(b", "^"), ("(a{1000}){1000}", "size limit"), ("(?=a)", "look-around")]
        {
            let arguments = json!({"process_id": id, "pattern": pattern});
            let message = tools.refused("invalid_argument", tool, arguments);
            assert!(message.contains("pattern") && message.contains(place), "{message}");
        }
    }
    for kind in ["rendered", "raw"] {
        let arguments = json!({"process_id": id, "pattern": "(a+)+$x|(a|a)*b", "kind": kind});
        assert_eq!(tools.ok("search_output", arguments)["total"], 0);
    }
}
