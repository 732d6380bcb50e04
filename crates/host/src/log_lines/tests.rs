//! The lines of a log, however it was printed and wherever reading begins.

use std::io::Write;

use patterm_keeper::log::Log;

use super::source::{Begin, LineSource, SourceLine};

const NOW: u64 = 1_700_000_000_000;

/// A log that gets its bytes through a pipe.
struct Printed {
    _dir: tempfile::TempDir,
    log: Log,
    pipe: (std::io::PipeReader, std::io::PipeWriter),
}

impl Printed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), 64 << 20).unwrap();
        Self { _dir: dir, log, pipe: std::io::pipe().unwrap() }
    }

    fn print(&mut self, wall_ms: u64, bytes: &[u8]) {
        for piece in bytes.chunks(30_000) {
            self.pipe.1.write_all(piece).unwrap();
            let end = self.log.end() + piece.len() as u64;
            while self.log.end() < end {
                self.log.set_time(wall_ms);
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                self.log.read_from(&self.pipe.0, 16 << 10).unwrap();
            }
        }
    }

    fn lines(&self, begin: Begin, over: bool) -> Vec<SourceLine> {
        all(&mut LineSource::new(self.log.reader(), begin, over), over)
    }
}

fn all(source: &mut LineSource, over: bool) -> Vec<SourceLine> {
    let mut lines = Vec::new();
    loop {
        source.fill(over);
        match source.pop() {
            Some(line) => lines.push(line),
            None => return lines,
        }
    }
}

fn texts(lines: &[SourceLine]) -> Vec<String> {
    lines.iter().flat_map(|line| line.texts.clone()).collect()
}

const EVERYTHING: Begin = Begin::Last { lines: None, since_ms: None };

#[test]
fn reading_may_begin_at_every_line_time_and_count() {
    let mut printed = Printed::new();
    let mut expected = Vec::new();
    let mut seed = 7_u64;
    for n in 0..900_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
        let text = format!("{n} {}", "x".repeat((seed >> 40) as usize % 300));
        let (head, tail) = text.split_at((seed >> 20) as usize % (text.len() + 1));
        // A line is printed in two parts, and dated by its end.
        printed.print(NOW + n * 100, head.as_bytes());
        printed.print(NOW + n * 100 + 50, format!("{tail}\r\n").as_bytes());
        expected.push((text, Some(NOW + n * 100 + 50)));
    }
    let lines = printed.lines(EVERYTHING, false);
    // Times are less exact the older they are.
    let exact = lines.len() - 60;
    for (at, (line, (text, time_ms))) in lines.iter().zip(&expected).enumerate() {
        assert_eq!(line.texts, [text.as_str()]);
        assert!(at < exact || line.time_ms == *time_ms, "line {at}");
        assert!(line.time_ms <= *time_ms);
    }
    assert!(lines.len() == 900 && lines.is_sorted_by_key(|line| line.time_ms));
    for (at, line) in lines.iter().enumerate().step_by(13) {
        assert_eq!(printed.lines(Begin::At(line.end), false), lines[at + 1..]);
        let tail = Begin::Last { lines: Some(at as u64), since_ms: None };
        assert_eq!(printed.lines(tail, false), lines[900 - at..]);
        let since = Begin::Last { lines: None, since_ms: line.time_ms };
        let first = lines.iter().position(|other| other.time_ms >= line.time_ms).unwrap();
        assert_eq!(texts(&printed.lines(since, false)), texts(&lines[first..]), "line {at}");
    }
}

#[test]
fn an_unfinished_line_waits_for_its_end() {
    let mut printed = Printed::new();
    printed.print(NOW, b"one\ntw");
    let mut source = LineSource::new(printed.log.reader(), EVERYTHING, false);
    assert_eq!(texts(&all(&mut source, false)), ["one"]);
    assert_eq!(source.next_offset(), 4, "where another reader continues");
    printed.print(NOW + 1_000, b"o\nthr");
    let lines = all(&mut source, false);
    assert_eq!((texts(&lines), lines[0].time_ms), (vec!["two".to_owned()], Some(NOW + 1_000)));
    // The process ends.
    assert_eq!(texts(&all(&mut source, true)), ["thr"]);
    let last = |lines| Begin::Last { lines: Some(lines), since_ms: None };
    assert_eq!(texts(&printed.lines(last(1), true)), ["thr"]);
    assert_eq!(texts(&printed.lines(last(2), true)), ["two", "thr"]);
    assert_eq!(texts(&printed.lines(last(0), true)), [""; 0]);
    assert_eq!(texts(&printed.lines(last(1), false)), ["two"]);
    // The next run begins a new line.
    let end = printed.log.end();
    printed.print(NOW + 2_000, b"ee\n");
    let mut source = LineSource::new(printed.log.reader(), EVERYTHING, false);
    source.continue_with(printed.log.reader(), end);
    assert_eq!(texts(&all(&mut source, false)), ["one", "two", "thr", "ee"]);
}

#[test]
fn a_source_that_stops_does_not_chase_what_is_printed_meanwhile() {
    let mut printed = Printed::new();
    printed.print(NOW, b"one\ntwo\nthr");
    let mut source = LineSource::new(printed.log.reader(), EVERYTHING, false);
    source.stop_at_end();
    printed.print(NOW, b"ee\nfour\n");
    assert_eq!(texts(&all(&mut source, false)), ["one", "two"]);
}

#[test]
fn a_line_is_what_a_terminal_shows_of_it() {
    for (bytes, expected) in [
        (&b"plain\r\n"[..], &["plain"][..]),
        (b"\r\n", &[""]),
        (b"10%\r20%\r\r\n", &["20%"]),
        (b"50%\r\x1b[K\r\n", &["50%"]),
        (b"\x1b[31mred\x1b[0m \xc3\xa9\n", &["red é"]),
        (b"\x1b[1;1Htop\x1b[5;1Hbelow\n", &["top", "below"]),
        (b"\xff\xfe\x00\x07bin\n", &["\u{fffd}\u{fffd}bin"]),
        (b"\x1b]0;title\nafter\n", &["", "after"]),
    ] {
        let mut printed = Printed::new();
        printed.print(NOW, bytes);
        assert_eq!(texts(&printed.lines(EVERYTHING, false)), expected, "{bytes:?}");
    }
}

#[test]
fn a_line_without_an_end_comes_in_parts() {
    let mut printed = Printed::new();
    let long = "0123456789é".repeat(20_000);
    printed.print(NOW, long.as_bytes());
    printed.print(NOW, b"\nshort\n");
    let lines = texts(&printed.lines(EVERYTHING, false));
    assert!(lines.len() > 3 && lines.iter().all(|line| line.len() <= 64 << 10));
    assert_eq!(lines.concat(), format!("{long}short"));
}

#[test]
fn lost_output_is_counted_and_ends_a_line() {
    let mut printed = Printed::new();
    printed.print(NOW, b"one\nhalf");
    let end = printed.log.end();
    printed.log.skip_to(end + 1_000);
    printed.print(NOW + 500, b"rest\ntwo\n");
    let lines = printed.lines(EVERYTHING, false);
    assert_eq!(texts(&lines), ["one", "half", "rest", "two"]);
    assert_eq!(lines.iter().map(|line| line.lost).collect::<Vec<_>>(), [0, 0, 1_000, 0]);
}
