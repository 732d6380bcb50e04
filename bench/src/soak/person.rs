//! A user with the TUI on a terminal: types, switches panes, scrolls, detaches and comes back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use patterm_bench::terminal::Terminal;
use patterm_screen::{Screen, Size};

use super::harness::Harness;
use super::{TIMEOUT, Worker};
use crate::viewer;

/// A large window.
const SIZE: Size = Size { rows: 48, columns: 160 };

/// How long a pane is viewed.
const POLL: Duration = Duration::from_secs(2);

/// Pause before typing into a pane.
const VISITS: &str = "visits of a person";

pub(super) struct Person {
    harness: Arc<Harness>,
    visits: usize,
}

impl Person {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), visits: 0 })
    }

    fn attach(&self, shell: &str) -> anyhow::Result<(Terminal, Screen)> {
        let workspace = &self.harness.workspace;
        let client =
            format!("{} attach {shell}", workspace.patterm(&[]).get_program().to_string_lossy());
        let opened = viewer::open(workspace, &client, SIZE, &format!(" {shell} "))?;
        self.harness.tui.store(opened.0.pid(), Ordering::Relaxed);
        Ok(opened)
    }
}

impl Worker for Person {
    const NAME: &str = "the person";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        self.visits += 1;
        let shell = &self.harness.shells[self.visits % 4];
        let (mut terminal, mut screen) = self.attach(shell)?;
        for line in 0..5 {
            let (visit, sum) = (self.visits, 40 + line);
            terminal.type_in(format!("echo typed-{visit}-$((40+{line}))\r").as_bytes())?;
            let text = format!("typed-{visit}-{sum}");
            viewer::until(&mut terminal, &mut screen, &text)?;
            self.harness.journal.did("lines typed");
            look(&mut terminal, &mut screen, POLL)?;
        }
        // Scroll back, and return.
        for keys in
            ["\x02[", "\x1b[5~", "\x1b[5~", "q", "\x02t", "\x1b", "\x02S", "\x1b", "\x02M", "\x1b"]
        {
            terminal.type_in(keys.as_bytes())?;
            look(&mut terminal, &mut screen, POLL / 2)?;
        }
        for _ in 0..6 {
            terminal.type_in(b"\x02j")?;
            look(&mut terminal, &mut screen, POLL)?;
            self.harness.journal.did("panes viewed");
        }
        terminal.type_in(b"\x02d")?;
        let deadline = Instant::now() + TIMEOUT;
        while terminal.read(deadline).is_ok_and(|bytes| !bytes.is_empty()) {}
        anyhow::ensure!(Instant::now() < deadline, "the TUI does not leave");
        self.harness.tui.store(0, Ordering::Relaxed);
        self.harness.journal.did(VISITS);
        Ok(())
    }
}

/// Reads for a while.
pub(super) fn look(
    terminal: &mut Terminal,
    screen: &mut Screen,
    time: Duration,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        screen.feed(terminal.read(deadline)?);
    }
    Ok(())
}
