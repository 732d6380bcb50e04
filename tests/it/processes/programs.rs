//! Real programs, driven only through tools: started, read, typed into, waited for, closed.

use serde_json::json;

use crate::support::tool_client::{ToolClient, alive, id_of, tools};

/// Starts a program with an environment that does not depend on who runs the tests.
fn start(tools: &mut ToolClient, argv: &[&str]) -> String {
    let env = json!({"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nonexistent",
        "PYTHONSTARTUP": "", "PYTHON_BASIC_REPL": "1", "TMUX": "", "SHELL": "/bin/sh",
        "PS1": "$ ", "LESS": "", "NO_COLOR": "1"});
    id_of(&tools.ok("spawn_process", json!({"argv": argv, "env": env})))
}

/// Closes a process and checks that nothing is left of it.
fn close(tools: &mut ToolClient, id: &str) {
    let pid = tools.status(id)["pid"].as_u64();
    assert_eq!(tools.close(id), [id]);
    assert!(!pid.is_some_and(|pid| alive(pid.try_into().unwrap())));
    assert_eq!(tools.ids(), Vec::<String>::new());
}

#[test]
fn vim() {
    let (place, _server, mut tools) = tools();
    let file = place.path("project/notes.txt");
    std::fs::write(&file, "first line\nsecond line\n").unwrap();
    let id = start(&mut tools, &["vim", "-N", "-u", "NONE", "-i", "NONE", "-n", "notes.txt"]);
    tools.wait(&id, "^second line");
    tools.wait(&id, "notes.txt");
    let status = tools.status(&id);
    assert_eq!(status["alternate_screen"], true);
    assert_eq!(tools.rows(&id)[..3], ["first line", "second line", "~"]);
    tools.key(&id, "down");
    tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "A, edited"}));
    tools.key(&id, "escape");
    tools.wait(&id, "^second line, edited");
    tools.line(&id, ":w");
    tools.wait(&id, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "first line\nsecond line, edited\n");
    tools.line(&id, ":q");
    assert_eq!(tools.ended(&id)["exit"], json!({"code": 0}));
    assert_eq!(tools.status(&id)["alternate_screen"], false);
    close(&mut tools, &id);
}

#[test]
fn htop() {
    let (_place, _server, mut tools) = tools();
    let id = start(&mut tools, &["htop"]);
    tools.wait(&id, "F10.*Quit");
    assert!(tools.rows(&id).iter().any(|row| row.contains("PID") && row.contains("USER")));
    tools.key(&id, "f1");
    tools.wait(&id, "Released under the GNU");
    tools.key(&id, "escape");
    tools.wait(&id, "F10.*Quit");
    tools.key(&id, "f10");
    assert_eq!(tools.ended(&id)["exit"], json!({"code": 0}));
    close(&mut tools, &id);
}

#[test]
fn less() {
    let (place, _server, mut tools) = tools();
    let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    std::fs::write(place.path("project/long.txt"), text).unwrap();
    let id = start(&mut tools, &["less", "long.txt"]);
    tools.wait(&id, "^line 23$");
    assert_eq!(tools.rows(&id)[0], "line 1");
    tools.key(&id, "space");
    tools.wait(&id, "^line 46$");
    tools.line(&id, "/line 400");
    tools.wait(&id, "^line 400$");
    assert_eq!(tools.rows(&id)[0], "line 400");
    tools.key(&id, "up");
    tools.wait(&id, "^line 399$");
    tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "q"}));
    assert_eq!(tools.ended(&id)["exit"], json!({"code": 0}));
    close(&mut tools, &id);
}

