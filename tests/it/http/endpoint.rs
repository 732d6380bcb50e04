//! The address of the endpoint: by flag, by setting, after a crash, an upgrade and a shutdown.

use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};

use super::{call, open, request};
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
fn the_endpoint_is_off_by_default() {
    let place = Place::new();
    assert_eq!(entry(&place)["http"], Value::Null);
    // A running server enables it on request.
    let (code, said) = serve(&place, &["--http", "127.0.0.1:0"]);
    assert_eq!(code, Some(0), "{said}");
    let address = entry(&place)["http"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("http://{address}/mcp")), "{said}");
    assert_eq!(
        serde_json::from_str::<Value>(&place.run(&["ls", "--json"])).unwrap()[0]["http"],
        address
    );
    place.run(&["kill"]);
    assert_eq!(entry(&place)["http"], Value::Null, "a shutdown disables it");
}

#[test]
fn impossible_settings_are_reported() {
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
fn a_setting_enables_it_and_a_port_in_use_does_not_prevent_the_server() {
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
fn the_endpoint_keeps_its_address_across_a_crash_and_an_upgrade() {
    let place = Place::new();
    let (server, client) = open(&place);
    // A pane, so that the keeper restarts the server.
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

#[test]
fn a_client_of_a_server_that_cannot_start_is_told_why() {
    let place = Place::new();
    let text = "[servers.files]\ncommand = ['mcp-files', '${NO_SUCH_VARIABLE}']\n\
        [servers.gone]\ncommand = ['/no/such/program']\n";
    std::fs::write(place.path("project/patterm.toml"), text).unwrap();
    let (_server, client) = open(&place);
    let list = request(7, "tools/list", json!({}));
    let untrusted = client.post("/servers/files/mcp", &[], &list);
    assert_eq!(untrusted.status, 404);
    assert!(untrusted.body.contains("patterm.toml is not trusted"), "{untrusted:?}");
    place.run(&["trust", "--yes"]);
    for (server, reason) in [
        ("files", "the variable `NO_SUCH_VARIABLE` is not set in the environment"),
        ("gone", "/no/such/program"),
    ] {
        let answer = client.post(&format!("/servers/{server}/mcp"), &[], &list);
        let answer = answer.json();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{answer}");
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["kind"]),
            (&json!(7), &json!("unavailable"))
        );
        // The same as for people.
        let printed = place.run(&["servers"]);
        assert!(printed.contains(reason), "{printed}");
    }
    let listed = client.send("GET", "/servers", &[], "").json();
    let error = listed["servers"][0]["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("NO_SUCH_VARIABLE"), "{listed}");
    let unknown = client.post("/servers/other/mcp", &[], &list);
    assert_eq!(unknown.status, 404);
}
