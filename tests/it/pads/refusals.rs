//! Refusals: their errors, and that they leave nothing behind.

use patterm_store::limits::Limits;
use serde_json::{Value, json};

use super::tool_client::{ToolClient, file, files, string, tools, writing};
use crate::support::Place;

/// The maximum size of a pad.
const LIMIT: usize = 512 << 10;

#[test]
fn names_that_are_paths_or_hidden_are_refused() {
    let (place, _server, mut tools) = tools();
    let long = "x".repeat(201);
    for name in [
        "",
        ".",
        "..",
        "../x",
        "../../processes",
        "/etc/passwd",
        "a/b",
        "a/",
        "a\\b",
        ".hidden",
        ".md",
        "a\0",
        "a\nb",
        "a\u{1b}[2J",
        " a",
        "a ",
        &long,
    ] {
        for (tool, arguments) in [
            ("scratchpad_read", json!({"name": name})),
            ("scratchpad_write", json!({"name": name, "content": "x"})),
            ("scratchpad_append", json!({"name": name, "content": "x"})),
        ] {
            let error = tools.refused("invalid_argument", tool, arguments);
            assert_eq!(error["field"], "name");
            let message = string(&error["message"]);
            assert!(
                message.starts_with("`name` takes a plain name of 1 to 200 bytes"),
                "{message}"
            );
            assert!(message.len() < 400 && !message.contains(char::is_control), "{message}");
        }
    }
    assert_eq!(files(&place), Vec::<String>::new());
    assert_eq!(tools.pads(), Vec::<Value>::new());
}

#[test]
fn wrong_types_are_named_and_unknown_arguments_ignored() {
    let (place, _server, mut tools) = tools();
    for (tool, arguments, message) in [
        ("scratchpad_read", json!({}), "`name` is missing; it takes a string"),
        ("scratchpad_read", json!({"name": 1}), "`name` takes a string, not 1"),
        ("scratchpad_write", json!({"name": "a"}), "`content` is missing; it takes a string"),
        (
            "scratchpad_write",
            json!({"name": "a", "content": ["x"]}),
            "`content` takes a string, not an array",
        ),
        (
            "scratchpad_write",
            json!({"name": "a", "content": "x", "expected_revision": 3}),
            "`expected_revision` takes a string, not 3",
        ),
        ("scratchpad_append", json!({"name": "a"}), "`content` is missing; it takes a string"),
    ] {
        let error = tools.refused("invalid_argument", tool, arguments);
        assert_eq!(error["message"], message);
    }
    assert_eq!(files(&place), Vec::<String>::new());
    tools.ok("scratchpad_append", json!({"name": "a", "content": "x", "mode": "bold"}));
    tools.ok("scratchpad_list", json!({"name": 7}));
}

#[test]
fn an_unknown_pad_is_named_with_the_existing_ones() {
    let (_place, _server, mut tools) = tools();
    let error = tools.refused("not_found", "scratchpad_read", json!({"name": "plan"}));
    assert_eq!(error["message"], "there is no scratchpad `plan`; there are none yet");
    tools.append("log", "x");
    let error = tools.refused("not_found", "scratchpad_read", json!({"name": "plan"}));
    assert_eq!(error["message"], "there is no scratchpad `plan`; the scratchpads are log");
    let error = tools.refused("conflict", "scratchpad_write", writing("plan", "x", Some("1-0")));
    assert_eq!(error.get("revision"), None);
    assert_eq!(tools.pads().len(), 1);
}

