//! A pane that is looked at and prints steadily: how often it is drawn, and what that costs; and
//! what a client costs that has nothing to draw.

use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_screen::Size;

use crate::peers::is_installed;
use crate::row::{Bar, Row, middle};
use crate::session::Place;
use crate::tmux::Tmux;
use crate::viewer::{Viewer, open};
use crate::{Measured, long, proc, text};

/// A large window.
const SIZE: Size = Size { rows: 48, columns: 160 };

/// Bytes that the pane prints in a second.
const RATE: u64 = 10_000_000;

/// Bytes printed over and over.
const TEXT_BYTES: usize = 1 << 20;

/// Turns taken by each side, and how long one is, in the short form and the long one.
const ROUNDS: usize = 3;
const SECONDS: [u64; 2] = [4, 20];

/// A program that prints nothing is called idle after ten seconds, and its observer sleeps from a
/// second later on.
const REST: Duration = Duration::from_secs(15);

/// For how long wake-ups are counted.
const QUIET: Duration = Duration::from_secs(10);

/// What a turn came to, for each second.
#[derive(Debug, Default)]
struct Turn {
    frames: f64,
    bytes: f64,
    /// Processor time of client and server.
    cpu: f64,
}

/// A part of what a turn came to.
type Part = fn(&Turn) -> f64;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(patterm()?);
        if is_installed("tmux") {
            theirs.push(tmux()?);
        }
    }
    let all = |turns: &[Turn], of: Part| middle(turns.iter().map(of).collect());
    let frames = all(&ours, |turn| turn.frames);
    let what = "a pane prints 10 MB/s, shown: frames";
    let mut rows = vec![Row::number(what, frames, "/s", Bar::AtMost(60.0))];
    let shown: [(&str, Part, &str); 2] = [
        ("the same: processor time of client and server", |turn| turn.cpu * 100.0, "%"),
        ("the same: bytes drawn in a second", |turn| turn.bytes / 1e3, "kB"),
    ];
    for (what, of, unit) in shown {
        let (ours, theirs) = (all(&ours, of), all(&theirs, of));
        rows.push(Row::ratio(what, ours, ("tmux", theirs), unit, Bar::Less));
    }
    rows.push(at_rest()?);
    Ok(rows.into())
}

/// The writer's command line.
fn writing(place: &Place) -> anyhow::Result<String> {
    let file = place.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    let steady = place.program("steady");
    Ok(format!("exec {} {} {RATE}", steady.get_program().to_string_lossy(), file.display()))
}

fn patterm() -> anyhow::Result<Turn> {
    let place = Place::new()?;
    let id = place.connect()?.spawn(&["sh", "-c", &writing(&place)?])?;
    let client = format!("{} attach {id}", place.patterm(&[]).get_program().to_string_lossy());
    let (terminal, _) = open(&place, &client, SIZE, "compiling")?;
    look(&Viewer::read(terminal)?, place.server)
}

fn tmux() -> anyhow::Result<Turn> {
    let place = Place::new()?;
    let server = Tmux::new(&place);
    let (terminal, _) = open(&place, &server.client(&writing(&place)?), SIZE, "compiling")?;
    look(&Viewer::read(terminal)?, server.pid()?)
}

fn look(viewer: &Viewer, server: u32) -> anyhow::Result<Turn> {
    let cpu = || anyhow::Ok(proc::cpu(server)? + proc::cpu(viewer.pid)?);
    let (start, before, (bytes, frames)) = (Instant::now(), cpu()?, viewer.drawn());
    proc::pause(Duration::from_secs(SECONDS[usize::from(long())]));
    let (bytes_now, frames_now) = viewer.drawn();
    let (spent, seconds) = (cpu()? - before, start.elapsed().as_secs_f64());
    Ok(Turn {
        frames: (frames_now - frames) as f64 / seconds,
        bytes: (bytes_now - bytes) as f64 / seconds,
        cpu: spent.as_secs_f64() / seconds,
    })
}

/// Wake-ups of everything of ours while somebody looks at programs that do nothing.
fn at_rest() -> anyhow::Result<Row> {
    let place = Place::new()?;
    let mut tools = place.connect()?;
    let id = tools.spawn(&["sh", "-c", "echo ready; exec cat"])?;
    tools.spawn(&["sleep", "1000000"])?;
    let client = format!("{} attach {id}", place.patterm(&[]).get_program().to_string_lossy());
    let (mut terminal, mut screen) = open(&place, &client, SIZE, "ready")?;
    let until = Instant::now() + REST;
    while Instant::now() < until {
        screen.feed(terminal.read(until).context("the client is gone")?);
    }
    let pids = proc::patterm_processes(place.folder());
    anyhow::ensure!(pids.contains(&terminal.pid()), "the client is not among {pids:?}");
    let before = proc::wakeups(&pids);
    let drawn = terminal.read(Instant::now() + QUIET)?.len();
    let after = proc::wakeups(&pids);
    let woken = |(thread, count): (_, &u64)| count - before.get(thread).unwrap_or(&0);
    let woken: u64 = after.iter().map(woken).sum();
    let per_second = woken as f64 / QUIET.as_secs_f64();
    let what = "at rest, somebody looking: wake-ups of all of patterm";
    let row = Row::number(what, per_second, "/s", Bar::AtMost(0.0));
    Ok(row.saying(format!("{} processes, {drawn} bytes drawn", pids.len())))
}
