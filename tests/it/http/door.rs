//! Where the door is: by flag, by setting, after a death, an upgrade and an end.

use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};

use super::{call, open};
use crate::support::Place;

fn serve(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        place.patterm(&[&["serve"], arguments].concat()).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn entry(place: &Place) -> Value {
    serde_json::from_str(&place.run(&["serve", "--json"])).unwrap()
}

#[test]
fn the_door_is_closed_unless_it_is_asked_for() {
    let place = Place::new();
    assert_eq!(entry(&place)["http"], Value::Null);
    // One that runs opens it when it is asked to.
    let (code, said) = serve(&place, &["--http", "127.0.0.1:0"]);
    assert_eq!(code, Some(0), "{said}");
    let address = entry(&place)["http"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("http://{address}/mcp")), "{said}");
    assert_eq!(
        serde_json::from_str::<Value>(&place.run(&["ls", "--json"])).unwrap()[0]["http"],
        address
    );
    place.run(&["kill"]);
    assert_eq!(entry(&place)["http"], Value::Null, "an end is an end");
}

#[test]
fn what_cannot_be_is_said() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = serve(&place, &["--http", &address]);
    assert_eq!(code, Some(1));
    assert!(said.contains(&format!("cannot listen on {address}: ")), "{said}");
    let (code, said) = serve(&place, &["--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("--allow-remote"), "{said}");
    let (code, _) = serve(&place, &["--http", "nonsense"]);
    assert_eq!(code, Some(2));
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "no server was left behind");
    let (code, said) = serve(&place, &["--http", "0.0.0.0:0", "--allow-remote"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_setting_opens_it_and_a_taken_port_keeps_nobody_from_serving() {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_address = taken.local_addr().unwrap();
    let text = format!("[http]\nlisten = \"{taken_address}\"\n");
    std::fs::write(settings.join("config.toml"), text).unwrap();
    assert_eq!(entry(&place)["http"], Value::Null);
    place.run(&["kill"]);
    drop(taken);
    assert_eq!(entry(&place)["http"], taken_address.to_string());
}

#[test]
fn a_death_and_an_upgrade_leave_the_door_where_it_was() {
    let place = Place::new();
    let (server, client) = open(&place);
    // Somebody is there to start the server again.
    place.run(&["run", "--", "cat"]);
    let whoami = call(1, "whoami", json!({}));
    assert_eq!(client.own(&whoami).status, 200);
    server.kill();
    place.run(&["ps"]);
    assert_eq!(entry(&place)["http"], client.address.to_string());
    assert_eq!(client.own(&whoami).status, 200);
    place.run(&["upgrade"]);
    assert_eq!(entry(&place)["http"], client.address.to_string());
    let answer = client.own(&whoami);
    assert_eq!(answer.json()["id"], 1, "{answer:?}");
}
