//! What a person may type to try the proxy: a pipe into it, in an empty folder without a server.

use std::path::Path;
use std::process::Output;

use patterm_host::tools::Registry;
use patterm_wire::{Decoder, Frame, Framing};
use serde_json::{Value, json};

use crate::support::Place;

/// Runs a shell line in a place without a server; returns its output, message by message. It must
/// succeed and print only messages in this framing.
#[track_caller]
fn run(line: &str, framing: Framing) -> Vec<Value> {
    let place = Place::new();
    let folder = place.binary().parent().unwrap().to_owned();
    let mut path = std::env::var_os("PATH").unwrap();
    path.push(":");
    path.push(folder);
    let mut shell = place.command(Path::new("sh"));
    let Output { status, stdout, stderr } =
        shell.args(["-c", line]).env("PATH", path).output().unwrap();
    assert_eq!((status.code(), String::from_utf8(stderr).unwrap()), (Some(0), String::new()));
    let mut decoder = Decoder::new(1 << 20);
    decoder.feed(&stdout);
    let mut messages = Vec::new();
    let mut again = Vec::new();
    while let Some(frame) = decoder.next_frame() {
        let Frame::Body(body) = frame else { panic!("badly framed: {frame:?}") };
        framing.encode(body, &mut again);
        messages.push(serde_json::from_slice(body).unwrap());
    }
    assert_eq!(decoder.finish(), None);
    assert!(again == stdout, "nothing else: {}", String::from_utf8_lossy(&stdout));
    messages
}

/// The responses to `initialize`, nonsense and `tools/list`, complete except for long texts.
#[track_caller]
fn check_answers(mut answers: Vec<Value>) {
    assert_eq!(answers.len(), 3);
    check_tools(&answers.pop().unwrap());
    let bad = answers.pop().unwrap();
    let why = bad["error"]["data"].as_str().unwrap();
    let error = json!({"code": -32700, "message": "Parse error", "data": why});
    assert_eq!(bad, json!({"jsonrpc": "2.0", "id": null, "error": error}));
    let initialized = answers.pop().unwrap();
    let instructions = initialized["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("you have no pane of your own"), "{instructions}");
    assert_eq!(
        initialized,
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "patterm", "title": "patterm",
                "version": patterm_host::VERSION},
            "instructions": instructions,
        }})
    );
}

#[track_caller]
fn check_tools(answer: &Value) {
    let tools = answer["result"]["tools"].as_array().unwrap();
    let whole = json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": tools}});
    assert_eq!(*answer, whole, "and nothing more");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(Registry::standard().names().eq(names), "all of them, in their order");
    for tool in tools {
        let members: Vec<_> = tool.as_object().unwrap().keys().map(String::as_str).collect();
        let expected =
            ["_meta", "annotations", "description", "inputSchema", "name", "outputSchema"];
        assert_eq!(members, expected, "{tool}");
    }
}

#[test]
fn a_handshake_some_nonsense_and_the_tools() {
    check_answers(run(
        r#"printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}' 'nonsense' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | patterm mcp-stdio"#,
        Framing::Newline,
    ));
}

#[test]
fn the_same_with_content_length_headers() {
    check_answers(run(
        r#"printf 'Content-Length: %d\r\n\r\n%s' 146 '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}' 8 'nonsense' 46 '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | patterm mcp-stdio"#,
        Framing::Headers,
    ));
}

#[test]
fn a_bare_tools_list() {
    let line =
        r#"printf '%s\n' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | patterm mcp-stdio"#;
    let answers = run(line, Framing::Newline);
    assert_eq!(answers.len(), 1);
    check_tools(&answers[0]);
}

#[test]
fn a_bare_tools_list_with_headers() {
    let line = r#"printf 'Content-Length: %d\r\n\r\n%s' 46 '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | patterm mcp-stdio"#;
    let answers = run(line, Framing::Headers);
    assert_eq!(answers.len(), 1);
    check_tools(&answers[0]);
}

#[test]
fn nothing_at_all() {
    assert_eq!(run("patterm mcp-stdio </dev/null", Framing::Newline), super::NOTHING);
}