#[test]
fn tmux() {
    let (place, _server, mut tools) = tools();
    let (socket, settings) = (place.path("tmux"), place.path("tmux.conf"));
    // Keys within a millisecond of each other would count as a paste, and trigger no binding.
    std::fs::write(&settings, "set -g assume-paste-time 0\n").unwrap();
    let (settings, path) = (settings.to_str().unwrap(), socket.to_str().unwrap());
    let argv = ["tmux", "-f", settings, "-S", path, "new-session", "-s", "work"];
    let id = start(&mut tools, &argv);
    tools.wait(&id, r"\[work\]");
    tools.line(&id, "echo $((20 + 22)) in tmux");
    tools.wait(&id, "42 in tmux");
    tools.key(&id, "ctrl+b");
    tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "%"}));
    tools.wait(&id, "│");
    tools.line(&id, "echo panes $(tmux list-panes | wc -l)");
    tools.wait(&id, "panes 2");
    // The tmux server is a daemon; it ends with the process that started it.
    let server: u32 = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let status = tools.status(&id)["pid"].as_u64().unwrap();
            String::from_utf8_lossy(&line).contains(socket.to_str().unwrap())
                && u64::from(*pid) != status
        })
        .expect("the tmux server");
    close(&mut tools, &id);
    assert!(!alive(server));
}

#[test]
fn a_node_dev_server() {
    let (place, _server, mut tools) = tools();
    let script = "const server = require('http').createServer((request, response) => {
            console.log('GET ' + request.url); response.end('hello') });
        server.listen(0, '127.0.0.1', () =>
            console.log('ready at http://localhost:' + server.address().port + '/'));
        process.stdin.on('data', (data) => console.log('typed ' + data.toString().trim()));
        process.on('SIGTERM', () => { console.log('bye'); process.exit(0) })";
    std::fs::write(place.path("project/dev.js"), script).unwrap();
    let id = start(&mut tools, &["node", "dev.js"]);
    tools.wait(&id, "ready at http://localhost:");
    let ports = tools.ok("get_process_ports", json!({"process_id": id}))["ports"].take();
    assert_eq!((ports.as_array().unwrap().len(), &ports[0]["listening"]), (1, &json!(true)));
    let port = u16::try_from(ports[0]["port"].as_u64().unwrap()).unwrap();
    let mut web = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Write::write_all(&mut web, b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    std::io::Read::read_to_string(&mut web, &mut page).unwrap();
    assert!(page.ends_with("hello"), "{page}");
    tools.wait(&id, "^GET /page$");
    tools.line(&id, "rs");
    tools.wait(&id, "^typed rs$");
    let stopped = tools.ok("stop_process", json!({"process_id": id}));
    assert_eq!(stopped, json!({"status": "stopped", "exit": {"code": 0}}));
    assert_eq!(tools.rows(&id).last().unwrap(), "bye");
    tools.ok("start_process", json!({"process_id": id}));
    tools.wait(&id, "ready at http://localhost:");
    close(&mut tools, &id);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_python_repl() {
    // Input while Python evaluates goes through the terminal's line editing: a Ctrl-D is lost.
    const PROMPT: &str = "^>>> ?$";
    let (_place, _server, mut tools) = tools();
    let id = start(&mut tools, &["python3", "-q"]);
    tools.wait(&id, PROMPT);
    tools.line(&id, "6 * 7");
    tools.wait(&id, "^42$");
    tools.wait(&id, PROMPT);
    let block = "def twice(n):\n    return n * 2\n\n";
    tools.ok("send_input", json!({"process_id": id, "kind": "paste", "text": block}));
    tools.line(&id, "twice(500) + 1");
    tools.wait(&id, "^1001$");
    tools.wait(&id, PROMPT);
    // Python misses an interrupt that arrives just before it goes to sleep, so each sleep is short.
    tools
        .line(&id, "import time; print('sleep' + 'ing'); [time.sleep(0.1) for _ in range(10_000)]");
    tools.wait(&id, "^sleeping$");
    let interrupted = json!({"process_id": id, "kind": "key", "key": "ctrl+c",
        "wait_ms": 200, "tail_mode": "grid"});
    tools.ok("send_input", interrupted);
    tools.wait(&id, "KeyboardInterrupt");
    tools.wait(&id, PROMPT);
    tools.line(&id, "1 + 1001");
    tools.wait(&id, "^1002$");
    tools.wait(&id, PROMPT);
    tools.key(&id, "ctrl+d");
    assert_eq!(tools.ended(&id)["exit"], json!({"code": 0}));
    close(&mut tools, &id);
}
