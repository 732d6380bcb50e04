//! Finds a project's server, and starts one in the background if there is none.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use patterm_host::enclosing_keeper::EnclosingKeeper;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{Project, Settings, log, minimal_environment};
use patterm_keeper::Environment;
use patterm_store::state::StateDir;
use patterm_wire::environment::CallerEnvironment;
use patterm_wire::requests::{ServerEntry, StartRequest, StartServer};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::errors::UnknownMethod;
use crate::{find, systemd};

pub(crate) use crate::find::{KEEPER_PATIENCE, connect, find_running, is_served};

/// Variables that identify a caller; a server must not inherit them.
const CALLER_VARIABLES: [&str; 4] =
    ["PATTERM_IDENTITY", "PATTERM_IDENTITY_FILE", "PATTERM_SOCKET", "PATTERM_PROJECT_KEY"];

/// How the start of a background server ended, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StartReport {
    /// It is serving, or another one was already.
    #[serde(rename = "serving")]
    Serving(ServerEntry),
    /// It could not start.
    #[serde(rename = "failed")]
    Failed(String),
}

/// The current folder.
pub(crate) fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir()
        .context("cannot determine the current folder; if it was removed, change to another")
}

/// These variables and the current folder, as a server gets them. After `-C`, the inherited PWD names the old folder.
pub(crate) fn caller_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> anyhow::Result<CallerEnvironment> {
    let here = here()?;
    let is_here = |shown: &OsStr| Path::new(shown).canonicalize().is_ok_and(|at| at == here);
    let corrected =
        variables.into_iter().map(|(name, value)| match name == "PWD" && !is_here(&value) {
            true => (name, here.clone().into_os_string()),
            false => (name, value),
        });
    let environment = CallerEnvironment::new(corrected);
    Ok(CallerEnvironment { working_dir: Some(here.clone()), ..environment })
}

/// The project of the current folder.
pub(crate) fn project_here() -> anyhow::Result<Project> {
    Ok(Project::of(&here()?)?)
}

/// The server of a project, and whether it had to be started.
pub(crate) fn find_or_start(project: &Project) -> anyhow::Result<(ServerEntry, bool)> {
    if find_running(project)?.is_none() {
        find::wait_for_replacement(project)?;
    }
    if let Some(entry) = find_running(project)? {
        return Ok((entry, false));
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

/// A server that was just killed may still hold its lock when it no longer listens. It is then mistaken for
/// a running one, and the next attempt finds it gone.
const TRIES: u32 = 20;

/// Runs `patterm serve --json`, which exits as soon as a server is serving.
pub(crate) fn begin_serve(project: &Path, options: &[String]) -> anyhow::Result<Child> {
    let mut command = own_command()?;
    command.arg("serve").arg("--json").args(options).current_dir(project);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start a server")
}

/// Parses the output of `patterm serve --json`.
pub(crate) fn read_entry(stdout: &[u8], stderr: &[u8]) -> anyhow::Result<ServerEntry> {
    serde_json::from_slice(stdout).map_err(|_| {
        let why = String::from_utf8_lossy(stderr);
        anyhow::anyhow!("cannot start a server: {}", why.trim().trim_start_matches("patterm: "))
    })
}

/// Makes sure that a server is serving. If the project has a keeper, only that starts one. From a pane of
/// another project, that project's server starts it outside of all panes. Otherwise it is started here.
pub(crate) fn start_detached(
    settings: &Settings,
    options: &[String],
) -> anyhow::Result<StartReport> {
    let key = settings.project.key();
    let mut folders = RuntimeDir::candidates(None);
    folders.insert(0, settings.runtime.clone());
    let kept = registry::kept_server(key, &folders, Some(&settings.state), KEEPER_PATIENCE)?;
    if let Some(entry) = kept {
        return Ok(StartReport::Serving(entry));
    }
    match EnclosingKeeper::of_this_process() {
        None => start_here(settings, options, None),
        Some(around) => match start_by(&around, settings)? {
            Some(entry) => Ok(StartReport::Serving(entry)),
            // An older server cannot; then at least nothing of this pane's environment is inherited.
            None => start_here(settings, options, Some(minimal_environment())),
        },
    }
}

/// Starts the next server after a handover: from this binary, or in a pane by the keeper.
pub(crate) fn start_next(
    settings: &Settings,
    previous: Option<&PreviousServer>,
) -> anyhow::Result<StartReport> {
    let stays = previous.is_some_and(|previous| previous.stays);
    let options: Vec<_> = stays.then(|| systemd::STAY.to_owned()).into_iter().collect();
    match EnclosingKeeper::of_this_process() {
        None => start_here(settings, &options, None),
        Some(_) => start_detached(settings, &options),
    }
}

/// The program and the environment of a server that is about to be replaced, for the case that its successor
/// does not start.
pub(crate) struct PreviousServer {
    /// Open, so that it can be run even if its file was replaced.
    program: Option<File>,
    environment: Vec<(OsString, OsString)>,
    /// systemd started it, so its successor stays, too.
    stays: bool,
}

impl PreviousServer {
    pub(crate) fn of(entry: &ServerEntry) -> Self {
        let process = PathBuf::from(format!("/proc/{}", entry.pid));
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let environment = environment.split(|byte| *byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_owned());
            Some((text(&variable[..at]), text(&variable[at + 1..])))
        });
        Self {
            environment: environment.collect(),
            program: File::open(process.join("exe")).ok(),
            stays: systemd::stays(&process),
        }
    }
}

