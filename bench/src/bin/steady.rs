//! Prints a file repeatedly at a given rate.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Between two writes: short compared with a frame.
const PAUSE: Duration = Duration::from_millis(2);

#[expect(clippy::disallowed_methods, reason = "a rate is a matter of time")]
fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let text = std::fs::read(arguments.next().context("which file?")?)?;
    let rate: f64 = arguments.next().context("second argument: bytes per second")?.parse()?;
    let mut output = std::io::stdout().lock();
    let (start, mut printed) = (Instant::now(), 0_usize);
    loop {
        let due = (start.elapsed().as_secs_f64() * rate) as usize;
        while printed < due {
            let rest = &text[printed % text.len()..];
            printed += output.write(&rest[..rest.len().min(due - printed)])?;
        }
        std::thread::sleep(PAUSE);
    }
}
