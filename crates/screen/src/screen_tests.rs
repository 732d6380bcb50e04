//! Screens after given bytes.

use arbtest::arbitrary::Unstructured;
use arbtest::arbtest;

use crate::{Modes, Mouse, Notice, ProgressReport, Screen, Size, Style};

fn fed(rows: u16, columns: u16, bytes: impl AsRef<[u8]>) -> Screen {
    let mut screen = Screen::new(Size { rows, columns });
    screen.feed(bytes.as_ref());
    screen
}

#[track_caller]
fn check(bytes: impl AsRef<[u8]>, rows: &[&str]) {
    let screen = fed(4, 10, bytes);
    let shown = screen.rows();
    let used = shown.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    assert_eq!(shown[..used], *rows);
    assert_eq!(screen.failures(), 0);
}

/// Lines of history and screen.
fn all_lines(screen: &Screen) -> Vec<String> {
    screen.lines(0).map(|line| line.text.into_owned()).collect()
}

#[test]
fn text_wraps_and_scrolls() {
    check("hello\r\nworld", &["hello", "world"]);
    check("0123456789ab", &["0123456789", "ab"]);
    check("a\r\nb\r\nc\r\nd\r\ne", &["b", "c", "d", "e"]);
    check("a\tb", &["a       b"]);
    check("abc\x08\x08X", &["aXc"]);
    check("漢字漢字漢字", &["漢字漢字漢", "字"]);
    check("123456789漢", &["123456789", "漢"]);
    check("e\u{301}x", &["e\u{301}x"]);
    check("\x1b[?7l0123456789abc", &["012345678c"]);
}

#[test]
fn a_character_may_be_split_anywhere() {
    let text = "aé漢😀b\u{301}\x1b[31mred\x1b[0m\r\n\x1b]2;t\x07ok";
    let whole = fed(4, 20, text);
    for cut in 0..text.len() {
        let mut screen = fed(4, 20, &text.as_bytes()[..cut]);
        screen.feed(&text.as_bytes()[cut..]);
        assert_eq!(screen.rows(), whole.rows(), "cut at {cut}");
        assert_eq!(screen.title(), "t");
    }
}

#[test]
fn invalid_utf8_becomes_replacement_characters() {
    check(b"a\xffb\xc3(\xe6\xbc", &["a\u{fffd}b\u{fffd}("]);
    check(b"\xe6\xbcz", &["\u{fffd}z"]);
}

#[test]
fn erasing_and_editing() {
    check("abcdef\x1b[3D\x1b[K", &["abc"]);
    check("abcdef\x1b[3D\x1b[1K", &["    ef"]);
    check("abc\r\ndef\x1b[2J", &[]);
    check("abcdef\r\x1b[2P", &["cdef"]);
    check("abcdef\r\x1b[2@X", &["X abcdef"]);
    check("abcdef\r\x1b[2X", &["  cdef"]);
    check("a\r\nb\r\nc\x1b[2H\x1b[L", &["a", "", "b", "c"]);
    check("a\r\nb\r\nc\x1b[2H\x1b[M", &["a", "c"]);
    check("abc\x1b[4h\r12", &["12abc"]);
    check("ab\x1b[3b", &["abbbb"]);
    check("漢字\r\x1b[P", &[" 字"]);
    check("漢字\x1b[2GX", &[" X字"]);
    check("\x1b#8\x1b[2J\x1b[Hx", &["x"]);
}

#[test]
fn margins_hold_scrolling_and_moves() {
    check("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3H\nX", &["a", "c", "X", "d"]);
    check("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2H\x1bMX", &["a", "X", "b", "d"]);
    check("\x1b[2;3r\x1b[3H\x1b[9AX", &["", "X"]);
    check("\x1b[2;3r\x1b[?6hX\x1b[9BY", &["", "X", " Y"]);
}

#[test]
fn il_and_dl_return_to_the_first_column() {
    check("abc\x1b[LX", &["X", "abc"]);
    check("a\r\nbcd\x1b[MX", &["a", "X"]);
}

#[test]
fn line_drawing() {
    check("\x1b(0lqk\x1b(Bq", &["┌─┐q"]);
    check("\x1b)0\x0eq\x0fq", &["─q"]);
}

