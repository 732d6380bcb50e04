//! How the proxy determines its server, the server's address and the caller.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use patterm_agents::identity::write_file;
use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{NOTHING, client, server_pid};
use crate::support::{FakeServer, Peer, Place, Running};

/// The first message that a server receives from a proxy with these arguments and variables, whose
/// client sends a ping.
fn heard(
    place: &Place,
    server: &FakeServer,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Value {
    let mut command = place.patterm(&["mcp-stdio"]);
    let command = command.args(arguments).envs(variables.iter().copied());
    let mut peer = Peer::through(command, Framing::Newline);
    peer.ask(1, "ping", json!({}));
    let mut conversation = server.accept();
    let first = conversation.receive();
    let request =
        if first.get("method").is_some() { first.clone() } else { conversation.receive() };
    conversation.answer(&request, json!({}));
    assert_eq!(peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    peer.end();
    assert_eq!(conversation.try_receive(), None);
    drop(conversation);
    assert_eq!(peer.finish(), NOTHING);
    first
}

const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const THREE: &str = "3333333333333333333333333333333333333333333333333333333333333333";

#[test]
fn variables_select_server_and_caller_and_flags_override_them() {
    let place = Place::new();
    let [right, wrong] = ["right.sock", "wrong.sock"].map(|name| FakeServer::at(&place.path(name)));
    let [file_two, file_three] = ["two", "three"].map(|name| place.path(name));
    std::fs::write(&file_two, format!("{TWO}\n")).unwrap();
    std::fs::write(&file_three, THREE).unwrap();
    for file in [&file_two, &file_three] {
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    }
    let [two, three] = [&file_two, &file_three].map(|path| path.to_str().unwrap());
    let socket = right.socket().to_str().unwrap();
    let other_socket = wrong.socket().to_str().unwrap();
    let (key, other_key) = ("0123456789abcdef", "fedcba9876543210");
    let first = |arguments: &[&str], variables: &[(&str, &str)]| {
        let first = heard(&place, &right, arguments, variables);
        assert!(wrong.no_connection());
        first
    };
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}});

    let from_env = ("PATTERM_SOCKET", socket);
    assert_eq!(first(&[], &[from_env]), ping, "no identity, no greeting");
    assert_eq!(first(&["--socket", socket], &[]), ping);
    assert_eq!(first(&["--socket", socket], &[("PATTERM_SOCKET", other_socket)]), ping);
    assert_eq!(first(&[], &[from_env, ("PATTERM_PROJECT_KEY", key)]), ping);
    // Empty values count as unset.
    let empty = ["PATTERM_PROJECT_KEY", "PATTERM_IDENTITY", "PATTERM_IDENTITY_FILE"];
    assert_eq!(first(&[], &[from_env, (empty[0], ""), (empty[1], ""), (empty[2], "")]), ping);

    let identity = ("PATTERM_IDENTITY", ONE);
    assert_eq!(first(&[], &[from_env, identity]), json!({"patterm_identity": ONE}));
    let file = ("PATTERM_IDENTITY_FILE", two);
    assert_eq!(first(&[], &[from_env, file]), json!({"patterm_identity": TWO}));
    assert_eq!(first(&[], &[from_env, identity, file]), json!({"patterm_identity": TWO}));
    assert_eq!(
        first(&["--identity-file", three], &[from_env, identity, file]),
        json!({"patterm_identity": THREE})
    );

    assert_eq!(
        first(&[], &[from_env, file, ("PATTERM_PROJECT_KEY", key)]),
        json!({"patterm_identity": TWO, "project_key": key})
    );
    assert_eq!(
        first(&["--project-key", key], &[from_env, file, ("PATTERM_PROJECT_KEY", other_key)]),
        json!({"patterm_identity": TWO, "project_key": key})
    );
    assert_eq!(
        first(
            &["--socket", socket, "--project-key", key, "--identity-file", three],
            &[("PATTERM_SOCKET", other_socket), file, ("PATTERM_PROJECT_KEY", other_key), identity]
        ),
        json!({"patterm_identity": THREE, "project_key": key})
    );
}

#[test]
fn an_invalid_key_in_the_environment_is_reported_and_no_server_is_contacted() {
    let place = Place::new();
    let output = place.patterm(&["mcp-stdio"]).env("PATTERM_PROJECT_KEY", "../x").output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains("PATTERM_PROJECT_KEY is \"../x\""), "{reason}");
}

#[test]
fn the_identity_file_identifies_the_agent() {
    let place = Place::new();
    let mut issuing = place.serve_in_process();
    let (lead, token) = issuing.agent("lead", None);
    let (sub, sub_token) = issuing.agent("sub", Some(&lead.id));
    issuing.stop();
    for (process, token, role) in [(&lead, token, "orchestrator"), (&sub, sub_token, "sub-agent")] {
        let file = place.path(&process.name);
        write_file(&token, &file).unwrap();
        let mut peer = client(&place, &[("PATTERM_IDENTITY_FILE", &file)]);
        let caller = peer.call(1, "whoami", json!({}))["caller"].take();
        assert_eq!((&caller["process_id"], &caller["role"]), (&json!(process.id), &json!(role)));
        assert_eq!(peer.finish(), NOTHING);
    }
    let mut stranger = client(&place, &[]);
    assert_eq!(stranger.call(1, "whoami", json!({}))["caller"], json!({"role": "external"}));
    assert_eq!(stranger.finish(), NOTHING);
}

