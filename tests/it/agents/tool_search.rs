//! Claude defers most tools, and its model finds them by a search.

use super::bench::Bench;
use super::cli::CLAUDE;
use super::report::row;

/// Search words of a model, a tool that they must find, its arguments, and its result.
const SEARCHES: [(&str, &str, &str, &str); 3] = [
    ("spawn agent terminal", "list_agents", "{}", "agents"),
    ("list timers", "timer_list", "{}", "timers"),
    // This word is in the tool's hint only.
    ("grep", "search_output", r#"{"process_id": "p1", "pattern": "mock"}"#, "matches"),
];

#[test]
fn claude_finds_deferred_tools_by_ordinary_words_and_calls_them() {
    let mut bench = Bench::new(CLAUDE);
    let id = bench.spawn_ready();
    let mut missed = Vec::new();
    for (words, tool, arguments, answer) in SEARCHES {
        let prompt = format!(
            r#"mock: call ToolSearch {{"query": "{words}"}} ;; call {tool} {arguments} ;; say found"#
        );
        bench.send(&id, &prompt);
        let text = format!("[external] {prompt}");
        let last = bench.until_said(&text);
        let first = bench.mock.turns().into_iter().find(|turn| turn.text == text).unwrap();
        let name = format!("mcp__patterm__{tool}");
        let has = |tools: &[(String, u64)]| tools.iter().any(|(known, _)| *known == name);
        assert!(!has(&first.tools), "{tool} is deferred: {:?}", first.tools);
        let found = last.tools.iter().filter(|tool| !first.tools.contains(tool));
        let found: Vec<_> = found.map(|(name, _)| name.as_str()).collect();
        let was_called = last.results.last().is_some_and(|returned| returned.contains(answer));
        if !has(&last.tools) || !was_called {
            missed.push(format!("{words:?} found {found:?}, and then: {:?}", last.results));
        }
        bench.until_state(&id, "idle");
    }
    let found = SEARCHES.len() - missed.len();
    row(CLAUDE, "tools found by words", &format!("{found} of {}", SEARCHES.len()));
    assert!(missed.is_empty(), "{missed:#?}");
}
