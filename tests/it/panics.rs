//! A panic in each tool: that call fails, every other is answered, the server serves on.

use patterm_host::tools::{Call, Effect, Loading, Registry, Tool, ToolError};
use patterm_store::limits::Limits;
use patterm_wire::Framing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Door, Place, tools};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Panic only after the call has waited for something.
    later: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Nothing {}

/// Tools of these names in place of ours, each of which panics.
macro_rules! broken {
    ($($name:ident)*) => {
        const BROKEN: &[&str] = &[$(stringify!($name)),*];

        fn registry() -> Registry {
            tools::registry()$(.with::<$name>())*
        }

        $(
            #[expect(non_camel_case_types, reason = "it is called as the tool is")]
            struct $name;

            impl Tool for $name {
                const NAME: &'static str = stringify!($name);
                const TITLE: &'static str = "Broken";
                const DESCRIPTION: &'static str = "Panics, at once or after it waited.";
                const HELP: &'static str = "";
                const EFFECT: Effect = Effect::Reads;
                const LOADING: Loading = Loading::Always;
                type Args = Arguments;
                type Answer = Nothing;

                async fn call(args: Arguments, _call: Call) -> Result<Nothing, ToolError> {
                    if args.later == Some(true) {
                        tokio::task::yield_now().await;
                    }
                    panic!("in {}, as it was asked to", Self::NAME);
                }
            }
        )*
    };
}

broken! {
    close_process get_process_output get_process_ports get_process_raw_output get_process_status
    get_project_status help list_agents list_processes message_cancel message_status rename_process request_human_attention
    restart_process scratchpad_append scratchpad_delete scratchpad_list scratchpad_read scratchpad_write search_output
    select_process send_input send_message signal_process spawn_agent spawn_process start_process stop_process
    timer_cancel timer_fire_on_exit timer_fire_when_idle_all timer_fire_when_idle_any timer_list timer_pause timer_resume
    timer_set timer_wait wait_for_agents wait_for_output wait_for_pattern whoami
}

#[test]
fn a_panic_in_each_tool_is_that_calls_error() {
    let standard = Registry::standard();
    let forgotten: Vec<_> = standard.names().filter(|name| !BROKEN.contains(name)).collect();
    assert_eq!(forgotten, [""; 0], "every tool stands in the list");
    let place = Place::new();
    let server = place.serve_as(Limits::default(), registry());
    let mut peer = server.connect(Door::Socket(Framing::Newline));
    let mut other = server.connect(Door::Socket(Framing::Newline));
    peer.ask("waits", "tools/call", json!({"name": "test_wait", "arguments": {}}));
    for (n, name) in BROKEN.iter().enumerate() {
        for later in [false, true] {
            let params = json!({"name": name, "arguments": {"later": later}});
            let answer = peer.answer(n, "tools/call", params);
            assert_eq!(answer["error"]["code"], -32603, "{name}: {answer}");
            let answer = peer.answer(n, name, json!({"later": later}));
            assert_eq!(answer["error"]["code"], -32603, "{name}: {answer}");
        }
        assert_eq!(other.answer(n, "ping", json!({}))["result"], json!({}), "{name}");
    }
    // The one that was there before all of them is answered in the end.
    let left = peer.finish();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["result"]["structuredContent"], json!({"ok": true}));
}
