//! Texts of every kind through resizes: nothing is lost, nothing changes, and the cursor stays in the text.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use crate::cluster::clusters;
use crate::{Screen, Size, text_width};

/// Pieces of text of one kind.
const KINDS: [&[&str]; 6] = [
    &["a", "bc ", "0123456789", "x  y", "."],
    &["漢", "字漢", "a漢", "漢 b", "ｆ", "あい"],
    &["e\u{301}", "o\u{302}\u{323}", "n\u{303}x", "é", "a\u{20d7}"],
    &["漢\u{301}", "字\u{302}\u{323}", "が", "か\u{3099}", "a", "각"],
    &[
        "👨\u{200d}👩\u{200d}👧",
        "👍🏽",
        "❤\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "🇩🇪",
        "🇫",
        "🏴\u{e0067}\u{e007f}",
        "a",
    ],
    &["क्ष", "नि", "த்", "ก็", "ำ", "मु", "x"],
];

/// Texts of the short form and of the long one.
const COUNT: usize = 3_000;
const LONG_COUNT: usize = 15_000;

fn size(u: &mut Unstructured<'_>) -> Result<Size> {
    Ok(Size { rows: u.int_in_range(1..=8)?, columns: u.int_in_range(2..=24)? })
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let kind = *u.choose(&KINDS)?;
    let mut text = String::new();
    for _ in 0..u.int_in_range(1..=30)? {
        text.push_str(if u.ratio(1, 8)? { "\r\n" } else { u.choose(kind)? });
    }
    // The cursor's index is then the end of the text.
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn lines(screen: &Screen) -> Vec<String> {
    screen.lines(0).map(|line| line.text.into_owned()).collect()
}

/// The text on the screen as far as the cursor, row by row and with every cell: the end of what was printed.
fn up_to_cursor(screen: &Screen) -> String {
    let cursor = screen.cursor();
    let mut text = String::new();
    for row in 0..=cursor.row {
        let styled = screen.styled_row(row);
        let is_last = row == cursor.row;
        let mut column = 0;
        for (cluster, width) in styled.spans.iter().flat_map(|span| clusters(&span.text)) {
            if is_last && column > usize::from(cursor.column) {
                break;
            }
            text.push_str(cluster);
            column += width;
        }
        if !styled.wraps {
            text.push('\n');
        }
    }
    text
}

fn one_case(u: &mut Unstructured<'_>) -> Result<()> {
    let printed = text(u)?;
    let first = size(u)?;
    let mut screen = Screen::new(first);
    screen.feed(printed.as_bytes());
    let expected = lines(&screen);
    let trimmed = |text: &str| text.trim_end().to_owned();
    let wanted: Vec<_> = printed.split("\r\n").map(trimmed).collect();
    let shown: Vec<_> = expected.iter().map(|line| trimmed(line)).collect();
    assert_eq!(shown, wanted[..shown.len()], "printing {printed:?} at {first:?}");
    let mut sizes = vec![first];
    for _ in 0..u.int_in_range(1..=5)? {
        let next = size(u)?;
        sizes.push(next);
        screen.resize(next);
        assert_eq!(lines(&screen), expected, "{printed:?} through {sizes:?}");
        let cursor_text = up_to_cursor(&screen);
        let end = wanted.last().cloned().unwrap_or_default();
        let last = cursor_text.trim_end().rsplit('\n').next().unwrap_or_default().replace(' ', "");
        assert!(
            end.replace(' ', "").ends_with(&last) && (!last.is_empty() || end.is_empty()),
            "the cursor of {printed:?} through {sizes:?} is after {cursor_text:?}"
        );
    }
    // What is printed next continues the text.
    screen.feed(b"Z");
    let continued = lines(&screen).last().cloned().unwrap_or_default();
    assert_eq!(trimmed(&continued), format!("{}Z", wanted[wanted.len() - 1]), "{sizes:?}");
    // Each row is within the screen, and a snapshot draws it again.
    for row in 0..screen.size().rows {
        let width = text_width(&screen.row(row));
        assert!(width <= usize::from(screen.size().columns), "{printed:?} {sizes:?} row {row}");
    }
    let mut copy = Screen::new(screen.size());
    copy.feed(&screen.snapshot());
    assert_eq!(copy.rows(), screen.rows(), "{printed:?} {sizes:?}");
    assert_eq!(copy.cursor(), screen.cursor(), "{printed:?} {sizes:?}");
    assert_eq!(screen.failures(), 0);
    Ok(())
}

#[test]
fn texts_of_every_kind_survive_resizes() {
    let long = std::env::var_os("PATTERM_LONG").is_some();
    let count = if long { LONG_COUNT } else { COUNT };
    // Own entropy instead of arbtest's budget of time: the number of cases is what counts.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for case in 0..count {
        let mut bytes = vec![0; 256];
        for byte in &mut bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        let done = one_case(&mut Unstructured::new(&bytes));
        assert!(done.is_ok(), "case {case}");
    }
    println!("{count} texts through resizes, 0 changed");
}

#[test]
fn the_same_with_the_seeds_of_the_property_tester() {
    arbtest(one_case).budget_ms(crate::screen_tests::budget());
}

#[test]
fn the_saved_cursor_moves_with_its_text() {
    let mut screen = Screen::new(Size { rows: 4, columns: 10 });
    screen.feed("0123456789abc\x1b7\r\nxyz".as_bytes());
    screen.resize(Size { rows: 4, columns: 5 });
    screen.feed(b"\x1b8D");
    assert_eq!(screen.rows(), ["01234", "56789", "abcD", "xyz"]);
    screen.resize(Size { rows: 4, columns: 20 });
    screen.feed(b"\x1b8E");
    assert_eq!(screen.row(0), "0123456789abcE");
}

#[test]
fn a_wide_character_at_the_edge_stays() {
    let mut screen = Screen::new(Size { rows: 6, columns: 15 });
    screen.feed("漢字漢".as_bytes());
    screen.resize(Size { rows: 4, columns: 5 });
    screen.feed(b"x");
    assert_eq!(screen.rows()[..2], ["漢字", "漢x"]);
}

#[test]
fn rows_below_the_cursor_stay_while_there_is_room() {
    let mut screen = Screen::new(Size { rows: 4, columns: 10 });
    screen.feed("one\r\ntwo\r\nthree\r\nfour\x1b[2;1H".as_bytes());
    screen.resize(Size { rows: 3, columns: 10 });
    assert_eq!(screen.rows(), ["two", "three", "four"]);
    assert_eq!((screen.cursor().row, screen.cursor().column), (0, 0));
    screen.resize(Size { rows: 4, columns: 10 });
    assert_eq!(screen.rows(), ["one", "two", "three", "four"]);
    assert_eq!(screen.cursor().row, 1);
}

#[test]
fn history_stays_above_a_screen_that_was_cleared() {
    let mut screen = Screen::new(Size { rows: 3, columns: 10 });
    screen.feed("a\r\nb\r\nc\r\nd\x1b[H\x1b[2Jx".as_bytes());
    screen.resize(Size { rows: 6, columns: 20 });
    assert_eq!(screen.rows()[..2], ["x", ""]);
}
