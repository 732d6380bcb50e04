//! Shared servers as agents see them: on their own connection, beside patterm's tools.

mod cache;
mod https;

use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, until};
use crate::support::{Peer, Place, Running, Serving, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

/// The project file's section for the test server.
fn everything(more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_everything-mcp");
    format!("[servers.all]\ncommand = ['{program}', '--log', 'all.log']\n{more}\n")
}

fn write(place: &Place, text: &str) {
    std::fs::write(place.path("project/patterm.toml"), text).unwrap();
}

/// A project whose file is trusted, and its server.
fn trusted(text: &str) -> (Place, Serving) {
    let place = Place::new();
    write(&place, text);
    let server = place.serve_in_process();
    place.run(&["trust", "--yes"]);
    (place, server)
}

/// The names of all tools of a connection.
fn tool_names(peer: &mut Peer, id: u64) -> Vec<String> {
    let answer = peer.answer(id, "tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn greet(peer: &mut Peer) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = peer.answer("hello", "initialize", params);
    peer.notify("notifications/initialized", json!({}));
    hello
}

fn log(place: &Place) -> String {
    std::fs::read_to_string(place.path("project/all.log")).unwrap_or_default()
}

#[test]
fn shared_tools_are_listed_beside_our_own_and_answers_pass_unchanged() {
    let (_place, server) = trusted(&everything(""));
    for transport in Transport::ALL {
        let mut peer = server.connect(transport);
        let hello = greet(&mut peer);
        assert_eq!(hello["result"]["capabilities"]["tools"]["listChanged"], true, "{hello}");
        let names = tool_names(&mut peer, 1);
        for name in ["whoami", "all__whoami", "all__numbers"] {
            assert!(names.iter().any(|known| known == name), "{names:?}");
        }
        // Our own tool is distinct from the server's.
        assert!(peer.call(2, "whoami", json!({}))["caller"].is_object());
        peer.ask("n1", "tools/call", json!({"name": "all__numbers", "arguments": {}}));
        let body = String::from_utf8(peer.try_receive_raw().unwrap()).unwrap();
        for text in [
            r#""z": 9007199254740993, "a":12345678901234567890123"#,
            r#""x-vendor":{"b":1.0,"a":1e3}"#,
            r#"{"n":0.10000000000000000001}"#,
        ] {
            assert!(body.contains(text), "{body}");
        }
        assert!(body.contains(r#""id":"n1""#) || body.contains(r#""id": "n1""#), "{body}");
        let unknown = peer.answer(3, "tools/call", json!({"name": "all__nothing"}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

#[test]
fn one_server_serves_all_and_starts_on_demand() {
    let place = Place::new();
    write(&place, &everything(""));
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    let untrusted = tool_names(&mut tools.peer, 1);
    assert!(
        !untrusted.iter().any(|name| name.starts_with("all__")),
        "nothing before it is trusted"
    );
    place.run(&["trust", "--yes"]);
    let states = |tools: &mut ToolClient| tools.ok("patterm/servers", json!({}))["servers"].clone();
    assert_eq!(states(&mut tools)[0]["name"], "all");
    let pids: Vec<_> = (0..3)
        .map(|n| {
            let (_, token) = server.agent(&format!("agent{n}"), None);
            let mut agent = ToolClient::of_agent(&server, &token);
            assert!(tool_names(&mut agent.peer, 1).contains(&"all__echo".to_owned()));
            agent.ok("all__echo", json!({}));
            states(&mut tools)[0]["pid"].as_i64().unwrap()
        })
        .collect();
    assert!(pids.windows(2).all(|pair| pair[0] == pair[1]), "{pids:?}");
    let printed = place.run(&["servers"]);
    assert!(printed.contains("running") && printed.contains("everything-mcp"), "{printed}");
    let printed = place.run(&["call", "all__slow", r#"{"milliseconds": 1}"#]);
    assert!(printed.contains("\"milliseconds\": 1"), "{printed}");
}

#[test]
fn listeners_are_notified_of_changed_tools() {
    let (place, server) = trusted(&everything(""));
    let mut old = server.connect(SOCKET);
    greet(&mut old);
    assert!(tool_names(&mut old, 1).contains(&"all__echo".to_owned()));
    let mut new = server.connect(SOCKET);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let listed = new.answer(1, "tools/list", json!({"_meta": meta.clone()}));
    assert!(listed["result"]["tools"].as_array().is_some(), "{listed}");
    let wish = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    new.ask("listen", "subscriptions/listen", wish);
    let acknowledged = new.receive();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");

    // Another server, with one tool less.
    write(&place, &everything("without = ['echo']").replace("servers.all", "servers.other"));
    place.run(&["trust", "--yes"]);
    for peer in [&mut old, &mut new] {
        assert_eq!(peer.receive()["method"], "notifications/tools/list_changed");
    }
    // Removals and additions may be announced separately.
    let listed = until("its tools", || {
        let names = tools_of(&mut old);
        names.iter().any(|name| name == "other__whoami").then_some(names)
    });
    assert!(!listed.iter().any(|name| name.starts_with("all__") || name == "other__echo"));
}

/// The same if notifications may come in between.
fn tools_of(peer: &mut Peer) -> Vec<String> {
    peer.ask("list", "tools/list", json!({}));
    loop {
        let message = peer.receive();
        if message["id"] == "list" {
            let tools = message["result"]["tools"].as_array().unwrap().clone();
            return tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        }
    }
}

#[test]
fn an_agent_sees_only_the_tools_it_may_use() {
    let (_place, server) = trusted(&everything(
        "tools = ['e*', 'slow', 'numbers']\nwithout = ['numbers']\n\
         agents = { reviewer = ['echo'], others = [] }",
    ));
    let seen = |name: &str| {
        let (_, token) = server.agent(name, None);
        let mut agent = ToolClient::of_agent(&server, &token);
        let mut names = tool_names(&mut agent.peer, 1);
        names.retain(|name| name.starts_with("all__"));
        let refused = agent.peer.answer(2, "tools/call", json!({"name": "all__slow"}));
        assert_eq!(refused["error"]["code"], -32602, "a hidden tool cannot be called");
        names
    };
    assert_eq!(seen("reviewer"), ["all__echo"]);
    assert!(seen("builder").is_empty());
    let mut outside = tool_names(&mut server.connect(SOCKET), 1);
    outside.retain(|name| name.starts_with("all__"));
    outside.sort();
    assert_eq!(outside, ["all__echo", "all__slow"]);
}

#[test]
fn an_agent_cannot_change_its_tools_by_renaming_itself() {
    let (_place, server) =
        trusted(&everything("agents = { lead = ['slow'], intern = ['echo'], twin-2 = ['slow'] }"));
    let shown = |tools: &mut ToolClient| {
        let mut names = tools_of(&mut tools.peer);
        names.retain(|name| name.starts_with("all__"));
        names
    };
    let (intern, token) = server.agent("intern", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let id = intern.id.to_string();
    assert_eq!(shown(&mut agent), ["all__echo"]);
    let mut refused = |tool: &str, arguments: Value| {
        let why = agent.refused("not_owner", tool, arguments);
        assert!(why.contains("only a person"), "{why}");
    };
    refused("rename_process", json!({"process_id": id, "name": "free"}));
    refused("rename_process", json!({"process_id": id, "name": "lead"}));
    refused("spawn_agent", json!({"agent": "claude", "name": "lead"}));
    // A name in use would get a number, which makes it this one.
    refused("spawn_agent", json!({"agent": "claude", "name": "twin"}));
    // An agent that it starts under a free name sees no more than itself.
    let (_, token) = server.agent("free", Some(&intern.id));
    assert_eq!(shown(&mut ToolClient::of_agent(&server, &token)), ["all__echo"]);
    // Other names are free, and a person may give any.
    let (worker, token) = server.agent("worker", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    agent.ok("rename_process", json!({"process_id": worker.id.as_str(), "name": "builder"}));
    let lead = json!({"process_id": worker.id.as_str(), "name": "lead"});
    ToolClient::of(&server).ok("rename_process", lead);
    assert_eq!(shown(&mut agent), ["all__slow"]);
}

#[test]
fn progress_and_cancellations_reach_their_call() {
    let (place, server) = trusted(&everything(""));
    let mut one = server.connect(SOCKET);
    let mut other = server.connect(SOCKET);
    for peer in [&mut one, &mut other] {
        greet(peer);
        // The same id and the same token, which are separate for each client.
        let meta = json!({"progressToken": "t"});
        let params = json!({"name": "all__test_tool_with_progress", "_meta": meta});
        peer.ask(7, "tools/call", params);
    }
    for peer in [&mut one, &mut other] {
        for expected in [0, 50, 100] {
            let progress = peer.receive();
            assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
            assert_eq!(progress["params"]["progress"], expected, "{progress}");
        }
        assert_eq!(peer.receive()["id"], 7);
    }
    one.ask(8, "tools/call", json!({"name": "all__hang"}));
    other.ask(8, "tools/call", json!({"name": "all__hang"}));
    until("the log", || (log(&place).matches("\"hang\"").count() == 2).then_some(()));
    one.notify("notifications/cancelled", json!({"requestId": 8}));
    until("the log", || {
        (log(&place).matches("notifications/cancelled").count() == 1).then_some(())
    });
    drop(other);
    until("the log", || {
        (log(&place).matches("notifications/cancelled").count() == 2).then_some(())
    });
    assert_eq!(one.answer(9, "tools/call", json!({"name": "all__echo"}))["id"], 9);
}

#[test]
fn a_dead_server_is_reported_with_its_last_output_and_started_again() {
    let (_place, server) = trusted(&everything(""));
    let mut tools = ToolClient::of(&server);
    let died = tools.peer.answer(1, "tools/call", json!({"name": "all__die"}));
    let why = died["error"]["message"].as_str().unwrap();
    assert!(why.contains("code 3") && why.contains("cannot go on"), "{died}");
    let again = tools.peer.answer(2, "tools/call", json!({"name": "all__echo"}));
    assert!(again["result"].is_object(), "{again}");
    let seen = tools.ok("patterm/servers", json!({}));
    assert_eq!(seen["servers"][0]["restarts"], 1, "{seen}");
    assert!(seen["servers"][0]["last_error"].as_str().unwrap().contains("code 3"), "{seen}");
}

#[test]
fn no_shared_server_outlives_patterm() {
    let place = Place::new();
    write(&place, &everything(""));
    let server = place.serve();
    place.run(&["trust", "--yes"]);
    let pid = |place: &Place| {
        place.run(&["call", "all__echo"]);
        let seen: Value = serde_json::from_str(&place.run(&["servers", "--json"])).unwrap();
        u32::try_from(seen[0]["pid"].as_u64().unwrap()).unwrap()
    };
    let before = Running::of(pid(&place));
    server.kill();
    // The keeper starts another server, which releases what nobody reads any more.
    let after = pid(&place);
    before.wait();
    let after = Running::of(after);
    place.run(&["upgrade"]);
    place.run(&["call", "all__echo"]);
    after.wait();
    let last = Running::of(pid(&place));
    place.run(&["kill"]);
    last.wait();
}

#[test]
fn the_users_own_settings_name_servers_for_all_projects() {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let file = settings.join("config.toml");
    std::fs::write(&file, "").unwrap();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    assert!(!tool_names(&mut peer, 1).iter().any(|name| name.contains("__")));
    std::fs::write(&file, everything("").replace("servers.all", "servers.mine")).unwrap();
    until("its tools", || tools_of(&mut peer).contains(&"mine__echo".to_owned()).then_some(()));
}

#[test]
fn servers_are_imported_from_another_clients_file() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_everything-mcp");
    let json = json!({"mcpServers": {"every thing": {"command": program, "args": ["--era", "${ERA:-both}"]},
        "old": {"type": "sse", "url": "http://localhost:1/sse"}}});
    std::fs::write(place.path("project/.mcp.json"), json.to_string()).unwrap();
    write(&place, "[processes.web]\ncommand = 'true'");
    let printed = place.run(&["servers", "import"]);
    assert!(
        printed.contains("added    every-thing") && printed.contains("skipped  old"),
        "{printed}"
    );
    let again = place.run(&["servers", "import"]);
    assert!(again.contains("nothing was added"), "{again}");
    place.run(&["trust", "--yes"]);
    let printed = place.run(&["call", "every-thing__echo"]);
    assert!(printed.contains("content"), "{printed}");
}

/// A server that cannot be started is listed like the others, and delays nothing.
#[test]
fn an_unset_variable_is_reported_in_the_list_of_servers() {
    let place = Place::new();
    write(&place, &everything("env = { KEY = '${NO_SUCH_VARIABLE_HERE}' }"));
    place.run(&["trust", "--yes"]);
    let listed = place.run(&["servers"]);
    assert!(listed.contains("failed") && listed.contains("NO_SUCH_VARIABLE_HERE"), "{listed}");
    place.run(&["ps"]);
}

#[test]
fn stray_output_of_a_server_is_logged_as_a_warning() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_everything-mcp");
    let command = format!("printf '  odd\\\\tthing  \\\\r\\\\n' >&2; exec {program}");
    write(&place, &format!("[servers.all]\ncommand = ['sh', '-c', \"{command}\"]\n"));
    let server = place.serve();
    place.run(&["trust", "--yes"]);
    let mut peer = Peer::connect(SOCKET, &server.socket());
    greet(&mut peer);
    assert!(tool_names(&mut peer, 1).contains(&"all__whoami".to_owned()));
    until("it is in the log", || {
        let log = std::fs::read_to_string(place.state().file("server.log")).unwrap_or_default();
        log.lines()
            .any(|line| line.contains(" WARN ") && line.ends_with("oddthing server=\"all\""))
            .then_some(())
    });
}
