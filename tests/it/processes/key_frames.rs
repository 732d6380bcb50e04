//! Restarts of the server from what is beside the logs: the same screens, lines and sizes, whether that can be used or
//! not.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use patterm_store::limits::Limits;
use patterm_wire::events::format_time;
use serde_json::{Value, json};

use super::survival::{desk_of, kill, server};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};
use crate::view::View;

/// Several megabytes of lines, so that there are key frames, and then a prompt.
const PRINTER: &str = "seq -f 'line %.0f of a program that prints a lot' 1 80000
    printf '\\033]2;its title\\007\\033[31mred prompt '; exec cat";

/// All files with this ending below a folder.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found
}

/// What must be the same in the next server.
fn look(tools: &mut ToolClient, id: &str) -> [Value; 3] {
    let mut grid = tools.grid(id);
    grid["screen_version"].take();
    let scrollback = json!({"process_id": id, "mode": "scrollback", "lines": 3_000});
    let mut scrollback = tools.ok("get_process_output", scrollback);
    scrollback["screen_version"].take();
    let search = json!({"process_id": id, "pattern": "^line (7|4000|77777) of"});
    [grid, scrollback, tools.ok("search_output", search)]
}

#[test]
fn the_next_server_shows_the_same_with_and_without_key_frames() {
    let place = Place::new();
    let (mut tools, mut process) = desk_of(&place);
    let id = tools.sh(PRINTER);
    tools.wait(&id, "red prompt");
    let state = place.path("state");
    until("key frames", || {
        let is_large = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 100);
        files(&state, "index").iter().any(is_large).then_some(())
    });
    // Rows of the history come back.
    let mut view = View::attach_at(&server(&place).socket, &id, 50, 132);
    view.until(|view| view.screen.size().rows == 50 && view.shows("line 79999 of"));
    drop(view);
    tools.line(&id, "typed");
    // The terminal echoes it, and then the program prints it.
    let expected = until("the echo and the copy", || {
        let shown = look(&mut tools, &id);
        let rows = shown[0]["rows"].as_array().unwrap();
        let typed = rows.iter().filter(|row| row.as_str().unwrap().contains("typed")).count();
        (typed == 2).then_some(shown)
    });
    assert_eq!(expected[0]["size"], json!({"rows": 50, "columns": 132}));
    assert_eq!(expected[1]["rows"].as_array().unwrap().len(), 3_000);
    for turn in 0..4 {
        if turn == 2 {
            for index in files(&state, "index") {
                std::fs::write(index, [0x5a; 3_000]).unwrap();
            }
        }
        kill(&process);
        (tools, process) = desk_of(&place);
        assert_eq!(look(&mut tools, &id), expected, "restart {turn}");
    }
}

#[test]
fn a_screen_is_rebuilt_at_the_sizes_that_it_had() {
    let place = Place::new();
    let (mut tools, mut process) = desk_of(&place);
    // Wrapped at 80 columns, and cut when the terminal became smaller.
    let id = tools
        .sh("stty -echo; printf '\\033[?1049h\\033[H'; printf '%0100d' 7; echo; echo up; exec cat");
    tools.wait(&id, "up");
    let mut view = View::attach_at(&server(&place).socket, &id, 10, 40);
    view.until(|view| view.screen.size().columns == 40);
    tools.line(&id, "at 40 columns");
    tools.wait(&id, "at 40 columns");
    let expected = tools.grid(&id);
    assert_eq!(expected["size"], json!({"rows": 10, "columns": 40}));
    for _ in 0..2 {
        kill(&process);
        (tools, process) = desk_of(&place);
        let grid = tools.grid(&id);
        assert_eq!((&grid["rows"], &grid["size"]), (&expected["rows"], &expected["size"]));
        assert_eq!(grid["cursor"], expected["cursor"]);
    }
}

#[test]
fn the_screen_of_an_earlier_moment_is_shown() {
    let place = Place::new();
    let (mut tools, _) = desk_of(&place);
    let id = tools
        .sh("echo first screen; read go; printf '\\033[2J\\033[H'; echo second screen; exec cat");
    tools.wait(&id, "first screen");
    let first = tools.status(&id)["output_offset"].as_u64().unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let printed = now();
    until("some time has passed", || (now() > printed + 100).then_some(()));
    let before = format_time(printed + 50);
    tools.line(&id, "go");
    tools.wait(&id, "second screen");
    let at = |at: Value| json!({"process_id": id, "at": at});
    for moment in [json!(first), json!(before)] {
        let past = tools.ok("get_process_output", at(moment));
        assert_eq!(past["rows"], json!(["first screen"]), "{past}");
        assert_eq!(past["offset"], first);
        assert!(past.get("screen_version").is_none());
    }
    assert_eq!(tools.rows(&id), ["second screen"]);
    let printed = place.run(&["screen", &id, "--at", &first.to_string()]);
    assert_eq!(printed.trim_end(), "first screen");
    assert_eq!(place.run(&["screen", &id, "--at", &before]).trim_end(), "first screen");
    for (wrong, why) in [
        (json!(1_u64 << 40), "the output ends at"),
        (json!("soon"), "takes an offset or a time"),
        (json!("2001-01-01T00:00:00Z"), "before its first output"),
    ] {
        let message = tools.refused("invalid_argument", "get_process_output", at(wrong));
        assert!(message.contains(why), "{message}");
    }
    let stream = json!({"process_id": id, "at": 1, "mode": "stream"});
    let message = tools.refused("invalid_argument", "get_process_output", stream);
    assert!(message.contains("mode grid"), "{message}");
}

#[test]
fn what_was_dropped_from_the_log_is_said_to_be_gone() {
    let place = Place::new();
    let server = place.serve_with(Limits { log_bytes: 2_000_000, ..Limits::default() });
    let mut tools = ToolClient::of(&server);
    let id = tools.sh(PRINTER);
    tools.wait(&id, "red prompt");
    let past = json!({"process_id": id, "at": 1_000});
    let message = tools.refused("unavailable", "get_process_output", past);
    assert!(message.contains("gone"), "{message}");
    let end = tools.status(&id)["output_offset"].as_u64().unwrap();
    let past = tools.ok("get_process_output", json!({"process_id": id, "at": end}));
    assert_eq!(past["rows"], tools.grid(&id)["rows"]);
}
