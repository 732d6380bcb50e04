//! A workspace with its own server, and sessions with programs that speak JSON lines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

/// Folders of this run, and a server in them.
pub(crate) struct Workspace {
    top: tempfile::TempDir,
    programs: PathBuf,
    /// The patterm to measure.
    patterm: PathBuf,
    /// Additional environment of everything started here.
    environment: HashMap<String, String>,
    /// The server's process.
    pub(crate) server: u32,
    socket: PathBuf,
    /// The address of its HTTP endpoint, if it has one.
    pub(crate) http: Option<std::net::SocketAddr>,
}

impl Workspace {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Self::with_log_bytes(64 << 20)
    }

    /// A server that keeps this much output of each process.
    pub(crate) fn with_log_bytes(bytes: u64) -> anyhow::Result<Self> {
        Self::with_log_bytes_of(None, bytes)
    }

    /// The same with another patterm than the one that was built with the benchmarks.
    pub(crate) fn with_log_bytes_of(patterm: Option<&Path>, bytes: u64) -> anyhow::Result<Self> {
        let flags = [format!("--max-log-bytes={bytes}")];
        Self::serving_by(patterm, &[&flags[0]], "", |_| Ok(HashMap::new()))
    }

    /// A server with these flags and user settings.
    pub(crate) fn serving(flags: &[&str], settings: &str) -> anyhow::Result<Self> {
        Self::serving_with(flags, settings, |_| Ok(HashMap::new()))
    }

    /// The same, with environment variables derived from the folder.
    pub(crate) fn serving_with(
        flags: &[&str],
        settings: &str,
        environment: impl FnOnce(&Path) -> anyhow::Result<HashMap<String, String>>,
    ) -> anyhow::Result<Self> {
        Self::serving_by(None, flags, settings, environment)
    }

    fn serving_by(
        patterm: Option<&Path>,
        flags: &[&str],
        settings: &str,
        environment: impl FnOnce(&Path) -> anyhow::Result<HashMap<String, String>>,
    ) -> anyhow::Result<Self> {
        let programs = std::env::current_exe()?.parent().context("no folder")?.to_owned();
        let patterm = patterm.map_or_else(|| programs.join("patterm"), Path::to_owned);
        let top = tempfile::tempdir()?;
        let environment = environment(top.path())?;
        let socket = PathBuf::new();
        let (server, http) = (0, None);
        let mut workspace = Self { top, programs, patterm, environment, server, socket, http };
        let of_user = workspace.folder().join("config/patterm");
        std::fs::create_dir_all(&of_user)?;
        std::fs::write(of_user.join("config.toml"), settings)?;
        workspace.find_server(flags)?;
        Ok(workspace)
    }

    /// Finds the server, which is started with these flags if there is none.
    pub(crate) fn find_server(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        let served = self.patterm(&["serve", "--json"]).args(flags).output()?;
        let entry: Value = serde_json::from_slice(&served.stdout).with_context(|| {
            format!("patterm serve: {}", String::from_utf8_lossy(&served.stderr))
        })?;
        self.server = entry["pid"].as_u64().context("no pid")?.try_into()?;
        self.socket = entry["socket"].as_str().context("no socket")?.into();
        self.http = entry["http"].as_str().and_then(|http| http.parse().ok());
        Ok(())
    }

    /// The folder of this run, removed at its end.
    pub(crate) fn folder(&self) -> &Path {
        self.top.path()
    }

    /// A connection to the server.
    pub(crate) fn connect(&self) -> anyhow::Result<Tools> {
        Ok(Tools { stream: BufReader::new(UnixStream::connect(&self.socket)?), last: 0 })
    }

    /// The binary to measure.
    pub(crate) fn patterm(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.patterm);
        command.args(arguments);
        command
    }

    /// A program built together with this one.
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
            .env("XDG_CONFIG_HOME", self.top.path().join("config"))
            .env("LANG", "C.UTF-8")
            .envs(&self.environment)
            .current_dir(self.top.path());
        command
    }
}

impl Drop for Workspace {
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

    /// Sends a line and waits for the response.
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

/// Tools called by their names over the server's socket.
pub(crate) struct Tools {
    stream: BufReader<UnixStream>,
    last: u64,
}

impl Tools {
    /// Calls a tool and waits for its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.ask(tool, arguments)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        anyhow::ensure!(answer.get("result").is_some(), "{tool} {arguments}: {line}");
        Ok(answer["result"].take())
    }

    /// The next response, to any call.
    pub(crate) fn answer(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Sets a timeout for responses; by default there is none.
    pub(crate) fn set_timeout(&self, time: Duration) -> anyhow::Result<()> {
        Ok(self.stream.get_ref().set_read_timeout(Some(time))?)
    }

    /// Calls a tool without waiting for the response.
    pub(crate) fn ask(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        self.last += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": tool, "params": arguments});
        Ok(self.stream.get_mut().write_all(format!("{request}\n").as_bytes())?)
    }

    /// Starts a program in a pane; returns its id.
    pub(crate) fn spawn(&mut self, argv: &[&str]) -> anyhow::Result<String> {
        let started = self.call("spawn_process", &json!({"argv": argv}))?;
        Ok(started["process_id"].as_str().context("no id")?.to_owned())
    }

    /// How many bytes a process has printed.
    pub(crate) fn output_offset(&mut self, id: &str) -> anyhow::Result<u64> {
        let status = self.call("get_process_status", &json!({"process_id": id}))?;
        status["output_offset"].as_u64().context("no offset")
    }
}
