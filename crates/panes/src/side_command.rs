//! Commands beside a process: probes and stop commands; and those of hooks. Each runs in a pane of its own, without a
//! terminal, and the keeper ends it with everything it started, whatever happens to this server.

use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use patterm_keeper::{Exit, Pane, PaneEvent, Program, ProgramStatus, Size};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::error::PaneError;
use crate::keeper_client::KeeperClient;
use crate::lifecycle::{KILL_PATIENCE, StartExtra};
use crate::panes::Panes;
use crate::process::{Process, ProcessId};

/// How much of a command's output is kept, from its end: one line of it is reported.
const OUTPUT_BYTES: usize = 4 << 10;

/// How much output is read after the end of the program: what a full pipe holds. Its children may print forever.
const LAST_OUTPUT_BYTES: usize = 64 << 10;

/// The longest line that is reported.
const LINE_CHARS: usize = 200;

/// The size in the record of a program without a terminal; nothing uses it.
const NO_TERMINAL: Size = Size { rows: 24, columns: 80 };

/// Why a command beside a process did not succeed.
#[derive(Debug, Error)]
pub enum SideCommandError {
    /// It could not be started.
    #[error("could not be started: {0}")]
    NotStarted(#[from] PaneError),
    /// It failed.
    #[error("{}{}", ended(*.exit), quoted(.line))]
    Failed {
        /// How it ended.
        exit: Option<Exit>,
        /// The last line of its output.
        line: String,
    },
    /// It took too long and was killed.
    #[error("did not end within {} s{}", .patience.as_secs_f64(), quoted(.line))]
    TimedOut {
        /// The time it had.
        patience: Duration,
        /// The last line of its output.
        line: String,
    },
}

impl SideCommandError {
    /// The error without the line of output, which may contain secrets: what the log gets.
    #[must_use]
    pub fn without_output(&self) -> String {
        match self {
            Self::Failed { exit, .. } => ended(*exit),
            Self::TimedOut { patience, .. } => {
                format!("did not end within {} s", patience.as_secs_f64())
            }
            other => other.to_string(),
        }
    }
}

fn ended(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("exited with code {code}"),
        Some(Exit::Signal(signal)) => format!("was killed by signal {signal}"),
        None => "was killed".into(),
    }
}

fn quoted(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!(": {line}") }
}

/// The command of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// A file of variables, relative to the project.
    pub env_file: Option<PathBuf>,
    /// Additional variables.
    pub variables: Vec<(String, String)>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// How long it may take.
    pub patience: Duration,
}

impl Panes {
    /// Runs a command with the environment and in the folder of a process. It is killed with everything it started
    /// when its program has exited, when it takes too long, or when this future is dropped.
    pub async fn run_beside(
        &self,
        process: &Process,
        argv: &[String],
        patience: Duration,
    ) -> Result<(), SideCommandError> {
        let mut program = self.program_of(process, &StartExtra::default())?;
        program.argv = argv.to_vec();
        let input = std::fs::File::open("/dev/null").map_err(not_started)?;
        self.run_aside(Some(process.id.clone()), program, input.into(), patience).await
    }

    /// Runs the command of a hook in the project's folder, with the environment of new programs. It ends as the
    /// commands beside processes do.
    pub async fn run_hook(&self, command: HookCommand) -> Result<(), SideCommandError> {
        let HookCommand { argv, env_file, variables, input, patience } = command;
        let working_dir = self.project.root().to_owned();
        let mut env = self.environments.of_new();
        if let Some(file) = env_file {
            env.extend(self.variables_in(&file).map_err(PaneError::from)?);
        }
        env.insert("PWD", &working_dir);
        env.extend(variables);
        let program = Program { argv, env, working_dir, size: NO_TERMINAL };
        let input = readable(&input).map_err(not_started)?;
        self.run_aside(None, program, input, patience).await
    }

