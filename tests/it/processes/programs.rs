//! Real programs, driven only through tools: started, read, typed into, waited for, closed.

use serde_json::json;

use super::desk::{Desk, alive, desk, id_of};

/// Starts a program with an environment that does not depend on who runs the tests.
fn start(desk: &mut Desk, argv: &[&str]) -> String {
    let env = json!({"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nonexistent",
        "PYTHONSTARTUP": "", "PYTHON_BASIC_REPL": "1", "TMUX": "", "SHELL": "/bin/sh",
        "PS1": "$ ", "LESS": "", "NO_COLOR": "1"});
    id_of(&desk.ok("spawn_process", json!({"argv": argv, "env": env})))
}

/// Closes a process; nothing of it is left.
fn close(desk: &mut Desk, id: &str) {
    let pid = desk.status(id)["pid"].as_u64();
    assert_eq!(desk.close(id), [id]);
    assert!(!pid.is_some_and(|pid| alive(pid.try_into().unwrap())));
    assert_eq!(desk.ids(), Vec::<String>::new());
}

#[test]
fn vim() {
    let (place, _server, mut desk) = desk();
    let file = place.path("project/notes.txt");
    std::fs::write(&file, "first line\nsecond line\n").unwrap();
    let id = start(&mut desk, &["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "notes.txt"]);
    desk.wait(&id, "^second line");
    desk.wait(&id, "notes.txt");
    let status = desk.status(&id);
    assert_eq!(status["alternate_screen"], true);
    assert_eq!(desk.rows(&id)[..3], ["first line", "second line", "~"]);
    desk.key(&id, "down");
    desk.ok("send_input", json!({"process_id": id, "kind": "text", "text": "A, edited"}));
    desk.key(&id, "escape");
    desk.wait(&id, "^second line, edited");
    desk.line(&id, ":w");
    desk.wait(&id, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "first line\nsecond line, edited\n");
    desk.line(&id, ":q");
    assert_eq!(desk.ended(&id)["exit"], json!({"code": 0}));
    assert_eq!(desk.status(&id)["alternate_screen"], false);
    close(&mut desk, &id);
}

#[test]
fn htop() {
    let (_place, _server, mut desk) = desk();
    let id = start(&mut desk, &["htop"]);
    desk.wait(&id, "F10.*Quit");
    assert!(desk.rows(&id).iter().any(|row| row.contains("PID") && row.contains("USER")));
    desk.key(&id, "f1");
    desk.wait(&id, "Released under the GNU");
    desk.key(&id, "escape");
    desk.wait(&id, "F10.*Quit");
    desk.key(&id, "f10");
    assert_eq!(desk.ended(&id)["exit"], json!({"code": 0}));
    close(&mut desk, &id);
}

#[test]
fn less() {
    let (place, _server, mut desk) = desk();
    let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    std::fs::write(place.path("project/long.txt"), text).unwrap();
    let id = start(&mut desk, &["less", "long.txt"]);
    desk.wait(&id, "^line 23$");
    assert_eq!(desk.rows(&id)[0], "line 1");
    desk.key(&id, "space");
    desk.wait(&id, "^line 46$");
    desk.line(&id, "/line 400");
    desk.wait(&id, "^line 400$");
    assert_eq!(desk.rows(&id)[0], "line 400");
    desk.key(&id, "up");
    desk.wait(&id, "^line 399$");
    desk.ok("send_input", json!({"process_id": id, "kind": "text", "text": "q"}));
    assert_eq!(desk.ended(&id)["exit"], json!({"code": 0}));
    close(&mut desk, &id);
}

#[test]
fn tmux() {
    let (place, _server, mut desk) = desk();
    let (socket, settings) = (place.path("tmux"), place.path("tmux.conf"));
    // Keys that come within a millisecond of each other would count as pasted, and bind nothing.
    std::fs::write(&settings, "set -g assume-paste-time 0\n").unwrap();
    let (settings, path) = (settings.to_str().unwrap(), socket.to_str().unwrap());
    let argv = ["tmux", "-f", settings, "-S", path, "new-session", "-s", "work"];
    let id = start(&mut desk, &argv);
    desk.wait(&id, r"\[work\]");
    desk.line(&id, "echo $((20 + 22)) in tmux");
    desk.wait(&id, "42 in tmux");
    desk.key(&id, "ctrl+b");
    desk.ok("send_input", json!({"process_id": id, "kind": "text", "text": "%"}));
    desk.wait(&id, "│");
    desk.line(&id, "echo panes $(tmux list-panes | wc -l)");
    desk.wait(&id, "panes 2");
    // The tmux server is a daemon of its own; it goes with the process that started it.
    let server: u32 = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let status = desk.status(&id)["pid"].as_u64().unwrap();
            String::from_utf8_lossy(&line).contains(socket.to_str().unwrap())
                && u64::from(*pid) != status
        })
        .expect("the tmux server");
    close(&mut desk, &id);
    assert!(!alive(server));
}

