//! Processes of the project file: as the file says now, and only where it is trusted.

use patterm_wire::bring_back::How;
use serde_json::{Value, json};

use super::{bring_back, offered, serve, status_of};
use crate::processes::desk::{Desk, id_of, until};
use crate::support::Place;

const FILE: &str = "[processes.web]\ncommand = 'echo web; cat'\nautostart = true\n\
    [processes.dev]\ncommand = 'echo first; cat'\n";

fn write(place: &Place, text: &str) {
    std::fs::write(place.path("project").join("patterm.toml"), text).unwrap();
}

#[track_caller]
fn named(desk: &mut Desk, name: &str) -> Value {
    let listed = desk.ok("list_processes", json!({}));
    let all = listed["processes"].as_array().unwrap().iter();
    all.clone().find(|process| process["preset"] == name).unwrap().clone()
}

#[track_caller]
fn until_running(desk: &mut Desk, name: &str) -> String {
    let running = |process: &Value| process["status"] == "running";
    id_of(&until(name, || Some(named(desk, name)).filter(running)))
}

#[test]
fn what_starts_by_itself_is_not_offered_and_the_rest_comes_as_the_file_says_now() {
    let place = Place::new();
    write(&place, FILE);
    place.run(&["trust", "--yes"]);
    let (_, mut desk) = serve(&place);
    until_running(&mut desk, "web");
    let dev = id_of(&named(&mut desk, "dev"));
    desk.ok("start_process", json!({"process_id": dev}));
    place.run(&["kill"]);
    write(&place, &FILE.replace("first", "second"));

    // Not before a person has looked at what changed.
    let (_, mut desk) = serve(&place);
    assert_eq!(offered(&place), Vec::<String>::new());
    assert_eq!(bring_back(&mut desk, json!({"ids": [dev]}))[0].how, How::Not);
    assert_eq!(status_of(&mut desk, &dev), "stopped");
    place.run(&["trust", "--yes"]);
    let web = until_running(&mut desk, "web");
    assert_eq!(desk.status(&web)["runs"], 2);
    assert_eq!(offered(&place), [&*dev]);
    assert_eq!(bring_back(&mut desk, json!({}))[0].how, How::Again);
    desk.wait(&dev, "second");
    assert_eq!(desk.status(&web)["runs"], 2, "what runs is left alone");
}

#[test]
fn one_that_needs_another_waits_for_it() {
    let place = Place::new();
    write(
        &place,
        "[processes.app]\ncommand = 'echo up; cat'\ndepends_on = ['db']\n\
         [processes.db]\ncommand = 'read go; echo ready; cat'\nready = { pattern = 'ready' }\n",
    );
    place.run(&["trust", "--yes"]);
    let (_, mut desk) = serve(&place);
    let [app, db] = ["app", "db"].map(|name| id_of(&named(&mut desk, name)));
    desk.ok("start_process", json!({"process_id": app}));
    until_running(&mut desk, "db");
    desk.line(&db, "");
    until_running(&mut desk, "app");
    desk.wait(&app, "up");
    place.run(&["kill"]);

    let (_, mut desk) = serve(&place);
    assert_eq!(offered(&place), [app.clone(), db.clone()]);
    let back = bring_back(&mut desk, json!({"ids": [app]}));
    assert_eq!(back[0].how, How::Again);
    assert_eq!(back[0].reason.as_deref(), Some("as soon as db is ready"));
    assert_eq!(offered(&place), Vec::<String>::new(), "what it needs comes with it");
    until_running(&mut desk, "db");
    desk.line(&db, "");
    until("the second life", || (desk.status(&app)["runs"] == 2).then_some(()));
    desk.wait(&app, "up");
}
