//! Sequences that few programs use, each with the screen it gives.

use crate::{Attributes, Screen, Size};

fn fed(bytes: &str) -> Screen {
    let mut screen = Screen::new(Size { rows: 4, columns: 10 });
    screen.feed(bytes.as_bytes());
    assert_eq!(screen.failures(), 0);
    screen
}

#[track_caller]
fn check(bytes: &str, rows: &[&str]) {
    let screen = fed(bytes);
    let shown = screen.rows();
    let used = shown.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    assert_eq!(shown[..used], *rows, "{bytes:?}");
}

#[track_caller]
fn check_cursor(bytes: &str, row: u16, column: u16) {
    let cursor = fed(bytes).cursor();
    assert_eq!((cursor.row, cursor.column), (row, column), "{bytes:?}");
}

#[test]
fn clusters_share_a_cell() {
    for (text, width) in [
        ("👨\u{200d}👩\u{200d}👧", 2),
        ("👩🏻\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨🏻", 2),
        ("❤\u{fe0f}", 2),
        ("❤", 1),
        ("⌚\u{fe0e}", 1),
        ("1\u{fe0f}\u{20e3}", 2),
        ("👍🏽", 2),
        ("🇩🇪", 2),
        ("🇩🇪🇫", 4),
        ("क्ष", 2),
        ("\u{3164}", 2),
    ] {
        let screen = fed(text);
        assert_eq!(screen.cursor().column, width, "{text:?}");
        assert_eq!(screen.row(0), text);
        let mut bytewise = Screen::new(Size { rows: 4, columns: 10 });
        text.as_bytes().chunks(1).for_each(|byte| bytewise.feed(byte));
        assert_eq!(bytewise.cursor().column, width, "{text:?} byte by byte");
    }
    check_cursor("\x1b[?2027l👨\u{200d}👩", 0, 4);
    check_cursor("\x1b[?2027l❤\u{fe0f}", 0, 1);
    check_cursor("🇩\x1b[m🇪", 0, 4);
}

#[test]
fn a_cluster_that_grows_at_the_edge_moves_to_the_next_row() {
    check("012345678❤\u{fe0f}x", &["012345678", "❤\u{fe0f}x"]);
    check("0123456789\r\n\x1b[A\x1b[9G❤\u{fe0f}", &["01234567❤\u{fe0f}"]);
    check("ab漢\r\x1b[2C❤\u{fe0f}", &["ab❤\u{fe0f}"]);
    check("\x1b[?7l012345678❤\u{fe0f}", &["012345678❤"]);
    check("abc\r\x1b[4h❤\u{fe0f}", &["❤\u{fe0f}abc"]);
}

#[test]
fn cells_that_would_join_stay_apart_in_history_and_snapshot() {
    let mut screen = fed("\x1b[?2027l👍🏽\x1b[?2027hx\r\n🇩\x1b[m🇪y");
    let mut copy = Screen::new(screen.size());
    copy.feed(&screen.snapshot());
    assert_eq!(copy.styled_row(0), screen.styled_row(0));
    assert_eq!(screen.styled_row(0).spans.len(), 2);
    screen.feed(b"\r\n\n\n\n\n");
    screen.resize(Size { rows: 8, columns: 10 });
    screen.feed(b"\x1b[1;6HZ\x1b[2;6HZ");
    assert_eq!(screen.rows()[..2], ["👍🏽xZ".to_owned(), "🇩🇪yZ".to_owned()]);
}

#[test]
fn small_sequences() {
    // VPR ignores the margins, CUD does not.
    check_cursor("\x1b[1;2r\x1b[3e", 3, 0);
    check_cursor("\x1b[1;2r\x1b[3B", 1, 0);
    // A character after a lone escape is text.
    check("\x1bé", &["é"]);
    check("\x1b漢x", &["漢x"]);
    // REP repeats marks as well.
    check("e\u{301}\x1b[2b", &["e\u{301}e\u{301}e\u{301}"]);
    check("🇩🇪\x1b[b", &["🇩🇪🇩🇪"]);
    // SL and SR.
    check("abcdef\r\n123456\x1b[2 @", &["cdef", "3456"]);
    check("abcdef\r\n123456\x1b[2 A", &["  abcdef", "  123456"]);
    // DECIC, DECDC, DECBI, DECFI.
    check("abc\r\n123\x1b[1;2H\x1b['}", &["a bc", "1 23"]);
    check("abc\r\n123\x1b[1;2H\x1b['~", &["ac", "13"]);
    check("abc\r\n123\r\x1b6", &[" abc", " 123"]);
    check("abc\r\n123\x1b[10G\x1b9", &["bc", "23"]);
    // Reverse wrap.
    check("\x1b[?45h0123456789ab\x08\x08\x08X", &["012345678X", "ab"]);
    check("0123456789ab\x08\x08\x08X", &["0123456789", "Xb"]);
    check("\x1b[?45hab\r\ncd\x1b[9DX", &["ab", "Xd"]);
    check("\x1b[?1045hab\r\ncd\x1b[3DX", &["ab       X", "cd"]);
    check_cursor("\x1b[?1045h\x08", 3, 9);
    // XTSAVE and XTRESTORE.
    check("\x1b[?7s\x1b[?7l\x1b[?7r0123456789ab", &["0123456789", "ab"]);
    check("\x1b[?7l\x1b[?9999;7s\x1b[?7h\x1b[?7r0123456789ab", &["012345678b"]);
}

