//! Throughput of `Screen::feed` in MB/s for several kinds of output, and memory per line of history, to
//! compare changes. Optional arguments: megabytes of each kind, bytes per chunk, and a kind by its name: that one
//! alone, on the small screen, or on the large one with `large` after it, to count instructions on a busy machine:
//! `valgrind --tool=callgrind screen-throughput 4 16384 colours`, and again with 8; the difference is of 4 MB.

use std::fmt::Write as _;
use std::time::Instant;

use patterm_screen::{Screen, Size, Stripper};

/// Bytes that one read of a PTY returns, whatever the buffer size.
const PIECE: usize = 3_500;

const LARGE: Size = Size { rows: 50, columns: 200 };

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|it| it.parse().ok()).unwrap_or(default);
    let (megabytes, piece) = (number(32), number(PIECE));
    let only = arguments.next();
    let is_large = arguments.next().is_some_and(|size| size == "large");
    let many = |corpus: &str| {
        let mut bytes = Vec::with_capacity((megabytes << 20) + corpus.len());
        while bytes.len() < megabytes << 20 {
            bytes.extend_from_slice(corpus.as_bytes());
        }
        bytes
    };
    if let Some(only) = only {
        for (_, corpus) in corpora().iter().filter(|(name, _)| *name == only) {
            screen(if is_large { LARGE } else { Size::DEFAULT }, &many(corpus), piece);
        }
        return;
    }
    println!(
        "{:<22} {:>9} {:>9} {:>9} {:>12}",
        "", "80x24", "200x50", "stripper", "bytes per line"
    );
    for (name, corpus) in corpora() {
        let bytes = many(&corpus);
        let (small, line) = screen(Size::DEFAULT, &bytes, piece);
        let (large, _) = screen(LARGE, &bytes, piece);
        let stripped = rate(bytes.len(), || {
            let mut stripper = Stripper::default();
            bytes.chunks(piece).map(|piece| stripper.feed(piece).len()).sum::<usize>();
        });
        println!("{name:<22} {small:>9.0} {large:>9.0} {stripped:>9.0} {line:>12.1}");
    }
}

/// The rate, and bytes of memory for each line of history.
fn screen(size: Size, bytes: &[u8], piece: usize) -> (f64, f64) {
    let mut screen = Screen::new(size);
    let rate = rate(bytes.len(), || {
        for piece in bytes.chunks(piece) {
            screen.feed_flood(piece);
            // The server's budget, so that memory stays bounded here too.
            let over = screen.history().bytes().saturating_sub(8 << 20);
            if over > 0 {
                screen.history_mut().drop_oldest(over);
            }
        }
    });
    let history = screen.history();
    let lines = history.next_line() - history.first_line();
    (rate, history.bytes() as f64 / lines.max(1) as f64)
}

fn rate(bytes: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn corpora() -> Vec<(&'static str, String)> {
    let words = "the quick brown fox jumps over the lazy dog and keeps running through fields ";
    let mut plain = String::new();
    let mut long = String::new();
    let mut short = String::new();
    let mut colours = String::new();
    let mut wide = String::new();
    let mut letters = String::new();
    let mut joined = String::new();
    let mut redraw = String::new();
    let mut graphics = String::new();
    for i in 0..1_000 {
        let _ = write!(plain, "{i:>6} {}\r\n", &words[..(i * 7) % 60 + 10]);
        let _ = write!(long, "{}\r\n", words.repeat(4));
        let _ = write!(short, "{}\r\n", i % 10);
        let _ = write!(
            colours,
            "\x1b[32m{i:>6}\x1b[0m \x1b[1;34mINFO\x1b[0m \x1b[38;5;{}mmodule::name\x1b[0m: {}\r\n",
            i % 256,
            &words[..40]
        );
        let _ = write!(wide, "{i} 漢字の文字列をたくさん表示する 👍 🎉 é à ü\r\n");
        let _ =
            write!(letters, "{i} Größe naïve café → Ελληνικά Русский текст “quoted” … ✓ done\r\n");
        let _ = write!(joined, "{i} 👨\u{200d}👩\u{200d}👧 👍🏽 🇩🇪 ❤\u{fe0f} 🎉 e\u{301} क्षत ok\r\n");
        if i % 100 == 0 {
            let payload = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".repeat(80);
            let _ = write!(graphics, "\x1b_Gf=100,a=T,m=1;{payload}\x1b\\");
            let _ = write!(graphics, "\x1bPq#0;2;0;0;0#0{}\x1b\\\r\n", "~~@@vv@@~~$-".repeat(300));
        }
        let _ = write!(
            redraw,
            "\x1b[{};{}H\x1b[4{}m\x1b[K{}\x1b[0m\x1b[?25l\x1b[{};1H\x1b[2Kstatus {i}",
            i % 24 + 1,
            i % 60 + 1,
            i % 8,
            &words[..i % 20],
            i % 23 + 1,
        );
    }
    vec![
        ("plain lines", plain),
        ("long lines", long),
        ("lines of one character", short),
        ("colours", colours),
        ("CJK and emoji", wide),
        ("letters", letters),
        ("joined emoji", joined),
        ("TUI redraws", redraw),
        ("graphics", graphics),
    ]
}
