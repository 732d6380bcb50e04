//! The screen against `@xterm/headless` as a reference: text, widths, styles, links and cursor of recorded programs,
//! small cases, generated streams, and texts through resizes. Each accepted difference is named, with its reason, in
//! `crates/screen/tests/xterm/accepted.txt`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use patterm_screen::{Attributes, Colour, Screen, Size, clusters};
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

/// A cell: text, width, foreground, background, colour of the underline, attributes, link.
type Cell = (String, usize, String, String, Option<String>, u16, Option<String>);

/// The visible state of a terminal.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct State {
    rows: Vec<String>,
    cells: Vec<Vec<Cell>>,
    wraps: Vec<bool>,
    history: Vec<String>,
    cursor: (u16, u16),
    alternate: bool,
    modes: [bool; 4],
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/screen/tests")
}

fn colour(colour: Colour) -> String {
    match colour {
        Colour::Default => "d".to_owned(),
        Colour::Indexed(index) => format!("p{index}"),
        Colour::Rgb(r, g, b) => format!("r{r},{g},{b}"),
    }
}

fn cells(screen: &Screen, row: u16) -> Vec<Cell> {
    let mut cells = Vec::new();
    for span in &screen.styled_row(row).spans {
        let style = &span.style;
        for (text, width) in clusters(&span.text) {
            cells.push((
                text.to_owned(),
                width,
                colour(style.foreground),
                colour(style.background),
                style.underline.map(colour),
                style.attributes.bits(),
                style.link.as_deref().map(str::to_owned),
            ));
        }
    }
    cells
}