#[test]
fn the_alternate_screen_keeps_its_own_saved_cursor() {
    let steps = "\x1b[2;3H\x1b7\x1b[?47h\x1b[3;4H\x1b7\x1b[?47l\x1b8";
    check_cursor(steps, 1, 2);
    check_cursor(&format!("{steps}\x1b[?47h\x1b8"), 2, 3);
    let screen = fed(steps);
    let mut copy = Screen::new(screen.size());
    copy.feed(&screen.snapshot());
    copy.feed(b"\x1b[?47h\x1b8");
    assert_eq!((copy.cursor().row, copy.cursor().column), (2, 3));
}

#[test]
fn overwriting_the_last_cell_of_a_wrapped_row_does_not_cut_the_line() {
    for edit in
        ["\x1b[1;10HX", "\x1b[1;9H漢", "\x1b[1;3H\x1b[P", "\x1b[1;3H\x1b[@", "\x1b[1;1H0123456789"]
    {
        let mut screen = fed(&format!("0123456789abc{edit}"));
        assert!(screen.wraps(0), "{edit:?}");
        screen.resize(Size { rows: 4, columns: 20 });
        assert_eq!(screen.lines(0).count(), 1, "{edit:?}");
    }
}

#[test]
fn a_snapshot_keeps_a_last_row_that_wraps() {
    for bytes in [
        "0123456789abc\x1b[H\x1bM\x1b[H\x1bM\x1b[H\x1bM",
        "\x1b[3;1H0123456789abcdefghijk\x1b[H\x1bM",
    ] {
        let screen = fed(bytes);
        assert!(screen.wraps(3), "{bytes:?}");
        let mut copy = Screen::new(screen.size());
        copy.feed(&screen.snapshot());
        assert_eq!(copy.rows(), screen.rows());
        for row in 0..4 {
            assert_eq!(copy.wraps(row), screen.wraps(row), "{bytes:?} row {row}");
        }
    }
}

#[test]
fn margins_at_the_sides() {
    let sides = "\x1b[?69h\x1b[3;6s";
    check(&format!("{sides}\x1b[1;3Habcdef"), &["  abcd", "  ef"]);
    check(&format!("0123456789\x1b[H{sides}\x1b[1;3H\x1b[2P"), &["0145  6789"]);
    check(&format!("0123456789\x1b[H{sides}\x1b[1;3H\x1b[2@"), &["01  236789"]);
    check(
        &format!("0123456789\r\nabcdefghij{sides}\x1b[1;3H\x1b[M"),
        &["01cdef6789", "ab    ghij"],
    );
    check(
        &format!("0123456789\r\nabcdefghij{sides}\x1b[1;3H\x1b[L"),
        &["01    6789", "ab2345ghij", "  cdef"],
    );
    check(&format!("0123456789\r\nabcdefghij{sides}\x1b[S"), &["01cdef6789", "ab    ghij"]);
    check(
        &format!("0123456789\r\nabcdefghij{sides}\x1b[T"),
        &["01    6789", "ab2345ghij", "  cdef"],
    );
    check_cursor(&format!("{sides}\x1b[1;5H\x1b[9C"), 0, 5);
    check_cursor(&format!("{sides}\x1b[1;5H\x1b[9D"), 0, 2);
    check_cursor(&format!("{sides}\x1b[1;5H\r"), 0, 2);
    check_cursor(&format!("{sides}\x1b[1;2H\r"), 0, 0);
    check_cursor(&format!("{sides}\x1b[?6h\x1b[2;2H"), 1, 3);
    check_cursor(&format!("{sides}\x1b[?69l\x1b[1;8H\r"), 0, 0);
    // Outside the margins nothing scrolls.
    check(&format!("top\x1b[4;1H{sides}\x1b[4;1H\n\nx"), &["top", "", "", "x"]);
    check(&format!("{sides}\x1b[1;6H漢"), &["", "  漢"]);
}

