//! A visible pane that prints steadily: how often it is drawn and what that costs; and the cost of an idle
//! client.

use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_screen::Size;

use patterm_bench::terminal::Terminal;

use crate::peers::{is_installed, rounds};
use crate::row::{Row, Target, middle};
use crate::session::Workspace;
use crate::tmux::Tmux;
use crate::viewer::{Viewer, open};
use crate::{Measured, long, proc, text};

/// A large window.
const SIZE: Size = Size { rows: 48, columns: 160 };

/// Bytes that the pane prints in a second.
const RATE: u64 = 10_000_000;

/// Bytes printed repeatedly.
const TEXT_BYTES: usize = 1 << 20;

/// Rounds for each side, and their duration in the short and the long form.
const ROUNDS: usize = 3;
const SECONDS: [u64; 2] = [4, 20];

/// A program that prints nothing counts as idle after ten seconds, and its observer sleeps a second later.
const REST: Duration = Duration::from_secs(15);

/// The view's last check whether the server answers is over by then.
const LAST_CHECK: Duration = Duration::from_secs(3);

/// One check a second wakes up the view twice, for its timer and for the answer, and the server once or twice.
const FOCUSED_MOST: f64 = 5.0;

/// For how long wake-ups are counted.
const QUIET: Duration = Duration::from_secs(10);

/// The results of a round, per second.
#[derive(Debug, Default)]
struct Round {
    frames: f64,
    bytes: f64,
    /// CPU time of client and server.
    cpu: f64,
}

/// One result of a round.
type Part = fn(&Round) -> f64;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds(ROUNDS) {
        ours.push(patterm()?);
        if is_installed("tmux") {
            theirs.push(tmux()?);
        }
    }
    let all = |rounds: &[Round], of: Part| middle(rounds.iter().map(of).collect());
    let frames = all(&ours, |round| round.frames);
    let what = "a pane prints 10 MB/s, attached: frames";
    let mut rows = vec![Row::number(what, frames, "/s", Target::AtMost(60.0))];
    let shown: [(&str, Part, &str); 2] = [
        ("the same: CPU time of client and server", |round| round.cpu * 100.0, "%"),
        ("the same: bytes drawn per second", |round| round.bytes / 1e3, "kB"),
    ];
    for (what, of, unit) in shown {
        let (ours, theirs) = (all(&ours, of), all(&theirs, of));
        rows.push(Row::ratio(what, ours, ("tmux", theirs), unit, Target::Less));
    }
    rows.extend(idle_wakeups()?);
    Ok(rows.into())
}

/// The writer's command line.
fn writing(workspace: &Workspace) -> anyhow::Result<String> {
    let file = workspace.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    let steady = workspace.program("steady");
    Ok(format!("exec {} {} {RATE}", steady.get_program().to_string_lossy(), file.display()))
}

fn patterm() -> anyhow::Result<Round> {
    let workspace = Workspace::new()?;
    let id = workspace.connect()?.spawn(&["sh", "-c", &writing(&workspace)?])?;
    let client = format!("{} attach {id}", workspace.patterm(&[]).get_program().to_string_lossy());
    let (terminal, _) = open(&workspace, &client, SIZE, "compiling")?;
    look(&Viewer::read(terminal)?, workspace.server)
}

fn tmux() -> anyhow::Result<Round> {
    let workspace = Workspace::new()?;
    let server = Tmux::new(&workspace);
    let (terminal, _) = open(&workspace, &server.client(&writing(&workspace)?), SIZE, "compiling")?;
    look(&Viewer::read(terminal)?, server.pid()?)
}

fn look(viewer: &Viewer, server: u32) -> anyhow::Result<Round> {
    let cpu = || anyhow::Ok(proc::cpu(server)? + proc::cpu(viewer.pid)?);
    let (start, before, (bytes, frames)) = (Instant::now(), cpu()?, viewer.drawn());
    proc::pause(Duration::from_secs(SECONDS[usize::from(long())]));
    let (bytes_now, frames_now) = viewer.drawn();
    let (spent, seconds) = (cpu()? - before, start.elapsed().as_secs_f64());
    Ok(Round {
        frames: (frames_now - frames) as f64 / seconds,
        bytes: (bytes_now - bytes) as f64 / seconds,
        cpu: spent.as_secs_f64() / seconds,
    })
}

/// Wake-ups of all patterm processes while a view shows idle programs: with the focus, when the view checks once a
/// second whether the server still answers, and without it.
fn idle_wakeups() -> anyhow::Result<[Row; 2]> {
    let workspace = Workspace::new()?;
    let mut tools = workspace.connect()?;
    let id = tools.spawn(&["sh", "-c", "echo ready; exec cat"])?;
    tools.spawn(&["sleep", "1000000"])?;
    let client = format!("{} attach {id}", workspace.patterm(&[]).get_program().to_string_lossy());
    let (mut terminal, mut screen) = open(&workspace, &client, SIZE, "ready")?;
    let mut rest = |terminal: &mut Terminal, time| -> anyhow::Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            screen.feed(terminal.read(until).context("the client is gone")?);
        }
        Ok(())
    };
    rest(&mut terminal, REST)?;
    let what = "idle, with a view that has the focus: wake-ups of all patterm processes";
    let focused = wakeups(&workspace, &mut terminal, what, FOCUSED_MOST)?;
    terminal.type_in(b"\x1b[O")?;
    rest(&mut terminal, LAST_CHECK)?;
    let what = "idle, with a view without the focus: wake-ups of all patterm processes";
    Ok([focused, wakeups(&workspace, &mut terminal, what, 0.0)?])
}

/// Counts wake-ups for a while.
fn wakeups(
    workspace: &Workspace,
    terminal: &mut Terminal,
    what: &str,
    most: f64,
) -> anyhow::Result<Row> {
    let pids = proc::patterm_processes(workspace.folder());
    anyhow::ensure!(pids.contains(&terminal.pid()), "the client is not among {pids:?}");
    let before = proc::wakeups(&pids);
    let drawn = terminal.read(Instant::now() + QUIET)?.len();
    let after = proc::wakeups(&pids);
    let woken = |(thread, count): (_, &u64)| count - before.get(thread).unwrap_or(&0);
    let woken: u64 = after.iter().map(woken).sum();
    let per_second = woken as f64 / QUIET.as_secs_f64();
    let row = Row::number(what, per_second, "/s", Target::AtMost(most));
    Ok(row.with_details(format!("{} processes, {drawn} bytes drawn", pids.len())))
}
