//! Ports: what a process printed, checked against what it and its children listen on.

use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, tools, until};

fn ports(tools: &mut ToolClient, id: &str) -> Vec<Value> {
    tools.ok("get_process_ports", json!({"process_id": id}))["ports"].as_array().unwrap().clone()
}

const LISTENER: &str = "
import socket, sys
printed, hidden, dead = (socket.create_server(('127.0.0.1', 0)) for _ in range(3))
port = lambda s: s.getsockname()[1]
gone = port(dead)
dead.close()
print('first line')
print('\\033[32mup\\033[m at http://127.0.0.1:%d/path and http://localhost:%d/' % (port(printed), gone))
print('hidden', port(hidden))
print('ready', flush=True)
sys.stdin.readline()
printed.close()
print('closed', flush=True)
sys.stdin.readline()
";

#[test]
fn printed_and_listening_printed_and_not_listening_and_never_printed() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["python3", "-u", "-c", LISTENER]);
    tools.wait(&id, "^ready");
    let text = tools.raw(&id);
    let number = |before: &str| -> u64 {
        let after = text.split(before).nth(1).unwrap();
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let (printed, gone, hidden) = (number("127.0.0.1:"), number("localhost:"), number("hidden "));
    let seen_at = text.find("\x1b[32mup").unwrap();
    let expected = |listening: bool| {
        vec![
            json!({"url": format!("http://127.0.0.1:{printed}/path"), "port": printed,
                "listening": listening, "seen_at": seen_at}),
            json!({"url": format!("http://localhost:{gone}/"), "port": gone,
                "listening": false, "seen_at": seen_at}),
            json!({"port": hidden, "listening": true}),
        ]
    };
    assert_eq!(ports(&mut tools, &id), expected(true));
    let status = tools.status(&id);
    let listed: Vec<_> =
        status["ports"].as_array().unwrap().iter().map(|port| port["port"].clone()).collect();
    assert_eq!(listed, [json!(printed), json!(gone)]);
    tools.line(&id, "");
    tools.wait(&id, "closed");
    assert_eq!(ports(&mut tools, &id), expected(false));
    tools.line(&id, "");
    tools.ended(&id);
    let left = ports(&mut tools, &id);
    assert_eq!(left, expected(false)[..2], "printed ports stay");
}

#[test]
fn a_listener_of_a_child_process_counts() {
    let (_place, _server, mut tools) = tools();
    let script = "require('http').createServer().listen(0, '127.0.0.1', function () {
        console.log('on 127.0.0.1:' + this.address().port) })";
    let argv = json!(["sh", "-c", "setsid node -e \"$0\" & wait", script]);
    let id = crate::support::tool_client::id_of(&tools.ok("spawn_process", json!({"argv": argv})));
    let line = tools.wait(&id, r"on 127\.0\.0\.1:\d+");
    let port: u64 = line.rsplit(':').next().unwrap().parse().unwrap();
    let found = ports(&mut tools, &id);
    assert_eq!(
        found,
        [json!({"url": format!("127.0.0.1:{port}"), "port": port,
        "listening": true, "seen_at": 0})]
    );
}

#[test]
fn an_address_of_an_earlier_run_is_forgotten() {
    let (_place, _server, mut tools) = tools();
    let script = "test -e moved && host=127.0.0.1 || host=0.0.0.0; touch moved; \
        echo up at http://$host:5173/; exec cat";
    let id = tools.sh(script);
    tools.wait(&id, "0.0.0.0:5173");
    assert_eq!(ports(&mut tools, &id)[0]["url"], "http://0.0.0.0:5173/");
    tools.ok("restart_process", json!({"process_id": id}));
    tools.wait(&id, "127.0.0.1:5173");
    let now = ports(&mut tools, &id);
    assert_eq!(now.len(), 1, "{now:?}");
    assert_eq!(now[0]["url"], "http://127.0.0.1:5173/");
}

/// A program prints an address in two writes, and somebody checks in between.
#[test]
fn half_an_address_is_not_remembered() {
    let (_place, _server, mut tools) = tools();
    let id = tools
        .sh("stty -echo; printf 'at http://localhost:51'; read x; printf '73/\\r\\n'; exec cat");
    tools.wait(&id, "localhost:51");
    ports(&mut tools, &id);
    tools.line(&id, "");
    tools.wait(&id, "5173/");
    let urls: Vec<_> = ports(&mut tools, &id).into_iter().map(|port| port["url"].clone()).collect();
    assert_eq!(urls, ["http://localhost:5173/"]);
}

/// There is more output before the address than is searched at once.
#[test]
fn an_address_after_much_output_is_found() {
    let (_place, _server, mut tools) = tools();
    let late = "yes 12:30 | head -c 20000000; echo up at http://localhost:5173/; exec cat";
    let id = tools.sh(late);
    tools.wait(&id, "up at");
    let found = until("an address in the status", || {
        let ports = tools.status(&id)["ports"].clone();
        (ports != json!([])).then_some(ports)
    });
    assert_eq!(found[0]["port"], 5173);
    let other = tools.sh(late);
    tools.wait(&other, "up at");
    assert_eq!(ports(&mut tools, &other)[0]["url"], "http://localhost:5173/");
}