#[test]
fn rectangles() {
    let filled = "aaaa\r\nbbbb\r\ncccc";
    check(&format!("{filled}\x1b[2;2;3;3$z"), &["aaaa", "b  b", "c  c"]);
    check(&format!("{filled}\x1b[88;1;1;2;2$x"), &["XXaa", "XXbb", "cccc"]);
    check(&format!("{filled}\x1b[1;1;2;2;1;3;4;1$v"), &["aaaa", "bbbb", "cccaa", "   bb"]);
    check(&format!("{filled}\x1b[3;3;1;1$z"), &["aaaa", "bbbb", "cccc"]);
    check("漢字\x1b[1;2;1;3$z", &[]);
    let screen = fed(&format!("{filled}\x1b[2*x\x1b[1;2;2;3;1;4$r"));
    let spans = screen.styled_row(1).spans;
    assert_eq!((spans[0].text.as_str(), spans[1].text.as_str()), ("b", "bb"));
    assert!(spans[1].style.attributes.contains(Attributes::BOLD | Attributes::UNDERLINE));
    let screen = fed(&format!("{filled}\x1b[2*x\x1b[1;2;2;3;7$t"));
    assert!(screen.styled_row(0).spans[1].style.attributes.contains(Attributes::INVERSE));
}

#[test]
fn protected_cells_survive_selective_erasing() {
    let text = "a\x1b[1\"qB\x1b[0\"qc";
    check(&format!("{text}\x1b[?2K"), &[" B"]);
    check(&format!("{text}\x1b[?2J"), &[" B"]);
    check(&format!("{text}\x1b[1;1;1;3${{"), &[" B"]);
    check(&format!("{text}\x1b[2K"), &[]);
    check("a\x1bVB\x1bWc\x1b[2K", &[" B"]);
    check("a\x1bVB\x1bWc\x1b[2J", &[" B"]);
    check("\x1b[1\"qa\x1b[mb\x1b[?2K", &["ab"]);
}

#[test]
fn blink_and_overline() {
    let screen = fed("\x1b[5;53;4:5ma\x1b[25;55mb\x1b[24mc");
    let style = |column: usize| screen.styled_row(0).spans[column].style.attributes;
    assert_eq!(style(0), Attributes::BLINK | Attributes::OVERLINE | Attributes::DASHED_UNDERLINE);
    assert_eq!(style(1), Attributes::DASHED_UNDERLINE);
    assert_eq!(style(2), Attributes::default());
    let mut copy = Screen::new(screen.size());
    copy.feed(&screen.snapshot());
    assert_eq!(copy.styled_row(0), screen.styled_row(0));
}

#[test]
fn images_leave_no_trace() {
    for image in [
        "\x1bPq#0;2;0;0;0#0~~@@vv@@~~$-~~\x1b\\",
        "\x1bP0;1;0q\"1;1;100;50#0!100~-\x1b\\",
        "\x1b_Ga=T,f=100;iVBORw0KGgo=\x1b\\",
        "\x1b_Gm=1;AAAA\x1b\\\x1b_Gm=0;AAAA\x1b\\",
        "\x1b]1337;File=inline=1:iVBORw0KGgo=\x07",
        "\x1b]1337;File=inline=1:iVBORw0KGgo=\x1b\\",
    ] {
        let mut screen = fed(&format!("a{image}b"));
        assert_eq!(screen.row(0), "ab", "{image:?}");
        assert_eq!(screen.take_replies(), b"", "{image:?}");
        // A large one, byte by byte at its beginning and end.
        let mut screen = Screen::new(Size { rows: 4, columns: 10 });
        let (head, tail) = image.split_at(image.len() - 2);
        head.as_bytes().chunks(1).for_each(|byte| screen.feed(byte));
        for _ in 0..200 {
            screen.feed(&[b'A'; 4_096]);
        }
        tail.as_bytes().chunks(1).for_each(|byte| screen.feed(byte));
        screen.feed(b"after");
        assert_eq!(screen.row(0), "after", "{image:?}");
    }
}

#[test]
fn sizes_are_reported_to_a_program_that_asks() {
    let mut screen = fed("\x1b[?2048h");
    assert_eq!(screen.take_replies(), b"\x1b[48;4;10;0;0t");
    screen.resize(Size { rows: 5, columns: 20 });
    assert_eq!(screen.take_replies(), b"\x1b[48;5;20;0;0t");
    screen.feed(b"\x1b[?2048l");
    screen.resize(Size { rows: 4, columns: 10 });
    assert_eq!(screen.take_replies(), b"");
}

#[test]
fn checksums_are_a_secret() {
    let query = "abc\x1b[1;1;1;1;1;3*y";
    assert_eq!(fed(query).take_replies(), b"");
    let mut screen = Screen::new(Size { rows: 4, columns: 10 });
    screen.answer_checksums();
    screen.feed(query.as_bytes());
    assert_eq!(screen.take_replies(), b"\x1bP1!~FEDA\x1b\\");
}