    /// Runs a program without a terminal, beside a process or for a hook.
    async fn run_aside(
        &self,
        beside: Option<ProcessId>,
        program: Program,
        input: OwnedFd,
        patience: Duration,
    ) -> Result<(), SideCommandError> {
        let (mut output, [out, errors]) = Output::new().map_err(not_started)?;
        let streams = [input, out, errors];
        let number = self.side_commands.fetch_add(1, Ordering::Relaxed);
        let name = match &beside {
            Some(id) => format!("command {number} beside {id}"),
            None => format!("command {number} of a hook"),
        };
        let deadline = Instant::now() + patience;
        let begun = timeout_at(deadline, SidePane::begin(&self.keeper, name, program, streams));
        let Ok(side) = begun.await else {
            return Err(SideCommandError::TimedOut { patience, line: String::new() });
        };
        let side = side?;
        let _listed = self.side_panes.list(beside, &side.pane.pane);
        let ended = tokio::select! {
            status = side.until(|status| status.exit.is_some()) => Some(status),
            never = output.keep_reading() => match never {},
            () = sleep_until(deadline) => None,
        };
        output.read_rest();
        side.end().await;
        let line = output.last_line();
        match ended.map(|status| status.and_then(|status| status.exit)) {
            Some(Some(Exit::Code(0))) => Ok(()),
            Some(exit) => Err(SideCommandError::Failed { exit, line }),
            None => Err(SideCommandError::TimedOut { patience, line }),
        }
    }
}

/// A file in memory to read from, so that nobody has to write while the program reads.
fn readable(content: &[u8]) -> std::io::Result<OwnedFd> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("patterm-event", flags)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

fn not_started(error: std::io::Error) -> SideCommandError {
    let fault = patterm_keeper::SpawnFault::System;
    let error = patterm_keeper::SpawnError { fault, message: error.to_string() };
    SideCommandError::NotStarted(PaneError::Spawn(error))
}

/// The pane of a command.
struct SidePane {
    pane: HeldPane,
    events: UnixDatagram,
}

impl SidePane {
    async fn begin(
        keeper: &KeeperClient,
        name: String,
        program: Program,
        streams: [OwnedFd; 3],
    ) -> Result<Self, SideCommandError> {
        program.check().map_err(PaneError::Spawn)?;
        let pane = keeper.spawn(name.clone(), program, Some(streams)).await;
        let pane = pane.map_err(PaneError::Spawn)?;
        let pane = HeldPane { name, pane, keeper: keeper.clone(), released: false };
        let events = events(&pane.pane).map_err(not_started)?;
        Ok(Self { pane, events })
    }

    /// Waits for a status; returns the last one if the init is gone.
    async fn until(&self, wanted: impl Fn(&ProgramStatus) -> bool) -> Option<ProgramStatus> {
        loop {
            let event = self.pane.pane.next_event();
            let status = self.pane.pane.status().ok().flatten();
            if event == PaneEvent::Gone || status.as_ref().is_some_and(&wanted) {
                return status;
            }
            if event == PaneEvent::Quiet {
                // A read that finds nothing clears spurious readiness.
                let read = || match self.pane.pane.next_event() {
                    PaneEvent::Quiet => Err(std::io::ErrorKind::WouldBlock.into()),
                    event => Ok(event),
                };
                let Ok(_) = self.events.async_io(Interest::READABLE, read).await else {
                    return status;
                };
            }
        }
    }

    /// Kills what is left, waits for that, and releases the pane.
    async fn end(mut self) {
        let _ = self.pane.pane.kill();
        let _ = timeout(KILL_PATIENCE, self.until(|status| status.empty)).await;
        self.pane.released = true;
        release(self.pane.keeper.clone(), self.pane.name.clone()).await;
    }
}

/// The events of a pane. They are packets, but only the readiness of the socket matters.
fn events(pane: &Pane) -> std::io::Result<UnixDatagram> {
    let events = pane.events().as_fd().try_clone_to_owned()?;
    let events = std::os::unix::net::UnixDatagram::from(events);
    events.set_nonblocking(true)?;
    UnixDatagram::from_std(events)
}

/// A pane that the keeper holds. Everything in it is killed when this is dropped.
struct HeldPane {
    name: String,
    pane: Arc<Pane>,
    keeper: KeeperClient,
    released: bool,
}

impl Drop for HeldPane {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let _ = self.pane.kill();
        let (keeper, name) = (self.keeper.clone(), self.name.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(release(keeper, name));
        }
    }
}

async fn release(keeper: KeeperClient, name: String) {
    if let Err(error) = keeper.forget(name).await {
        tracing::error!(%error, "the keeper has not released the pane of a command yet");
    }
}

