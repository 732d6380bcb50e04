//! Recorded output of real programs, compared with the exact grids it must give.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::{Screen, Size};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

/// The rows, then the cursor and other visible state.
fn describe(screen: &Screen) -> String {
    let mut text = String::new();
    for row in 0..screen.size().rows {
        let mark = if screen.wraps(row) { '\\' } else { '|' };
        let _ = writeln!(text, "{}{mark}", screen.row(row));
    }
    let (cursor, modes) = (screen.cursor(), screen.modes());
    let _ = writeln!(
        text,
        "cursor {},{} {} alternate {} paste {} keys {} mouse {:?} title {:?} history {}",
        cursor.row,
        cursor.column,
        if cursor.visible { "shown" } else { "hidden" },
        modes.alternate_screen,
        modes.bracketed_paste,
        modes.application_cursor,
        modes.mouse,
        screen.title(),
        screen.history().lines(0).count(),
    );
    text
}

fn check(name: &str) {
    let bytes = std::fs::read(folder().join(name).with_extension("bytes")).unwrap();
    let grid = folder().join(name).with_extension("grid");
    for piece in [bytes.len(), 1, 7, 1_000] {
        let mut screen = Screen::new(Size::DEFAULT);
        bytes.chunks(piece).for_each(|piece| screen.feed(piece));
        if std::env::var_os("PATTERM_WRITE_GRIDS").is_some() {
            std::fs::write(&grid, describe(&screen)).unwrap();
        }
        let expected = std::fs::read_to_string(&grid).unwrap();
        assert_eq!(describe(&screen), expected, "{name} in pieces of {piece}");
        let mut copy = Screen::new(Size::DEFAULT);
        copy.feed(&screen.snapshot());
        assert_eq!(copy.rows(), screen.rows(), "{name}: the snapshot");
    }
}

#[test]
fn recordings() {
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bytes"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    names.iter().for_each(|name| check(name));
}
