//! Every view at every size and colour depth, whatever programs print.

use patterm_screen::{Screen, Size};
use patterm_wire::view::ToView;
use serde_json::json;

use super::view;
use crate::canvas::Canvas;
use crate::paint::{ColourDepth, paint};
use crate::sample::{Sample, others, project};
use crate::update::{CallPurpose, Event};

/// Every view: the keys that open it, and a text that must be visible even with 20 columns and 5 rows.
const VIEWS: [(&str, &str); 37] = [
    ("", "lead says hello"),
    ("\x02", "new page"),
    ("\x02|", "new shell"),
    ("\x02s", "lead"),
    ("\x02|2\r\x02q", "1"),
    ("\x02|2\r\x02!", "1:helper*"),
    ("\x02|2\r\x02!\x02w", "helper"),
    ("\x02|2\r\x02!\x02,", "name of page 1"),
    ("\x02|2\r\x02!\x02&", "close page 1?"),
    ("\x02|2\r\x02!\x02J", "lead"),
    ("\x02:", "start a she"),
    ("\x02:zz", "no matching"),
    ("\x02?", "Keys go to the"),
    ("\x02D", "@ lead"),
    ("\x02DX", "stop lead"),
    ("\x02a", "Claude"),
    ("\x02a\r", "first prompt"),
    ("\x02A", "Claude"),
    ("\x02m", "lead"),
    ("\x02t", "t1"),
    ("\x02S", "no scratchpads"),
    ("\x02P", "no process has"),
    ("\x02v", "reading"),
    ("\x02h", "reading"),
    ("\x02ht09", "09"),
    ("\x02|2\r\x02H", "esc now"),
    ("\x02x", "close lead"),
    ("\x02X", "stop lead"),
    ("\x02R", "restart lead"),
    ("\x02r", "new name: lead"),
    ("\x02[", "lead says hello"),
    ("\x02[/hello", "search: hello"),
    ("\x02[/hello\rV", "lead says hello"),
    ("\x02|2\r", "lead"),
    ("\x02|2\r\x02-3\r\x02z", ""),
    ("\x02b\x02u", "◆ tests"),
    ("\x02b\x02u\r", "tests: may I"),
];

/// A view, opened at a size.
fn opened(keys: &str, width: u16, height: u16) -> Sample {
    let mut sample = Sample::new(width, height);
    sample.type_in(keys);
    sample.handle(Event::LeaderWaited);
    sample
}

/// Views that a result or a file opens.
fn other_views(width: u16, height: u16) -> Vec<(&'static str, Sample)> {
    let mut pad = Sample::new(width, height);
    let content = json!({"content": "# Plan\n\n| a | b |\n|--|--|\n| some words | 漢字 |\n"});
    pad.handle(Event::Answer(CallPurpose::Pad("plan".to_owned()), Ok(content)));
    let mut fault = Sample::new(width, height);
    fault.handle(Event::Settings(Ok("leader = 1".to_owned())));
    let mut away = Sample::new(width, height);
    away.handle(Event::Lost);
    let mut hung = Sample::new(width, height);
    hung.handle(Event::Hung("it is suspended (pid 7)".to_owned()));
    let first = Sample::empty(width, height);
    let ended = Sample::after_the_end(width, height);
    let mut untrusted = Sample::new(width, height);
    super::tests::untrusted(&mut untrusted);
    let mut overview = Sample::new(width, height);
    overview.type_in("\x02L");
    others(&mut overview);
    let mut answer = Sample::new(width, height);
    answer.type_in("\x02L");
    others(&mut answer);
    answer.type_in("\x1b[Fk\x1b[C");
    let mut digest = Sample::new(width, height);
    let result = serde_json::to_value(crate::sample::digest(digest.model.now)).unwrap();
    digest.handle(Event::Answer(CallPurpose::Digest { by_user: true }, Ok(result)));
    vec![
        ("tests is bl", digest),
        ("compiler", overview),
        ("1. Yes", answer),
        ("Plan", pad),
        ("tui.toml:1:10", fault),
        ("no server", away),
        ("The server does", hung),
        ("patterm", first),
        ("[x]", ended),
        ("process db", untrusted),
    ]
}

#[test]
fn every_view_is_usable_on_the_smallest_and_the_largest_terminal() {
    let mut without = Vec::new();
    for (width, height) in [(20, 5), (500, 200)] {
        let typed = VIEWS.iter().map(|(keys, words)| (*words, opened(keys, width, height)));
        for (words, sample) in typed.chain(other_views(width, height)) {
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
fn every_view_survives_every_size() {
    let typed = VIEWS.iter().map(|(keys, _)| opened(keys, 80, 24));
    let mut help = opened("\x02?", 80, 24);
    help.handle(Event::Settings(Err("漢字, which is an error".repeat(9))));
    let others = other_views(80, 24).into_iter().map(|(_, sample)| sample);
    for mut sample in typed.chain(others).chain([help]) {
        let sizes = (1..=60).map(|n| (n * 4 % 131 + 1, n * 7 % 53 + 1));
        for (width, height) in
            sizes.chain([(1, 1), (2, 2), (3, 9), (4, 4), (5, 30), (61, 3), (7, 60), (500, 200)])
        {
            sample.handle(Event::Resized(width, height));
            let frame = view(&sample.model);
            assert_eq!((frame.width, frame.height), (width, height));
        }
        sample.handle(Event::Snapshot(project()));
        sample.type_in("\x1b[<65;40;3M\x1b[<0;3;3M\x1b[<64;40;3M");
    }
}

/// Deterministic garbage.
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

/// Checks that a terminal shows what is painted.
#[track_caller]
fn check_painted(
    terminal: &mut Screen,
    before: Option<&Canvas>,
    next: &Canvas,
    depth: ColourDepth,
) {
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
fn output_reaches_the_terminal_only_as_cells() {
    let mut sample = Sample::new(90, 30);
    sample.type_in("\x02|2\r");
    let panes: Vec<_> = sample.model.panes.keys().copied().collect();
    let mut terminal = Screen::new(Size::new(30, 90));
    let mut before: Option<Canvas> = None;
    for round in 1..=200 {
        for pane in &panes {
            let bytes = garbage(4 << 10, round * 2 + u64::from(*pane));
            sample.handle(Event::Frame(*pane, ToView::Output { offset: 0, bytes }));
        }
        let next = view(&sample.model);
        check_painted(&mut terminal, before.as_ref(), &next, ColourDepth::True);
        before = Some(next);
    }
}

#[test]
fn without_colours_no_colour_is_sent() {
    for (keys, words) in VIEWS {
        let mut sample = opened(keys, 80, 24);
        let pane = sample.model.focus;
        let bytes = b"\x1b[31;48;5;200m\x1b[38;2;1;2;3m\x1b[4:3;58:5:9mcoloured".to_vec();
        sample.handle(Event::Frame(pane, ToView::Output { offset: 0, bytes }));
        let frame = view(&sample.model);
        let painted = String::from_utf8(paint(None, &frame, ColourDepth::None)).unwrap();
        for sequence in painted.split("\x1b[").skip(1) {
            let Some((numbers, _)) = sequence.split_once('m') else { continue };
            let is_style = numbers.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
            let coloured = numbers.split(';').any(|number| number.len() > 1 && number != "4:3");
            assert!(!is_style || !coloured, "{numbers:?} in {words}");
        }
    }
}
