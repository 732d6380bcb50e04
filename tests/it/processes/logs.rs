//! Logs that are damaged, removed or unreadable: that costs the process its output, and nothing
//! else.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::survival::{desk_of, kill};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

/// Prints enough for several log files, and then its input.
const LOUD: &str = "stty -echo; seq 1 100000; echo done; exec cat";

fn folder(place: &Place, id: &str) -> PathBuf {
    place.state().file("output").join(id)
}

/// The files of a process's log, oldest first.
fn files(place: &Place, id: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(place, id)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    files.sort();
    files
}

fn raw(tools: &mut ToolClient, id: &str, since: u64) -> Value {
    tools.ok("get_process_raw_output", json!({"process_id": id, "since_offset": since}))
}

fn offset(tools: &mut ToolClient, id: &str) -> u64 {
    tools.status(id)["output_offset"].as_u64().unwrap()
}

/// Checks that input to a process is echoed, found by a waiter, and logged.
#[track_caller]
fn check_pane_works(tools: &mut ToolClient, id: &str, word: &str) {
    let before = offset(tools, id);
    tools.line(id, word);
    tools.wait(id, word);
    let kept = raw(tools, id, before);
    assert!(kept["text"].as_str().unwrap().contains(word), "{kept}");
    assert!(kept["next_offset"].as_u64().unwrap() > before, "{kept}");
    assert_eq!(tools.status(id)["status"], "running");
}

#[test]
fn a_truncated_log_segment_costs_only_that_pane_its_log() {
    let place = Place::new();
    let (mut tools, server) = desk_of(&place);
    let loud = tools.sh(LOUD);
    let other = tools.run(&["cat"]);
    tools.wait(&loud, "^done$");
    let (rows, before) = (tools.rows(&loud), offset(&mut tools, &loud));
    let all = files(&place, &loud);
    assert!(all.len() >= 3, "{all:?}");
    // One truncated to zero, one to half, the current one to its first page.
    for (file, bytes) in all.iter().zip([0, 100_000, 4_096]) {
        std::fs::File::options().write(true).open(file).unwrap().set_len(bytes).unwrap();
    }
    // Every way to read it encounters the loss.
    let search = json!({"process_id": loud, "pattern": "99", "kind": "raw"});
    let found = tools.ok("search_output", search.clone());
    for found in found["matches"].as_array().unwrap() {
        assert!(found["text"].as_str().unwrap().contains("99"), "{found}");
    }
    let (mut since, mut lost) = (0, 0);
    while since < before {
        let answer = raw(&mut tools, &loud, since);
        lost += answer["dropped"].as_u64().unwrap_or(0);
        let next = answer["next_offset"].as_u64().unwrap();
        assert!(next > since, "{answer}");
        since = next;
    }
    assert_eq!(since, before);
    assert!(lost > 300_000, "the lost output is reported: {lost}");
    assert_eq!(tools.ok("search_output", search)["matches"], json!([]), "nothing of it is left");
    tools.ok("get_process_output", json!({"process_id": loud, "mode": "stream"}));
    assert_eq!(tools.rows(&loud), rows, "its screen is unchanged");
    check_pane_works(&mut tools, &loud, "further");
    check_pane_works(&mut tools, &other, "as ever");
    // The next server finds what is left.
    let before = offset(&mut tools, &loud);
    kill(&server);
    let (mut tools, _server) = desk_of(&place);
    assert!(offset(&mut tools, &loud) >= before, "offsets never go back");
    check_pane_works(&mut tools, &loud, "once more");
    check_pane_works(&mut tools, &other, "and again");
    place.run(&["kill"]);
}

