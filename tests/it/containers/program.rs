//! The real program, killed and started again by its keeper, with servers in containers.

use std::time::{Duration, Instant};

use super::docker::Docker;
use super::engine::{Engine, LABEL, PLAIN, running, until, zombies_below};
use super::stage::{Client, call, door, mark};
use crate::support::{Place, Spawned};

/// How soon nothing may be left after it was killed.
const SWEPT: Duration = Duration::from_secs(10);

#[test]
fn containers_with_our_label_are_as_many_as_there_are_sessions() {
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
    let folder = place.path("home").join(".config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let output = place.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
    let server = Spawned { entry: serde_json::from_str(&output).unwrap() };
    let address = server.entry.http.unwrap();
    // Somebody is there to start the server again.
    place.run(&["run", "--", "cat"]);
    let token = place.run(&["token", "new", "test"]).trim().to_owned();
    let post = |path: &str, tool: &str| {
        let mut client = Client::new(address.port(), &token);
        client.post(path, &call(1, tool, &mark()))
    };
    for path in [door("alpha", "box"), "/servers/own/mcp".to_owned()] {
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
