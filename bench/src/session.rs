//! A place for a server of its own, and sessions with programs that speak JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;

/// Folders of this run, and a server in them.
pub(crate) struct Place {
    top: tempfile::TempDir,
    programs: PathBuf,
}

impl Place {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let programs = std::env::current_exe()?.parent().context("no folder")?.to_owned();
        let place = Self { top: tempfile::tempdir()?, programs };
        let served = place.patterm(&["serve"]).stdout(Stdio::null()).status()?;
        anyhow::ensure!(served.success(), "patterm serve: {served}");
        Ok(place)
    }

    /// The binary to measure.
    pub(crate) fn patterm(&self, arguments: &[&str]) -> Command {
        let mut command = self.program("patterm");
        command.args(arguments);
        command
    }

    /// A program that was built with this one.
    pub(crate) fn program(&self, name: &str) -> Command {
        self.command(&self.programs.join(name))
    }

    /// Any program, in this run's environment.
    #[expect(clippy::disallowed_methods, reason = "benchmarks start what they measure")]
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_RUNTIME_DIR", self.top.path())
            .env("XDG_STATE_HOME", self.top.path())
            .current_dir(self.top.path());
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.patterm(&["kill"]).stdout(Stdio::null()).status();
    }
}

/// A program that answers each line with a line.
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Session {
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, input, output, line: String::new() })
    }

    pub(crate) fn send(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self.input.write_all(line.as_bytes())?)
    }

    pub(crate) fn receive(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        self.output.read_line(&mut self.line)?;
        anyhow::ensure!(!self.line.is_empty(), "the program ended");
        Ok(&self.line)
    }

    /// Sends a line and waits for the answer.
    pub(crate) fn ask(&mut self, line: &str) -> anyhow::Result<&str> {
        self.send(line)?;
        self.receive()
    }

    /// The legacy handshake.
    pub(crate) fn handshake(&mut self) -> anyhow::Result<()> {
        self.ask(
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\
             \"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\
             \"clientInfo\":{\"name\":\"bench\",\"version\":\"0\"}}}\n",
        )?;
        self.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
