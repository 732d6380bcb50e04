//! From a key to its echo, through all of patterm and of tmux: keys are written to the client's terminal,
//! and the time runs until the echo is drawn there, while other panes flood.

use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_bench::terminal::Terminal;
use patterm_screen::Size;

use crate::chart::{Axis, Chart, Group};
use crate::gate::Gate;
use crate::peers::is_installed;
use crate::row::{Row, Target, quantile};
use crate::session::{Tools, Workspace};
use crate::tmux::Tmux;
use crate::viewer::{open, until};
use crate::{Measured, long, text};

/// A large window.
const SIZE: Size = Size { rows: 48, columns: 160 };

/// The program that is typed into: it echoes each byte.
const QUIET: &str = "stty raw -echo; echo ready; exec cat";

/// Letters that nothing else prints. Each overwrites the last one, so that it is drawn only as an echo.
const LETTERS: std::ops::RangeInclusive<char> = 'а'..='я';

/// Rounds for each side, and keys in each, in the short and the long form.
const ROUNDS: [usize; 2] = [3, 5];
const KEYS: [usize; 2] = [120, 300];

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

/// Times of both sides.
struct Times {
    ours: Vec<Duration>,
    theirs: Vec<Duration>,
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let forms = [Flood::None, Flood::Beside, Flood::Hidden(1), Flood::Hidden(MANY)];
    let what = |flood: Flood, part: &str| format!("key to echo, {}: {part}", flood.name());
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for flood in forms {
        let target = match flood {
            Flood::None => Target::Less,
            _ => Target::AtMost(1.0),
        };
        if !is_installed("tmux") {
            rows.push(Row::missing(what(flood, "p99"), "tmux", target));
            continue;
        }
        let times = take(flood)?;
        rows.push(times.row(what(flood, "median"), 0.5, Target::Less));
        rows.push(times.row(what(flood, "p99"), 0.99, target));
        groups.push(times.group(flood.name()));
    }
    let title = "From key to echo: 99th percentile";
    let charts = vec![Chart::bars("echo", title, Axis::log("ms"), groups)];
    Ok(Measured { rows, charts })
}

fn take(flood: Flood) -> anyhow::Result<Times> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS[usize::from(long())] {
        ours.extend(patterm(flood)?);
        theirs.extend(tmux(flood)?);
    }
    Ok(Times { ours, theirs })
}

impl Times {
    fn at(&self, part: f64) -> (Duration, Duration) {
        (quantile(self.ours.clone(), part), quantile(self.theirs.clone(), part))
    }

    fn row(&self, what: String, part: f64, target: Target) -> Row {
        let (ours, theirs) = self.at(part);
        Row::times(what, ours, ("tmux", theirs), target)
    }

    fn group(&self, name: String) -> Group {
        let (ours, theirs) = self.at(0.99);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Group { name, bars: vec![("patterm".into(), ms(ours)), ("tmux".into(), ms(theirs))] }
    }
}

/// A round of patterm.
fn patterm(flood: Flood) -> anyhow::Result<Vec<Duration>> {
    let workspace = Workspace::with_log_bytes(LOG_BYTES)?;
    let mut gate = Gate::new(&workspace)?;
    let line = flooding(&workspace, &gate)?;
    let mut tools = workspace.connect()?;
    let quiet = tools.spawn(&["sh", "-c", QUIET])?;
    let client =
        format!("{} attach {quiet}", workspace.patterm(&[]).get_program().to_string_lossy());
    let (mut terminal, mut screen) = open(&workspace, &client, SIZE, "ready")?;
    let start = |tools: &mut Tools| tools.spawn(&["sh", "-c", &line]);
    match flood {
        Flood::None => {}
        Flood::Beside => {
            start(&mut tools)?;
            gate.open()?;
            until(&mut terminal, &mut screen, "2 running")?;
            terminal.type_in(b"\x02|")?;
            until(&mut terminal, &mut screen, "compiling")?;
            terminal.type_in(b"\x02o")?;
            until(&mut terminal, &mut screen, &format!(" {quiet} "))?;
        }
        Flood::Hidden(many) => {
            (0..many).try_for_each(|_| start(&mut tools).map(drop))?;
            gate.open()?;
        }
    }
    type_keys(terminal)
}

/// A round of tmux.
fn tmux(flood: Flood) -> anyhow::Result<Vec<Duration>> {
    let workspace = Workspace::new()?;
    let mut gate = Gate::new(&workspace)?;
    let line = flooding(&workspace, &gate)?;
    let server = Tmux::new(&workspace);
    let (mut terminal, mut screen) = open(&workspace, &server.client(QUIET), SIZE, "ready")?;
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
    type_keys(terminal)
}

/// A command line that floods once the gate is open.
fn flooding(workspace: &Workspace, gate: &Gate) -> anyhow::Result<String> {
    let file = workspace.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    Ok(format!("{}; while :; do cat {}; done", gate.wait(), file.display()))
}

/// Types keys one after the other and measures the time of each until its echo.
fn type_keys(mut terminal: Terminal) -> anyhow::Result<Vec<Duration>> {
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
    Ok(times.split_off(WARM_UP))
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
