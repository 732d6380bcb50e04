//! Finding a project's server, and starting one in the background where there is none.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;
use patterm_host::state::StateDir;
use patterm_host::{Project, Settings};
use serde::{Deserialize, Serialize};

/// Variables that say who a caller is; a server must not carry them.
const CALLER_VARIABLES: [&str; 4] =
    ["PATTERM_IDENTITY", "PATTERM_IDENTITY_FILE", "PATTERM_SOCKET", "PATTERM_PROJECT_KEY"];

/// What a server in the background says of its start, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It serves, or another one did already.
    #[serde(rename = "serving")]
    Serving(Entry),
    /// It could not start.
    #[serde(rename = "failed")]
    Failed(String),
}

/// The current folder.
pub(crate) fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir()
        .context("cannot tell the current folder; if it is gone, change to another")
}

/// The project of the current folder.
pub(crate) fn project_here() -> anyhow::Result<Project> {
    Ok(Project::of(&here()?)?)
}

/// Connects to a server of our own user; `None` if nobody listens there.
pub(crate) fn connect(socket: &Path) -> anyhow::Result<Option<UnixStream>> {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    let stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ConnectionRefused | NotFound) => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("cannot connect to {}", socket.display())),
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    anyhow::ensure!(
        peer.uid == rustix::process::getuid(),
        "{} belongs to another user; nothing was sent to it",
        socket.display()
    );
    Ok(Some(stream))
}

/// The server of a project, started if need be, and whether it was.
pub(crate) fn find_or_start(project: &Project) -> anyhow::Result<(Entry, bool)> {
    let folders = RuntimeDir::candidates(None);
    let state = StateDir::from_env(project.key()).ok();
    for entry in registry::find(project.key(), &folders, state.as_ref()) {
        if connect(&entry.socket)?.is_some() {
            return Ok((entry, false));
        }
    }
    let mut tries = TRIES;
    loop {
        let output = begin_serve(project.root(), &[])?.wait_with_output()?;
        let entry = read_entry(&output.stdout, &output.stderr)?;
        tries -= 1;
        if tries == 0 || connect(&entry.socket)?.is_some() {
            return Ok((entry, true));
        }
    }
}

/// A server that was killed a moment ago may still hold its lock when nobody listens any more: then
/// it is taken for the one that runs, and the next try finds it gone.
const TRIES: u32 = 20;

/// Runs `patterm serve --json`, which ends as soon as a server serves.
pub(crate) fn begin_serve(project: &Path, options: &[String]) -> anyhow::Result<Child> {
    let mut command = own_command()?;
    command.arg("serve").arg("--json").args(options).current_dir(project);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start a server")
}

/// What `patterm serve --json` printed.
pub(crate) fn read_entry(stdout: &[u8], stderr: &[u8]) -> anyhow::Result<Entry> {
    serde_json::from_slice(stdout).map_err(|_| {
        let why = String::from_utf8_lossy(stderr);
        anyhow::anyhow!("cannot start a server: {}", why.trim().trim_start_matches("patterm: "))
    })
}

/// Starts the server that stays, and waits for its first word.
pub(crate) fn start_detached(settings: &Settings, options: &[String]) -> anyhow::Result<Report> {
    settings.state.ensure()?;
    let mut log = std::fs::OpenOptions::new();
    let log = log.create(true).append(true).mode(0o600).open(settings.log_file())?;
    patterm_keeper::descriptors::close_on_exec_above_stderr()?;
    let mut command = own_command()?;
    command.arg("serve").arg("--detached").args(options).current_dir(settings.project.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("cannot start a server")?;
    let mut line = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // To its end: by then the server has let go of everything that was its starter's.
        io::Read::read_to_string(&mut stdout, &mut line)?;
    }
    serde_json::from_str(&line).with_context(|| {
        format!("the server ended before it served; see {}", settings.log_file().display())
    })
}

/// This same binary, without what would tell a server that it is somebody.
#[expect(clippy::disallowed_methods, reason = "the background server is ours to start")]
fn own_command() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    for variable in CALLER_VARIABLES {
        command.env_remove(variable);
    }
    Ok(command)
}
