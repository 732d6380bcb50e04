//! Hostile names, texts and errors, printed on a terminal by every verb: the terminal shows them
//! and executes none of them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use patterm_wire::printable::is_active;
use serde_json::{Value, json};

use super::commit;
use crate::support::Place;

/// A title, a cleared screen in eight-bit codes, deleted and reversed text: everything that a
/// terminal would act on.
const HOSTILE: &str = "evil\x1b]0;owned\x07\x1b[2J\u{9b}2J\x7f\u{202e}\u{2066}\u{2028}end";

/// The same with a line that imitates patterm's output.
const HOSTILE_LINES: &str = "evil\x1b]0;owned\x07\r\u{9b}2J\x7f\u{202e}\npatterm: all is well\x08";

/// A shared server with hostile text in its tool's description and its errors.
fn server_script() -> String {
    let words = json!(HOSTILE_LINES).to_string();
    let tool =
        format!(r#"{{"name":"boom","description":{words},"inputSchema":{{"type":"object"}}}}"#);
    let begun = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"e","version":"1"}}"#;
    let script = r#"#!/bin/sh
        while IFS= read -r line; do
          id=$(printf '%s\n' "$line" | sed -n 's/.*"id": *\("[^"]*"\|[0-9]*\).*/\1/p')
          [ -n "$id" ] || continue
          case "$line" in
            *'"initialize"'*) answer='"result":BEGUN' ;;
            *'"tools/list"'*) answer='"result":{"tools":[TOOL]}' ;;
            *) answer='"error":{"code":-32000,"message":WORDS}' ;;
          esac
          printf '%s\n' '{"jsonrpc":"2.0","id":'"$id,$answer}"
        done
    "#;
    script.replace("BEGUN", begun).replace("TOOL", &tool).replace("WORDS", &words)
}

/// A project whose path, files, processes, pads and servers are hostile.
struct Harness {
    place: Place,
    project: PathBuf,
    bare: PathBuf,
}

