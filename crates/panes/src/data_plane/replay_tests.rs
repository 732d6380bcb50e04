//! Screens that are rebuilt from key frames, and those that are not, compared with the screen that was live.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;
use patterm_keeper::log::{KeyFrame, Log, Reader, SizeMark};
use patterm_screen::{Screen, Size, TerminalName};

use super::replay::{self, Replay};
use super::run::ProcessRun;
use crate::offset::Offset;
use crate::process::{ProcessId, RunNumber};
use crate::size;

const SIZE: Size = Size { rows: 12, columns: 40 };

/// The log of a program, and the screen of the server that ran it.
struct Live {
    dir: tempfile::TempDir,
    log: Log,
    pipe: (std::io::PipeReader, std::io::PipeWriter),
    screen: Screen,
    lines: u64,
    frames: u64,
    last_frame: u64,
}

impl Live {
    fn new(budget: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), budget).unwrap();
        let pipe = std::io::pipe().unwrap();
        Self { dir, log, pipe, screen: Screen::new(SIZE), lines: 0, frames: 0, last_frame: 0 }
    }

    fn print(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(30_000) {
            self.pipe.1.write_all(piece).unwrap();
            let end = self.log.end() + piece.len() as u64;
            while self.log.end() < end {
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                let left = (end - self.log.end()) as usize;
                self.log.read_from(&self.pipe.0, left).unwrap();
            }
            self.screen.feed(piece);
        }
    }

    /// Prints different lines of about 50 bytes.
    fn print_lines(&mut self, bytes: usize) {
        let mut text = Vec::new();
        while text.len() < bytes {
            let n = self.lines;
            self.lines += 1;
            let _ = write!(
                text,
                "\x1b[3{}mline {n}\x1b[m of {}\r\n",
                n % 8,
                "words ".repeat(n as usize % 9)
            );
        }
        self.print(&text);
    }

    fn resize(&mut self, size: Size) {
        let (before, after) = (size::for_terminal(self.screen.size()), size::for_terminal(size));
        let offset = self.screen.offset();
        self.log.reader().note_size(SizeMark { offset, before, after });
        self.screen.resize(size);
    }

    fn take_frame(&mut self) {
        let log = self.log.reader();
        let frame = replay::key_frame(&self.screen, RunNumber::FIRST, &log);
        if let Some(frame) = frame
            && log.put_key_frame(&frame).unwrap()
        {
            self.frames += 1;
            self.last_frame = frame.offset;
        }
    }

    fn replay(&self) -> Replay {
        Replay {
            run: RunNumber::FIRST,
            size: self.screen.size(),
            from: Offset::START,
            until: Offset::new(self.log.end()),
            version_base: 0,
            terminal_name: TerminalName::default(),
        }
    }

    fn indexes(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().flatten().map(|file| file.path());
        files.filter(|path| path.extension().is_some_and(|found| found == "index")).collect()
    }

    /// A run of the next server.
    fn run(&self) -> Arc<ProcessRun> {
        let (id, log) = (ProcessId::new(1), self.log.reader());
        Arc::new(ProcessRun::to_rebuild(id, RunNumber::FIRST, None, log, self.replay()))
    }
}

fn lines(screen: &Screen) -> Vec<(u64, u64, String)> {
    screen.lines(0).map(|line| (line.number, line.offset, line.text.into_owned())).collect()
}

/// Rebuilds everything; returns the screen, and the offset of the first frame that was used.
fn rebuild(replay: Replay, log: &Reader) -> (Screen, Option<u64>) {
    let replayed = replay.screen(log);
    let (mut screen, mut base) = (replayed.screen, replayed.base);
    let first = base.map(|base| base.offset.get());
    let mut parts = 0;
    while let Some(place) = base.filter(|_| screen.history().is_incomplete()) {
        parts += 1;
        let (above, next) = replay.older(log, place, 100 - parts);
        screen.history_mut().restore_older(above);
        base = next;
    }
    assert!(!screen.history().is_incomplete());
    (screen, first)
}

#[track_caller]
fn assert_same(screen: &Screen, live: &Screen) {
    assert_eq!((screen.size(), screen.rows()), (live.size(), live.rows()));
    let drawn = |screen: &Screen| String::from_utf8_lossy(&screen.snapshot()).into_owned();
    assert_eq!(drawn(screen), drawn(live));
    let (found, expected) = (lines(screen), lines(live));
    assert_eq!(found.len(), expected.len());
    let other = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert_eq!(other, None);
}

