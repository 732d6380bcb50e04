//! The screen against `@xterm/headless` as a reference: recorded programs, small cases and generated
//! streams. Each accepted difference is named, with its reason, in
//! `crates/screen/tests/xterm/accepted.txt`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use patterm_screen::{Screen, Size};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One thing that happens to a terminal.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Step {
    Text(String),
    Resize { rows: u16, columns: u16 },
}

#[derive(Debug, Clone)]
struct Case {
    name: String,
    size: Size,
    steps: Vec<Step>,
}

/// What can be seen of a terminal.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct State {
    rows: Vec<String>,
    wraps: Vec<bool>,
    history: Vec<String>,
    cursor: (u16, u16),
    alternate: bool,
    modes: [bool; 4],
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/screen/tests")
}

fn ours(case: &Case) -> State {
    let mut screen = Screen::new(case.size);
    for step in &case.steps {
        match step {
            Step::Text(text) => screen.feed(text.as_bytes()),
            Step::Resize { rows, columns } => {
                screen.resize(Size { rows: *rows, columns: *columns });
            }
        }
    }
    let (modes, columns) = (screen.modes(), screen.size().columns);
    let trimmed = |text: &str| text.trim_end().to_owned();
    let history = match modes.alternate_screen {
        true => Vec::new(),
        false => screen.history().styled(columns, 0, 100_000),
    };
    State {
        rows: screen.rows().iter().map(|row| trimmed(row)).collect(),
        wraps: (0..screen.size().rows).map(|row| screen.wraps(row)).collect(),
        history: history.iter().map(|row| trimmed(&row.text())).collect(),
        cursor: (screen.cursor().row, screen.cursor().column),
        alternate: modes.alternate_screen,
        modes: [modes.application_cursor, modes.bracketed_paste, modes.insert, modes.origin],
    }
}

#[expect(clippy::disallowed_methods, reason = "the reference is a Node program")]
fn reference(cases: &[Case]) -> Vec<State> {
    let install = Command::new(folder().join("xterm/install")).output().unwrap();
    assert!(install.status.success(), "{}", String::from_utf8_lossy(&install.stderr));
    let installed = String::from_utf8(install.stdout).unwrap();
    let mut node = Command::new("node")
        .arg(folder().join("xterm/grids.mjs"))
        .arg(installed.trim())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let Size { rows, columns } = case.size;
            json!({ "rows": rows, "columns": columns, "steps": case.steps }).to_string()
        })
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What differs, in words; nothing if nothing does.
fn difference(ours: &State, theirs: &State) -> Option<String> {
    let mut text = Vec::new();
    for (row, (ours, theirs)) in ours.rows.iter().zip(&theirs.rows).enumerate() {
        if ours != theirs {
            text.push(format!("row {row}: {ours:?}, xterm {theirs:?}"));
        }
    }
    if ours.history != theirs.history {
        text.push(format!("history {:?}, xterm {:?}", ours.history, theirs.history));
    }
    let rest = |state: &State| {
        let (cursor, wraps) = (state.cursor, &state.wraps);
        format!("cursor {cursor:?} wraps {wraps:?} {} {:?}", state.alternate, state.modes)
    };
    if rest(ours) != rest(theirs) {
        text.push(format!("{}, xterm {}", rest(ours), rest(theirs)));
    }
    (!text.is_empty()).then(|| text.join("\n  "))
}

/// Names of accepted differences, each with its reason.
fn accepted() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("xterm/accepted.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(": ").expect("name: reason");
            assert!(reason.len() >= "see su".len(), "{name} has no reason");
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}

/// Leaves out what differs as soon as rows that wrapped are edited: we keep the mark at the end of
/// the row that wraps, xterm.js at the beginning of the next, so a history cut anew from whole lines
/// has its rows elsewhere.
fn loosely(mut state: State) -> State {
    state.wraps.clear();
    state.history = vec![state.history.concat().replace(' ', "")];
    state
}

#[track_caller]
fn check(cases: &[Case]) {
    check_as(cases, |state| state);
}

