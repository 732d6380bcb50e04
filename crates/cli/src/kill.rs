//! `patterm kill`: ends servers and sees that they are gone.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use anyhow::Context;
use patterm_host::SHUTDOWN_METHOD;
use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;
use patterm_host::state::StateDir;
use patterm_wire::{Framing, Id, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::args::Kill;
use crate::said::{say, shown_path};
use crate::start;

/// How long a server may take to end: its own bounds add up to less than half of it.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(options: &Kill) -> anyhow::Result<()> {
    let folders = RuntimeDir::candidates(None);
    if options.all {
        if end_all(&registry::list(&folders))? == 0 {
            say("no servers run");
        }
        return Ok(());
    }
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    if end_all(&registry::find(project.key(), &folders, state.as_ref()))? > 0 {
        return Ok(());
    }
    if !registry::is_kept(project.key(), &folders) {
        say("no server runs for this project");
        return Ok(());
    }
    // The server was killed, but its programs live: the next one knows how to end them well.
    let (entry, _) = start::find_or_start(&project)?;
    end_all(&[entry]).map(drop)
}

/// Ends servers; returns how many there were.
fn end_all(entries: &[Entry]) -> anyhow::Result<usize> {
    let mut ended = 0;
    for entry in entries {
        // An entry whose server died by itself has nobody behind it.
        if let Some(stream) = start::connect(&entry.socket)? {
            end(entry, stream, SHUTDOWN_METHOD)?;
            say(&format!("ended the server of {} (pid {})", shown_path(&entry.project), entry.pid));
            ended += 1;
        }
    }
    Ok(ended)
}

/// Ends a server by one of its methods and waits until it is gone.
pub(crate) fn end(
    entry: &Entry,
    mut stream: std::os::unix::net::UnixStream,
    method: &str,
) -> anyhow::Result<()> {
    let what = || format!("cannot end the server with pid {}", entry.pid);
    // The kernel knows whose connection it is; the entry may be old.
    let pid = rustix::net::sockopt::socket_peercred(&stream).with_context(what)?.pid;
    let process = Pid::from_raw(pid.as_raw_nonzero().get())
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut line = Vec::new();
    let request = reply::request(&Id::from_number(1), method, None);
    Framing::Newline.encode(&request, &mut line);
    stream.set_read_timeout(Some(PATIENCE)).with_context(what)?;
    stream.write_all(&line).with_context(what)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).with_context(what)?;
    let answer: serde_json::Value = serde_json::from_str(&answer).with_context(what)?;
    if let Some(refusal) = answer.get("error") {
        anyhow::bail!("{}: {}", what(), refusal["message"].as_str().unwrap_or("it refuses"));
    }
    let Some(process) = process else { return Ok(()) };
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let gone = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience))?;
    anyhow::ensure!(gone > 0, "{}: it did not end within {PATIENCE:?}", what());
    Ok(())
}
