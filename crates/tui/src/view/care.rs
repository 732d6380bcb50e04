//! Every view at every size, on every terminal, whatever programs print.

use patterm_screen::{Screen, Size};
use patterm_wire::view::ToView;
use serde_json::json;

use super::view;
use crate::canvas::Canvas;
use crate::paint::{Depth, paint};
use crate::sample::{Sample, project};
use crate::update::{Asked, Event};

/// Every view: how it is reached, and something of it that is of use in 20 columns and 5 rows.
const VIEWS: [(&str, &str); 22] = [
    ("", "lead says hello"),
    ("\x02", "new shell"),
    ("\x02:", "start a shell"),
    ("\x02:zz", "nothing is"),
    ("\x02?", "Everything typed"),
    ("\x02a", "Claude"),
    ("\x02a\r", "what claude is to"),
    ("\x02m", "lead"),
    ("\x02t", "t1"),
    ("\x02s", "there are no"),
    ("\x02P", "no process has"),
    ("\x02x", "close lead"),
    ("\x02X", "stop lead"),
    ("\x02R", "end lead"),
    ("\x02r", "new name: lead"),
    ("\x02[", "lead says hello"),
    ("\x02[/hello", "search: hello"),
    ("\x02[/hello\rV", "lead says hello"),
    ("\x02|", "lead"),
    ("\x02|\x02-\x02z", ""),
    ("\x02b\x02!", "◆ tests"),
    ("\x02b\x02!\r", "tests asks"),
];

/// A view, opened at a size.
fn opened(keys: &str, width: u16, height: u16) -> Sample {
    let mut sample = Sample::new(width, height);
    sample.type_in(keys);
    sample
}

/// Those that a tool's answer opens, or a file.
fn told(width: u16, height: u16) -> Vec<(&'static str, Sample)> {
    let mut pad = Sample::new(width, height);
    let content = json!({"content": "# Plan\n\n| a | b |\n|--|--|\n| some words | 漢字 |\n"});
    pad.happen(Event::Answer(Asked::Pad("plan".to_owned()), Ok(content)));
    let mut fault = Sample::new(width, height);
    fault.happen(Event::Settings(Ok("leader = 1".to_owned())));
    let mut away = Sample::new(width, height);
    away.happen(Event::Lost);
    let first = Sample::empty(width, height);
    let ended = Sample::after_the_end(width, height);
    let mut untrusted = Sample::new(width, height);
    super::tests::untrusted(&mut untrusted);
    vec![
        ("Plan", pad),
        ("tui.toml:1:10", fault),
        ("gone", away),
        ("patterm", first),
        ("[x]", ended),
        ("process db", untrusted),
    ]
}

#[test]
fn every_view_is_of_use_on_the_smallest_terminal_and_on_the_largest() {
    let mut without = Vec::new();
    for (width, height) in [(20, 5), (500, 200)] {
        let typed = VIEWS.iter().map(|(keys, words)| (*words, opened(keys, width, height)));
        for (words, sample) in typed.chain(told(width, height)) {
            let frame = view(&sample.model);
            assert_eq!((frame.width, frame.height), (width, height));
            let text = frame.text();
            if !text.contains(words) {
                without.push(format!("no {words:?} at {width}×{height}:\n{}", text.trim_end()));
            }
        }
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
}

#[test]
fn every_view_lives_through_every_size() {
    let typed = VIEWS.iter().map(|(keys, _)| opened(keys, 80, 24));
    let mut help = opened("\x02?", 80, 24);
    help.happen(Event::Settings(Err("漢字, which is a fault".repeat(9))));
    let told = told(80, 24).into_iter().map(|(_, sample)| sample);
    for mut sample in typed.chain(told).chain([help]) {
        let sizes = (1..=60).map(|n| (n * 4 % 131 + 1, n * 7 % 53 + 1));
        for (width, height) in
            sizes.chain([(1, 1), (2, 2), (3, 9), (4, 4), (5, 30), (61, 3), (7, 60), (500, 200)])
        {
            sample.happen(Event::Resized(width, height));
            let frame = view(&sample.model);
            assert_eq!((frame.width, frame.height), (width, height));
        }
        sample.happen(Event::Snapshot(project()));
        sample.type_in("\x1b[<65;40;3M\x1b[<0;3;3M\x1b[<64;40;3M");
    }
}

/// Bytes that nobody meant, the same every time.
fn garbage(count: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        match seed % 16 {
            0 => bytes.extend(b"\x1b["),
            1 => bytes.extend(b"\x1b]"),
            2 => bytes.extend(b"\x1bP"),
            3 => bytes.extend("漢🙂e\u{301}".bytes()),
            4 => bytes.extend(b"\x1b]8;;https://x\x07"),
            5 => bytes.extend(b";5m"),
            _ => bytes.push((seed >> 32) as u8),
        }
    }
    bytes
}

/// The picture that a terminal shows of what is painted on it.
#[track_caller]
fn check_painted(terminal: &mut Screen, before: Option<&Canvas>, next: &Canvas, depth: Depth) {
    terminal.feed(&paint(before, next, depth));
    assert_eq!(terminal.take_notices(), [], "no bell, no title, no clipboard");
    assert_eq!(terminal.take_replies(), b"", "no question");
    let shown = terminal.rows();
    let shown: Vec<&str> = shown.iter().map(|row| row.trim_end()).collect();
    let text = next.text();
    let drawn: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(shown, drawn);
}

#[test]
fn what_a_program_prints_reaches_the_terminal_as_cells_only() {
    let mut sample = Sample::new(90, 30);
    sample.type_in("\x02|");
    let panes: Vec<_> = sample.model.panes.keys().copied().collect();
    let mut terminal = Screen::new(Size::new(30, 90));
    let mut before: Option<Canvas> = None;
    for round in 1..=200 {
        for pane in &panes {
            let bytes = garbage(4 << 10, round * 2 + u64::from(*pane));
            sample.happen(Event::Frame(*pane, ToView::Output { offset: 0, bytes }));
        }
        let next = view(&sample.model);
        check_painted(&mut terminal, before.as_ref(), &next, Depth::True);
        before = Some(next);
    }
}

#[test]
fn without_colours_none_is_sent_and_everything_is_said() {
    for (keys, words) in VIEWS {
        let mut sample = opened(keys, 80, 24);
        let pane = sample.model.focus;
        let bytes = b"\x1b[31;48;5;200m\x1b[38;2;1;2;3m\x1b[4:3;58:5:9mcoloured".to_vec();
        sample.happen(Event::Frame(pane, ToView::Output { offset: 0, bytes }));
        let frame = view(&sample.model);
        let painted = String::from_utf8(paint(None, &frame, Depth::None)).unwrap();
        for sequence in painted.split("\x1b[").skip(1) {
            let Some((numbers, _)) = sequence.split_once('m') else { continue };
            let is_look = numbers.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
            let coloured = numbers.split(';').any(|number| number.len() > 1 && number != "4:3");
            assert!(!is_look || !coloured, "{numbers:?} in {words}");
        }
    }
}
