//! Files of the log that are damaged or missing.

use std::path::PathBuf;

use serde_json::json;

use super::all;
use crate::support::Place;
use crate::support::tool_client::ToolClient;

fn files(place: &Place, class: &str) -> Vec<PathBuf> {
    let folder = place.state().file("events");
    let found = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_of_class =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(class);
    found.filter(is_of_class).collect()
}

#[test]
fn a_damaged_file_is_reported_and_everything_else_is_readable() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    for at in 0..20 {
        tools.ok("scratchpad_write", json!({"name": format!("pad-{at}"), "content": "x"}));
        tools.run(&["true"]);
    }
    let (before, _) = all(&mut tools);
    server.kill();
    let path = &files(&place, "people")[0];
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let (after, dropped) = all(&mut tools);
    assert_eq!(dropped, 1, "what cannot be read is counted");
    let present = |seq: &serde_json::Value| after.iter().any(|event| event["seq"] == *seq);
    let missing: Vec<_> = before.iter().filter(|event| !present(&event["seq"])).collect();
    assert_eq!(missing.len(), 1, "{missing:?}");
    let checked = place.patterm(&["events", "verify"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    let errors = String::from_utf8(checked.stderr).unwrap();
    assert!(errors.contains("the log of events is damaged"), "{errors}");
}

#[test]
fn files_that_are_gone_are_reported_by_a_server_and_without_one() {
    let place = Place::new();
    let server = place.serve();
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    let verify = || {
        let checked = place.patterm(&["events", "verify"]).output().unwrap();
        (checked.status.code(), String::from_utf8(checked.stdout).unwrap())
    };
    assert_eq!(verify().0, Some(0));
    for class in ["calls", "states", "people"] {
        files(&place, class).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
    let is_reported = |when: &str| {
        let (code, printed) = verify();
        assert_eq!(code, Some(1), "{when}: {printed}");
        assert!(printed.contains("damaged from event 1 on: an event is missing"), "{printed}");
        assert!(!printed.contains("limited size"), "{when}: {printed}");
    };
    is_reported("by the server");
    server.kill();
    is_reported("without a server");
    place.serve();
    is_reported("by the next server");
}
