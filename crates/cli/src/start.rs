//! Finding a project's server, and starting one in the background where there is none.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use patterm_host::registry::{self, Entry};
use patterm_host::runtime::{self, RuntimeDir};
use patterm_host::surroundings::Surroundings;
use patterm_host::{Project, START_METHOD, Settings, StartWish, log, minimal_environment};
use patterm_store::state::StateDir;
use serde::{Deserialize, Serialize};

use crate::client::{Client, Unknown};

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

/// Connects to a server of our own user; `None` if nobody of ours listens there.
pub(crate) fn connect(socket: &Path) -> anyhow::Result<Option<UnixStream>> {
    runtime::connect(socket).with_context(|| format!("cannot connect to {}", socket.display()))
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

/// How long a keeper may take to start a server: it pauses up to 5 s after one that died, and tries
/// again 10 s after one that did not come.
pub(crate) const KEEPER_PATIENCE: Duration = Duration::from_secs(20);

/// Sees to it that a server serves. Where a keeper lives, it alone starts one. From a pane of another
/// project it is that project's server who does, outside of all panes. Else it is started here.
pub(crate) fn start_detached(settings: &Settings, options: &[String]) -> anyhow::Result<Report> {
    let key = settings.project.key();
    let mut folders = RuntimeDir::candidates(None);
    folders.insert(0, settings.runtime.clone());
    let kept = registry::kept_server(key, &folders, Some(&settings.state), KEEPER_PATIENCE)?;
    if let Some(entry) = kept {
        return Ok(Report::Serving(entry));
    }
    match Surroundings::of_this_process() {
        None => start_here(settings, options, None),
        Some(around) => match start_by(&around, settings)? {
            Some(entry) => Ok(Report::Serving(entry)),
            // An older server cannot; then at least nothing of this pane's environment goes along.
            None => start_here(settings, options, Some(minimal_environment())),
        },
    }
}

/// Starts the server that follows one that handed over: this binary's, but in a pane the keeper does.
pub(crate) fn start_next(settings: &Settings) -> anyhow::Result<Report> {
    match Surroundings::of_this_process() {
        None => start_here(settings, &[], None),
        Some(_) => start_detached(settings, &[]),
    }
}

/// Has the server of the project in whose pane we run start another project's. `None` where it
/// cannot.
fn start_by(around: &Surroundings, settings: &Settings) -> anyhow::Result<Option<Entry>> {
    let folders = RuntimeDir::candidates(Some(&around.keeper_socket));
    let state = StateDir::from_env(&around.key).ok();
    let entries = registry::find(&around.key, &folders, state.as_ref());
    let mut stream = entries.iter().find_map(|entry| connect(&entry.socket).ok().flatten());
    if stream.is_none() {
        let server = registry::kept_server(&around.key, &folders, state.as_ref(), KEEPER_PATIENCE)?;
        stream = server.and_then(|entry| connect(&entry.socket).ok().flatten());
    }
    let Some(stream) = stream else { return Ok(None) };
    let wish = StartWish {
        folder: settings.project.root().to_owned(),
        message_bytes: Some(settings.limits.message_bytes),
        log_bytes: Some(settings.limits.log_bytes),
    };
    match Client::over(stream).call(START_METHOD, &serde_json::to_value(wish)?) {
        Ok(entry) => Ok(Some(serde_json::from_value(entry)?)),
        Err(error) if error.is::<Unknown>() => Ok(None),
        Err(error) => Err(error).with_context(|| {
            let project = settings.project.root().display();
            format!(
                "the server of the project in whose pane this runs cannot start that of {project}"
            )
        }),
    }
}

/// Starts the server that stays, and waits for its first word.
fn start_here(
    settings: &Settings,
    options: &[String],
    environment: Option<BTreeMap<String, String>>,
) -> anyhow::Result<Report> {
    settings.state.ensure()?;
    let log_file = settings.log_file();
    let log = log::append_to(&log_file)
        .with_context(|| format!("cannot write the log {}", log_file.display()))?;
    patterm_keeper::descriptors::close_on_exec_above_stderr()?;
    let mut command = own_command()?;
    if let Some(environment) = environment {
        command.env_clear().envs(environment);
    }
    command.arg("serve").arg("--detached").args(options).current_dir(settings.project.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("cannot start a server")?;
    let mut line = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // To its end: by then the server has let go of everything that was its starter's.
        io::Read::read_to_string(&mut stdout, &mut line)?;
    }
    serde_json::from_str(&line)
        .with_context(|| format!("the server ended before it served; see {}", log_file.display()))
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
