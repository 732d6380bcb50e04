//! What must hold of a screen for any bytes that a program prints. The fuzz target and the test that
//! replays the corpus share it.

use patterm_screen::{Screen, Size};

fn rows(screen: &Screen) -> Vec<String> {
    screen.rows().iter().map(|row| row.trim_end().to_owned()).collect()
}

/// Everything of a screen that is seen, kept or said.
fn all(mut screen: Screen) -> String {
    let lines: Vec<String> = screen.lines(0).map(|line| format!("{line:?}")).collect();
    let seen = (rows(&screen), screen.cursor(), screen.modes(), screen.title().to_owned());
    let said = (screen.take_replies(), screen.take_notices(), screen.report().to_owned());
    format!("{seen:?} {said:?} {} {lines:?}", screen.offset())
}

fn fed(size: Size, stream: &[u8], step: usize) -> Screen {
    let mut screen = Screen::new(size);
    stream.chunks(step).for_each(|piece| screen.feed(piece));
    screen
}

/// The first three bytes say how large it is and how the rest is cut into reads. However that is, the
/// screen is the same; the cursor stands on it; a picture of it draws it again; another size is no harm.
pub(crate) fn screen(data: &[u8]) {
    let Some(([rows_wanted, columns, step], stream)) = data.split_first_chunk::<3>() else {
        return;
    };
    let size = Size::new(u16::from(rows_wanted % 12) + 1, u16::from(columns % 30) + 2);
    let whole = fed(size, stream, stream.len().max(1));
    assert_eq!((whole.failures(), whole.offset()), (0, stream.len() as u64));
    assert_eq!(whole.rows().len(), usize::from(size.rows));
    assert!(whole.cursor().row < size.rows && whole.cursor().column <= size.columns);
    let step = usize::from(*step).max(1);
    assert_eq!(all(fed(size, stream, step)), all(whole), "by {step}");
    // What was begun is ended first: a picture has no half sequences.
    let mut screen = fed(size, &[stream, b"\x18\x1b[m"].concat(), stream.len() + 8);
    let mut copy = Screen::new(size);
    copy.feed(&screen.snapshot());
    assert_eq!(rows(&screen), rows(&copy), "a picture draws it again");
    assert_eq!((screen.cursor(), screen.modes()), (copy.cursor(), copy.modes()));
    let other = Size::new(u16::from(step as u8 % 9) + 1, u16::from(columns % 50) + 1);
    screen.resize(other);
    let size = screen.size();
    assert_eq!(screen.failures(), 0);
    assert!(screen.cursor().row < size.rows && screen.cursor().column <= size.columns);
}