#[test]
fn a_node_dev_server() {
    let (place, _server, mut desk) = desk();
    let script = "const server = require('http').createServer((request, response) => {
            console.log('GET ' + request.url); response.end('hello') });
        server.listen(0, '127.0.0.1', () =>
            console.log('ready at http://localhost:' + server.address().port + '/'));
        process.stdin.on('data', (data) => console.log('typed ' + data.toString().trim()));
        process.on('SIGTERM', () => { console.log('bye'); process.exit(0) })";
    std::fs::write(place.path("project/dev.js"), script).unwrap();
    let id = start(&mut desk, &["node", "dev.js"]);
    desk.wait(&id, "ready at http://localhost:");
    let ports = desk.ok("get_process_ports", json!({"process_id": id}))["ports"].take();
    assert_eq!((ports.as_array().unwrap().len(), &ports[0]["listening"]), (1, &json!(true)));
    let port = u16::try_from(ports[0]["port"].as_u64().unwrap()).unwrap();
    let mut web = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Write::write_all(&mut web, b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    std::io::Read::read_to_string(&mut web, &mut page).unwrap();
    assert!(page.ends_with("hello"), "{page}");
    desk.wait(&id, "^GET /page$");
    desk.line(&id, "rs");
    desk.wait(&id, "^typed rs$");
    let stopped = desk.ok("stop_process", json!({"process_id": id}));
    assert_eq!(stopped, json!({"status": "stopped", "exit": {"code": 0}}));
    assert_eq!(desk.rows(&id).last().unwrap(), "bye");
    desk.ok("start_process", json!({"process_id": id}));
    desk.wait(&id, "ready at http://localhost:");
    close(&mut desk, &id);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_python_repl() {
    // What is typed while Python evaluates goes through the terminal's own line editing: a Ctrl-D is lost.
    const PROMPT: &str = "^>>> ?$";
    let (_place, _server, mut desk) = desk();
    let id = start(&mut desk, &["python3", "-q"]);
    desk.wait(&id, PROMPT);
    desk.line(&id, "6 * 7");
    desk.wait(&id, "^42$");
    desk.wait(&id, PROMPT);
    let block = "def twice(n):\n    return n * 2\n\n";
    desk.ok("send_input", json!({"process_id": id, "kind": "paste", "text": block}));
    desk.line(&id, "twice(500) + 1");
    desk.wait(&id, "^1001$");
    desk.wait(&id, PROMPT);
    // Python misses an interrupt that arrives just before it goes to sleep, so each sleep is short.
    desk.line(&id, "import time; print('sleep' + 'ing'); [time.sleep(0.1) for _ in range(10_000)]");
    desk.wait(&id, "^sleeping$");
    let interrupted = json!({"process_id": id, "kind": "key", "key": "ctrl+c",
        "wait_ms": 200, "tail_mode": "grid"});
    desk.ok("send_input", interrupted);
    desk.wait(&id, "KeyboardInterrupt");
    desk.wait(&id, PROMPT);
    desk.line(&id, "1 + 1001");
    desk.wait(&id, "^1002$");
    desk.wait(&id, PROMPT);
    desk.key(&id, "ctrl+d");
    assert_eq!(desk.ended(&id)["exit"], json!({"code": 0}));
    close(&mut desk, &id);
}