#[track_caller]
fn check_as(cases: &[Case], view: fn(State) -> State) {
    let accepted = accepted();
    let mut wrong = Vec::new();
    let theirs = reference(cases);
    assert_eq!(theirs.len(), cases.len());
    for (case, theirs) in cases.iter().zip(theirs) {
        let name = case.name.as_str();
        match (difference(&view(ours(case)), &view(theirs)), accepted.contains_key(name)) {
            (Some(difference), false) => {
                wrong.push(format!("{name} {:?}\n  {difference}", case.steps));
            }
            (None, true) => wrong.push(format!("{name} is accepted but does not differ any more")),
            _ => {}
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} of {}:\n{}", cases.len(), wrong.join("\n"));
}

#[test]
fn recorded_programs() {
    /// Places in each recording where the screens are compared.
    const CHECKPOINTS: usize = 12;
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder().join("recordings")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "bytes") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text: Vec<char> =
            String::from_utf8_lossy(&std::fs::read(&path).unwrap()).chars().collect();
        for checkpoint in 1..=CHECKPOINTS {
            let end = text.len() * checkpoint / CHECKPOINTS;
            cases.push(Case {
                name: format!("{name}-{checkpoint}"),
                size: Size::DEFAULT,
                steps: vec![Step::Text(text[..end].iter().collect())],
            });
        }
    }
    check(&cases);
}

#[test]
fn small_cases() {
    let size = Size { rows: 6, columns: 12 };
    let file = std::fs::read_to_string(folder().join("xterm/cases.txt")).unwrap();
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases: Vec<_> = lines
        .map(|line| {
            let (name, steps) = line.split_once(": ").expect("name: text");
            let step = |text: &str| match text.split_once('x').map(|(a, b)| (a.parse(), b.parse()))
            {
                Some((Ok(rows), Ok(columns))) => Step::Resize { rows, columns },
                _ => Step::Text(unescaped(text)),
            };
            Case { name: name.to_owned(), size, steps: steps.split(" => ").map(step).collect() }
        })
        .collect();
    assert!(cases.len() > 150, "{}", cases.len());
    check(&cases);
    for name in accepted().keys() {
        assert!(cases.iter().any(|case| case.name == *name), "{name} is no case");
    }
}

/// `\e`, `\r`, `\n`, `\t`, `\b`, `\s` (blank), `\xNN`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('e') => '\x1b',
            Some('r') => '\r',
            Some('n') => '\n',
            Some('t') => '\t',
            Some('b') => '\x08',
            Some('s') => ' ',
            Some('x') => {
                let digits: String = characters.by_ref().take(2).collect();
                char::from(u8::from_str_radix(&digits, 16).unwrap())
            }
            other => panic!("unknown escape {other:?} in {text}"),
        });
    }
    out
}

/// A small generator, so that a failing stream has a number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }
}

/// Text and sequences that both terminals take the same way; what they do not is in the small cases.
fn stream(seed: u64) -> String {
    const TEXT: [&str; 14] = [
        "abc",
        "hello world",
        "0123456789abcdef",
        "x",
        "  ",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "é",
        "漢字",
        "あいう",
        "\x08",
    ];
    const FIXED: [&str; 14] = [
        "\x1b[m",
        "\x1b[1;31m",
        "\x1b[48;5;20m",
        "\r\x1b7\x1b[3;3Hzz\x1b8",
        "\x1bD",
        "\x1bM",
        "\x1bE",
        "\x1b[r",
        "\x1b[2;5r",
        "\x1b(0",
        "\x1b(B",
        "\x1b[?25l",
        "\x1b]2;title\x07",
        "\x1b[?2004h",
    ];
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut out = String::new();
    let mut alternate = false;
    for _ in 0..60 {
        match dice.roll(10) {
            5 if dice.roll(8) == 0 => {
                alternate = !alternate;
                out.push_str(if alternate { "\r\x1b[?1049h" } else { "\x1b[?1049l" });
            }
            0..=4 => out.push_str(dice.pick(&TEXT)),
            5 => out.push_str(dice.pick(&FIXED)),
            _ => {
                let last = dice.pick(&[
                    "A", "B", "C", "D", "E", "F", "G", "H", "d", "J", "K", "L", "M", "P", "X", "@",
                    "T", "I", "Z",
                ]);
                // Where the cursor stands behind the last column is a difference of its own.
                out.push('\r');
                let count = dice.roll(5);
                match last {
                    "H" => out.push_str(&format!("\x1b[{};{}H", dice.roll(8), dice.roll(14))),
                    "J" | "K" => out.push_str(&format!("\x1b[{}{last}", dice.roll(2))),
                    _ => out.push_str(&format!("\x1b[{}G\x1b[{count}{last}", dice.roll(11))),
                }
            }
        }
    }
    out
}

#[test]
fn generated_streams() {
    let long = std::env::var_os("PATTERM_LONG").is_some();
    let count = if long { 20_000 } else { 500 };
    let cases: Vec<_> = (0..count)
        .map(|seed| Case {
            name: format!("stream-{seed}"),
            size: Size { rows: 6, columns: 12 },
            steps: vec![Step::Text(stream(seed))],
        })
        .collect();
    check_as(&cases, loosely);
}
