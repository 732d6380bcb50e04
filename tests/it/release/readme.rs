//! Every command of the README, typed by a new user on a small Debian. A command that is not in the
//! table below fails the test: add its case here.

use super::harness::{Harness, repository};

/// How a command is tried.
#[derive(Debug, Clone, Copy)]
enum Case {
    /// It succeeds and prints what the README shows, or these words.
    Does(&'static str),
    /// It fails with these words.
    Fails(&'static str),
    /// On a terminal, it succeeds once this is typed.
    Asks(&'static str),
    /// Given this on standard input, it prints these words.
    Given(&'static str, &'static str),
    /// It cannot be run here; this test covers it.
    Elsewhere(&'static str),
}

use Case::{Asks, Does, Elsewhere, Fails, Given};

/// In the order in which they are tried.
const CASES: &[(&str, Case)] = &[
    ("cargo run --release", Elsewhere("the same binary, and `patterm` below")),
    ("cargo install --path crates/cli", Elsewhere("builds what the tests build")),
    ("scripts/test", Elsewhere("runs this test")),
    ("scripts/test --quick", Elsewhere("a part of scripts/test")),
    ("scripts/package", Elsewhere("harness::package")),
    (
        concat!("sudo apt install ./patterm_", env!("CARGO_PKG_VERSION"), "_amd64.deb"),
        Does("Setting up patterm"),
    ),
    ("patterm run --name dev -- npm run dev", Does("")),
    ("patterm wait dev 'ready in'", Does("")),
    (r#"patterm call get_process_ports '{"process_id": "p1"}' | jq -c '.ports[0]'"#, Does("")),
    (r#"kill -9 "$(patterm ls --json | jq '.[0].pid')""#, Does("")),
    ("patterm ps", Does("")),
    ("patterm setup claude", Asks("y")),
    ("patterm serve --http 127.0.0.1:7717", Does("http://127.0.0.1:7717/mcp")),
    ("patterm token new laptop", Does("patterm_")),
    ("patterm", Asks("\u{2}d")),
    ("patterm agents", Does("`claude` was not found on PATH")),
    (
        "patterm agent claude \"fix the failing test\"",
        Fails("Claude Code cannot be started: `claude` was not found on PATH"),
    ),
    ("patterm call get_project_status", Does("\"project_file\"")),
    ("patterm init", Does("patterm.toml")),
    ("patterm trust", Asks("y")),
    ("patterm servers import", Does("clock: patterm.toml already has a server of this name")),
    ("patterm servers", Does("asleep")),
    ("patterm mcp-stdio", Given(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, r#""id":7"#)),
    ("patterm upgrade", Does("everything keeps running")),
    ("patterm kill", Does("ended the server")),
    ("PATTERM_LOG=debug patterm serve", Does("serving")),
    ("patterm restore", Does("dev started again")),
    ("PATTERM_LIMITS=processes=50,waiters=10 patterm serve", Does("serving")),
    (
        "systemctl --user enable --now \
         \"$(systemd-escape --path --template=patterm@.service ~/project)\"",
        Does("Created symlink"),
    ),
    ("systemctl --user stop", Elsewhere("unit")),
    ("patterm run", Elsewhere("processes::environment")),
    ("patterm shell", Elsewhere("processes::environment")),
    ("patterm agent", Elsewhere("agents")),
    ("patterm start", Elsewhere("processes::declared::up")),
    ("patterm up", Elsewhere("processes::declared::up")),
    ("patterm restart ID --env-from-here", Elsewhere("processes::environment")),
    ("patterm agent claude \"fix the failing test\"", Elsewhere("agents")),
    ("patterm events", Does("")),
    ("patterm events --since 2h --type 'agent.*,message.*'", Does("")),
    ("patterm events -f p3", Elsewhere("events::reading")),
    ("patterm events verify", Does("; nothing is damaged")),
    ("patterm blame HEAD", Elsewhere("events::blame")),
    ("patterm doctor", Elsewhere("set_up::doctor")),
    ("patterm up --wait", Elsewhere("processes::declared")),
    ("patterm hooks", Does("no hooks")),
    ("patterm hooks test phone", Elsewhere("hooks::rights")),
    ("patterm digest", Does("Since ")),
    ("patterm digest --since 2h", Does("Since ")),
    ("patterm replay web --from 09:12 --speed 8", Elsewhere("tui::replay")),
    ("patterm export web -o demo.cast", Elsewhere("processes::export")),
    ("patterm export web --from 10m -o web.html", Elsewhere("processes::export")),
    ("patterm status", Elsewhere("processes::declared")),
    ("patterm stop", Elsewhere("processes::declared")),
    ("patterm stop --signal", Elsewhere("processes::declared")),
    ("patterm kill --grace", Elsewhere("lifecycle")),
    ("loginctl enable-linger", Elsewhere("needs a machine that systemd started")),
    (
        concat!(
            "sudo tar -C /usr/local --strip-components=1 -xzf patterm-",
            env!("CARGO_PKG_VERSION"),
            "-x86_64-unknown-linux-musl.tar.gz"
        ),
        Does(""),
    ),
];

/// A command of the README, and what it is shown to print.
#[derive(Debug, Default)]
struct Shown {
    command: String,
    prints: Vec<String>,
}

/// The commands of blocks for shells, with what the README shows beneath them.
fn in_blocks(readme: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut block = "";
    for line in readme.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            block = kind;
            continue;
        }
        let command = match block {
            "sh" => line.split("  #").next(),
            "console" => line.strip_prefix("$ "),
            _ => continue,
        };
        match command {
            Some(command) => all.push(Shown { command: command.trim().into(), prints: vec![] }),
            None => all.last_mut().unwrap().prints.push(line.into()),
        }
    }
    all.retain(|shown| !shown.command.is_empty());
    all
}

/// The commands within sentences. The table of verbs lists what exists, and so do the tables for users of other
/// programs; `set_up::verbs` tests that.
fn in_sentences(readme: &str) -> Vec<Shown> {
    let outside = readme.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    let sections = outside.split("\n### ").filter(|section| !section.starts_with("From "));
    let outside = sections.collect::<Vec<_>>().join("\n");
    let mut lines = outside.lines().filter(|line| !line.starts_with("| `patterm"));
    let text = lines.by_ref().collect::<Vec<_>>().join(" ");
    let spans = text.split('`').skip(1).step_by(2);
    let starts = ["patterm ", "cargo ", "scripts/", "systemctl ", "loginctl ", "kill ", "sudo "];
    let is_command = |span: &&str| {
        let word = span.split(' ').find(|word| !word.contains('=')).unwrap_or_default();
        let rest = span.split_at(span.find(word).unwrap_or(0)).1;
        rest == "patterm" || starts.iter().any(|start| rest.starts_with(start))
    };
    let shown = |span: &str| Shown { command: span.to_owned(), prints: vec![] };
    spans.filter(is_command).map(shown).collect()
}

/// The text without parts that differ between runs: no numbers, no blanks, and a program that was
/// just started may still be working or already idle.
fn shape(line: &str) -> String {
    let line = line.replace("working", "idle");
    let words: Vec<_> = line.split_whitespace().collect();
    let mut shape = String::new();
    for character in words.join(" ").chars() {
        match character.is_ascii_digit() {
            true if shape.ends_with('0') => {}
            true => shape.push('0'),
            false => shape.push(character),
        }
    }
    shape
}

fn try_it(harness: &mut Harness, command: &str, case: Case, prints: &[String]) {
    let (said, code, words) = match case {
        Elsewhere(by) => return assert!(!by.is_empty(), "{command}: who tries it?"),
        Does(words) => (harness.says(command), 0, words),
        Fails(words) => (harness.says(command), 1, words),
        Asks(typed) => (harness.answers(command, typed), 0, ""),
        Given(input, words) => (harness.says(&format!("{command} <<<'{input}'")), 0, words),
    };
    assert_eq!(said.code, code, "{command}: {}", said.text);
    assert!(said.text.contains(words), "{command}: {}", said.text);
    if !prints.is_empty() {
        let expected: Vec<_> = prints.iter().map(|line| shape(line)).collect();
        let printed: Vec<_> = said.text.lines().map(shape).collect();
        assert_eq!(printed, expected, "{command}");
    }
}

#[test]
fn every_command_in_the_readme_works_as_described() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let mut shown = in_blocks(&readme);
    shown.extend(in_sentences(&readme));
    assert!(shown.len() > 25, "{shown:?}");
    for Shown { command, .. } in &shown {
        assert!(CASES.iter().any(|(case, _)| case == command), "no case for: {command}");
    }
    let mut harness = Harness::new(&["deb", "static"]);
    harness.begin_manager();
    harness.does(r#"echo '{"mcpServers": {"clock": {"command": "clock-mcp"}}}' >.mcp.json"#);
    for (command, case) in CASES {
        let shown = shown.iter().find(|shown| shown.command == *command);
        let shown = shown.unwrap_or_else(|| panic!("the README has no more: {command}"));
        try_it(&mut harness, command, *case, &shown.prints);
    }
}