/// The end of a command's output.
struct Output {
    pipe: pipe::Receiver,
    kept: Vec<u8>,
}

impl Output {
    /// An output, and the standard output and error of the program.
    fn new() -> std::io::Result<(Self, [OwnedFd; 2])> {
        let (read, write) = std::io::pipe()?;
        let errors = write.try_clone()?;
        let pipe = pipe::Receiver::from_owned_fd(read.into())?;
        Ok((Self { pipe, kept: Vec::new() }, [write.into(), errors.into()]))
    }

    /// Reads as long as this is awaited, so that the program is never blocked.
    async fn keep_reading(&mut self) -> std::convert::Infallible {
        loop {
            if self.pipe.readable().await.is_err() || !self.read() {
                return std::future::pending().await;
            }
            // A program that prints without a pause must not keep this thread from everything else.
            tokio::task::consume_budget().await;
        }
    }

    /// Reads what is in the pipe.
    fn read_rest(&mut self) {
        let mut reads = LAST_OUTPUT_BYTES / OUTPUT_BYTES;
        let mut bytes = [0; OUTPUT_BYTES];
        while reads > 0
            && let Ok(count @ 1..) = self.pipe.try_read(&mut bytes)
        {
            self.keep(&bytes[..count]);
            reads -= 1;
        }
    }

    /// Reads once; `false` at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; OUTPUT_BYTES];
        match self.pipe.try_read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.keep(&bytes[..count]);
                true
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let excess = self.kept.len().saturating_sub(OUTPUT_BYTES);
        self.kept.drain(..excess);
    }

    /// The last line that is not empty, without control characters.
    fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        let plain = |line: &str| -> String {
            let plain = line.trim().chars().filter(|c| !c.is_control());
            plain.take(LINE_CHARS).collect()
        };
        text.lines().rev().map(plain).find(|line| !line.is_empty()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_the_log_contains_no_output() {
        let line = "password is s3cret".to_owned();
        let failed = SideCommandError::Failed { exit: Some(Exit::Code(3)), line: line.clone() };
        assert!(failed.to_string().contains("s3cret"));
        assert_eq!(failed.without_output(), "exited with code 3");
        let late = SideCommandError::TimedOut { patience: Duration::from_secs(2), line };
        assert_eq!(late.without_output(), "did not end within 2 s");
    }

    #[tokio::test]
    async fn only_the_last_line_of_a_long_output_is_reported() {
        let (mut output, _streams) = Output::new().unwrap();
        output.keep(&vec![b'x'; OUTPUT_BYTES * 3]);
        assert_eq!(output.last_line(), "x".repeat(LINE_CHARS));
        output.keep(b"\n  connection \x1b refused\r\n\n");
        assert_eq!(output.last_line(), "connection  refused");
        assert_eq!(output.kept.len(), OUTPUT_BYTES);
    }

    #[tokio::test]
    async fn a_program_that_prints_without_a_pause_leaves_time_for_other_tasks() {
        let (mut output, streams) = Output::new().unwrap();
        // More than a task may read before others have their turn.
        let bytes = rustix::pipe::fcntl_setpipe_size(&streams[0], 1 << 20).unwrap();
        let mut program = std::fs::File::from(streams[0].try_clone().unwrap());
        program.write_all(&vec![b'y'; bytes]).unwrap();
        output.pipe.readable().await.unwrap();
        tokio::select! {
            biased;
            never = output.keep_reading() => match never {},
            () = std::future::ready(()) => {}
        }
        let mut rest = vec![0; bytes];
        let unread = output.pipe.try_read(&mut rest).unwrap_or_default();
        assert!((1..bytes).contains(&unread), "{unread} of {bytes} bytes are unread");
    }

    #[test]
    fn errors_say_how_it_ended() {
        let failed =
            |exit, line: &str| SideCommandError::Failed { exit, line: line.to_owned() }.to_string();
        assert_eq!(failed(Some(Exit::Code(2)), "no"), "exited with code 2: no");
        assert_eq!(failed(Some(Exit::Signal(9)), ""), "was killed by signal 9");
        let patience = Duration::from_millis(1_500);
        let late = SideCommandError::TimedOut { patience, line: String::new() };
        assert_eq!(late.to_string(), "did not end within 1.5 s");
    }
}