/// Leaves out what nobody can see: the foreground and weight of a blank, the colour of an underline that is not there,
/// blanks at the end of a row.
fn visible(mut cells: Vec<Cell>) -> Vec<Cell> {
    let underlines = Attributes::UNDERLINE
        | Attributes::DOUBLE_UNDERLINE
        | Attributes::CURLY_UNDERLINE
        | Attributes::DOTTED_UNDERLINE
        | Attributes::DASHED_UNDERLINE;
    let lines = underlines | Attributes::STRIKEOUT | Attributes::OVERLINE | Attributes::INVERSE;
    for (text, _, foreground, background, underline, attributes, link) in &mut cells {
        if *attributes & underlines.bits() == 0 || *underline == Some("d".to_owned()) {
            *underline = None;
        }
        // xterm.js shows a link as underlined, whatever the kind of its underline.
        if link.is_some() && *attributes & underlines.bits() != 0 {
            *attributes = *attributes & !underlines.bits() | Attributes::UNDERLINE.bits();
        }
        if text == " " {
            *attributes &= lines.bits();
            if *attributes == 0 {
                *foreground = "d".to_owned();
                // A link on a blank that shows nothing.
                if background == "d" {
                    *link = None;
                }
            }
        }
    }
    let blank = (" ".to_owned(), 1, "d".to_owned(), "d".to_owned(), None, 0, None);
    let end = cells.iter().rposition(|cell| *cell != blank).map_or(0, |last| last + 1);
    cells.truncate(end);
    cells
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
        cells: (0..screen.size().rows).map(|row| cells(&screen, row)).collect(),
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

/// The differences as text; empty if there are none.
fn difference(ours: &State, theirs: &State) -> Option<String> {
    let mut text = Vec::new();
    for (row, (ours, theirs)) in ours.rows.iter().zip(&theirs.rows).enumerate() {
        if ours != theirs {
            text.push(format!("row {row}: {ours:?}, xterm {theirs:?}"));
        }
    }
    for (row, (ours, theirs)) in ours.cells.iter().zip(&theirs.cells).enumerate() {
        let (mut ours, theirs) = (visible(ours.clone()), visible(theirs.clone()));
        for (ours, theirs) in ours.iter_mut().zip(&theirs) {
            if ours.6.is_some() && theirs.6.as_deref() == Some("?") {
                ours.6 = Some("?".to_owned());
            }
        }
        let differs = |column: &usize| ours.get(*column) != theirs.get(*column);
        if let Some(at) = (0..ours.len().max(theirs.len())).find(differs) {
            let (ours, theirs) = (ours.get(at), theirs.get(at));
            text.push(format!("row {row} cell {at}: {ours:?}, xterm {theirs:?}"));
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

/// Ignores differences that arise when wrapped rows are edited: we keep the mark at the end of the
/// row that wraps, xterm.js at the beginning of the next, so a history that is re-wrapped from
/// whole lines has its rows elsewhere.
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
    /// Positions in each recording at which the screens are compared.
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

/// Text and sequences that both terminals interpret alike; the others are in the small cases. Wide text and styles are
/// in different streams: half of a character that was cut is a blank in the style of that character here, and in the
/// current style in xterm.js.
fn stream(seed: u64) -> String {
    let is_styled = seed % 2 == 1;
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
    const FIXED: [&str; 26] = [
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
        "\x1b[2;3;9m",
        "\x1b[4:3;58:2::9:8:7m",
        "\x1b[4:5;58;5;9m",
        "\x1b[21m",
        "\x1b[7;38;2;1;2;3m",
        "\x1b[27;24;59m",
        "\x1b[5;53;95;102m",
        "\x1b[22;23;25;29;55m",
        "\x1b[39;49m",
        "\x1b]8;;http://host/a\x1b\\",
        "\x1b]8;id=x;http://host/b\x07",
        "\x1b]8;;\x1b\\",
    ];
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut out = String::new();
    let mut alternate = false;
    for _ in 0..60 {
        match dice.roll(10) {
            5 if dice.roll(8) == 0 => {
                alternate = !alternate;
                // The saved cursor includes the link and the kind and colour of the underline; not so in xterm.js.
                out.push_str("\x1b[m\x1b]8;;\x07");
                out.push_str(if alternate { "\r\x1b[?1049h" } else { "\x1b[?1049l" });
            }
            0..=4 => match dice.pick(&TEXT) {
                "漢字" | "あいう" if is_styled => out.push('é'),
                text => out.push_str(text),
            },
            5 => match dice.pick(&FIXED) {
                sequence if sequence.ends_with('m') && !is_styled => {}
                sequence => out.push_str(sequence),
            },
            _ => {
                let last = dice.pick(&[
                    "A", "B", "C", "D", "E", "F", "G", "H", "d", "J", "K", "L", "M", "P", "X", "@",
                    "T", "I", "Z",
                ]);
                // Of a wide character that ICH cuts, xterm.js moves one half.
                let last = if last == "@" && !is_styled { "X" } else { last };
                // The cursor position after the last column is a known difference.
                out.push('\r');
                let count = dice.roll(5);
                match last {
                    "H" => out.push_str(&format!("\x1b[{};{}H", dice.roll(8), dice.roll(14))),
                    // xterm.js scrolls down without the background colour.
                    "T" => out.push_str(&format!("\x1b[m\x1b[{count}T")),
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
    let count = if long { 20_000 } else { 600 };
    let cases: Vec<_> = (0..count)
        .map(|seed| Case {
            name: format!("stream-{seed}"),
            size: Size { rows: 6, columns: 12 },
            steps: vec![Step::Text(stream(seed))],
        })
        .collect();
    check_as(&cases, loosely);
}

/// A text through resizes: whole lines, of characters of one and two columns.
fn resized(seed: u64) -> Case {
    const TEXT: [&str; 8] = ["abc ", "hello", "0123456789abcdef", "漢字", "あ", "é", "x", "\r\n"];
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = String::new();
    for _ in 0..1 + dice.roll(25) {
        text.push_str(dice.pick(&TEXT));
    }
    let text = text.trim_end().to_owned();
    let mut size = || Size { rows: 2 + dice.roll(8) as u16, columns: 2 + dice.roll(20) as u16 };
    let first = size();
    let mut steps = vec![Step::Text(text)];
    for _ in 0..3 {
        let Size { rows, columns } = size();
        steps.push(Step::Resize { rows, columns });
    }
    Case { name: format!("resized-{seed}"), size: first, steps }
}

/// The lines of history and screen, which a resize must not change. Where the rows stand is a choice of each terminal:
/// xterm.js keeps blank rows below, and takes rows from above as lines get shorter.
fn as_lines(mut state: State) -> State {
    let rows = state.history.iter().chain(&state.rows);
    state.history = vec![rows.map(|row| row.replace(' ', "")).collect::<String>()];
    (state.rows, state.cells, state.wraps) = (Vec::new(), Vec::new(), Vec::new());
    state.cursor = (0, 0);
    state
}

#[test]
fn texts_through_resizes() {
    let long = std::env::var_os("PATTERM_LONG").is_some();
    let count = if long { 4_000 } else { 500 };
    let cases: Vec<_> = (0..count).map(resized).collect();
    check_as(&cases, as_lines);
}
