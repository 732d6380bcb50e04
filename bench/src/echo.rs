//! From a key to its echo, through all of patterm and of tmux: keys are written to the client's terminal,
//! and the time runs until the echo is drawn there, alone and while other panes flood. Server and client are also
//! asked how often a key woke them up and how long they worked for it: counts that depend less on the machine.
//!
//! `PATTERM_BENCH_OTHER` names another patterm binary, which is measured in the same alternating rounds.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_bench::terminal::Terminal;
use patterm_screen::Size;

use crate::chart::{Axis, Chart, Group};
use crate::gate::Gate;
use crate::peers::{is_installed, rounds};
use crate::row::{Row, Target, quantile, short};
use crate::session::{Tools, Workspace};
use crate::tmux::Tmux;
use crate::viewer::{open, until};
use crate::{Measured, long, proc, text};

/// The usual window and a large one.
const SIZES: [Size; 2] = [Size { rows: 24, columns: 80 }, Size { rows: 50, columns: 200 }];

/// The program that is typed into: it echoes each byte.
const QUIET: &str = "stty raw -echo; echo ready; exec cat";

/// Letters that nothing else prints. Each overwrites the last one, so that it is drawn only as an echo.
const LETTERS: std::ops::RangeInclusive<char> = 'а'..='я';

/// Rounds for each side, and keys in each, in the short and the long form.
const ROUNDS: [usize; 2] = [4, 6];
const KEYS: [usize; 2] = [100, 300];

/// The parts of the times that are reported.
const PARTS: [(&str, f64); 2] = [("median", 0.5), ("p99", 0.99)];

/// As many floods as in `flood`.
const MANY: usize = 200;

/// Keys at the beginning of a round that do not count.
const WARM_UP: usize = 10;

/// Longest wait for an echo.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest round; it ends with the keys measured so far.
const ROUND: Duration = Duration::from_secs(60);

/// Bytes printed over and over.
const TEXT_BYTES: usize = 1 << 20;

/// Output of each pane kept on disk: the disk is not what is measured.
const LOG_BYTES: u64 = 4 << 20;

/// Which panes flood, and whether they are visible.
#[derive(Debug, Clone, Copy)]
enum Flood {
    /// None.
    None,
    /// One, in a visible pane.
    Beside,
    /// This many, all hidden.
    Hidden(usize),
}