#[test]
fn the_alternate_screens() {
    for (on, off) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?47h", "\x1b[?47l")] {
        let mut screen = fed(4, 10, "main");
        screen.feed(on.as_bytes());
        assert!(screen.modes().alternate_screen);
        assert_eq!(screen.rows()[0], "");
        screen.feed(b"\x1b[Hother\n\n\n\n\n\n");
        assert_eq!(all_lines(&screen)[0], "main");
        screen.feed(off.as_bytes());
        assert_eq!(screen.rows()[0], "main");
        assert!(screen.history().is_empty());
    }
    let screen = fed(4, 10, "ab\x1b[?1049h\x1b[3;3Hxy\x1b[?1049l");
    assert_eq!((screen.cursor().row, screen.cursor().column), (0, 2));
    let screen = fed(4, 10, "ab\x1b[?1047h\x1b[3;3Hxy\x1b[?1047l");
    assert_eq!((screen.cursor().row, screen.cursor().column), (2, 4));
    let screen = fed(4, 10, "ab\x1b[?1048h\x1b[3;3Hxy\x1b[?1048lc");
    assert_eq!(screen.row(0), "abc");
}

#[test]
fn modes_are_tracked() {
    let screen = fed(4, 10, "\x1b[?1;2004;1004;1002;1006h\x1b=\x1b[>5u\x1b[?25l");
    let modes = screen.modes();
    assert!(modes.application_cursor && modes.bracketed_paste && modes.focus_reports);
    assert!(modes.application_keypad && !modes.cursor_visible);
    assert_eq!((modes.mouse, modes.kitty_keyboard), (Mouse::Drag, 5));
    let mut screen = screen;
    screen.feed(b"\x1b[?1049h");
    assert_eq!(screen.modes().kitty_keyboard, 0, "each screen has its own");
    screen.feed(b"\x1b[?1049l");
    assert_eq!(screen.modes().kitty_keyboard, 5);
    screen.feed(b"\x1bc");
    assert_eq!(screen.modes(), Modes::default());
}

#[test]
fn a_soft_reset_leaves_the_text() {
    let screen = fed(4, 10, "abc\x1b[?6;1;25l\x1b[?1h\x1b[4h\x1b[2;3r\x1b[!p\rX");
    assert_eq!(screen.modes(), Modes::default());
    assert_eq!(screen.row(0), "Xbc");
}

#[test]
fn the_version_grows_with_every_change_and_only_then() {
    let mut screen = fed(4, 10, "a");
    let version = screen.version();
    screen.feed(b"\x1b]7;file:///tmp\x07\x1b[c\x1b[31m\x07");
    assert_eq!(screen.version(), version);
    screen.feed(b"b");
    assert!(screen.version() > version);
}

#[test]
fn synchronized_output_holds_nothing_back() {
    let screen = fed(4, 10, "\x1b[?2026hnow");
    assert_eq!(screen.row(0), "now");
    assert!(screen.modes().synchronized);
}

#[test]
fn wrapped_rows_are_one_line_across_the_edge_of_the_screen() {
    let screen = fed(2, 5, "abcdefghijklmno\r\nx");
    assert_eq!(screen.rows(), ["klmno", "x"]);
    assert_eq!(all_lines(&screen), ["abcdefghijklmno", "x"]);
    assert_eq!(screen.tail(1)[0].text, "x");
    assert_eq!(screen.tail(2)[0].text, "abcdefghijklmno");
}

#[test]
fn lines_have_their_offsets_in_the_output() {
    let screen = fed(2, 20, "zero\r\none\r\ntwo\r\nthree\r\nfour");
    let lines: Vec<_> = screen.lines(0).map(|line| (line.number, line.offset)).collect();
    assert_eq!(lines, [(0, 0), (1, 6), (2, 11), (3, 16), (4, 23)]);
    let numbers: Vec<_> = screen.lines(3).map(|line| line.text.into_owned()).collect();
    assert_eq!(numbers, ["three", "four"]);
}

