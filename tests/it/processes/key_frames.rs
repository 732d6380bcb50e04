//! Restarts of the server from what is beside the logs: the same screens, lines and sizes, whether that can be used or
//! not.

use std::path::{Path, PathBuf};

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
    tools.wait(&id, "typed");
    let expected = look(&mut tools, &id);
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
