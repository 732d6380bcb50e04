//! From a key to its echo, through the whole of patterm and of tmux: the client on a terminal of our
//! own, keys written to that terminal, until what they print is drawn on it; while others flood.

use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_bench::terminal::Terminal;
use patterm_screen::Size;

use crate::chart::{Axis, Chart, Group};
use crate::gate::Gate;
use crate::peers::is_installed;
use crate::row::{Bar, Row, quantile};
use crate::session::{Place, Tools};
use crate::tmux::Tmux;
use crate::viewer::{open, until};
use crate::{Measured, long, text};

/// A large window.
const SIZE: Size = Size { rows: 48, columns: 160 };

/// What is typed into: it answers each byte by that byte.
const QUIET: &str = "stty raw -echo; echo ready; exec cat";

/// Letters that nothing else prints. Each stands where the last one stood, so that none is drawn
/// but as an echo.
const LETTERS: std::ops::RangeInclusive<char> = 'а'..='я';

/// Turns taken by each side, and keys in each, in the short form and the long one.
const ROUNDS: [usize; 2] = [3, 5];
const KEYS: [usize; 2] = [120, 300];

/// As many floods as in `flood`.
const MANY: usize = 200;

/// Keys that do not count at the beginning of a turn.
const WARM_UP: usize = 10;

/// How long an echo may take before it is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// A turn ends here with the keys that it has: who takes longer need not take all day.
const TURN: Duration = Duration::from_secs(60);

/// Bytes printed over and over.
const TEXT_BYTES: usize = 1 << 20;

/// Output of each pane kept on disk: the disk is not what is measured.
const LOG_BYTES: u64 = 4 << 20;

/// Who floods, and whether it is seen.
#[derive(Debug, Clone, Copy)]
enum Flood {
    /// Nobody.
    None,
    /// One, in a pane beside.
    Beside,
    /// So many, none of them shown.
    Hidden(usize),
}

impl Flood {
    fn name(self) -> String {
        match self {
            Self::None => "alone".into(),
            Self::Beside => "a flood beside".into(),
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
        let bar = match flood {
            Flood::None => Bar::Less,
            _ => Bar::AtMost(1.0),
        };
        if !is_installed("tmux") {
            rows.push(Row::missing(what(flood, "p99"), "tmux", bar));
            continue;
        }
        let times = take(flood)?;
        rows.push(times.row(what(flood, "median"), 0.5, Bar::Less));
        rows.push(times.row(what(flood, "p99"), 0.99, bar));
        groups.push(times.group(flood.name()));
    }
    let title = "From a key to its echo: one in a hundred takes longer than this";
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

    fn row(&self, what: String, part: f64, bar: Bar) -> Row {
        let (ours, theirs) = self.at(part);
        Row::times(what, ours, ("tmux", theirs), bar)
    }

    fn group(&self, name: String) -> Group {
        let (ours, theirs) = self.at(0.99);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Group { name, bars: vec![("patterm".into(), ms(ours)), ("tmux".into(), ms(theirs))] }
    }
}

/// A turn of patterm's.
fn patterm(flood: Flood) -> anyhow::Result<Vec<Duration>> {
    let place = Place::with_log_bytes(LOG_BYTES)?;
    let mut gate = Gate::new(&place)?;
    let line = flooding(&place, &gate)?;
    let mut tools = place.connect()?;
    let quiet = tools.spawn(&["sh", "-c", QUIET])?;
    let client = format!("{} attach {quiet}", place.patterm(&[]).get_program().to_string_lossy());
    let (mut terminal, mut screen) = open(&place, &client, SIZE, "ready")?;
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

/// A turn of tmux's.
fn tmux(flood: Flood) -> anyhow::Result<Vec<Duration>> {
    let place = Place::new()?;
    let mut gate = Gate::new(&place)?;
    let line = flooding(&place, &gate)?;
    let server = Tmux::new(&place);
    let (mut terminal, mut screen) = open(&place, &server.client(QUIET), SIZE, "ready")?;
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
fn flooding(place: &Place, gate: &Gate) -> anyhow::Result<String> {
    let file = place.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    Ok(format!("{}; while :; do cat {}; done", gate.wait(), file.display()))
}

/// Types keys as a person does, one after the other, and takes the time of each until its echo.
fn type_keys(mut terminal: Terminal) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let keys = WARM_UP + KEYS[usize::from(long())];
    let start = Instant::now();
    for letter in LETTERS.cycle().take(keys) {
        if start.elapsed() > TURN && times.len() > WARM_UP {
            break;
        }
        let mut buffer = [0; 4];
        let letter = letter.encode_utf8(&mut buffer).as_bytes();
        let began = Instant::now();
        terminal.type_in(letter)?;
        see(&mut terminal, letter, began + PATIENCE)?;
        times.push(began.elapsed());
        // Back to where it stood, and then any pause: no key may keep step with what is drawn.
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
        anyhow::ensure!(!bytes.is_empty(), "a key has no echo");
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
