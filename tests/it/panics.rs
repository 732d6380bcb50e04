//! A panic in each tool: that call fails, all others are answered, and the server continues.

use patterm_host::tools::{Call, Effect, Loading, Registry, Tool, ToolError};
use patterm_store::limits::Limits;
use patterm_wire::Framing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Place, Transport, tools};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Panic only after waiting once.
    later: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Nothing {}

struct Broken;

impl Tool for Broken {
    const NAME: &'static str = "broken";
    const TITLE: &'static str = "Broken";
    const DESCRIPTION: &'static str = "Panics, at once or after waiting.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = Arguments;
    type Answer = Nothing;

    async fn call(args: Arguments, _call: Call) -> Result<Nothing, ToolError> {
        if args.later == Some(true) {
            tokio::task::yield_now().await;
        }
        panic!("requested by the test");
    }
}

#[test]
fn a_panic_in_each_tool_is_that_calls_error() {
    let names: Vec<&'static str> =
        Registry::standard().names().map(|name| &*name.to_owned().leak()).collect();
    let broken = names.iter().fold(tools::registry(), |all, name| all.with_name::<Broken>(name));
    let place = Place::new();
    let server = place.serve_as(Limits::default(), broken);
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let mut other = server.connect(Transport::Socket(Framing::Newline));
    peer.ask("waits", "tools/call", json!({"name": "test_wait", "arguments": {}}));
    for (n, name) in names.iter().enumerate() {
        for later in [false, true] {
            let params = json!({"name": name, "arguments": {"later": later}});
            let answer = peer.answer(n, "tools/call", params);
            assert_eq!(answer["error"]["code"], -32603, "{name}: {answer}");
            let answer = peer.answer(n, name, json!({"later": later}));
            assert_eq!(answer["error"]["code"], -32603, "{name}: {answer}");
        }
        assert_eq!(other.answer(n, "ping", json!({}))["result"], json!({}), "{name}");
    }
    // The call that was made before all others is answered in the end.
    let left = peer.finish();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["result"]["structuredContent"], json!({"ok": true}));
}
