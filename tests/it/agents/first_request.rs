//! Which of patterm's tools reach a CLI's model, with the CLI's default settings.

use patterm_host::tools::Registry;
use serde_json::Value;

use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, Cli, GEMINI};
use super::mock::Turn;
use super::report::row;

/// The tools that a CLI which defers tools shows from the start.
fn always_loaded(tools: &Registry) -> Vec<String> {
    let loaded = tools.descriptors().into_iter().filter(|tool| {
        let meta = tool.meta.as_ref().and_then(|meta| meta.0.get("anthropic/alwaysLoad"));
        meta == Some(&Value::Bool(true))
    });
    loaded.map(|tool| tool.name.into_owned()).collect()
}

/// Our tools in a request, by their own names, sorted, with the size of their definitions.
fn ours(turn: &Turn) -> (Vec<String>, u64) {
    let own = |name: &str| {
        let (_, own) = name.rsplit_once("patterm_")?;
        Some(own.trim_start_matches('_').to_owned())
    };
    let found = turn.tools.iter().filter_map(|(name, bytes)| Some((own(name)?, *bytes)));
    let (mut names, bytes): (Vec<_>, Vec<_>) = found.unzip();
    names.sort_unstable();
    (names, bytes.into_iter().sum())
}

/// The first request contains the tools that agents need in every turn. If the CLI defers the
/// others, its search finds them by name; `tool_search.rs` searches by words.
pub(super) fn tools(cli: Cli) {
    let registry = Registry::standard();
    let mut bench = Bench::new(cli);
    let prompt = match cli {
        CLAUDE => concat!(
            r#"mock: call ToolSearch {"query": "select:mcp__patterm__timer_list"}"#,
            " ;; call timer_list {} ;; say found"
        ),
        _ => "mock: call timer_list {} ;; say found",
    };
    let id = bench.spawn(Some(prompt));
    let last = bench.until_said(prompt);
    let first = bench.mock.turns().into_iter().find(|turn| turn.text == prompt).unwrap();
    let (names, bytes) = ours(&first);
    let mut expected: Vec<_> = match cli {
        CLAUDE => always_loaded(&registry),
        _ => registry.names().map(str::to_owned).collect(),
    };
    expected.sort_unstable();
    let all: u64 = first.tools.iter().map(|(_, bytes)| bytes).sum();
    let found =
        format!("{} of ours, {bytes} bytes; {} in all, {all}", names.len(), first.tools.len());
    row(cli, "tools in the first request", &found);
    assert_eq!(names, expected, "{found}");
    // Its instructions contain the names that it uses for them.
    let known = |tool: &str| {
        let prefix = match cli {
            CLAUDE => "mcp__patterm__",
            CODEX => "mcp__patterm.",
            GEMINI => "mcp_patterm_",
            _ => "patterm_",
        };
        format!("{prefix}{tool}")
    };
    // gemini composes its system prompt while it connects to its servers, and omits the
    // instructions if it finishes first: about every other time on an idle machine.
    let instructions = first.instructions.as_str();
    let is_left_out = cli == GEMINI && instructions.is_empty();
    row(cli, "instructions in the first request", if is_left_out { "left out" } else { "all" });
    for tool in ["spawn_agent", "whoami", "help", "wait_for_pattern"] {
        let is_named = instructions.contains(&known(tool));
        assert!(is_named || is_left_out, "{tool}: {instructions}");
        // The mock writes names in a codex namespace like this.
        let given = known(tool).replace('.', "__");
        let is_given = first.tools.iter().any(|(name, _)| *name == given);
        assert!(is_given || cli == CLAUDE, "{given}: {:?}", first.tools);
    }
    let result = last.results.last().unwrap();
    assert!(result.contains("timers"), "the deferred one was called: {last:?}");
    bench.tools.close(&id);
}