/// The server that answers a proxy started by this command.
fn answering(command: &mut Command) -> u32 {
    let mut peer = Peer::through(command, Framing::Newline);
    let who = peer.call(1, "whoami", json!({}));
    assert_eq!(peer.finish(), NOTHING);
    server_pid(&who)
}

#[test]
fn the_working_directory_selects_the_project() {
    let place = Place::new();
    let root = place.path("project");
    std::fs::write(root.join("patterm.toml"), "").unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    let server = place.serve();
    let mut command = place.patterm(&["mcp-stdio"]);
    assert_eq!(answering(command.current_dir(root.join("a/b"))), server.pid());
}

#[test]
fn with_a_dead_socket_the_server_is_found_by_its_key_from_anywhere() {
    let place = Place::new();
    let dead = place.serve();
    dead.kill();
    let server = place.serve();
    let key = place.project().key().to_owned();
    for folder in ["project", "home"] {
        let mut command = place.patterm(&["mcp-stdio"]);
        command.current_dir(place.path(folder));
        command.env("PATTERM_SOCKET", dead.socket()).env("PATTERM_PROJECT_KEY", &key);
        assert_eq!(answering(&mut command), server.pid(), "in {folder}");
    }
    let mut command = place.patterm(&["mcp-stdio"]);
    assert_eq!(answering(command.env("PATTERM_SOCKET", dead.socket())), server.pid(), "by folder");
}

/// The environment in which codex starts its MCP servers: a few variables of its own, and those
/// that its configuration names.
fn as_codex_starts_it(place: &Place, socket: &Path) -> Command {
    let mut command = place.patterm(&["mcp-stdio"]);
    command
        .env_clear()
        .env("HOME", place.path("home"))
        .envs(["LANG", "PATH", "SHELL", "TERM", "USER"].map(|name| (name, "x")))
        .env("PATTERM_SOCKET", socket)
        .env("PATTERM_PROJECT_KEY", place.project().key());
    command
}

#[test]
fn without_a_session_folder_it_is_found_beside_its_dead_socket() {
    let place = Place::new();
    let dead = place.serve();
    dead.kill();
    let server = place.serve();
    for folder in ["project", "home"] {
        let mut command = as_codex_starts_it(&place, &dead.socket());
        assert_eq!(answering(command.current_dir(place.path(folder))), server.pid());
    }
}

/// If no server is running, such a proxy starts the project's server: the same project, with the
/// same state, and so the same identities.
#[test]
fn without_a_session_folder_it_starts_the_server_that_issued_its_token() {
    let place = Place::of_another_user();
    let mut issuing = place.serve_in_process();
    let (lead, token) = issuing.agent("lead", None);
    issuing.stop();
    let file = place.path("token");
    write_file(&token, &file).unwrap();
    // The state folder that both use by default.
    std::fs::create_dir_all(place.path("home/.local")).unwrap();
    std::fs::rename(place.path("state"), place.path("home/.local/state")).unwrap();
    place.give_to_user(&place.path(""));
    let dead = serve_in_default_state(&place);
    let process = Running::of(dead.pid);
    process.signal(Signal::KILL);
    process.wait();
    let mut command = as_codex_starts_it(&place, &dead.socket);
    let mut peer = Peer::through(command.env("PATTERM_IDENTITY_FILE", &file), Framing::Newline);
    let who = peer.call(1, "whoami", json!({}));
    assert_eq!(who["caller"]["process_id"], json!(lead.id), "{who}");
    assert_eq!(peer.finish(), NOTHING);
    assert_eq!(serve_in_default_state(&place).pid, server_pid(&who), "and others find it");
}

fn serve_in_default_state(place: &Place) -> ServerEntry {
    let mut command = place.patterm(&["serve", "--json"]);
    let output = command.env_remove("XDG_STATE_HOME").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn if_the_server_cannot_be_determined_every_request_is_told_so() {
    let place = Place::new();
    let key = "0123456789abcdef";
    let variables = [("PATTERM_PROJECT_KEY", Path::new(key))];
    let mut peer = client(&place, &variables);
    for id in 1..=2 {
        let answer = peer.answer(id, "tools/list", json!({}));
        assert_eq!(answer["error"]["code"], -32008);
        let message = answer["error"]["message"].as_str().unwrap();
        let expected = format!("no server is running for the project with key {key}");
        assert!(message.contains(&expected), "{message}");
    }
    assert_eq!(peer.finish(), NOTHING);
}