/// Starts the previous server again. A keeper does so by itself.
pub(crate) fn start_again(
    settings: &Settings,
    previous: &PreviousServer,
) -> anyhow::Result<ServerEntry> {
    let folders = RuntimeDir::candidates(None);
    let key = settings.project.key();
    let kept = registry::kept_server(key, &folders, Some(&settings.state), KEEPER_PATIENCE)?;
    if let Some(entry) = kept {
        return Ok(entry);
    }
    let program = previous.program.as_ref().context("its program could not be opened")?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd());
    let mut command = patterm_command(Path::new(&path));
    command.env_clear().envs(previous.environment.iter().cloned());
    match start_server(settings, command, &[])? {
        StartReport::Serving(entry) => Ok(entry),
        StartReport::Failed(why) => anyhow::bail!(why),
    }
}

/// Asks the server of the project in whose pane this runs to start another project's server. `None` if it
/// cannot.
fn start_by(around: &EnclosingKeeper, settings: &Settings) -> anyhow::Result<Option<ServerEntry>> {
    let folders = RuntimeDir::candidates(Some(&around.keeper_socket));
    let state = StateDir::from_env(&around.key).ok();
    let entries = registry::find(&around.key, &folders, state.as_ref());
    let mut stream = entries.iter().find_map(|entry| connect(&entry.socket).ok().flatten());
    if stream.is_none() {
        let server = registry::kept_server(&around.key, &folders, state.as_ref(), KEEPER_PATIENCE)?;
        stream = server.and_then(|entry| connect(&entry.socket).ok().flatten());
    }
    let Some(stream) = stream else { return Ok(None) };
    let request = StartRequest {
        folder: settings.project.root().to_owned(),
        message_bytes: Some(settings.limits.message_bytes),
        log_bytes: Some(settings.limits.log_bytes),
    };
    match Client::over(stream).call::<StartServer>(&request) {
        Ok(reply) => Ok(Some(reply.result)),
        Err(error) if error.is::<UnknownMethod>() => Ok(None),
        Err(error) => Err(error).with_context(|| {
            let project = settings.project.root().display();
            format!("the server of this pane's own project cannot start the server of {project}")
        }),
    }
}

/// Starts the background server and waits for its report.
fn start_here(
    settings: &Settings,
    options: &[String],
    environment: Option<Environment>,
) -> anyhow::Result<StartReport> {
    let mut command = own_command()?;
    if let Some(environment) = environment {
        command.env_clear().envs(environment);
    }
    start_server(settings, command, options)
}

/// Runs a server that stays, and waits for its report.
fn start_server(
    settings: &Settings,
    mut command: Command,
    options: &[String],
) -> anyhow::Result<StartReport> {
    settings.state.ensure()?;
    let log_file = settings.log_file();
    let log = log::append_to(&log_file)
        .with_context(|| format!("cannot write the log {}", log_file.display()))?;
    patterm_keeper::descriptors::close_on_exec_above_stderr()?;
    command.arg("serve").arg("--detached").args(options).current_dir(settings.project.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("cannot start a server")?;
    let mut line = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // To the end of the stream: by then the server has detached from its starter.
        io::Read::read_to_string(&mut stdout, &mut line)?;
    }
    serde_json::from_str(&line)
        .with_context(|| format!("the server ended during its start; see {}", log_file.display()))
}

/// This binary, without the variables that identify a caller.
fn own_command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = patterm_command(&program);
    for variable in CALLER_VARIABLES {
        command.env_remove(variable);
    }
    Ok(command)
}

#[expect(clippy::disallowed_methods, reason = "the background server is ours to start")]
fn patterm_command(program: &Path) -> Command {
    Command::new(program)
}
