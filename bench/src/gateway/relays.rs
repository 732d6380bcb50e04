//! The relays between HTTP and the server, each started as its documentation says.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::load::Endpoint;
use crate::peers::{installed, is_alone};
use crate::proc;
use crate::session::Workspace;

/// Even on a busy machine, a Node relay opens its port within this time.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The path of a server, with its number.
const PATH: &str = "/servers/plain{}/mcp";

/// The lengths of a token and of a session's id.
const TOKEN_BYTES: usize = 72;
const SESSION_BYTES: usize = 32;

/// The relays that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Patterm,
    Bare,
    RustProxy,
    NpmProxy,
    Supergateway,
    PypiProxy,
}

/// A running relay.
pub(crate) struct Relay {
    pub(crate) endpoint: Endpoint,
    /// The folder in which all its processes were started.
    folder: PathBuf,
    runs: Runs,
}

/// What to end when the relay is dropped.
enum Runs {
    Child(Child),
    Patterm(#[expect(dead_code, reason = "it ends when it is dropped")] Workspace),
}

/// Where the relays are installed.
pub(crate) struct Relays {
    installed: Option<PathBuf>,
}

impl Subject {
    /// patterm first, then its peers.
    pub(crate) const ALL: [Self; 6] = [
        Self::Patterm,
        Self::Bare,
        Self::RustProxy,
        Self::NpmProxy,
        Self::Supergateway,
        Self::PypiProxy,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Patterm => "patterm",
            Self::Bare => "bare hyper relay",
            Self::RustProxy => "mcp-proxy 0.6 (Rust)",
            Self::NpmProxy => "mcp-proxy 6.7 (npm)",
            Self::Supergateway => "supergateway 4.0 (npm), stateful",
            Self::PypiProxy => "mcp-proxy 0.13 (PyPI)",
        }
    }

    /// The program in the folder of the peers.
    fn program(self) -> &'static str {
        match self {
            Self::Patterm | Self::Bare => "",
            Self::RustProxy => "bin/mcp-proxy",
            Self::NpmProxy => "node_modules/.bin/mcp-proxy",
            Self::Supergateway => "node_modules/.bin/supergateway",
            Self::PypiProxy => "venv/bin/mcp-proxy",
        }
    }
}

impl Relays {
    pub(crate) fn new() -> Self {
        Self { installed: installed() }
    }

    /// Starts a relay in its own folder, in front of its own servers. Only patterm and the bare relay
    /// can have several.
    pub(crate) fn start(
        &self,
        subject: Subject,
        servers: usize,
        workspace: &Workspace,
    ) -> anyhow::Result<Relay> {
        if subject == Subject::Patterm {
            return patterm(workspace, servers);
        }
        anyhow::ensure!(!is_alone(), "peers are not measured in this run");
        let folder = workspace.folder().join(format!("{subject:?}"));
        std::fs::create_dir_all(&folder)?;
        let server = workspace.program("plain-server").get_program().to_owned();
        let server = server.to_str().context("the path of the server is not UTF-8")?;
        let mut endpoint =
            Endpoint { path: "/mcp".into(), tool: "echo".into(), ..Endpoint::default() };
        let mut command = match subject {
            Subject::Patterm | Subject::Bare => {
                // Headers as long as those for patterm.
                endpoint.path = PATH.into();
                endpoint.servers = servers;
                endpoint.token = Some("0".repeat(TOKEN_BYTES));
                endpoint.session = Some("0".repeat(SESSION_BYTES));
                let mut command = workspace.program("bare-relay");
                command.arg(server).arg(servers.to_string());
                command
            }
            _ => {
                let installed = self.installed.as_ref().map(|at| at.join(subject.program()));
                let program = installed.filter(|at| at.exists()).context("not installed")?;
                endpoint.port = free_port()?;
                let mut command = workspace.command(&program);
                arguments(subject, &mut command, &mut endpoint, &folder, server)?;
                command
            }
        };
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let log = std::fs::File::create(folder.join("log"))?;
        let mut child = command.stderr(log).spawn()?;
        if endpoint.port == 0 {
            let output = child.stdout.as_mut().context("no output")?;
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line)?;
            endpoint.port = line.trim().parse().context("no port was printed")?;
        }
        let relay = Relay { endpoint, folder, runs: Runs::Child(child) };
        relay.wait_for_port()?;
        Ok(relay)
    }
}

/// patterm with its HTTP endpoint, in its normal configuration.
fn patterm(workspace: &Workspace, servers: usize) -> anyhow::Result<Relay> {
    let server = workspace.program("plain-server");
    let program = server.get_program();
    let one = |number| format!("[servers.plain{number:0>2}]\ncommand = [{program:?}]\n");
    let settings: String = (0..servers).map(one).collect();
    let workspace = Workspace::serving(&["--http", "127.0.0.1:0"], &settings)?;
    let token = workspace.patterm(&["token", "new", "bench"]).output()?;
    let endpoint = Endpoint {
        port: workspace.http.context("the endpoint is not open")?.port(),
        path: PATH.into(),
        servers,
        tool: "echo".into(),
        token: Some(String::from_utf8(token.stdout)?.trim().to_owned()),
        ..Endpoint::default()
    };
    Ok(Relay { endpoint, folder: workspace.folder().to_owned(), runs: Runs::Patterm(workspace) })
}

/// The arguments of each relay.
fn arguments(
    subject: Subject,
    command: &mut Command,
    endpoint: &mut Endpoint,
    folder: &Path,
    server: &str,
) -> anyhow::Result<()> {
    let port = endpoint.port.to_string();
    match subject {
        Subject::RustProxy => {
            let text = format!(
                "[proxy]\nname = \"bench\"\nseparator = \"/\"\n\
                 [proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
                 [[backends]]\nname = \"plain\"\ntransport = \"stdio\"\ncommand = \"{server}\"\n"
            );
            let file = folder.join("proxy.toml");
            std::fs::write(&file, text)?;
            command.arg("--config").arg(file);
            endpoint.path = "/".into();
            endpoint.tool = "plain/echo".into();
        }
        Subject::NpmProxy => {
            command.args(["--port", &port, "--host", "127.0.0.1", "--server", "stream"]);
            command.args(["--", server]);
        }
        Subject::Supergateway => {
            command.args(["--stdio", server, "--outputTransport", "streamableHttp", "--stateful"]);
            command.args(["--port", &port, "--logLevel", "none"]);
        }
        Subject::PypiProxy => {
            command.args(["--port", &port, "--log-level", "ERROR", "--", server]);
        }
        Subject::Patterm | Subject::Bare => {}
    }
    Ok(())
}

impl Relay {
    fn wait_for_port(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.endpoint.port)).is_err() {
            anyhow::ensure!(
                start.elapsed() < START_TIMEOUT,
                "it did not start: {}",
                std::fs::read_to_string(self.folder.join("log"))?
            );
            proc::pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// CPU time of all its processes except the servers.
    pub(crate) fn cpu(&self) -> Duration {
        let all = proc::processes_in(&self.folder).into_iter();
        all.filter(|pid| !is_server(*pid)).filter_map(|pid| proc::cpu(pid).ok()).sum()
    }

    /// Memory in MiB, and the number of all its processes, including servers. Shared pages count once.
    pub(crate) fn memory(&self) -> (f64, usize) {
        proc::pss_and_count(&proc::processes_in(&self.folder))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Runs::Child(child) = &mut self.runs {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn is_server(pid: u32) -> bool {
    proc::link(pid, "exe").is_some_and(|exe| exe.ends_with("plain-server"))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
