//! Logs that somebody damages, removes or makes unreadable: that costs a process its output, and nobody
//! anything else.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::desk::Desk;
use super::survival::{desk_of, kill};
use crate::support::Place;

/// Prints enough for several files of a log, and then what is typed.
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

fn raw(desk: &mut Desk, id: &str, since: u64) -> Value {
    desk.ok("get_process_raw_output", json!({"process_id": id, "since_offset": since}))
}

fn offset(desk: &mut Desk, id: &str) -> u64 {
    desk.status(id)["output_offset"].as_u64().unwrap()
}

/// What is typed into a process is printed by it, seen by who waits for it, and kept.
#[track_caller]
fn check_goes_on(desk: &mut Desk, id: &str, word: &str) {
    let before = offset(desk, id);
    desk.line(id, word);
    desk.wait(id, word);
    let kept = raw(desk, id, before);
    assert!(kept["text"].as_str().unwrap().contains(word), "{kept}");
    assert!(kept["next_offset"].as_u64().unwrap() > before, "{kept}");
    assert_eq!(desk.status(id)["status"], "running");
}

#[test]
fn a_truncated_log_segment_costs_that_pane_its_log_and_nobody_anything() {
    let place = Place::new();
    let (mut desk, server) = desk_of(&place);
    let loud = desk.sh(LOUD);
    let other = desk.run(&["cat"]);
    desk.wait(&loud, "^done$");
    let (rows, before) = (desk.rows(&loud), offset(&mut desk, &loud));
    let all = files(&place, &loud);
    assert!(all.len() >= 3, "{all:?}");
    // One to nothing, one in its middle, the one that is written to its first page.
    for (file, bytes) in all.iter().zip([0, 100_000, 4_096]) {
        std::fs::File::options().write(true).open(file).unwrap().set_len(bytes).unwrap();
    }
    // Every way to look at it meets what is gone.
    let search = json!({"process_id": loud, "pattern": "99", "kind": "raw"});
    let found = desk.ok("search_output", search.clone());
    for found in found["matches"].as_array().unwrap() {
        assert!(found["text"].as_str().unwrap().contains("99"), "{found}");
    }
    let (mut since, mut lost) = (0, 0);
    while since < before {
        let answer = raw(&mut desk, &loud, since);
        lost += answer["dropped"].as_u64().unwrap_or(0);
        let next = answer["next_offset"].as_u64().unwrap();
        assert!(next > since, "{answer}");
        since = next;
    }
    assert_eq!(since, before);
    assert!(lost > 300_000, "what is gone is told: {lost}");
    assert_eq!(desk.ok("search_output", search)["matches"], json!([]), "nothing of it is left");
    desk.ok("get_process_output", json!({"process_id": loud, "mode": "stream"}));
    assert_eq!(desk.rows(&loud), rows, "its screen is as it was");
    check_goes_on(&mut desk, &loud, "further");
    check_goes_on(&mut desk, &other, "as ever");
    // The next server finds what is left.
    let before = offset(&mut desk, &loud);
    kill(&server);
    let (mut desk, _server) = desk_of(&place);
    assert!(offset(&mut desk, &loud) >= before, "offsets never go back");
    check_goes_on(&mut desk, &loud, "once more");
    check_goes_on(&mut desk, &other, "and again");
    place.run(&["kill"]);
}

