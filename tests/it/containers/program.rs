//! The real program, killed and started again by its keeper, with servers in containers.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::docker::Docker;
use super::engine::{Engine, LABEL, PLAIN, running, until, zombies_below};
use super::harness::{Client, call, mark, transport};
use crate::support::{Place, Spawned};

/// How soon everything must be gone after it was killed.
const SWEPT: Duration = Duration::from_secs(10);

/// Starts a server with an HTTP endpoint and these user settings.
fn serve_with(place: &Place, settings: &str) -> Spawned {
    let folder = place.path("home").join(".config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let output = place.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
    Spawned { entry: serde_json::from_str(&output).unwrap() }
}

#[test]
fn there_are_as_many_containers_with_our_label_as_sessions() {
    let docker = Docker::new();
    docker.run("box", PLAIN, &[(LABEL, "alpha")]);
    let first = docker.first_process("box");
    let place = Place::new();
    let socket = docker.socket();
    let engine = format!("engine = 'docker'\nsocket = '{}'\n", socket.display());
    let settings = format!(
        "[servers.own]\n{engine}image = '{PLAIN}'\n\
         [bots]\n{engine}command = ['/app/mcp', '{}']\nowner_label = '{LABEL}'\n",
        mark()
    );
    let server = serve_with(&place, &settings);
    let address = server.entry.http.unwrap();
    // A pane, so that the keeper restarts the server.
    place.run(&["run", "--", "cat"]);
    let token = place.run(&["token", "new", "test"]).trim().to_owned();
    let post = |path: &str, tool: &str| {
        let mut client = Client::new(address.port(), &token);
        client.post(path, &call(1, tool, &mark()))
    };
    for path in [transport("alpha", "box"), "/servers/own/mcp".to_owned()] {
        let (status, body) = post(&path, "stay");
        assert_eq!((status, body["result"]["pid"].is_u64()), (200, true), "{path}: {body}");
    }
    assert_eq!(docker.labelled("patterm.owner").len(), 1);
    until("both left something", || (running(&["sleep", &mark()]).len() >= 2).then_some(()));
    server.kill();
    let killed = Instant::now();
    until("nothing is left of it", || {
        let left = docker.labelled("patterm.owner").len() + running(&["sleep", &mark()]).len();
        (left == 0).then_some(())
    });
    until("no zombie is left", || (zombies_below(first) == 0).then_some(()));
    assert!(killed.elapsed() < SWEPT, "{:?}", killed.elapsed());
    // Its keeper started another, which serves at the same address.
    until("it serves again", || std::net::TcpStream::connect(address).ok().map(drop));
    assert_eq!(post("/servers/own/mcp", "x").0, 200);
    assert_eq!(docker.labelled("patterm.owner").len(), 1);
    place.run(&["kill"]);
    until("an end is the end of its containers", || {
        docker.labelled("patterm.owner").is_empty().then_some(())
    });
}

#[test]
fn the_server_in_a_bots_container_is_listed_with_the_shared_ones() {
    let docker = Docker::new();
    docker.run("box", PLAIN, &[]);
    let place = Place::new();
    let settings = format!(
        "[bots]\nengine = 'docker'\nsocket = '{}'\ncommand = ['/app/mcp', '{}']\n\
         owner_label = '{LABEL}'\nallow_unlabelled = true\n",
        docker.socket().display(),
        mark()
    );
    let server = serve_with(&place, &settings);
    let port = server.entry.http.unwrap().port();
    let token = |name: &str, servers: &str| {
        let only = format!("--servers={servers}");
        let words = ["token", "new", name, &only];
        let words = if servers.is_empty() { &words[..3] } else { &words[..] };
        place.run(words).trim().to_owned()
    };
    let all = token("all", "");
    let (status, body) =
        Client::new(port, &all).post(&transport("alpha", "box"), &call(1, "x", ""));
    assert_eq!((status, body["result"]["pid"].is_u64()), (200, true), "{body}");
    let listed: Value = serde_json::from_str(&place.run(&["servers", "--json"])).unwrap();
    let listed = listed["servers"].as_array().or(listed.as_array()).unwrap().clone();
    let [bot] = listed.as_slice() else { panic!("{listed:?}") };
    let name = bot["name"].as_str().unwrap();
    assert!(name.starts_with("bots/alpha/box ("), "{bot}");
    assert_eq!((&bot["owner"], &bot["state"]), (&"alpha".into(), &"running".into()), "{bot}");
    assert!(place.run(&["servers"]).contains("bots/alpha/box"));
    // A token sees the bots that it is for, and no others.
    let seen = |token: &str| {
        let text = Client::new(port, token).get("/servers");
        serde_json::from_str::<Value>(&text).unwrap()["servers"].as_array().unwrap().len()
    };
    assert_eq!((seen(&all), seen(&token("one", "bots/alpha"))), (1, 1));
    assert_eq!((seen(&token("bots", "bots")), seen(&token("other", "bots/beta"))), (1, 0));
}