#[test]
fn titles_are_saved_together_and_are_a_secret() {
    let ask = "\x1b[20t\x1b[21t";
    assert_eq!(fed(&format!("\x1b]0;secret\x07{ask}")).take_replies(), b"");
    for (output, expected) in [
        ("\x1b]0;both\x07", "both both"),
        ("\x1b]0;both\x07\x1b]1;icon\x07", "icon both"),
        ("\x1b]1;i\x07\x1b]2;t\x07\x1b[22t\x1b]0;x\x07\x1b[23t", "i t"),
        // What was saved for both is gone once one was restored.
        ("\x1b]1;i\x07\x1b]2;t\x07\x1b[22;0t\x1b]0;x\x07\x1b[23;1t\x1b[23;2t", "i x"),
        ("\x1b]1;i\x07\x1b]2;t\x07\x1b[22;1t\x1b[22;2t\x1b]0;x\x07\x1b[23;0t", "i t"),
        ("\x1b]0;a\x07\x1b[22;2t\x1b]0;b\x07\x1b[22;2t\x1b]0;c\x07\x1b[23;2t\x1b[23;2t", "c a"),
    ] {
        let mut screen = Screen::new(Size { rows: 4, columns: 10 });
        screen.answer_checksums();
        screen.feed(format!("{output}{ask}").as_bytes());
        let replies = String::from_utf8(screen.take_replies()).unwrap();
        let titles = replies.replace("\x1b\\\x1b]l", " ").replace("\x1b]L", "");
        assert_eq!(titles.trim_end_matches("\x1b\\"), expected, "{output:?}");
    }
}

#[test]
fn a_lower_level_has_less() {
    for (output, expected) in [
        // DECRQM since the VT300, margins at the sides and pages since the VT400.
        ("\x1b[62\"p\x1b[4$p\x1b[?7$p", ""),
        ("\x1b[63\"p\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[63\"p\x1b[?69h\x1b[2;4s\x1b[?69$p", "\x1b[?69;2$y"),
        ("\x1b[64\"p\x1b[?69h\x1b[?69$p", "\x1b[?69;1$y"),
        ("\x1b[63\"p\x1b[?6n", "\x1b[?1;1R"),
        ("\x1b[?6n", "\x1b[?1;1;1R"),
        ("\x1b[65\"p\x1bP$q\"p\x1b\\", "\x1bP1$r64;1\"p\x1b\\"),
        ("\x1b[62\"p\x1bP$q\"p\x1b\\", "\x1bP1$r62;1\"p\x1b\\"),
        ("\x1b[62\"p\x1b[!p\x1bP$q\"p\x1b\\", "\x1bP1$r62;1\"p\x1b\\"),
        ("\x1b[62\"p\x1bc\x1bP$q\"p\x1b\\", "\x1bP1$r64;1\"p\x1b\\"),
        ("\x1b[60\"p\x1b[66\"p\x1bP$q\"p\x1b\\", "\x1bP1$r64;1\"p\x1b\\"),
        // It resets the terminal, but leaves the text.
        ("\x1b[4h\x1b[62\"p\x1b[64\"p\x1b[4$p", "\x1b[4;2$y"),
    ] {
        let told = fed(output).take_replies();
        assert_eq!(String::from_utf8(told).unwrap(), expected, "{output:?}");
    }
    let screen = fed("text\x1b[62\"p");
    let mut copy = fed("");
    copy.feed(&screen.snapshot());
    copy.feed(b"\x1b[4$p");
    assert_eq!((copy.row(0).as_str(), copy.take_replies().as_slice()), ("text", b"".as_slice()));
}

#[test]
fn modes_of_old_terminals() {
    // Known, switched and reported, though nothing is printed on paper.
    for mode in [4, 18, 19, 40, 41, 67] {
        let mut screen = fed(&format!("\x1b[?{mode}h\x1b[?{mode}$p"));
        assert_eq!(screen.take_replies(), format!("\x1b[?{mode};1$y").as_bytes());
        let mut copy = fed("");
        copy.feed(&screen.snapshot());
        assert_eq!(copy.modes(), screen.modes(), "{mode}");
    }
    // A tab after a full row: mode 41 decides where it goes.
    let full = "0123456789\t";
    assert_eq!(fed(&format!("{full}x")).row(1), "x");
    assert_eq!(fed(&format!("\x1b[?41h{full}x")).row(1), "        x");
    // A change of the column mode erases the screen where that is allowed; the width stays.
    let change = "text\x1b[2;3r\x1b[?3hx";
    assert_eq!(fed(change).row(0), "xext");
    assert_eq!(fed(&format!("\x1b[?40h{change}")).row(0), "x");
    // Backspace.
    let key: crate::Key = "backspace".parse().unwrap();
    assert_eq!(key.encode(&fed("").modes()), b"\x7f");
    assert_eq!(key.encode(&fed("\x1b[?67h").modes()), b"\x08");
}
