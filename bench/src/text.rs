//! Text like real output: build output, logs with colours, some words that are not ASCII.

use std::io::{BufWriter, Write};
use std::path::Path;

const WORDS: [&str; 24] = [
    "compiling",
    "warning:",
    "unused",
    "variable",
    "crates/host/src/plane/reader.rs",
    "GET",
    "200",
    "/api/v1/projects",
    "finished",
    "release",
    "[optimized]",
    "target(s)",
    "in",
    "ms",
    "naïve",
    "日本語",
    "thread",
    "panicked",
    "at",
    "assertion",
    "left",
    "==",
    "right",
    "→",
];

/// Words that are not ASCII: letters with accents, other alphabets, East Asian text, symbols, emoji.
const FOREIGN: [&str; 12] = [
    "naïve",
    "日本語の出力",
    "→",
    "Größe",
    "Ελληνικά",
    "предупреждение:",
    "完了しました",
    "café",
    "✓",
    "테스트",
    "“quoted”",
    "🚀",
];

/// What the text consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Mostly ASCII, a few colours and words that are not.
    Mixed,
    /// ASCII without any sequence.
    Plain,
    /// ASCII with several colours in each line, as from a compiler or a logger.
    Coloured,
    /// Every second word is not ASCII.
    Unicode,
}

/// Writes a file of about `bytes` bytes of mixed text, the same each time.
pub(crate) fn write(path: &Path, bytes: usize) -> anyhow::Result<()> {
    write_kind(path, bytes, Kind::Mixed)
}

/// Writes a file of about `bytes` bytes, the same each time.
pub(crate) fn write_kind(path: &Path, bytes: usize, kind: Kind) -> anyhow::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let (mut written, mut number, mut state) = (0, 0u64, 0x9e37_79b9_7f4a_7c15_u64);
    while written < bytes {
        number += 1;
        let mut line = match kind {
            Kind::Coloured => format!("\x1b[2m{number}\x1b[0m \x1b[1;3{}mINFO\x1b[0m ", number % 8),
            Kind::Mixed if number % 8 == 0 => format!("{number} \x1b[1;32mINFO\x1b[0m "),
            _ => format!("{number} "),
        };
        // xorshift: lengths and words differ from line to line.
        for nth in 0..2 + state % 14 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let word = WORDS[(state % WORDS.len() as u64) as usize];
            let word = match kind {
                Kind::Unicode if nth % 2 == 0 => FOREIGN[(state % FOREIGN.len() as u64) as usize],
                Kind::Plain | Kind::Coloured if !word.is_ascii() => "build",
                _ => word,
            };
            match kind == Kind::Coloured && nth % 4 == 0 {
                true => line.push_str(&format!("\x1b[38;5;{}m{word}\x1b[39m ", state % 256)),
                false => {
                    line.push_str(word);
                    line.push(' ');
                }
            }
        }
        if number % 50_000 == 0 {
            line.push_str("connection refused by 10.0.0.7:5432");
        }
        line.push('\n');
        file.write_all(line.as_bytes())?;
        written += line.len();
    }
    Ok(file.flush()?)
}