#[test]
fn a_screen_from_key_frames_is_the_same_as_the_live_one() {
    let mut live = Live::new(64 << 20);
    live.print_lines(500_000);
    for n in 0..8_u16 {
        live.take_frame();
        live.print_lines(150_000);
        if n % 3 == 2 {
            // It grows, and rows of the history come back.
            live.resize(Size::new(12 + n, 40 + 5 * n));
        }
        live.print_lines(150_000);
        live.print(b"\x1b[?1049h\x1b[2Jfull screen\x1b[?1049l\x1b[1;4mback ");
    }
    live.print(b"in the middle of \x1b[3");
    assert_eq!(live.frames, 8);
    let (mut screen, first) = rebuild(live.replay(), &live.log.reader());
    assert_eq!(first, Some(live.last_frame));
    assert!(live.log.end() - live.last_frame < 400_000, "the replay is bounded");
    assert_same(&screen, &live.screen);
    assert_eq!(screen.offset(), live.log.end());
    for screen in [&mut screen, &mut live.screen] {
        screen.feed(b"1mred\r\n");
    }
    assert_same(&screen, &live.screen);
}

#[test]
fn resizes_without_any_key_frame_are_replayed_at_their_places() {
    let mut live = Live::new(64 << 20);
    live.print(b"\x1b[?1049h");
    for n in 0..30 {
        live.print(format!("\x1b[H\x1b[2J{n}\x1b[9;30Hthere\x1b[12;1H0123456789").as_bytes());
        live.print_lines(300);
        live.resize(Size::new(5 + n * 7 % 30, 20 + n * 13 % 50));
    }
    let (screen, first) = rebuild(live.replay(), &live.log.reader());
    assert_eq!(first, None);
    assert_same(&screen, &live.screen);
}

#[test]
fn a_history_that_was_cleared_does_not_come_back() {
    let mut live = Live::new(64 << 20);
    live.print_lines(600_000);
    live.take_frame();
    live.print(b"\x1b[3Jcleared\r\n");
    live.print_lines(300_000);
    live.take_frame();
    live.print_lines(1_000);
    assert_eq!(live.frames, 2);
    let (screen, _) = rebuild(live.replay(), &live.log.reader());
    assert_same(&screen, &live.screen);
}

#[test]
fn an_index_that_cannot_be_used_costs_only_time() {
    let mut live = Live::new(64 << 20);
    live.print_lines(400_000);
    for _ in 0..3 {
        live.print_lines(300_000);
        live.resize(Size::new(live.screen.size().rows + 1, 40));
        live.print_lines(1_000);
        live.take_frame();
    }
    live.print_lines(40_000);
    assert_eq!(live.frames, 3);
    let log = live.log.reader();
    let kept: Vec<_> = live
        .indexes()
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    assert!(!kept.is_empty());
    let check = |expected: Option<u64>| {
        let (screen, first) = rebuild(live.replay(), &log);
        assert_same(&screen, &live.screen);
        assert_eq!(first, expected);
    };
    check(Some(live.last_frame));
    // Torn, empty, something else, a folder, gone.
    for (path, bytes) in &kept {
        std::fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    }
    check(log.key_frame(u64::MAX).map(|frame| frame.offset));
    for content in [&b""[..], b"patidx01", &[0; 9_000], &[0xff; 9_000]] {
        kept.iter().for_each(|(path, _)| std::fs::write(path, content).unwrap());
        check(None);
    }
    for (path, _) in &kept {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    }
    check(None);
    kept.iter().for_each(|(path, _)| std::fs::remove_dir(path).unwrap());
    check(None);
    // Frames of another version, of another offset, and of another run, each newer than the usable one.
    for (path, bytes) in &kept {
        std::fs::write(path, bytes).unwrap();
    }
    let newest = log.key_frame(u64::MAX).unwrap();
    let put = |offset: u64, bytes: Vec<u8>| {
        assert!(log.put_key_frame(&KeyFrame { offset, bytes }).unwrap());
    };
    let mut other = newest.bytes.clone();
    other[12] ^= 1;
    put(live.log.end() - 3_000, other);
    put(live.log.end() - 2_000, newest.bytes.clone());
    put(live.log.end() - 1_500, Vec::new());
    check(Some(live.last_frame));
    let mut other = newest.bytes.clone();
    other[0] ^= 2;
    put(live.log.end() - 1_000, other);
    check(None);
}

