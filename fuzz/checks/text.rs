//! What must hold of text of any kind: in cells, through resizes, and in floods. The fuzz targets and the test that
//! replays the corpus share it.

use patterm_screen::{Screen, Size, StyledRow, clusters, text_width};

/// What bytes below 0x20 stand for, so that a fuzzer finds clusters soon.
const PIECES: [&str; 32] = [
    "\r\n",
    "漢",
    "字",
    "e\u{301}",
    "か\u{3099}",
    "각",
    "\u{1100}",
    "\u{1161}",
    "👨",
    "\u{200d}",
    "👩",
    "👍",
    "\u{1f3fd}",
    "❤",
    "\u{fe0f}",
    "1\u{fe0f}\u{20e3}",
    "🇩",
    "🇪",
    "🏴\u{e0067}\u{e007f}",
    "क",
    "\u{94d}",
    "ष",
    "\u{93f}",
    "த்",
    "ก็",
    "ำ",
    "\u{600}",
    "\u{301}",
    "ü",
    "→",
    "\t",
    "  ",
];

/// Text that consists of these bytes: pieces, ASCII and whatever else is UTF-8. Without U+FE0E, which makes a wide
/// character narrow: a snapshot cannot draw that in the last column.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u32::from(character) {
                code @ 0..0x20 => text.push_str(PIECES[code as usize]),
                0x7f..0xa0 | 0xfe0e => {}
                _ => text.push(character),
            }
        }
    }
    text
}

fn size(rows: u8, columns: u8) -> Size {
    Size::new(u16::from(rows % 9) + 1, u16::from(columns % 30) + 2)
}

/// The lines, without blanks at their ends and at the end.
fn lines(screen: &Screen) -> String {
    let lines: Vec<_> =
        screen.lines(0).map(|line| line.text.trim_end_matches(' ').to_owned()).collect();
    lines.join("\n").trim_end_matches('\n').to_owned()
}

fn styled(screen: &Screen) -> Vec<StyledRow> {
    (0..screen.size().rows).map(|row| screen.styled_row(row)).collect()
}

/// The first two bytes are a size, the last ones others, two by two after the last 0xff. Lines survive all of them,
/// the rows fit, and a snapshot draws them again.
pub(crate) fn reflow(data: &[u8]) {
    let Some(([rows, columns], rest)) = data.split_first_chunk::<2>() else { return };
    let split = rest.iter().rposition(|byte| *byte == 0xff).unwrap_or(rest.len());
    let (printed, sizes) = (text(&rest[..split]), &rest[split..]);
    let mut screen = Screen::new(size(*rows, *columns));
    screen.feed(printed.trim_end().as_bytes());
    let expected = lines(&screen);
    for pair in sizes.get(1..).unwrap_or_default().chunks_exact(2).take(8) {
        let next = size(pair[0], pair[1]);
        screen.resize(next);
        assert_eq!(lines(&screen), expected, "{printed:?} at {next:?}");
        assert!(screen.cursor().row < next.rows && screen.cursor().column < next.columns);
        for row in 0..next.rows {
            let width = text_width(&screen.row(row));
            assert!(width <= usize::from(next.columns), "{printed:?} at {next:?}, row {row}");
        }
        let mut copy = Screen::new(next);
        copy.feed(&screen.snapshot());
        assert_eq!(styled(&copy), styled(&screen), "{printed:?} at {next:?}");
        assert_eq!(copy.cursor(), screen.cursor(), "{printed:?} at {next:?}");
    }
    assert_eq!(screen.failures(), 0);
}

/// The text of a line gives the same clusters and widths in cells and by itself, in whatever pieces it arrives.
pub(crate) fn clusters_agree(data: &[u8]) {
    let Some((step, rest)) = data.split_first() else { return };
    // A mark that comes first belongs to no character.
    let mut line = String::from("x");
    line.push_str(&text(rest).replace(['\r', '\n', '\t'], "."));
    let parts: Vec<_> = clusters(&line).collect();
    assert_eq!(parts.iter().map(|(part, _)| *part).collect::<String>(), line);
    assert_eq!(parts.iter().map(|(_, width)| width).sum::<usize>(), text_width(&line));
    assert!(parts.iter().all(|(_, width)| (1..=2).contains(width)), "{parts:?}");
    let columns = u16::try_from(text_width(&line) + 1).unwrap_or(u16::MAX);
    if columns > 2_000 || parts.iter().any(|(part, _)| part.chars().count() > 16) {
        return; // Not every mark is kept.
    }
    for step in [usize::from(*step).max(1), line.len()] {
        let mut screen = Screen::new(Size::new(2, columns));
        line.as_bytes().chunks(step).for_each(|piece| screen.feed(piece));
        assert_eq!(screen.row(0), line.trim_end_matches(' '), "by {step}");
        assert_eq!(usize::from(screen.cursor().column), text_width(&line), "{line:?} by {step}");
    }
}

/// Text of several screens with styles in between: the same as a flood, in pieces and at once. 0x7f stands for a style.
pub(crate) fn flood(data: &[u8]) {
    let Some(([rows, columns, step], rest)) = data.split_first_chunk::<3>() else { return };
    let mut printed = String::new();
    for (index, part) in rest.split(|byte| *byte == 0x7f).enumerate() {
        let style = ["\x1b[m", "\x1b[1;31m", "\x1b[48;5;9m", "\x1b[4;38;2;1;2;3m", "\x1b[K"];
        printed.push_str(if index == 0 { "" } else { style[part.len() % style.len()] });
        printed.push_str(&text(part));
    }
    let printed = format!("{printed}\r\n").repeat(12);
    let size = size(*rows, *columns);
    let [mut single, mut whole, mut pieces] = [(); 3].map(|()| Screen::new(size));
    printed.as_bytes().chunks(7).for_each(|piece| single.feed(piece));
    whole.feed_flood(printed.as_bytes());
    let step = 256 + usize::from(*step);
    printed.as_bytes().chunks(step).for_each(|piece| pieces.feed_flood(piece));
    let seen = |screen: &Screen| {
        let lines: Vec<_> = screen.lines(0).map(|line| format!("{line:?}")).collect();
        let older = screen.history().styled(size.columns, 0, usize::MAX);
        (lines, older, screen.snapshot())
    };
    for mut screen in [whole, pieces] {
        screen.settle();
        assert!(seen(&screen) == seen(&single), "{printed:?} at {size:?} by {step}");
    }
}