#[test]
fn a_removed_log_segment_costs_only_that_pane_its_log() {
    let place = Place::new();
    let (mut tools, mut server) = desk_of(&place);
    let [newest, all] = [LOUD, LOUD].map(|script| tools.sh(script));
    let other = tools.run(&["cat"]);
    tools.wait(&newest, "^done$");
    tools.wait(&all, "^done$");
    std::fs::remove_file(files(&place, &newest).pop().unwrap()).unwrap();
    std::fs::remove_dir_all(folder(&place, &all)).unwrap();
    for word in ["first", "second"] {
        let mut ends = Vec::new();
        for id in [&newest, &all, &other] {
            check_pane_works(&mut tools, id, word);
            ends.push(offset(&mut tools, id));
        }
        kill(&server);
        (tools, server) = desk_of(&place);
        for (id, end) in [&newest, &all, &other].into_iter().zip(ends) {
            assert!(offset(&mut tools, id) >= end, "the offsets of {id} never go back");
        }
    }
    // More than one file's worth: the next files are created, with the folder.
    tools.line(&all, &"x".repeat(2_000));
    for id in [&newest, &all, &other] {
        check_pane_works(&mut tools, id, "third");
    }
    assert!(!files(&place, &all).is_empty());
    place.run(&["kill"]);
}

/// Permissions do not restrict root, so this is a place of another user.
#[test]
fn a_log_folder_that_cannot_be_written_costs_the_oldest_output_and_the_pane_survives() {
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let (mut tools, _server) = user.does(|| desk_of(&place));
    let script =
        "stty -echo; seq 1 100000; echo done; while read n; do seq 1 $n; echo end $n; done";
    let id = tools.sh(script);
    tools.wait(&id, "^done$");
    let count = files(&place, &id).len();
    assert!(count >= 3, "{count} files");
    let set_mode = |mode| {
        std::fs::set_permissions(folder(&place, &id), Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o500);
    // More than fits into the newest file, and less than with the two oldest.
    tools.line(&id, "110000");
    tools.wait(&id, "^end 110000$");
    let problem = tools.status(&id)["output_problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("Permission denied"), "{problem}");
    let kept = raw(&mut tools, &id, 0);
    let (dropped, end) = (kept["dropped"].as_u64().unwrap(), offset(&mut tools, &id));
    assert!(dropped < end / 2, "the newest files are still read: {dropped} of {end}");
    assert_eq!(files(&place, &id).len(), count);
    set_mode(0o700);
    crate::support::tool_client::until("new files can be made", || {
        tools.status(&id)["output_problem"].is_null().then_some(())
    });
    tools.line(&id, "10");
    tools.wait(&id, "^end 10$");
    user.does(|| place.run(&["kill"]));
}

/// Permissions do not restrict root, so this is a place of another user.
#[test]
fn a_live_pane_whose_log_cannot_be_opened_survives() {
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let (mut tools, server) = user.does(|| desk_of(&place));
    let [shut, damaged] = [LOUD, LOUD].map(|script| tools.sh(script));
    for id in [&shut, &damaged] {
        tools.wait(id, "^done$");
    }
    let pids = [&shut, &damaged].map(|id| tools.status(id)["pid"].clone());
    let before = offset(&mut tools, &shut);
    kill(&server);
    let set_mode = |mode| {
        std::fs::set_permissions(folder(&place, &shut), Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o000);
    for file in files(&place, &damaged) {
        std::fs::write(file, "no log at all").unwrap();
    }
    let (mut tools, _server) = user.does(|| desk_of(&place));
    for (id, pid) in [&shut, &damaged].into_iter().zip(&pids) {
        let status = tools.status(id);
        assert_eq!((&status["status"], &status["pid"]), (&json!("running"), pid));
    }
    check_pane_works(&mut tools, &damaged, "alive");
    // It lives without a log, and its output is counted.
    tools.line(&shut, "nobody sees this");
    crate::support::tool_client::until("it is counted", || {
        (offset(&mut tools, &shut) > before).then_some(())
    });
    let gone = raw(&mut tools, &shut, before);
    assert_eq!(gone["text"], "");
    assert_eq!(gone["dropped"], gone["next_offset"].as_u64().unwrap() - before);
    // patterm retries by itself.
    set_mode(0o700);
    crate::support::tool_client::until("it is opened", || {
        (raw(&mut tools, &shut, 0).get("dropped").is_none()).then_some(())
    });
    check_pane_works(&mut tools, &shut, "everybody sees this");
    user.does(|| place.run(&["kill"]));
}