impl Harness {
    fn set() -> Self {
        let place = Place::new();
        let project = place.path("project").join(HOSTILE);
        let bare = place.path("project").join(format!("bare {HOSTILE}"));
        for folder in [&project, &bare] {
            std::fs::create_dir(folder).unwrap();
            std::fs::create_dir(folder.join(".git")).unwrap();
            std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        commit(&place, &project, HOSTILE_LINES);
        let scripts = json!({"scripts": {"dev": HOSTILE, HOSTILE: "x"}}).to_string();
        std::fs::write(bare.join("package.json"), scripts).unwrap();
        std::fs::write(bare.join("Procfile"), format!("web: {HOSTILE}\n{HOSTILE}: x\n")).unwrap();
        let others = json!({"mcpServers": {HOSTILE: {"command": HOSTILE}, "b": 1}}).to_string();
        std::fs::write(bare.join(".mcp.json"), &others).unwrap();
        std::fs::write(project.join("others.json"), &others).unwrap();
        std::fs::write(project.join("server.sh"), server_script()).unwrap();
        std::os::unix::fs::symlink("/bin/cat", project.join(HOSTILE)).unwrap();
        let command = json!(HOSTILE).to_string().replace('\u{9b}', "\\u009b").replace('\x7f', "");
        let file = format!(
            "[servers.evil]\ncommand = ['sh', 'server.sh']\n[processes.web]\ncommand = {command}\n"
        );
        std::fs::write(project.join("patterm.toml"), file).unwrap();
        Self { place, project, bare }
    }

    /// What a verb prints on a terminal, on standard output and standard error.
    fn on_terminal(&self, folder: &Path, words: &[&str]) -> String {
        let quote = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let binary = self.place.binary();
        let all = std::iter::once(binary.to_str().unwrap()).chain(words.iter().copied());
        let line: Vec<_> = all.map(quote).collect();
        let mut command = self.place.command(Path::new("script"));
        command.args(["-qec", &line.join(" "), "/dev/null"]).env("SHELL", "/bin/sh");
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Every question is answered with no. The terminal stays open: its end would be echoed.
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(b"n\n").unwrap();
        let output = child.wait_with_output().unwrap();
        drop(keyboard);
        String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
    }

    /// The same without a terminal; it must succeed.
    fn run(&self, words: &[&str]) -> String {
        let mut command = self.place.patterm(words);
        let output = command.current_dir(&self.project).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything hostile that verbs could print.
    fn fill(&self) {
        self.run(&["run", "--", &format!("./{HOSTILE}")]);
        let prints = format!("printf '%s\\n' '{HOSTILE}'; exec cat");
        let id = self.run(&["run", "--name", "prints", "--", "sh", "-c", &prints]);
        let id = id.trim();
        self.run(&["wait", id, "end"]);
        let reason = json!({"process_id": id, "reason": HOSTILE}).to_string();
        self.run(&["call", "request_human_attention", &reason]);
        let pad = json!({"name": "plan", "content": HOSTILE_LINES}).to_string();
        self.run(&["call", "scratchpad_write", &pad]);
        let timer = json!({"seconds": 9999, "body": HOSTILE, "owner_process_id": id}).to_string();
        self.run(&["call", "timer_set", &timer]);
    }
}

/// How each verb is run, in a sensible order; `None` for an unknown verb.
fn cases(verb: &str) -> Option<(u8, &'static [&'static [&'static str]])> {
    Some(match verb {
        "trust" => (0, &[&["trust"], &["trust", "--yes"]]),
        "init" => (1, &[&["init"], &["init"]]),
        "serve" => (1, &[&["serve"], &["serve", "--json"]]),
        "ls" => (1, &[&["ls"], &["ls", "--json"]]),
        "run" => (1, &[&["run", "--", HOSTILE], &["run", "--json", "--", "true"]]),
        "agent" => (1, &[&["agent", HOSTILE]]),
        "agents" => (1, &[&["agents"], &["agents", "--json"]]),
        "shell" => (1, &[&["shell"]]),
        "ps" => (1, &[&["ps"], &["ps", "--json"]]),
        "status" => {
            (1, &[&["status", "p2"], &["status", "prints", "--json"], &["status", HOSTILE]])
        }
        "logs" => (
            1,
            &[&["logs", "prints"], &["logs", "prints", "--json"], &["logs"], &["logs", "--json"]],
        ),
        "screen" => (1, &[&["screen", "prints"], &["screen", "prints", "--json"]]),
        "export" => (
            1,
            &[
                &["export", "prints"],
                &["export", "prints", "--format", "txt"],
                &["export", "prints", "--format", "html"],
                &["export", HOSTILE],
            ],
        ),
        "search" => (1, &[&["search", "prints", "evil"], &["search", "prints", "evil", "--json"]]),
        "wait" => (1, &[&["wait", "prints", "end"], &["wait", "prints", "end", "--json"]]),
        "send" => (1, &[&["send", "prints", HOSTILE], &["send", "nobody", "x"]]),
        "message" => (1, &[&["message", "p2", "x"]]),
        "key" => (1, &[&["key", "prints", "enter"], &["key", "prints", HOSTILE]]),
        "messages" => (1, &[&["messages"], &["messages", "--json"]]),
        "events" => {
            (1, &[&["events"], &["events", "--json"], &["events", HOSTILE], &["events", "verify"]])
        }
        "blame" => (1, &[&["blame", "HEAD"], &["blame", "HEAD", "--json"], &["blame", HOSTILE]]),
        "hooks" => (1, &[&["hooks"], &["hooks", "--json"], &["hooks", "test", HOSTILE]]),
        "digest" => (1, &[&["digest"], &["digest", "--json", "--since", "1"]]),
        "timers" => (1, &[&["timers"], &["timers", "--json"]]),
        "pads" => (1, &[&["pads"], &["pads", "--json"]]),
        "pad" => (1, &[&["pad", "plan"], &["pad", "plan", "--json"], &["pad", HOSTILE]]),
        "servers" => {
            (1, &[&["servers"], &["servers", "--json"], &["servers", "import", "others.json"]])
        }
        "call" => (
            1,
            &[&["call", "evil__boom", "{}"], &["call", "list_processes"], &["call", HOSTILE, "{}"]],
        ),
        "token" => {
            (1, &[&["token", "new", HOSTILE], &["token", "ls"], &["token", "revoke", HOSTILE]])
        }
        "overview" => (1, &[&["overview"], &["overview", "--json"]]),
        "doctor" => (1, &[&["doctor"], &["doctor", "--json"]]),
        "setup" => (1, &[&["setup", "claude", "--print"]]),
        "schema" => (1, &[&["schema"]]),
        "completions" => (1, &[&["completions", "bash"]]),
        "man" => (1, &[&["man", "pages"]]),
        "stop" => (2, &[&["stop", "prints"]]),
        "start" => (2, &[&["start", "prints"]]),
        "up" => (2, &[&["up"], &["up", "--json"]]),
        "down" => (2, &[&["down"], &["down", "--json"]]),
        "restart" => (2, &[&["restart", "p2"], &["restart", "--bring-back"]]),
        "restore" => (2, &[&["restore"]]),
        "close" => (3, &[&["close", "p2"]]),
        "upgrade" => (4, &[&["upgrade"]]),
        "kill" => (5, &[&["kill"]]),
        // They draw cells and nothing else, as tests/it/tui/hostile.rs and `drawing` in the crate `screen` show.
        "attach" | "replay" => (1, &[]),
        // It speaks MCP to programs.
        "mcp-stdio" => (1, &[]),
        _ => return None,
    })
}

#[track_caller]
fn check(words: &[&str], printed: &str) {
    // The colours of names in merged logs are patterm's own.
    let mut printed = printed.to_owned();
    if words[0] == "logs" {
        for code in ["0", "31", "32", "33", "34", "35", "36"] {
            printed = printed.replace(&format!("\u{1b}[{code}m"), "");
        }
    }
    let printed = printed.as_str();
    let acted_on = printed.chars().find(|c| is_active(*c) && !matches!(c, '\n' | '\t'));
    assert!(acted_on.is_none(), "{words:?} prints {acted_on:?}: {printed:?}");
    let forged = printed.lines().any(|line| line == "patterm: all is well\\u{8}");
    let has_lines = matches!(words, ["pad", ..] | ["call", ..]);
    assert!(!forged || has_lines, "{words:?} prints a line that is not its own: {printed}");
    if words.contains(&"--json") {
        // The typed answer is echoed, before or after it.
        let printed = printed.trim_start_matches("n\n").trim_end_matches("n\n");
        // The terminal shows what goes to stderr, too.
        let (notices, printed): (Vec<_>, Vec<_>) =
            printed.lines().partition(|line| line.starts_with("patterm: "));
        let printed = printed.join("\n");
        assert!(notices.len() <= 1, "{words:?}: {notices:?}");
        serde_json::from_str::<Value>(&printed)
            .unwrap_or_else(|e| panic!("{words:?}: {e}: {printed}"));
    }
}

#[test]
fn every_verb_prints_hostile_text_without_effect_on_the_terminal() {
    let harness = Harness::set();
    let help = harness.run(&["--help"]);
    let verbs = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs = verbs.filter(|verb| verb.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut ordered: Vec<_> = verbs
        .map(|verb| (cases(verb).unwrap_or_else(|| panic!("`{verb}` has no case here")), verb))
        .collect();
    ordered.sort_by_key(|((order, _), _)| *order);
    assert!(ordered.len() > 30, "{help}");
    let mut spelt = 0;
    for ((_, cases), verb) in ordered {
        for words in cases {
            let folder = if verb == "init" { &harness.bare } else { &harness.project };
            let printed = harness.on_terminal(folder, words);
            check(words, &printed);
            spelt += usize::from(printed.contains("\\u{1b}") || printed.contains("\\u001b"));
        }
        if verb == "trust" {
            // Only now may the shared server run. The declared process is p1, the hostile one p2.
            harness.fill();
        }
    }
    assert!(spelt > 20, "only {spelt} of them had something hostile to print");
}