/// Steps of a program and its views, of which each server sees only the log.
#[test]
fn random_output_with_resizes_and_restarts_gives_the_same_screen() {
    let budget = if std::env::var_os("PATTERM_LONG").is_some() { 60_000 } else { 3_000 };
    arbtest(|u| {
        let mut live = Live::new(64 << 20);
        live.print_lines(330_000);
        for _ in 0..u.int_in_range(2..=8)? {
            random_step(u, &mut live)?;
        }
        live.screen.settle();
        let (screen, _) = rebuild(live.replay(), &live.log.reader());
        assert_same(&screen, &live.screen);
        // The next server continues.
        live.screen = screen;
        random_step(u, &mut live)?;
        let (screen, _) = rebuild(live.replay(), &live.log.reader());
        assert_same(&screen, &live.screen);
        Ok(())
    })
    .budget_ms(budget);
}

fn random_step(u: &mut Unstructured<'_>, live: &mut Live) -> Result<()> {
    match u.int_in_range(0..=6)? {
        0 | 1 => live.print_lines(u.int_in_range(1..=3_000)?),
        2 => live.resize(Size::new(u.int_in_range(1..=30)?, u.int_in_range(2..=90)?)),
        3 | 4 => live.take_frame(),
        5 => {
            let pieces = [
                "\x1b[?1049h",
                "\x1b[?1049l",
                "\x1b[3J",
                "\x1b[2J",
                "漢字",
                "\x1b[2;7r",
                "\x1b[",
                "x",
            ];
            live.print(u.choose(&pieces)?.as_bytes());
        }
        _ => live.print(&[b'w'; 90].repeat(u.int_in_range(1..=20)?)),
    }
    Ok(())
}

#[test]
fn an_older_patterm_that_resized_in_between_has_not_recorded_it() {
    let mut live = Live::new(64 << 20);
    live.print_lines(500);
    live.resize(Size::new(20, 60));
    live.print(b"\x1b[?1049h");
    // Only the terminal knows of this one.
    live.screen.resize(Size::new(10, 30));
    live.print(b"\x1b[H\x1b[2Jdrawn for another size\x1b[10;20Hhere");
    let (screen, _) = rebuild(live.replay(), &live.log.reader());
    assert_eq!((screen.size(), screen.rows()), (live.screen.size(), live.screen.rows()));
}

#[test]
fn a_resize_that_the_terminal_did_not_get_does_not_count() {
    let mut live = Live::new(64 << 20);
    live.print_lines(5_000);
    let offset = live.screen.offset();
    let (before, after) = (size::for_terminal(SIZE), size::for_terminal(Size::new(30, 80)));
    // The server was killed between the two.
    live.log.reader().note_size(SizeMark { offset, before, after });
    let (screen, _) = rebuild(live.replay(), &live.log.reader());
    assert_same(&screen, &live.screen);
}

#[test]
fn output_before_the_first_frame_that_is_left_is_numbered_to_its_end() {
    let mut live = Live::new(3 << 20);
    for _ in 0..9 {
        live.print_lines(600_000);
        live.take_frame();
    }
    let log = live.log.reader();
    assert!(log.start() > 1_000_000);
    let (screen, _) = rebuild(live.replay(), &log);
    let (found, expected) = (lines(&screen), lines(&live.screen));
    let first = found.iter().position(|line| expected.contains(line)).unwrap();
    assert!(first < 3, "only the line at which the log begins is cut");
    assert_eq!(found[first..], expected[expected.len() - (found.len() - first)..]);
    assert!(found.len() > 20_000, "{}", found.len());
}