#[test]
fn a_conflict_has_the_current_revision_and_nothing_is_written() {
    let (place, server, mut tools) = tools();
    let (_, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let first = string(&agent.ok("scratchpad_write", writing("plan", "a", None))["revision"]);
    let second =
        string(&agent.ok("scratchpad_write", writing("plan", "b", Some(&first)))["revision"]);
    for expected in [None, Some(&*first), Some("")] {
        let error =
            tools.refused("conflict", "scratchpad_write", writing("plan", "mine", expected));
        assert_eq!(error["revision"], *second);
        assert_eq!(error["changed_by"], "p1 (lead)");
        assert!(string(&error["message"]).contains(&second), "{error}");
    }
    assert_eq!(std::fs::read_to_string(file(&place, "plan")).unwrap(), "b");
    assert_eq!(tools.read("plan")["revision"], *second);
    let third = tools.ok("scratchpad_write", writing("plan.md", "c", Some(&second)));
    assert_eq!(third["name"], "plan", "the file's extension is not part of the name");
}

#[test]
fn a_pad_of_a_hundred_megabytes_is_refused() {
    let place = Place::new();
    let server = place.serve_with(Limits { message_bytes: 256 << 20, ..Limits::default() });
    let mut tools = ToolClient::at(server.socket());
    let huge = "x".repeat(100_000_000);
    for tool in ["scratchpad_write", "scratchpad_append"] {
        let error = tools.refused("limit", tool, json!({"name": "plan", "content": huge}));
        assert_eq!(error["limit_bytes"], LIMIT);
        let message = string(&error["message"]);
        assert!(message.contains("holds up to 524288 bytes"), "{message}");
    }
    assert_eq!(files(&place), Vec::<String>::new());
    // A person's file may have any size; it is listed, and not read.
    std::fs::create_dir_all(file(&place, "plan").parent().unwrap()).unwrap();
    std::fs::File::create(file(&place, "plan")).unwrap().set_len(100_000_000).unwrap();
    assert_eq!(tools.pads()[0]["size"], 100_000_000);
    let revision = string(&tools.pads()[0]["revision"]);
    for (tool, arguments) in [
        ("scratchpad_read", json!({"name": "plan"})),
        ("scratchpad_append", json!({"name": "plan", "content": "x"})),
        ("scratchpad_write", writing("plan", "x", Some(&revision))),
    ] {
        let error = tools.refused("limit", tool, arguments);
        assert!(string(&error["message"]).contains("100000000 bytes, more than the 524288"));
    }
    assert_eq!(file(&place, "plan").metadata().unwrap().len(), 100_000_000);
}

/// Everything that can be written can be read: however JSON escapes it, it fits into a response.
#[test]
fn the_largest_pad_can_be_read_whatever_it_contains() {
    let (_place, _server, mut tools) = tools();
    for (pad, unit) in [("quotes", "\""), ("slashes", "\\"), ("control", "\u{1}"), ("wide", "é")] {
        let content = unit.repeat(LIMIT / unit.len());
        tools.ok("scratchpad_write", writing(pad, &content, None));
        assert!(tools.content(pad) == content, "{pad}");
        tools.refused("limit", "scratchpad_append", json!({"name": pad, "content": "x"}));
        assert!(tools.content(pad) == content, "{pad}");
    }
}

#[test]
fn the_number_of_pads_is_limited() {
    let place = Place::new();
    let server = place.serve_with(Limits { pads: 3, ..Limits::default() });
    let mut tools = ToolClient::at(server.socket());
    for pad in ["a", "b", "c"] {
        tools.append(pad, pad);
    }
    for tool in ["scratchpad_write", "scratchpad_append"] {
        let error = tools.refused("limit", tool, json!({"name": "d", "content": "d"}));
        assert!(string(&error["message"]).contains("there are 3 scratchpads"), "{error}");
    }
    std::fs::remove_file(file(&place, "b")).unwrap();
    tools.append("d", "d");
    tools.append("a", "more");
}

#[test]
fn a_pad_is_removed_only_at_the_revision_that_was_read() {
    let (place, _server, mut tools) = tools();
    let made = tools.ok("scratchpad_write", json!({"name": "plan", "content": "one\n"}));
    let old = made["revision"].clone();
    std::fs::write(file(&place, "plan"), "by hand\n").unwrap();
    let delete = |revision: &Value| json!({"name": "plan", "expected_revision": revision});
    let error = tools.refused("conflict", "scratchpad_delete", delete(&old));
    assert_eq!(error["changed_by"], "a person's editor", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("it was not removed") && !message.contains("writ"), "{message}");
    let read = tools.ok("scratchpad_read", json!({"name": "plan"}));
    assert_eq!(read["content"], "by hand\n", "nothing was removed");
    tools.refused("invalid_argument", "scratchpad_delete", json!({"name": "plan"}));
    let done = tools.ok("scratchpad_delete", delete(&read["revision"]));
    assert_eq!(done, json!({"ok": true}));
    assert_eq!((files(&place), tools.pads()), (Vec::<String>::new(), Vec::<Value>::new()));
    tools.refused("not_found", "scratchpad_delete", delete(&read["revision"]));
    tools.refused("not_found", "scratchpad_read", json!({"name": "plan"}));
    let again = tools.ok("scratchpad_write", json!({"name": "plan", "content": "one\n"}));
    assert_ne!(again["revision"], old, "a new pad never has an old revision");
}
