//! What patterm has cached about shared servers from earlier runs.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::{SOCKET, everything, greet, log, tool_names, tools_of, write};
use crate::support::tool_client::until;
use crate::support::{Place, Spawned};

/// A project with a shared server that is started with these arguments, and a patterm server in
/// this process.
fn trusted(arguments: &str) -> (Place, Spawned) {
    let place = Place::new();
    write(&place, &everything("").replace("'all.log'", &format!("'all.log', {arguments}")));
    let server = place.serve();
    place.run(&["trust", "--yes"]);
    (place, server)
}

/// Ends the server, and starts another one.
fn again(place: &Place) -> Spawned {
    place.run(&["kill"]);
    place.serve()
}

fn probes(place: &Place) -> usize {
    log(place).matches("\"server/discover\"").count()
}

fn starts(place: &Place) -> usize {
    log(place).matches("{\"started\"").count()
}

/// The cache of the servers, once it contains this text.
fn kept(place: &Place, word: &str) -> String {
    let file = place.state().file("servers.json");
    until("what is kept", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.contains(word).then_some(text)
    })
}

#[test]
fn a_server_that_exits_on_the_probe_serves_its_first_call() {
    let (place, server) = trusted("'--era', 'legacy', '--probe', 'dies'");
    let mut peer = server.connect(SOCKET);
    let answer = peer.answer(1, "tools/call", json!({"name": "all__echo"}));
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!((probes(&place), starts(&place)), (1, 2));
    // From then on it is not probed, whoever starts it.
    let server = again(&place);
    let answer = server.connect(SOCKET).answer(1, "tools/call", json!({"name": "all__echo"}));
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!((probes(&place), starts(&place)), (1, 3));
}

#[test]
fn a_server_that_ignores_the_probe_is_probed_once_and_its_first_list_is_complete() {
    let (place, server) = trusted("'--era', 'legacy', '--probe', 'ignored'");
    // A call waits for the whole handshake; a list waits a moment longer than the probe, which may
    // be over on a busy machine.
    let answer = server.connect(SOCKET).answer(1, "tools/call", json!({"name": "all__echo"}));
    assert!(answer["result"].is_object(), "{answer}");
    assert!(tool_names(&mut server.connect(SOCKET), 1).contains(&"all__echo".to_owned()));
    assert_eq!((probes(&place), starts(&place)), (1, 1));
    let server = again(&place);
    let answer = server.connect(SOCKET).answer(1, "tools/call", json!({"name": "all__echo"}));
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!((probes(&place), starts(&place)), (1, 2));
}

#[test]
fn the_cached_list_answers_before_the_server_does_and_differences_are_announced() {
    let (place, server) = trusted("'--hold', 'hold', '--extra', 'extra'");
    assert!(tool_names(&mut server.connect(SOCKET), 1).contains(&"all__echo".to_owned()));
    let hold = place.path("project/hold");
    mknodat(CWD, &hold, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    File::create(place.path("project/extra")).unwrap();
    let server = again(&place);
    let mut peer = server.connect(SOCKET);
    greet(&mut peer);
    let names = tool_names(&mut peer, 1);
    assert!(names.contains(&"all__echo".to_owned()), "{names:?}");
    assert!(!names.contains(&"all__extra".to_owned()), "{names:?}");
    // Now it continues, and lists its tools.
    File::options().write(true).open(&hold).unwrap().write_all(b"go\n").unwrap();
    assert_eq!(peer.receive()["method"], "notifications/tools/list_changed");
    assert!(tools_of(&mut peer).contains(&"all__extra".to_owned()));
    kept(&place, "extra");
    assert_eq!(mode(&place.state().file("servers.json")), 0o600);
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().mode() & 0o777
}
