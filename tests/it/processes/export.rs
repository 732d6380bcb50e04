//! `patterm export`: what a process has shown, again.

use std::process::Output;

use patterm_screen::{Screen, Size, Style, StyledRow};
use serde_json::{Value, json};

use super::survival::{desk_of, server};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};
use crate::view::View;

/// Prints all kinds of things, some of them in pieces, and then a line for each line it gets.
const PRINTER: &str = r"stty -echo
    printf '\033]0;its-title\007\033]52;c;c2VjcmV0\007\033[?2004h'
    printf '\033[1;31mred\033[0m \346\274'; sleep 0.2; printf '\242\345\255\227 \377\376 <b>&\n'
    printf '\033]8;;https://example.org/\033\\web\033]8;;\033\\ \033]8;;file:///etc/passwd\033\\local\033]8;;\033\\\n'
    seq -f 'line %.0f of some length, so that a narrow terminal has to wrap it' 1 300
    echo ready
    while read line; do printf '\033[%dm%s\033[m\n' $((31 + ${#line} % 6)) $line; done";

fn output(place: &Place, arguments: &[&str]) -> Output {
    place.patterm(arguments).output().unwrap()
}

fn error(place: &Place, arguments: &[&str]) -> String {
    let output = output(place, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// What a screen shows, apart from where it wraps.
fn shown(screen: &Screen) -> (Vec<StyledRow>, (u16, u16, bool)) {
    let rows = (0..screen.size().rows).map(|row| {
        let mut row = screen.styled_row(row);
        row.wraps = false;
        // The links that are not exported.
        row.spans.iter_mut().for_each(|span| {
            span.style.link = span.style.link.take().filter(|link| link.starts_with("http"));
        });
        // Plain blanks at the end of a row that wraps look like no blanks.
        if let Some(last) = row.spans.last_mut().filter(|span| span.style == Style::default()) {
            last.text.truncate(last.text.trim_end().len());
        }
        row.spans.retain(|span| !span.text.is_empty());
        row
    });
    let cursor = screen.cursor();
    (rows.collect(), (cursor.row, cursor.column, cursor.visible))
}

fn size_of(text: &str) -> Size {
    let (columns, rows) = text.split_once('x').unwrap();
    Size::new(rows.parse().unwrap(), columns.parse().unwrap())
}

/// The screen at the end of a recording, and the times of its events.
fn play(cast: &str) -> (Screen, Vec<f64>) {
    let mut lines = cast.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    assert_eq!(header["version"], 2);
    let number = |name: &str| u16::try_from(header[name].as_u64().unwrap()).unwrap();
    let mut screen = Screen::new(Size::new(number("height"), number("width")));
    let mut times = Vec::new();
    for event in lines {
        let data = event[2].as_str().unwrap();
        match event[1].as_str().unwrap() {
            "r" => screen.resize(size_of(data)),
            kind => {
                assert_eq!(kind, "o");
                screen.feed(data.as_bytes());
            }
        }
        times.push(event[0].as_f64().unwrap());
    }
    (screen, times)
}

fn start(place: &Place) -> (ToolClient, String) {
    let (mut tools, _) = desk_of(place);
    let id = tools.sh(PRINTER);
    tools.wait(&id, "ready");
    (tools, id)
}

#[test]
fn a_recording_ends_with_the_screen_that_the_process_shows() {
    let place = Place::new();
    let (mut tools, id) = start(&place);
    let mut view = View::attach_at(&server(&place).socket, &id, 12, 40);
    for (turn, (rows, columns)) in [(12, 40), (30, 100), (8, 33)].into_iter().enumerate() {
        drop(view);
        view = View::attach_at(&server(&place).socket, &id, rows, columns);
        view.until(|view| view.screen.size() == Size::new(rows, columns) && view.shows("ready"));
        tools.line(&id, &format!("turn-{turn}"));
        view.until(|view| view.shows(&format!("turn-{turn}")));
        let file = place.path(&format!("{turn}.cast"));
        let to = file.to_str().unwrap();
        place.run(&["export", &id, "-o", to]);
        let cast = std::fs::read_to_string(&file).unwrap();
        let (screen, times) = play(&cast);
        assert_eq!(screen.size(), view.screen.size());
        assert_eq!(shown(&screen), shown(&view.screen), "turn {turn}");
        assert!(times.is_sorted() && times.last().is_some_and(|last| *last >= 0.15), "{times:?}");
        for never in ["its-title", "]52;", "c2VjcmV0", "2004", "file:"] {
            assert!(!cast.contains(never), "{never}");
        }
        // Without a server it is the same.
        if turn == 2 {
            let header: Value = serde_json::from_str(cast.lines().next().unwrap()).unwrap();
            assert!(header.get("env").is_none());
            drop(view);
            place.run(&["kill"]);
            assert_eq!(play(&place.run(&["export", &id])).0.rows(), screen.rows());
            return;
        }
    }
}

#[test]
fn text_and_page_have_all_lines_once() {
    let place = Place::new();
    let (mut tools, id) = start(&place);
    let text = place.run(&["export", &id, "--format", "txt"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "red \u{6f22}\u{5b57} \u{fffd}\u{fffd} <b>&");
    assert_eq!(lines[1], "web local");
    let numbered = (1..=300)
        .map(|n| format!("line {n} of some length, so that a narrow terminal has to wrap it"));
    assert_eq!(lines[2..302], numbered.collect::<Vec<_>>());
    assert_eq!(lines[302..], ["ready"]);
    let page = place.path("page.html");
    place.run(&["export", &id, "--output", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>") && !page.contains("<script"));
    assert!(page.contains("href=\"https://example.org/\"") && !page.contains("file:"));
    assert!(page.contains("line 300 of some") && page.ends_with("ready\n</pre>\n</html>\n"));
    // A part of it: what was on the screen then, and what followed.
    let middle = tools.status(&id)["output_offset"].as_u64().unwrap();
    tools.line(&id, "later");
    tools.wait(&id, "later");
    let part = place.run(&["export", &id, "--format", "txt", "--from", &middle.to_string()]);
    assert!(part.ends_with("\nready\nlater\n") && !part.contains("line 1 of"), "{part}");
    let part = place.run(&["export", &id, "--format", "txt", "--to", &middle.to_string()]);
    assert_eq!(part, text);
}

#[test]
fn what_cannot_be_exported_is_said_and_files_are_kept() {
    let place = Place::new();
    let (mut tools, id) = start(&place);
    let end = tools.status(&id)["output_offset"].as_u64().unwrap();
    let file = place.path("kept.txt");
    std::fs::write(&file, "mine").unwrap();
    let kept = file.to_str().unwrap();
    let silent = tools.sh("exec cat");
    let beyond = (end + 1).to_string();
    let missing = place.path("no/folder.txt");
    for (arguments, reason) in [
        (&["export", "nobody"][..], "nobody"),
        (&["export", &silent], "has printed nothing yet"),
        (&["export", &id, "-o", kept], "exists already; --force replaces it"),
        (&["export", &id, "-o", missing.to_str().unwrap()], "cannot write"),
        (&["export", &id, "--from", &beyond], "but the output ends at"),
        (&["export", &id, "--from", "2001-02-03"], "is before its first output, at 20"),
        (&["export", &id, "--from", &end.to_string(), "--to", "3"], "which is before `from`"),
    ] {
        let error = error(&place, arguments);
        assert!(error.contains(reason), "{arguments:?}: {error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
    assert!(error(&place, &["replay", &id]).contains("not a terminal"));
    place.run(&["export", &id, "-o", kept, "--force"]);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("red "));
    if std::path::Path::new("/dev/full").exists() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.patterm(&["export", &id]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
    }
}

#[test]
fn a_log_without_its_beginning_is_exported_from_where_it_begins() {
    let mut place = Place::new();
    place.set("PATTERM_LIMITS", "log_bytes=4000000");
    let (mut tools, _) = desk_of(&place);
    let id =
        tools.sh("seq -f 'line %.0f, of a program that prints a lot of them' 1 120000; exec cat");
    tools.wait(&id, "^line 120000,");
    until("dropped output", || {
        let logs = tools.ok("get_process_raw_output", json!({"process_id": id, "max_bytes": 10}));
        logs["dropped"].as_u64().filter(|dropped| *dropped > 0)
    });
    let output = output(&place, &["export", &id, "--format", "txt"]);
    let (text, warning) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(warning.contains("of its output are gone") && warning.contains(" at 20"), "{warning}");
    let numbers: Vec<u32> = text
        .lines()
        .map(|line| line.split(&[' ', ','][..]).nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(numbers.len() > 10_000 && numbers.is_sorted() && numbers.last() == Some(&120_000));
    assert_eq!(
        numbers[numbers.len() - 1] - numbers[0],
        numbers.len() as u32 - 1,
        "no line is lost"
    );
    let gone = error(&place, &["export", &id, "--from", "0"]);
    assert!(gone.contains("its first screen is that at offset"), "{gone}");
}
