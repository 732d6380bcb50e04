//! Starting: the address of the socket, concurrent starts, and refusals.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use serde_json::json;

use super::{Traces, mode};
use crate::support::{Peer, Place, Running, Transport, running_in};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

#[test]
fn in_the_background_it_prints_its_address() {
    let place = Place::new();
    let message = place.run(&["serve"]);
    let entry = Traces::of(&place).entry();
    let (project, socket) = (place.project(), entry.socket.display());
    assert_eq!(
        message,
        format!("serving {} (pid {}, {socket})\n", project.root().display(), entry.pid)
    );
    assert_eq!(entry.socket, place.path(&format!("run/patterm/{}.sock", entry.pid)));
    assert_eq!((&*entry.project, &*entry.key), (project.root(), project.key()));
    assert_eq!((mode(&place.path("run/patterm")), mode(&entry.socket)), (0o700, 0o600));
    Traces::of(&place).assert_locked();
    let mut peer = Peer::connect(SOCKET, &entry.socket);
    assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
}

#[test]
fn a_second_start_finds_the_first_server() {
    let place = Place::new();
    let first = place.serve();
    assert_eq!(place.serve().entry, first.entry);
    assert!(!first.process().is_gone());
}

#[test]
fn in_the_foreground_it_logs_to_stderr_until_it_is_terminated() {
    let place = Place::new();
    let serve = foreground(&place);
    let running = Running::of(serve.id());
    let entry = Traces::of(&place).entry();
    assert_eq!(entry.pid, serve.id());
    let mut peer = Peer::connect(SOCKET, &entry.socket);
    assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));

    let second = place.patterm(&["serve", "--foreground"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let why = String::from_utf8(second.stderr).unwrap();
    assert!(why.contains(&format!("a server (pid {}) already serves", entry.pid)), "{why}");

    running.signal(Signal::TERM);
    let output = serve.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(output.stdout, b"", "its words go to standard error");
    assert!(!entry.socket.exists());
    Traces::of(&place).assert_none();
}

#[test]
fn in_the_foreground_an_interrupt_sets_the_exit_code() {
    let place = Place::new();
    let serve = foreground(&place);
    Running::of(serve.id()).signal(Signal::INT);
    let output = serve.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    Traces::of(&place).assert_none();
}

/// A server in the foreground that is ready. Its log lines up to then have been read.
fn foreground(place: &Place) -> Child {
    let mut command = place.patterm(&["serve", "--foreground"]);
    let mut serve = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(serve.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended before it served");
    }
    // Kept open: a server may log for as long as it lives.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    serve
}

#[test]
fn without_a_session_folder_it_uses_tmp() {
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let entry = start(place.patterm(&["serve", "--json"]).env_remove("XDG_RUNTIME_DIR"));
    let socket = format!("/tmp/patterm-{}.sock", entry.pid);
    assert_eq!(entry.socket, Path::new(&socket));
    assert_eq!((mode(&user.folder_in_tmp()), mode(&entry.socket)), (0o700, 0o600));
    let traces = Traces::within(&place, &user.folder_in_tmp());
    assert_eq!(traces.entry(), entry);
    traces.assert_locked();
    assert!(!place.path("run/patterm").exists());

    let server = Running::of(entry.pid);
    place.patterm(&["kill"]).env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert!(server.is_gone());
    assert!(!entry.socket.exists());
    traces.assert_none();
}

/// Runs a start to completion; it must succeed.
fn start(command: &mut Command) -> ServerEntry {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_runtime_folder_of_someone_else_or_behind_a_link_is_refused() {
    let place = Place::of_another_user();
    let runtime = place.path("run/patterm");
    let check = |why: &str| {
        let output = place.patterm(&["serve"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        let expected =
            format!("{} is not a folder that belongs to you alone ({why}", runtime.display());
        assert!(message.contains(&expected), "{message}");
        assert_eq!(output.stdout, b"");
    };
    std::os::unix::fs::symlink(place.folder("elsewhere"), &runtime).unwrap();
    check("it is a link or a file");
    std::fs::remove_file(&runtime).unwrap();
    std::fs::create_dir(&runtime).unwrap();
    check("another user owns it");
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0);
}

#[test]
fn sixteen_concurrent_starts_find_the_same_server() {
    let place = Place::new();
    check_many_starts(&place, |_| place.path("run").into());
}

/// Clients that start their MCP servers without XDG_RUNTIME_DIR must not give the project a second
/// server, or wait for the first to end.
#[test]
fn concurrent_starts_with_and_without_a_session_folder_find_the_same_server() {
    let place = Place::of_another_user();
    check_many_starts(&place, |n| (n % 2 == 0).then(|| place.path("run")));
}

fn check_many_starts(place: &Place, session: impl Fn(usize) -> Option<std::path::PathBuf>) {
    let with_session = |n: usize, arguments: &[&str]| {
        let mut command = place.patterm(arguments);
        match session(n) {
            Some(folder) => command.env("XDG_RUNTIME_DIR", folder),
            None => command.env_remove("XDG_RUNTIME_DIR"),
        };
        command
    };
    let serves: Vec<_> = (0..8)
        .map(|n| {
            let mut command = with_session(n, &["serve", "--json"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut proxies: Vec<_> = (0..8)
        .map(|n| Peer::through(&mut with_session(n, &["mcp-stdio"]), Framing::Newline))
        .collect();
    for proxy in &mut proxies {
        proxy.ask(1, "whoami", json!({}));
    }
    let mut pids: Vec<_> = serves
        .into_iter()
        .map(|serve| {
            let output = serve.wait_with_output().unwrap();
            assert!(output.status.success());
            let entry: ServerEntry = serde_json::from_slice(&output.stdout).unwrap();
            entry.pid
        })
        .collect();
    for mut proxy in proxies {
        let pid = &proxy.receive()["result"]["server"]["pid"];
        pids.push(u32::try_from(pid.as_u64().unwrap()).unwrap());
        assert_eq!(proxy.finish(), [] as [serde_json::Value; 0]);
    }
    let server = pids[0];
    assert_eq!(pids, [server; 16]);
    // Late starters exit; a second server would not.
    for pid in running_in(place.project().root()).into_iter().filter(|pid| *pid != server) {
        if let Some(late) = Running::find(pid) {
            late.wait();
        }
    }
    assert_eq!(running_in(place.project().root()), [server]);
}
