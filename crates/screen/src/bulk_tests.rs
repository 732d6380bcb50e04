//! Lines in one chunk bypass the grid; byte by byte they do not. Both give the same screen and history.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use crate::bulk::{Bypassed, KeptRows, Then};
use crate::emulator::Emulator;
use crate::parser::Parser;
use crate::screen_tests::{budget, random_output};
use crate::{Screen, Size};

/// Everything that can be seen of a screen: the rows of the history as they are stored, and a snapshot. The offsets
/// of rows that begin with broken UTF-8 depend on the chunk.
fn describe(screen: &Screen, is_utf8: bool) -> String {
    let mut rows = screen.history().stored();
    if !is_utf8 {
        rows.iter_mut().for_each(|row| row.offset = 0);
    }
    let lines: Vec<_> = screen
        .lines(0)
        .map(|line| (line.number, line.offset * u64::from(is_utf8), line.text.into_owned()))
        .collect();
    let next = (screen.history().next_line(), screen.history().is_open());
    let shown = (screen.cursor(), String::from_utf8_lossy(&screen.snapshot()).into_owned());
    format!("{rows:#?}\n{lines:#?}\n{next:?}\n{shown:?}")
}

/// Feeds the bytes in chunks that end at `cuts`, as a flood and not, and byte by byte.
#[track_caller]
fn assert_same(size: Size, bytes: &[u8], cuts: &[usize]) {
    let [mut whole, mut flood, mut single] = [(); 3].map(|()| Screen::new(size));
    let mut from = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        whole.feed(&bytes[from..cut]);
        flood.feed_flood(&bytes[from..cut]);
        from = cut;
    }
    flood.settle();
    bytes.chunks(1).for_each(|byte| single.feed(byte));
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    let expected = describe(&single, is_utf8);
    for screen in [whole, flood] {
        let got = describe(&screen, is_utf8);
        if got != expected {
            let differ = got.lines().zip(expected.lines()).find(|(a, b)| a != b);
            panic!("{size:?}, cut at {cuts:?}: {differ:#?}\n{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!((screen.failures(), screen.offset()), (0, bytes.len() as u64));
    }
}

/// A piece of a line of a flood.
fn piece(u: &mut Unstructured<'_>) -> Result<&'static str> {
    const TEXT: [&str; 12] = [
        "abc",
        " ",
        "   ",
        "x",
        "hello world",
        "0123456789ab",
        "é",
        "漢字",
        "Größe",
        "→",
        "漢",
        "─┐",
    ];
    const STYLE: [&str; 16] = [
        "\x1b[m",
        "\x1b[0m",
        "\x1b[31m",
        "\x1b[1;34m",
        "\x1b[38;5;200m",
        "\x1b[38:2::1:2:3m",
        "\x1b[4m",
        "\x1b[24m",
        "\x1b[7m",
        "\x1b[27;39m",
        "\x1b[49m",
        "\x1b[39;49m",
        "\x1b[53;9m",
        "\x1b[K",
        "\x1b[0K",
        "\t",
    ];
    const CLUSTERS: [&str; 18] = [
        "e\u{301}",
        "👍",
        "👍🏽",
        "🏽",
        "❤\u{fe0f}",
        "⌚\u{fe0e}",
        "🇩🇪",
        "🇫",
        "क्ष",
        "षि",
        "👨\u{200d}👩",
        "\u{200d}",
        "\u{301}",
        "\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "각",
        "\u{3164}",
        "😀",
    ];
    const RARE: [&str; 22] = [
        "\x1b[41m",
        "\x1b[48;5;20m",
        "\x1b[58;5;3m",
        "\x1b[59m",
        "\x1b]8;;http://x\x07",
        "\x1b]8;;\x07",
        "\x1b[1\"q",
        "\x1b[0\"q",
        "\x1b[2C",
        "\x1b[5b",
        "\x1b[1K",
        "\x1b[J",
        "\r",
        "\n",
        "\x08",
        "\x7f",
        "\u{85}",
        "\x1b(0",
        "\x1b(B",
        "\x1bH",
        "\x1b[3g",
        "\x07",
    ];
    match u.int_in_range(0..=40)? {
        0..=19 => u.choose(&TEXT),
        20..=32 => u.choose(&STYLE),
        33..=39 => u.choose(&CLUSTERS),
        _ => u.choose(&RARE),
    }
    .copied()
}

/// Lines as programs print them in floods, with some that are not.
fn flood(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const MODES: [&str; 14] = [
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?69h\x1b[2;5s",
        "\x1b[?69l",
        "\x1b[2;3r",
        "\x1b[r",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?2027l",
        "\x1b[?2027h",
        "\x1b[20h",
        "\x1bc",
    ];
    // Lines of one kind are long enough for the bypass; one that is mixed into them ends it.
    let is_simple: bool = u.arbitrary()?;
    let mut bytes = Vec::new();
    while !u.is_empty() && bytes.len() < 8_000 {
        match u.int_in_range(0..=60)? {
            0 => bytes.extend_from_slice(&random_output(u)?),
            1 => bytes.extend_from_slice(u.choose(&MODES)?.as_bytes()),
            2 => bytes.push(u.arbitrary()?),
            _ => {}
        }
        for _ in 0..u.int_in_range(0..=6)? {
            let piece = piece(u)?;
            if !is_simple || piece.is_ascii() && !piece.contains('\x1b') {
                bytes.extend_from_slice(piece.as_bytes());
            }
        }
        bytes.extend_from_slice(b"\r\n");
    }
    Ok(bytes)
}

fn random_size(u: &mut Unstructured<'_>) -> Result<Size> {
    Ok(Size { rows: u.int_in_range(1..=6)?, columns: u.int_in_range(2..=24)? })
}

#[test]
fn a_flood_in_one_chunk_gives_the_same_screen_as_byte_by_byte() {
    arbtest(|u| {
        let (size, bytes) = (random_size(u)?, flood(u)?);
        let mut cuts = vec![0];
        while cuts[cuts.len() - 1] < bytes.len() {
            let longest = *u.choose(&[50, 600, 3_000])?;
            let cut = cuts[cuts.len() - 1] + u.int_in_range(1..=longest)?;
            cuts.push(cut.min(bytes.len()));
        }
        assert_same(size, &bytes, &cuts);
        Ok(())
    })
    .size_max(1 << 14)
    .budget_ms(2 * budget());
}

#[test]
fn a_flood_after_any_output_gives_the_same_screen_as_byte_by_byte() {
    arbtest(|u| {
        let size = random_size(u)?;
        let start = random_output(u)?;
        let bytes = [start.as_slice(), &flood(u)?].concat();
        assert_same(size, &bytes, &[start.len()]);
        Ok(())
    })
    .size_max(1 << 14)
    .budget_ms(2 * budget());
}

/// A screen of 4 rows and 20 columns after this output, with the cursor in the last row.
fn at_bottom(output: &str) -> Emulator {
    let mut emulator = Emulator::new(Size::new(4, 20));
    Parser::new().advance(format!("{output}\n\n\n\n\r").as_bytes(), &mut emulator);
    emulator
}

#[test]
fn lines_that_programs_print_in_floods_bypass_the_grid() {
    for line in [
        "plain",
        "",
        "longer than one row of this screen",
        "\x1b[31mred\x1b[0m \x1b[1;4;38;5;9mbold\x1b[22m and \x1b[48;2;1;2;3mblue\x1b[m",
        "\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K of grep",
        "a\ttab\tand\tanother\tone",
        "Größe, Ελληνικά, 漢字, 테스트",
        "漢字漢字漢字漢字漢字漢字漢字",
        "e\u{301} 👍🏽 🇩🇪 ❤\u{fe0f} 👨\u{200d}👩\u{200d}👧 क्षत",
    ] {
        let (mut emulator, line) = (at_bottom(""), format!("{line}\r\n"));
        assert!(emulator.can_bypass_grid());
        let (bytes, mut rows) = (line.repeat(20), KeptRows::default());
        let Bypassed { used, kept, then } = emulator.bypass_grid(bytes.as_bytes(), &mut rows);
        assert_eq!((used + kept, then), (bytes.len(), Then::End), "{line:?}");
        assert!(used >= 17 * line.len(), "{used} of {line:?}");
        // It goes on with what was left.
        let rest = [&bytes[used..], &line].concat();
        let next = emulator.bypass_grid(rest.as_bytes(), &mut rows);
        assert!(next.used > 0 && next.used + next.kept == rest.len(), "{next:?}");
    }
}

#[test]
fn what_only_the_grid_can_show_ends_the_bypass() {
    for piece in [
        "\x1b[2C",
        "\x1b[3;1H",
        "\x1b[41m",
        "\x1b[58;5;1mx",
        "\x1b]2;title\x07",
        "\x1b[6n",
        "\x08",
        "\x07",
        "\rover",
        "\n",
        "\u{301}x",
        "a\u{200d}\x1b[31m",
        "⌚\u{fe0e}",
        "\u{85}",
        "\x7f",
    ] {
        let mut emulator = at_bottom("");
        let bytes = ["line\r\n".repeat(20).as_str(), piece, "\r\n"].concat();
        let mut rows = KeptRows::default();
        let Bypassed { used, kept, then } = emulator.bypass_grid(bytes.as_bytes(), &mut rows);
        assert_eq!((used + kept, then), (20 * 6, Then::Unsupported), "{piece:?}");
    }
    for mode in [
        "\x1b[4h",
        "\x1b[?7l",
        "\x1b[1;3r",
        "\x1b[?69h\x1b[2;9s",
        "\x1b[?1049h",
        "\x1b(0",
        "\x1b[41m",
    ] {
        assert!(!at_bottom(mode).can_bypass_grid(), "{mode:?}");
    }
}