impl Flood {
    fn name(self) -> String {
        match self {
            Self::None => "alone".into(),
            Self::Beside => "a visible flood".into(),
            Self::Hidden(1) => "a hidden flood".into(),
            Self::Hidden(many) => format!("{many} hidden floods"),
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Side {
    /// The patterm that was built with the benchmarks.
    Ours,
    Tmux,
    /// Another patterm.
    Other(PathBuf),
}

impl Side {
    /// The sides, in the order in which they take turns.
    fn all() -> Vec<Self> {
        let other = std::env::var_os("PATTERM_BENCH_OTHER").map(|path| Self::Other(path.into()));
        let tmux = is_installed("tmux").then_some(Self::Tmux);
        [Self::Ours].into_iter().chain(tmux).chain(other).collect()
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Ours => "patterm",
            Self::Tmux => "tmux",
            Self::Other(_) => "the other patterm",
        }
    }
}

/// The results of all rounds of a side.
#[derive(Debug, Default)]
struct Typing {
    times: Vec<Duration>,
    /// Keys, wake-ups and time on a processor of server and client, the warm-up and the keys that move back included.
    keys: usize,
    wakeups: u64,
    cpu: Duration,
}

impl Typing {
    fn add(&mut self, round: Self) {
        self.times.extend(round.times);
        self.keys += round.keys;
        self.wakeups += round.wakeups;
        self.cpu += round.cpu;
    }

    fn at(&self, part: f64) -> Duration {
        quantile(self.times.clone(), part)
    }

    fn wakeups_per_key(&self) -> f64 {
        self.wakeups as f64 / self.keys.max(1) as f64
    }

    fn cpu_per_key(&self) -> Duration {
        self.cpu / u32::try_from(self.keys.max(1)).unwrap_or(u32::MAX)
    }
}

/// Alone: at most 1.3 times tmux's.
pub(crate) fn measure() -> anyhow::Result<Measured> {
    measure_all(&[Flood::None], "echo-alone", 1.3, true)
}

/// Beside a flood, visible or hidden: at most tmux's.
pub(crate) fn measure_flood() -> anyhow::Result<Measured> {
    measure_all(&[Flood::Beside, Flood::Hidden(1)], "echo", 1.0, false)
}

/// With many hidden floods: at most tmux's.
pub(crate) fn measure_floods() -> anyhow::Result<Measured> {
    measure_all(&[Flood::Hidden(MANY)], "echo-floods", 1.0, false)
}

fn measure_all(
    floods: &[Flood],
    chart: &'static str,
    most: f64,
    counts: bool,
) -> anyhow::Result<Measured> {
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for flood in floods {
        for size in SIZES {
            let name = format!("{}, {}×{}", flood.name(), size.columns, size.rows);
            let sides = take(*flood, size)?;
            rows.extend(rows_of(&name, &sides, most, counts));
            groups.push(group(name, &sides));
        }
    }
    let title = "From key to echo: 99th percentile";
    let charts = vec![Chart::bars(chart, title, Axis::log("ms"), groups)];
    Ok(Measured { rows, charts })
}

/// Measures all sides in alternating rounds.
fn take(flood: Flood, size: Size) -> anyhow::Result<Vec<(Side, Typing)>> {
    let mut sides: Vec<_> = Side::all().into_iter().map(|side| (side, Typing::default())).collect();
    for _ in 0..rounds(ROUNDS[usize::from(long())]) {
        for (side, typing) in &mut sides {
            typing.add(match side {
                Side::Ours => patterm(None, flood, size)?,
                Side::Other(program) => patterm(Some(program), flood, size)?,
                Side::Tmux => tmux(flood, size)?,
            });
        }
    }
    Ok(sides)
}

fn rows_of(name: &str, sides: &[(Side, Typing)], most: f64, counts: bool) -> Vec<Row> {
    let what = |part: &str| format!("key to echo, {name}: {part}");
    let Some(((_, ours), others)) = sides.split_first() else { return Vec::new() };
    let mut rows = Vec::new();
    if !others.iter().any(|(side, _)| *side == Side::Tmux) {
        rows.extend(PARTS.map(|(part, share)| {
            let row = Row::missing(what(part), "tmux", Target::AtMost(most));
            row.with_details(short(ours.at(share)))
        }));
    }
    for (side, theirs) in others {
        let peer = side.name();
        let target = if *side == Side::Tmux { Target::AtMost(most) } else { Target::Less };
        for (part, share) in PARTS {
            rows.push(Row::times(what(part), ours.at(share), (peer, theirs.at(share)), target));
        }
        if !counts {
            continue;
        }
        let wakeups = (peer, theirs.wakeups_per_key());
        let what_wakes = what("wake-ups of server and client per key");
        rows.push(Row::ratio(what_wakes, ours.wakeups_per_key(), wakeups, "", Target::Less));
        let cpu = (peer, theirs.cpu_per_key());
        let what_cpu = what("CPU time of server and client per key");
        rows.push(Row::times(what_cpu, ours.cpu_per_key(), cpu, Target::Less));
    }
    rows
}

fn group(name: String, sides: &[(Side, Typing)]) -> Group {
    let ms = |typing: &Typing| typing.at(0.99).as_secs_f64() * 1e3;
    let bars = sides.iter().map(|(side, typing)| (side.name().to_owned(), ms(typing))).collect();
    Group { name, bars }
}

/// A round of patterm.
fn patterm(other: Option<&PathBuf>, flood: Flood, size: Size) -> anyhow::Result<Typing> {
    let workspace = Workspace::with_log_bytes_of(other.map(PathBuf::as_path), LOG_BYTES)?;
    let mut gate = Gate::new(&workspace)?;
    let line = flooding(&workspace, &gate)?;
    let mut tools = workspace.connect()?;
    let quiet = tools.spawn(&["sh", "-c", QUIET])?;
    let client =
        format!("{} attach {quiet}", workspace.patterm(&[]).get_program().to_string_lossy());
    let (mut terminal, mut screen) = open(&workspace, &client, size, "ready")?;
    let start = |tools: &mut Tools| tools.spawn(&["sh", "-c", &line]);
    match flood {
        Flood::None => {}
        Flood::Beside => {
            start(&mut tools)?;
            gate.open()?;
            until(&mut terminal, &mut screen, "2 running")?;
            terminal.type_in(b"\x02|2\r")?;
            until(&mut terminal, &mut screen, "compiling")?;
            terminal.type_in(b"\x02o")?;
            until(&mut terminal, &mut screen, &format!(" {} ", quiet.trim_start_matches('p')))?;
        }
        Flood::Hidden(many) => {
            (0..many).try_for_each(|_| start(&mut tools).map(drop))?;
            gate.open()?;
        }
    }
    let server = workspace.server;
    type_keys(terminal, server)
}

/// A round of tmux.
fn tmux(flood: Flood, size: Size) -> anyhow::Result<Typing> {
    let workspace = Workspace::new()?;
    let mut gate = Gate::new(&workspace)?;
    let line = flooding(&workspace, &gate)?;
    let server = Tmux::new(&workspace);
    let (mut terminal, mut screen) = open(&workspace, &server.client(QUIET), size, "ready")?;
    match flood {
        Flood::None => {}
        Flood::Beside => {
            server.run(&["split-window", "-hd", &line])?;
            gate.open()?;
            until(&mut terminal, &mut screen, "compiling")?;
        }
        Flood::Hidden(many) => {
            (0..many).try_for_each(|_| server.run(&["new-window", "-d", &line]))?;
            gate.open()?;
        }
    }
    let pid = server.pid()?;
    type_keys(terminal, pid)
}

/// A command line that floods once the gate is open.
fn flooding(workspace: &Workspace, gate: &Gate) -> anyhow::Result<String> {
    let file = workspace.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    Ok(format!("{}; while :; do cat {}; done", gate.wait(), file.display()))
}

/// Types keys one after the other and measures the time of each until its echo, and what server and client do.
fn type_keys(mut terminal: Terminal, server: u32) -> anyhow::Result<Typing> {
    let pids = [server, terminal.pid()];
    let wakeups = || proc::wakeups(&pids).values().sum::<u64>();
    let cpu = || pids.iter().map(|pid| proc::cpu_precisely(*pid)).sum::<Duration>();
    let before = (wakeups(), cpu());
    let mut times = Vec::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let keys = WARM_UP + KEYS[usize::from(long())];
    let start = Instant::now();
    for letter in LETTERS.cycle().take(keys) {
        if start.elapsed() > ROUND && times.len() > WARM_UP {
            break;
        }
        let mut buffer = [0; 4];
        let letter = letter.encode_utf8(&mut buffer).as_bytes();
        let began = Instant::now();
        terminal.type_in(letter)?;
        see(&mut terminal, letter, began + TIMEOUT)?;
        times.push(began.elapsed());
        // Move back, then pause for a random time: keys must not be in step with the frames.
        terminal.type_in(b"\r")?;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        rest(&mut terminal, Duration::from_micros(5_000 + state % 20_000))?;
    }
    let keys = times.len() * 2;
    let (wakeups, cpu) = (wakeups().saturating_sub(before.0), cpu().saturating_sub(before.1));
    Ok(Typing { times: times.split_off(WARM_UP), keys, wakeups, cpu })
}

/// Reads until a letter is drawn.
fn see(terminal: &mut Terminal, letter: &[u8], deadline: Instant) -> anyhow::Result<()> {
    let mut last = Vec::new();
    loop {
        let bytes = terminal.read(deadline)?;
        anyhow::ensure!(!bytes.is_empty(), "no echo of a key");
        last.extend_from_slice(bytes);
        if last.windows(letter.len()).any(|window| window == letter) {
            return Ok(());
        }
        last.drain(..last.len().saturating_sub(letter.len() - 1));
    }
}

/// Reads for a while.
fn rest(terminal: &mut Terminal, time: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        terminal.read(deadline).context("the client is gone")?;
    }
    Ok(())
}
