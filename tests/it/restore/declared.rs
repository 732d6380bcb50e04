//! Processes of the project file: according to the current file, and only if it is trusted.

use patterm_wire::restore::RestoreMode;
use serde_json::{Value, json};

use super::{offered, restore, serve, status_of};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, id_of, until};

const FILE: &str = "[processes.web]\ncommand = 'echo web; cat'\nautostart = true\n\
    [processes.dev]\ncommand = 'echo first; cat'\n";

fn write(place: &Place, text: &str) {
    std::fs::write(place.path("project").join("patterm.toml"), text).unwrap();
}

#[track_caller]
fn named(tools: &mut ToolClient, name: &str) -> Value {
    let listed = tools.ok("list_processes", json!({}));
    let all = listed["processes"].as_array().unwrap().iter();
    all.clone().find(|process| process["preset"] == name).unwrap().clone()
}

#[track_caller]
fn until_running(tools: &mut ToolClient, name: &str) -> String {
    let running = |process: &Value| process["status"] == "running";
    id_of(&until(name, || Some(named(tools, name)).filter(running)))
}

#[test]
fn automatic_processes_are_not_offered_and_others_follow_the_current_file() {
    let place = Place::new();
    write(&place, FILE);
    place.run(&["trust", "--yes"]);
    let (_, mut tools) = serve(&place);
    until_running(&mut tools, "web");
    let dev = id_of(&named(&mut tools, "dev"));
    tools.ok("start_process", json!({"process_id": dev}));
    place.run(&["kill"]);
    write(&place, &FILE.replace("first", "second"));

    // Not before a person has reviewed the change.
    let (_, mut tools) = serve(&place);
    assert_eq!(offered(&place), Vec::<String>::new());
    assert_eq!(restore(&mut tools, json!({"ids": [dev]}))[0].how, RestoreMode::Not);
    assert_eq!(status_of(&mut tools, &dev), "stopped");
    place.run(&["trust", "--yes"]);
    let web = until_running(&mut tools, "web");
    assert_eq!(tools.status(&web)["runs"], 2);
    assert_eq!(offered(&place), [&*dev]);
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Again);
    tools.wait(&dev, "second");
    assert_eq!(tools.status(&web)["runs"], 2, "running processes are left alone");
}

#[test]
fn a_restored_process_waits_for_its_dependency() {
    let place = Place::new();
    write(
        &place,
        "[processes.app]\ncommand = 'echo up; cat'\ndepends_on = ['db']\n\
         [processes.db]\ncommand = 'read go; echo ready; cat'\nready = { pattern = 'ready' }\n",
    );
    place.run(&["trust", "--yes"]);
    let (_, mut tools) = serve(&place);
    let [app, db] = ["app", "db"].map(|name| id_of(&named(&mut tools, name)));
    tools.ok("start_process", json!({"process_id": app}));
    until_running(&mut tools, "db");
    tools.line(&db, "");
    until_running(&mut tools, "app");
    tools.wait(&app, "up");
    place.run(&["kill"]);

    let (_, mut tools) = serve(&place);
    assert_eq!(offered(&place), [app.clone(), db.clone()]);
    let back = restore(&mut tools, json!({"ids": [app]}));
    assert_eq!(back[0].how, RestoreMode::Again);
    assert_eq!(back[0].reason.as_deref(), Some("it is waiting for db"));
    assert_eq!(offered(&place), Vec::<String>::new(), "its dependency is restored with it");
    until_running(&mut tools, "db");
    tools.line(&db, "");
    until("the second life", || (tools.status(&app)["runs"] == 2).then_some(()));
    tools.wait(&app, "up");
}
