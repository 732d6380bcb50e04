//! A multiplexer's client on its own terminal, whose output is read as fast as it arrives.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_bench::terminal::Terminal;
use patterm_screen::{Screen, Size};

use crate::session::Workspace;

/// Longest wait for a text on the screen.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How often the reader checks whether to stop.
const POLL: Duration = Duration::from_millis(100);

/// The start of each frame of a program that draws in synchronized updates.
const FRAME: &[u8] = b"\x1b[?2026h";

/// Runs a client's command line on a terminal and waits until a text appears.
pub(crate) fn open(
    workspace: &Workspace,
    line: &str,
    size: Size,
    text: &str,
) -> anyhow::Result<(Terminal, Screen)> {
    let mut terminal =
        Terminal::start(workspace.command(Path::new("setsid")), &format!("exec {line}"), size)?;
    let mut screen = Screen::new(size);
    until(&mut terminal, &mut screen, text)?;
    Ok((terminal, screen))
}

/// Waits until a text appears on the terminal.
pub(crate) fn until(
    terminal: &mut Terminal,
    screen: &mut Screen,
    text: &str,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !screen.rows().join("\n").contains(text) {
        let bytes = terminal.read(deadline).with_context(|| screen.rows().join("\n"))?;
        anyhow::ensure!(!bytes.is_empty(), "no `{text}` on it:\n{}", screen.rows().join("\n"));
        screen.feed(bytes);
    }
    Ok(())
}

/// A client that is read by a thread until this is dropped.
pub(crate) struct Viewer {
    /// The client's process.
    pub(crate) pid: u32,
    counts: Arc<Counts>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    over: AtomicBool,
    bytes: AtomicU64,
    frames: AtomicU64,
}

impl Viewer {
    /// Runs a client's command line on a terminal of 24 rows and 80 columns, and waits until it has
    /// drawn something.
    pub(crate) fn start(workspace: &Workspace, line: &str) -> anyhow::Result<Self> {
        let (terminal, _) = open(workspace, line, Size::DEFAULT, "")?;
        Self::read(terminal)
    }

    /// Continues to read a client.
    pub(crate) fn read(mut terminal: Terminal) -> anyhow::Result<Self> {
        anyhow::ensure!(
            !terminal.read(Instant::now() + TIMEOUT)?.is_empty(),
            "the client draws nothing"
        );
        let (pid, counts) = (terminal.pid(), Arc::<Counts>::default());
        let told = counts.clone();
        let reader = std::thread::spawn(move || {
            let mut last: Vec<u8> = Vec::new();
            while !told.over.load(Ordering::Relaxed) {
                let Ok(bytes) = terminal.read(Instant::now() + POLL) else { return };
                told.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                // A marker split between two reads is found with the next.
                last.extend_from_slice(bytes);
                let frames = last.windows(FRAME.len()).filter(|window| *window == FRAME).count();
                told.frames.fetch_add(frames as u64, Ordering::Relaxed);
                last.drain(..last.len().saturating_sub(FRAME.len() - 1));
            }
        });
        Ok(Self { pid, counts, reader: Some(reader) })
    }

    /// Bytes and frames drawn so far.
    pub(crate) fn drawn(&self) -> (u64, u64) {
        (self.counts.bytes.load(Ordering::Relaxed), self.counts.frames.load(Ordering::Relaxed))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.counts.over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
