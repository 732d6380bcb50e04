//! Programs for panes, each printing in its own way: `count MS` numbered lines, `burst FILE SECONDS`
//! a file at intervals, `draw MS` full screens, `brief SECONDS` a few lines before it exits.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str).context("see the first lines");
    match argument(0)? {
        "count" => count(Duration::from_millis(argument(1)?.parse()?)),
        "burst" => burst(&std::fs::read(argument(1)?)?, Duration::from_secs(argument(2)?.parse()?)),
        "draw" => draw(Duration::from_millis(argument(1)?.parse()?)),
        "brief" => {
            print(b"begun\n")?;
            pause(Duration::from_secs(argument(1)?.parse()?));
            print(b"over\n")
        }
        other => anyhow::bail!("there is no `{other}`"),
    }
}

fn count(every: Duration) -> anyhow::Result<()> {
    for number in 1_u64.. {
        print(format!("count {number} {}\n", ".".repeat(40)).as_bytes())?;
        pause(every);
    }
    Ok(())
}

fn burst(text: &[u8], every: Duration) -> anyhow::Result<()> {
    loop {
        print(text)?;
        pause(every);
    }
}

/// Draws every cell of the alternate screen, in changing colours.
fn draw(every: Duration) -> anyhow::Result<()> {
    print(b"\x1b[?1049h\x1b[2J")?;
    for number in 0_u64.. {
        let mut frame = String::from("\x1b[?2026h");
        for row in 1..=24_u64 {
            let colour = 16 + (number + row) % 200;
            frame += &format!("\x1b[{row};1H\x1b[38;5;{colour}m{:<78}", number * row);
        }
        frame += "\x1b[?2026l";
        print(frame.as_bytes())?;
        pause(every);
    }
    Ok(())
}

fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes)?;
    Ok(output.flush()?)
}

#[expect(clippy::disallowed_methods, reason = "a rate is a matter of time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
