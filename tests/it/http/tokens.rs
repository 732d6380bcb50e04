//! `patterm token`: who may create tokens, what they permit, and that they cannot be read later.

use std::io::Read;
use std::process::Output;

use serde_json::{Value, json};

use super::raw::Client;
use super::{call, new_token, open, request};
use crate::support::tool_client::{ToolClient, id_of};
use crate::support::{Place, Rng, running_in};

#[test]
fn creating_a_token_for_an_unknown_server_is_refused() {
    let place = Place::new();
    let warned = |servers: &str| {
        let name = format!("t{}", servers.len());
        let Output { status, stderr, .. } =
            place.patterm(&["token", "new", &name, "--servers", servers]).output().unwrap();
        assert!(status.success());
        String::from_utf8(stderr).unwrap()
    };
    let message = warned("patterm,nope");
    assert!(
        message.contains("there is no server `nope` at the moment; the servers are `patterm`."),
        "{message}"
    );
    for known in ["patterm", "bots", "bots/seven"] {
        assert!(!warned(known).contains("there is no server"), "{known}");
    }
}

#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = place.patterm(arguments).output().unwrap();
    assert_eq!((status.code(), &*stdout), (Some(1), &b""[..]), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn a_token_is_created_listed_and_revoked() {
    let place = Place::new();
    assert_eq!(place.run(&["token", "ls"]), "no tokens; `patterm token new NAME` creates one\n");
    let (_server, client) = open(&place);
    new_token(&place, &["ci", "--servers", "search,patterm", "--tools", "get_*", "--read-only"]);
    let listed = place.run(&["token", "ls"]);
    assert_eq!(
        listed,
        "ci    servers: search, patterm; tools: get_*; read-only\ntest  all servers; all tools\n"
    );
    let json: Value = serde_json::from_str(&place.run(&["token", "ls", "--json"])).unwrap();
    assert_eq!(json[0]["servers"], json!(["search", "patterm"]));
    for (arguments, words) in [
        (&["token", "new", "ci"][..], "there is already a token `ci`"),
        (&["token", "revoke", "nobody"], "there is no token `nobody`; the tokens are "),
    ] {
        let message = fails(&place, arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    // After the revocation, the next request is refused, and open streams end.
    let begun = client.own(&request(0, "initialize", json!({"protocolVersion": "2025-11-25"})));
    let session = begun.header("mcp-session-id").unwrap();
    let own = ("Mcp-Session-Id", session.as_str());
    let mut stream = client.begin("GET", "/mcp", &[own], "");
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let message = place.run(&["token", "revoke", "test"]);
    assert!(message.starts_with("test is revoked"), "{message}");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let whoami = call(1, "whoami", json!({}));
    assert_eq!(client.post("/mcp", &[own], &whoami).status, 401);
    assert_eq!(client.own(&whoami).status, 401);
    assert!(client.own(&whoami).body.contains("revoked"), "it is distinguished from a missing one");
    // A new token of the same name is a different one.
    let again = Client::new(client.address, &new_token(&place, &["test"]));
    assert_eq!(again.own(&whoami).status, 200);
    assert_eq!(again.post("/mcp", &[own], &whoami).status, 404);
    assert_eq!(client.own(&whoami).status, 401);
}

#[test]
fn a_scope_applies_to_patterms_own_tools() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let with = |arguments: &[&str]| Client::new(client.address, &new_token(&place, arguments));
    let reader = with(&["reader", "--read-only"]);
    let pads = with(&["pads", "--tools", "scratchpad_*"]);
    let elsewhere = with(&["elsewhere", "--servers", "search"]);
    let list = request(1, "tools/list", json!({}));
    let names = |client: &Client| -> Vec<String> {
        let listed = client.own(&list).json();
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let (all, reads, writes) = (names(&client), names(&reader), names(&pads));
    assert!(reads.len() < all.len() && reads.contains(&"list_processes".into()), "{reads:?}");
    assert!(!reads.contains(&"spawn_process".into()), "{reads:?}");
    assert!(writes.len() > 2 && writes.iter().all(|name| name.starts_with("scratchpad_")));
    let spawn = call(2, "spawn_process", json!({"argv": ["cat"]}));
    let look = call(3, "list_processes", json!({}));
    let bare = request(4, "spawn_process", json!({"argv": ["cat"]}));
    for (client, may_look) in [(&reader, true), (&pads, false)] {
        for refused in [&spawn, &bare] {
            assert!(client.own(refused).json()["error"]["code"].is_i64());
        }
        assert_eq!(client.own(&look).json()["result"].is_object(), may_look);
    }
    assert_eq!(elsewhere.own(&look).status, 403);
    // Not even a token for everything has the rights of a person.
    for method in ["patterm/token", "patterm/shutdown", "patterm/trust"] {
        let answer = client.own(&request(5, method, json!({"new": {"name": "evil"}})));
        assert_eq!(answer.json()["error"]["code"], -32601, "{method}");
    }
    assert_eq!(place.run(&["ps", "--json"]), "[]\n");
    assert!(!place.run(&["token", "ls"]).contains("evil"));
}

#[test]
fn an_agent_cannot_create_a_token() {
    let place = Place::new();
    let server = place.serve_in_process();
    let (_, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    for (method, wish) in [
        ("patterm/token", json!({"new": {"name": "own"}})),
        ("patterm/token", json!({"revoke": "own"})),
        ("patterm/http", json!({"listen": "127.0.0.1:0"})),
    ] {
        let message = agent.refused("not_owner", method, wish);
        assert!(message.contains("only a person"), "{message}");
    }
    // By the verb, as itself.
    let mut verb = place.patterm(&["token", "new", "own"]);
    let output = verb.env("PATTERM_IDENTITY_FILE", "/dev/null").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("only a person"));
    // By the verb, without its identity: what it starts runs in a pane of its own.
    let env = json!({
        "HOME": place.path("home"), "XDG_RUNTIME_DIR": place.path("run"),
        "XDG_STATE_HOME": place.path("state"),
    });
    let argv = json!([place.binary(), "token", "new", "own"]);
    let own = id_of(&agent.ok("spawn_process", json!({"argv": argv, "env": env})));
    agent.wait(&own, "only a person");
    assert_eq!(place.run(&["token", "ls", "--json"]), "[]\n");
}

/// A process that a client starts over HTTP is not a person's, whoever has the token.
#[test]
fn a_pane_started_over_http_cannot_create_a_token() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let env = json!({
        "HOME": place.path("home"), "XDG_RUNTIME_DIR": place.path("run"),
        "XDG_STATE_HOME": place.path("state"),
    });
    let inner = "\"$0\" token new own; echo said $?; sleep 1000";
    let script = format!("\"$0\" run --name inner -- sh -c '{inner}' \"$0\"; {inner}");
    let argv = json!(["sh", "-c", script, place.binary()]);
    let arguments = json!({"argv": argv, "env": env, "name": "outer"});
    client.own(&call(1, "spawn_process", arguments));
    for name in ["outer", "inner"] {
        place.run(&["wait", name, "only a person"]);
        place.run(&["wait", name, "said 1"]);
    }
    assert!(!place.run(&["token", "ls"]).contains("own"));
}

#[test]
fn no_token_is_readable_by_others() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let secret = &client.token["patterm_".len()..];
    let forged: String = secret.chars().rev().collect();
    for token in [client.token.clone(), format!("patterm_{forged}")] {
        Client::new(client.address, &token).own(&call(1, "whoami", json!({})));
    }
    client.own(&call(1, "no_such_tool", json!({"secret": "in arguments"})));
    let id = place.run(&["run", "--", "env"]).trim().to_owned();
    place.run(&["wait", &id, "PATH="]);
    assert!(!place.run(&["logs", &id]).contains(secret));
    for pid in running_in(&place.path("project")) {
        for file in ["cmdline", "environ"] {
            let read = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&read).contains(secret), "{pid} {file}");
        }
    }
    place.run(&["kill"]);
    let mut files = vec![place.path("state"), place.path("run")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|file| file.unwrap().path()));
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            for hidden in [secret, &forged, "in arguments"] {
                assert!(!text.contains(hidden), "{}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 3);
}

#[test]
fn ten_thousand_forged_replayed_and_revoked_tokens_are_refused() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let mut rng = Rng::new(31);
    let revoked: Vec<String> = (0..4)
        .map(|n| {
            let (name, token) = (format!("gone{n}"), new_token(&place, &[&format!("gone{n}")]));
            place.run(&["token", "revoke", &name]);
            token
        })
        .collect();
    let good = client.token.clone();
    let body = call(1, "spawn_process", json!({"argv": ["cat"]})).to_string();
    for turn in 0..10_000 {
        let mut token = good.clone().into_bytes();
        let at = rng.within("patterm_".len()..token.len());
        match turn % 6 {
            0 => token[8..].iter_mut().for_each(|b| *b = b"0123456789abcdef"[rng.within(0..16)]),
            1 => token[at] = if token[at] == b'0' { b'1' } else { b'0' },
            2 => token.truncate(at),
            3 => token.insert(at, b'0'),
            4 => drop(token.drain(.."patterm_".len())),
            _ => token = rng.pick(&revoked).clone().into_bytes(),
        }
        let token = String::from_utf8(token).unwrap();
        if token == good {
            continue;
        }
        let answer = Client::new(client.address, &token).send("POST", "/mcp", &[], &body);
        assert_eq!(answer.status, 401, "{token}: {answer:?}");
    }
    assert_eq!(place.run(&["ps", "--json"]), "[]\n", "none reached a tool");
    assert_eq!(client.send("POST", "/mcp", &[], &body).status, 200);
}