#[test]
fn erasing_the_display_keeps_the_text_in_the_history_and_mode_3_clears_it() {
    let mut screen = fed(4, 10, "a\r\nb\x1b[2J\x1b[Hc");
    assert_eq!(all_lines(&screen), ["a", "b", "c"]);
    screen.feed(b"\x1b[3J");
    assert_eq!(all_lines(&screen), ["c"]);
    assert_eq!(screen.lines(0).next().map(|line| line.number), Some(2), "numbers go on");
}

#[test]
fn a_resize_wraps_lines_again_and_restores_rows() {
    let mut screen = fed(3, 10, "0123456789abcdef\r\nx\r\ny\r\nz");
    let before = all_lines(&screen);
    assert_eq!(screen.rows(), ["x", "y", "z"]);
    screen.resize(Size { rows: 5, columns: 20 });
    assert_eq!(screen.rows()[..4], ["0123456789abcdef", "x", "y", "z"]);
    assert_eq!(all_lines(&screen), before);
    screen.resize(Size { rows: 2, columns: 4 });
    assert_eq!(screen.rows(), ["y", "z"]);
    assert_eq!(all_lines(&screen), before);
    screen.resize(Size { rows: 6, columns: 80 });
    assert_eq!(all_lines(&screen), before);
    assert_eq!(screen.row(0), "0123456789abcdef");
    assert!(screen.history().is_empty());
}

#[test]
fn history_is_wrapped_for_a_width_when_it_is_read() {
    let screen = fed(2, 10, "\x1b[31mred\x1b[0m and plain\r\nb\r\nc\r\nd");
    let rows = screen.history().styled(6, 0, 10);
    let texts: Vec<_> = rows.iter().map(|row| row.text()).collect();
    assert_eq!(texts, ["red an", "d plai", "n", "b"]);
    assert_eq!(rows[0].spans[0].style.foreground, crate::Colour::Indexed(1));
    assert_eq!(screen.history().styled(6, 1, 2).len(), 2);
    assert_eq!(screen.history().styled(6, 1, 2)[1].text(), "n");
}

#[test]
fn notices() {
    let mut screen = fed(4, 40, "\x07\x1b]7;file:///tmp\x07\x1b]9;4;1;40\x07\x1b]9;done\x1b\\");
    screen.feed(b"\x1b]52;c;aGVsbG8=\x07\x1b]133;D;1\x07\x1b]2;ti\x01tle\x07");
    let notices = screen.take_notices();
    assert_eq!(notices[0], Notice::Bell);
    assert_eq!(notices[1], Notice::Folder("file:///tmp".into()));
    assert_eq!(notices[2], Notice::Progress(ProgressReport::Percent(40)));
    let body = "done".to_owned();
    assert_eq!(notices[3], Notice::Notification { title: String::new(), body });
    let content = b"hello".to_vec();
    assert_eq!(notices[4], Notice::Clipboard { selection: "c".into(), content });
    assert_eq!(notices[5], Notice::Mark(crate::Mark::Done(Some(1))));
    assert_eq!(screen.title(), "title");
    assert!(screen.take_notices().is_empty());
}

#[test]
fn notices_and_strings_are_bounded() {
    let mut screen = Screen::new(Size::DEFAULT);
    for number in 0..10_000 {
        screen.feed(format!("\x1b]9;note {number}\x07").as_bytes());
    }
    assert_eq!(screen.take_notices().len(), 256);
    screen.feed(b"\x1b]52;c;");
    for _ in 0..1_000 {
        screen.feed(&[b'A'; 4096]);
    }
    screen.feed(b"\x07after");
    assert!(screen.take_notices().is_empty());
    assert_eq!(screen.row(0), "after");
}

#[test]
fn endless_combining_marks_are_bounded() {
    let screen = fed(4, 10, "e".to_owned() + &"\u{301}".repeat(100_000));
    assert!(screen.row(0).len() < 40);
}

#[test]
fn colour_alone_is_not_added_to_the_history() {
    let screen = fed(4, 10, "\x1b[41m\x1b[2J\x1b[2J\x1b[2J");
    assert!(screen.history().is_empty());
}

#[test]
fn a_screen_may_move_between_threads() {
    fn check<T: Send + Sync>(_: T) {}
    check(Screen::new(Size::DEFAULT));
}

