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

/// Writes a file of about `bytes` bytes, the same each time.
pub(crate) fn write(path: &Path, bytes: usize) -> anyhow::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let (mut written, mut number, mut state) = (0, 0u64, 0x9e37_79b9_7f4a_7c15_u64);
    while written < bytes {
        number += 1;
        let mut line = format!("{number} ");
        if number % 8 == 0 {
            line.push_str("\x1b[1;32mINFO\x1b[0m ");
        }
        // xorshift: lengths and words differ from line to line.
        for _ in 0..2 + state % 14 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            line.push_str(WORDS[(state % WORDS.len() as u64) as usize]);
            line.push(' ');
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