#[test]
fn a_removed_log_segment_costs_that_pane_its_log_and_nobody_anything() {
    let place = Place::new();
    let (mut desk, mut server) = desk_of(&place);
    let [newest, all] = [LOUD, LOUD].map(|script| desk.sh(script));
    let other = desk.run(&["cat"]);
    desk.wait(&newest, "^done$");
    desk.wait(&all, "^done$");
    std::fs::remove_file(files(&place, &newest).pop().unwrap()).unwrap();
    std::fs::remove_dir_all(folder(&place, &all)).unwrap();
    for word in ["first", "second"] {
        let mut ends = Vec::new();
        for id in [&newest, &all, &other] {
            check_goes_on(&mut desk, id, word);
            ends.push(offset(&mut desk, id));
        }
        kill(&server);
        (desk, server) = desk_of(&place);
        for (id, end) in [&newest, &all, &other].into_iter().zip(ends) {
            assert!(offset(&mut desk, id) >= end, "the offsets of {id} never go back");
        }
    }
    // More than a file's worth: the next ones are made, with the folder.
    desk.line(&all, &"x".repeat(2_000));
    for id in [&newest, &all, &other] {
        check_goes_on(&mut desk, id, "third");
    }
    assert!(!files(&place, &all).is_empty());
    place.run(&["kill"]);
}

/// Permissions do not keep root out, so this is a place of another user.
#[test]
fn a_log_folder_that_cannot_be_written_costs_the_oldest_output_and_the_pane_lives_on() {
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let (mut desk, _server) = user.does(|| desk_of(&place));
    let script =
        "stty -echo; seq 1 100000; echo done; while read n; do seq 1 $n; echo end $n; done";
    let id = desk.sh(script);
    desk.wait(&id, "^done$");
    let count = files(&place, &id).len();
    assert!(count >= 3, "{count} files");
    let set_mode = |mode| {
        std::fs::set_permissions(folder(&place, &id), Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o500);
    // More than the newest file has room for, and less than that with the two oldest.
    desk.line(&id, "110000");
    desk.wait(&id, "^end 110000$");
    let problem = desk.status(&id)["output_problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("Permission denied"), "{problem}");
    let kept = raw(&mut desk, &id, 0);
    let (dropped, end) = (kept["dropped"].as_u64().unwrap(), offset(&mut desk, &id));
    assert!(dropped < end / 2, "the newest files are still read: {dropped} of {end}");
    assert_eq!(files(&place, &id).len(), count);
    set_mode(0o700);
    super::desk::until("new files can be made", || {
        desk.status(&id)["output_problem"].is_null().then_some(())
    });
    desk.line(&id, "10");
    desk.wait(&id, "^end 10$");
    user.does(|| place.run(&["kill"]));
}

/// Nobody but root is kept out by permissions, so this is a place of another user.
#[test]
fn a_live_pane_whose_log_cannot_be_opened_lives_on() {
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let (mut desk, server) = user.does(|| desk_of(&place));
    let [shut, damaged] = [LOUD, LOUD].map(|script| desk.sh(script));
    for id in [&shut, &damaged] {
        desk.wait(id, "^done$");
    }
    let pids = [&shut, &damaged].map(|id| desk.status(id)["pid"].clone());
    let before = offset(&mut desk, &shut);
    kill(&server);
    let set_mode = |mode| {
        std::fs::set_permissions(folder(&place, &shut), Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o000);
    for file in files(&place, &damaged) {
        std::fs::write(file, "no log at all").unwrap();
    }
    let (mut desk, _server) = user.does(|| desk_of(&place));
    for (id, pid) in [&shut, &damaged].into_iter().zip(&pids) {
        let status = desk.status(id);
        assert_eq!((&status["status"], &status["pid"]), (&json!("running"), pid));
    }
    check_goes_on(&mut desk, &damaged, "alive");
    // Without a log it lives, and what it prints is counted.
    desk.line(&shut, "nobody sees this");
    super::desk::until("it is counted", || (offset(&mut desk, &shut) > before).then_some(()));
    let gone = raw(&mut desk, &shut, before);
    assert_eq!(gone["text"], "");
    assert_eq!(gone["dropped"], gone["next_offset"].as_u64().unwrap() - before);
    // It is tried again by itself.
    set_mode(0o700);
    super::desk::until("it is opened", || {
        (raw(&mut desk, &shut, 0).get("dropped").is_none()).then_some(())
    });
    check_goes_on(&mut desk, &shut, "everybody sees this");
    user.does(|| place.run(&["kill"]));
}