#[test]
fn a_replay_is_silent() {
    let mut screen = Screen::new(Size::DEFAULT);
    screen.set_replay(true);
    screen.feed(b"\x1b[c\x1b[6n\x07\x1b]9;x\x07\x1b]52;c;aGk=\x07\x1b]2;title\x07\x1b]11;?\x07");
    assert!(screen.take_replies().is_empty() && screen.take_notices().is_empty());
    assert_eq!(screen.title(), "title");
    screen.set_replay(false);
    screen.feed(b"\x1b[5n");
    assert_eq!(screen.take_replies(), b"\x1b[0n");
}

/// The time budget of a property test, in milliseconds.
pub(crate) fn budget() -> u64 {
    if std::env::var_os("PATTERM_LONG").is_some() { 60_000 } else { 500 }
}

/// Bytes that look like terminal output, with some that do not.
pub(crate) fn random_output(u: &mut Unstructured<'_>) -> arbtest::arbitrary::Result<Vec<u8>> {
    const PIECES: [&str; 61] = [
        "abc",
        "hello world ",
        "0123456789",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "\x08",
        "漢字",
        "é",
        "e\u{301}",
        "👍🏽",
        "❤\u{fe0f}",
        "\x1b[m",
        "\x1b[1;31m",
        "\x1b[48;5;20m",
        "\x1b[38;2;1;2;3;4:3m",
        "\x1b[H",
        "\x1b[2J",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2;5r",
        "\x1b[r",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?47h",
        "\x1b[?47l",
        "\x1b7",
        "\x1b8",
        "\x1bM",
        "\x1bD",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?6h",
        "\x1b[?6l",
        "\x1b(0",
        "\x1b(B",
        "\x1b]8;;http://x\x07",
        "\x1b]8;;\x07",
        "\x1b]2;t\x07",
        "\x1b[!p",
        "\x1b#8",
        "👨\u{200d}👩\u{200d}👧",
        "🇩🇪",
        "🇫",
        "क्ष",
        "\u{200d}",
        "1\u{fe0f}\u{20e3}",
        // Not "⌚\u{fe0e}": a snapshot cannot draw a narrowed character in the last column (decision 20).
        "\x1b[?69h",
        "\x1b[?69l",
        "\x1b[3;9s",
        "\x1b[?45h",
        "\x1b[1\"q",
        "\x1b[0\"q",
        "\x1b[5;53m",
        "\x1bV",
        "\x1b6",
        "\x1b9",
        "\x1b[?2027l",
    ];
    let mut bytes = Vec::new();
    while !u.is_empty() && bytes.len() < 4_000 {
        match u.int_in_range(0..=9)? {
            0..=5 => bytes.extend_from_slice(u.choose(&PIECES)?.as_bytes()),
            6 => bytes.push(u.arbitrary()?),
            _ => {
                let last = *u.choose(b"@ABCDEFGHIJKLMPSTXZ`abdefghlmnrstu")?;
                let (a, b) = (u.int_in_range(0..=30u16)?, u.int_in_range(0..=90u16)?);
                let kind = *u.choose(&["", "", "", "", "$", " ", "'", "?"])?;
                let (marker, kind) = if kind == "?" { ("?", "") } else { ("", kind) };
                let last = if kind.is_empty() { last } else { *u.choose(b"@Avxz{rt}~")? };
                let sequence = format!("\x1b[{marker}{a};{b}{kind}{}", char::from(last));
                bytes.extend_from_slice(sequence.as_bytes());
            }
        }
    }
    Ok(bytes)
}

#[test]
fn random_bytes_and_sizes_never_fail() {
    arbtest(|u| {
        let mut screen = Screen::new(Size { rows: 5, columns: 12 });
        let mut fed = 0;
        for _ in 0..4 {
            let bytes = random_output(u)?;
            screen.feed(&bytes);
            fed += bytes.len();
            screen.resize(Size { rows: u.int_in_range(0..=12)?, columns: u.int_in_range(0..=30)? });
            assert_eq!(screen.rows().len(), usize::from(screen.size().rows));
            let _ = (screen.tail(5).len(), screen.history().styled(7, 1, 5).len());
            if u.ratio(1, 5)? {
                screen.history_mut().drop_oldest(100);
            }
        }
        assert_eq!(screen.failures(), 0);
        assert_eq!(screen.offset(), fed as u64);
        let numbers: Vec<_> = screen.lines(0).map(|line| line.number).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        Ok(())
    })
    .budget_ms(budget());
}