#[test]
fn a_resize_waits_for_the_rows_that_it_brings_back() {
    let mut live = Live::new(64 << 20);
    live.print_lines(900_000);
    // No line continues above the screen.
    live.print(&b"short\r\n".repeat(14));
    live.take_frame();
    live.print(b"prompt");
    assert_eq!(live.frames, 1);
    let run = live.run();
    assert!(!run.rebuild());
    assert!(run.is_rebuilt() && !run.is_complete());
    // Fewer rows need none of the history.
    let small = Size::new(6, 40);
    assert!(!run.resize(Some(small)));
    assert_eq!(run.screen().size(), small);
    live.screen.resize(small);
    let large = Size::new(40, 100);
    run.resize(Some(large));
    assert_eq!((run.screen().size(), run.resizes()), (small, 1));
    live.screen.resize(large);
    while !run.is_complete() {
        run.rebuild();
    }
    assert_eq!(run.resizes(), 2);
    assert_same(&run.screen(), &live.screen);
    // Both are recorded for the next server.
    let sizes: Vec<_> = run.log.sizes(0, u64::MAX).iter().map(|mark| mark.after.rows).collect();
    assert_eq!(sizes, [6, 40]);
}

#[test]
fn whoever_needs_older_lines_waits_for_them() {
    let mut live = Live::new(64 << 20);
    live.print_lines(900_000);
    live.take_frame();
    live.print_lines(50_000);
    let run = live.run();
    let readers = [0, 3].map(|wanted| {
        let run = run.clone();
        std::thread::spawn(move || match wanted {
            0 => {
                let mut count = 0;
                run.visit_lines(0, |_| {
                    count += 1;
                    true
                });
                count
            }
            wanted => run.last_lines(wanted).len(),
        })
    });
    run.rebuild();
    assert_eq!(run.last_lines(100).len(), 100, "these are there");
    assert!(!run.is_complete());
    while !run.is_complete() {
        run.rebuild();
    }
    let counts = readers.map(|reader| reader.join().unwrap());
    assert_eq!(counts, [live.screen.lines(0).count(), 3]);
}

#[test]
fn the_screen_of_any_offset_is_what_it_was_then() {
    let mut live = Live::new(4 << 20);
    let mut then = Vec::new();
    for n in 0..24_u16 {
        live.print_lines(250_000);
        if n % 4 == 1 {
            live.resize(Size::new(10 + n, 40 + n));
        }
        if n % 3 == 0 {
            live.take_frame();
        }
        live.print(format!("\x1b[1;1Hat {n}").as_bytes());
        then.push((live.screen.offset(), live.screen.snapshot(), live.screen.size()));
        live.print(b"\x1b[2J\x1b[H");
    }
    let run = live.run();
    run.rebuild();
    let at = |offset: u64| run.screen_at(Offset::START, Offset::new(offset));
    let start = live.log.reader().start();
    assert!(start > 1_000_000);
    let mut shown = 0;
    for (offset, snapshot, size) in &then {
        match at(*offset) {
            Some(screen) => {
                assert_eq!(
                    (screen.size(), screen.snapshot() == *snapshot),
                    (*size, true),
                    "{offset}"
                );
                shown += 1;
            }
            None => assert!(*offset < start + 800_000, "{offset} is still there"),
        }
    }
    assert!(shown > 8 && shown < 24, "{shown}");
    assert!(at(0).is_none() && at(start).is_none());
    assert_eq!(at(live.log.end()).unwrap().rows(), live.screen.rows());
}

#[test]
fn a_recording_from_anywhere_ends_with_the_screen_of_its_end() {
    let budget = if std::env::var_os("PATTERM_LONG").is_some() { 60_000 } else { 3_000 };
    arbtest(|u| {
        let mut live = Live::new(64 << 20);
        live.print_lines(330_000);
        let mut places = vec![0, live.screen.offset()];
        for _ in 0..u.int_in_range(4..=12)? {
            random_step(u, &mut live)?;
            places.push(live.screen.offset());
        }
        live.screen.settle();
        let (from, end) = (Offset::new(*u.choose(&places)?), Offset::new(live.log.end()));
        let run = live.run();
        run.rebuild();
        let mut recording = run.recording(Offset::START, from, end).unwrap();
        while recording.advance() {
            recording.drop_history();
        }
        let screen = recording.screen();
        assert_eq!((screen.offset(), screen.size()), (end.get(), live.screen.size()));
        assert!(screen.snapshot() == live.screen.snapshot(), "from {from}");
        assert_eq!(recording.lost(), 0);
        Ok(())
    })
    .budget_ms(budget);
}
