//! Following a project: the whole project at once, again at every change, and nothing while idle.

use patterm_wire::Method;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use patterm_wire::Framing;
use patterm_wire::follow::{
    self, ActivityState, ProcessInfo, ProcessKind, ProcessStatus, ProjectSnapshot,
};
use patterm_wire::view;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Serving, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

struct Follower {
    stream: BufReader<UnixStream>,
    seen: ProjectSnapshot,
}

impl Follower {
    fn ask(server: &Serving, params: &Value) -> (Value, BufReader<UnixStream>) {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": follow::Follow::NAME, "params": params});
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        (serde_json::from_str(&line).unwrap(), stream)
    }

    fn begin(server: &Serving) -> Self {
        let (mut answer, stream) = Self::ask(server, &json!({"version": follow::VERSION}));
        let seen = serde_json::from_value(answer["result"].take()).unwrap();
        Self { stream, seen }
    }

    /// Reads values until one matches.
    fn until(&mut self, wanted: impl Fn(&ProjectSnapshot) -> bool) -> &ProjectSnapshot {
        while !wanted(&self.seen) {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "the server ended it");
            let mut told: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(told["method"], follow::CHANGED);
            self.seen = serde_json::from_value(told["params"].take()).unwrap();
        }
        &self.seen
    }
}

fn spawn(peer: &mut Peer, argv: &[&str]) -> String {
    let answer = peer.answer(1, "spawn_process", json!({"argv": argv, "name": "one"}));
    answer["result"]["process_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn go(peer: &mut Peer, id: &str) {
    let line = json!({"process_id": id, "kind": "text", "text": "go", "submit": true});
    let answer = peer.answer(9, "send_input", line);
    assert!(answer["error"].is_null(), "{answer}");
}

fn only(seen: &ProjectSnapshot) -> Option<&ProcessInfo> {
    seen.processes.first()
}

#[test]
fn a_follower_sees_a_process_from_its_beginning_to_its_end() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let mut follower = Follower::begin(&server);
    assert_eq!(follower.seen.processes, []);
    assert!(follower.seen.project.ends_with("/project"), "{}", follower.seen.project);
    let id = spawn(&mut peer, &["sh", "-c", "read go; echo printed; read go; exit 3"]);
    let running =
        follower.until(|seen| only(seen).is_some_and(|p| p.status == ProcessStatus::Running));
    let process = only(running).unwrap();
    assert_eq!((process.id.as_str(), process.name.as_str()), (id.as_str(), "one"));
    assert_eq!(
        (process.kind.clone(), process.runs, process.unread),
        (ProcessKind::Command, 1, false)
    );
    go(&mut peer, &id);
    follower.until(|seen| only(seen).is_some_and(|p| p.unread));
    peer.answer(3, "rename_process", json!({"process_id": id, "name": "two"}));
    follower.until(|seen| only(seen).is_some_and(|p| p.name == "two"));
    let attention = json!({"process_id": id, "reason": "look"});
    peer.answer(4, "request_human_attention", attention);
    follower.until(|seen| only(seen).is_some_and(|p| p.attention.as_deref() == Some("look")));
    go(&mut peer, &id);
    let ended =
        follower.until(|seen| only(seen).is_some_and(|p| p.status == ProcessStatus::Exited));
    assert_eq!(only(ended).unwrap().code, Some(3));
    follower.until(|seen| only(seen).is_some_and(|p| p.activity == ActivityState::Idle));
    peer.answer(6, "close_process", json!({"process_id": id}));
    follower.until(|seen| seen.processes.is_empty());
}

#[test]
fn output_is_read_up_to_the_last_look_and_unread_after_it() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let id = spawn(&mut peer, &["sh", "-c", "echo first; read go; echo second; read go"]);
    let mut follower = Follower::begin(&server);
    follower.until(|seen| only(seen).is_some_and(|p| p.unread));
    let mut view = UnixStream::connect(server.socket()).unwrap();
    let params = json!({"version": view::VERSION, "process_id": id, "rows": 24, "columns": 80});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": view::View::NAME, "params": params});
    view.write_all(format!("{request}\n").as_bytes()).unwrap();
    follower.until(|seen| only(seen).is_some_and(|p| !p.unread));
    drop(view);
    go(&mut peer, &id);
    follower.until(|seen| only(seen).is_some_and(|p| p.unread));
}

#[test]
fn every_selection_of_a_process_is_reported() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let id = spawn(&mut peer, &["cat"]);
    let mut follower = Follower::begin(&server);
    for count in 1..=2 {
        peer.answer(count, "select_process", json!({"process_id": id}));
        follower.until(|seen| seen.selections == count);
        assert_eq!(follower.seen.selected.as_deref(), Some(id.as_str()));
    }
}

#[test]
fn a_refused_follower_is_told_why() {
    let place = Place::new();
    let server = place.serve_in_process();
    for (params, code) in [(json!({"version": 999}), -32008), (json!({}), -32602)] {
        let (answer, mut stream) = Follower::ask(&server, &params);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "and closed");
    }
}

#[test]
fn an_error_in_the_users_settings_is_in_the_value_until_it_is_fixed() {
    let place = Place::new();
    let folder = place.path("home/.config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    let server = place.serve_in_process();
    let mut follower = Follower::begin(&server);
    assert_eq!(follower.seen.settings_problem, None);
    std::fs::write(folder.join("config.toml"), "\nzzz = 1\n").unwrap();
    let problem = follower.until(|seen| seen.settings_problem.is_some()).settings_problem.clone();
    assert!(
        problem.as_ref().unwrap().contains("/config.toml:2:1: unknown key `zzz`"),
        "{problem:?}"
    );
    std::fs::write(folder.join("config.toml"), "").unwrap();
    follower.until(|seen| seen.settings_problem.is_none());
}