#[test]
fn a_snapshot_draws_the_same_screen() {
    arbtest(|u| {
        let size = Size { rows: u.int_in_range(1..=9)?, columns: u.int_in_range(2..=25)? };
        let mut screen = Screen::new(size);
        screen.feed(&random_output(u)?);
        screen.feed(b"\x1b[m"); // The character that REP repeats is not part of a snapshot.
        let mut copy = Screen::new(size);
        copy.feed(&screen.snapshot());
        assert_same(&screen, &copy);
        // Output that follows must give the same result too, including on the other screen.
        let more = [random_output(u)?, b"\x1b[?1049l".to_vec(), random_output(u)?].concat();
        screen.feed(&more);
        copy.feed(&more);
        assert_same_text(&screen, &copy);
        Ok(())
    })
    .budget_ms(budget());
}

fn assert_same_text(a: &Screen, b: &Screen) {
    let trimmed = |screen: &Screen| -> Vec<String> {
        screen.rows().iter().map(|row| row.trim_end().to_owned()).collect()
    };
    assert_eq!(trimmed(a), trimmed(b));
    assert_eq!((a.cursor(), a.modes(), a.title()), (b.cursor(), b.modes(), b.title()));
}

fn assert_same(a: &Screen, b: &Screen) {
    assert_same_text(a, b);
    for row in 0..a.size().rows {
        let (a, b) = (a.styled_row(row), b.styled_row(row));
        let wraps = a.wraps || b.wraps;
        let styles = |row: crate::StyledRow| -> Vec<_> {
            let all = row.spans.iter().flat_map(|span| span.text.chars().map(|c| (c, &span.style)));
            all.map(|(c, style)| (c, style.clone())).collect()
        };
        let trim = |all: &mut Vec<(char, Style)>| {
            let seen = all.iter().rposition(|(c, style)| *c != ' ' || *style != Style::default());
            all.truncate(seen.map_or(0, |last| last + 1));
        };
        let (mut a, mut b) = (styles(a), styles(b));
        trim(&mut a);
        trim(&mut b);
        // Not compared: the style of a last column left empty for a wide character.
        let longer = if a.len() > b.len() { &mut a } else { &mut b };
        if wraps && longer.last().is_some_and(|(c, _)| *c == ' ') {
            let last = longer.len() - 1;
            a.truncate(last);
            b.truncate(last);
            trim(&mut a);
            trim(&mut b);
        }
        assert_eq!(a, b, "row {row}");
    }
}

#[test]
fn a_program_reports_its_status_and_reports_about_its_parts_are_ignored() {
    let mut screen = Screen::new(Size::new(2, 10));
    screen.feed(b"\x1b]7501;state=working:app=x\x1b\\");
    screen.feed(b"\x1b]7501;state=blocked:id=part\x07");
    assert_eq!(screen.report(), "state=working:app=x");
    screen.set_replay(true);
    screen.feed(b"\x1b]7501;state=done\x07\x1b]9;4;3\x07");
    assert_eq!((screen.report(), screen.progress()), ("state=done", Some(ProgressReport::Busy)));
    screen.feed(b"\x1bc");
    assert_eq!(screen.report(), "state=done", "a reset says nothing of it");
}

#[test]
fn lines_of_a_screen_that_starts_later_have_correct_offsets() {
    let mut screen = Screen::new(Size::new(4, 20));
    screen.set_offset(38);
    screen.feed(b"hello\r\nsecond");
    let offsets = |screen: &Screen| screen.lines(0).map(|line| line.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&screen), [38, 45]);
    // Output is lost in the middle of a line, then between two lines.
    screen.skip_to(100);
    screen.feed(b" half\r\n");
    screen.skip_to(200);
    screen.feed(b"third");
    assert_eq!(offsets(&screen), [38, 45, 200]);
}
