//! `patterm kill`: ends servers and sees that they are gone.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_host::SHUTDOWN_METHOD;
use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;
use patterm_host::shutdown::{EndReport, ShutdownBegun, ShutdownRequest};
use patterm_host::state::StateDir;
use patterm_wire::{Framing, Id, printable, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::args::Kill;
use crate::said::{say, shown_path};
use crate::start;

/// How long a server may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to end beside the grace time: its own bounds (calls in flight, shared
/// servers, the keeper) add up to less.
const PATIENCE: Duration = Duration::from_secs(40);

/// An end that takes longer than this is reported on.
const MOMENT: Duration = Duration::from_millis(700);

/// How often the report is read then.
const REPORT_PAUSE: Duration = Duration::from_millis(250);

pub(crate) fn run(options: &Kill) -> anyhow::Result<()> {
    let request = ShutdownRequest { grace_ms: options.grace_ms()? };
    let folders = RuntimeDir::candidates(None);
    if options.all {
        if end_all(&registry::list(&folders), request)? == 0 {
            say("no servers run");
        }
        return Ok(());
    }
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    if end_all(&registry::find(project.key(), &folders, state.as_ref()), request)? > 0 {
        return Ok(());
    }
    if !registry::is_kept(project.key(), &folders) {
        say("no server runs for this project");
        return Ok(());
    }
    // The server was killed, but its programs live: the next one knows how to end them well.
    let (entry, _) = start::find_or_start(&project)?;
    end_all(&[entry], request).map(drop)
}

/// Ends servers, all at the same time; returns how many there were.
fn end_all(entries: &[Entry], request: ShutdownRequest) -> anyhow::Result<usize> {
    let params = serde_json::to_string(&request)?;
    let mut ending = Vec::new();
    let mut failed = None;
    for entry in entries {
        // An entry whose server died by itself has nobody behind it.
        let begun = match start::connect(&entry.socket) {
            Ok(Some(stream)) => Ending::begin(entry, stream, SHUTDOWN_METHOD, Some(&params)),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match begun {
            Ok(begun) => ending.push(begun),
            Err(error) => keep_first(&mut failed, error),
        }
    }
    let count = ending.len();
    for server in ending {
        let (project, pid) = (server.entry.project.clone(), server.entry.pid);
        match server.wait() {
            Ok(()) => say(&format!("ended the server of {} (pid {pid})", shown_path(&project))),
            Err(error) => keep_first(&mut failed, error),
        }
    }
    failed.map_or(Ok(count), Err)
}

/// Errors beyond the first are printed at once.
fn keep_first(first: &mut Option<anyhow::Error>, error: anyhow::Error) {
    match first {
        None => *first = Some(error),
        Some(_) => warn(&format!("{error:#}")),
    }
}

/// Ends a server by one of its methods and waits until it is gone.
pub(crate) fn end(entry: &Entry, stream: UnixStream, method: &str) -> anyhow::Result<()> {
    Ending::begin(entry, stream, method, None)?.wait()
}

/// A server that was asked to end.
struct Ending {
    entry: Entry,
    process: Option<OwnedFd>,
    begun: ShutdownBegun,
}

impl Ending {
    fn begin(
        entry: &Entry,
        mut stream: UnixStream,
        method: &str,
        params: Option<&str>,
    ) -> anyhow::Result<Self> {
        let what = || cannot_end(entry);
        // The kernel knows whose connection it is; the entry may be old.
        let pid = rustix::net::sockopt::socket_peercred(&stream).with_context(what)?.pid;
        let process = Pid::from_raw(pid.as_raw_nonzero().get())
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut line = Vec::new();
        let request = reply::request(&Id::from_number(1), method, params);
        Framing::Newline.encode(&request, &mut line);
        stream.set_read_timeout(Some(ANSWER_PATIENCE)).with_context(what)?;
        stream.write_all(&line).with_context(what)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).with_context(what)?;
        let mut answer: serde_json::Value = serde_json::from_str(&answer).with_context(what)?;
        if let Some(refusal) = answer.get("error") {
            anyhow::bail!("{}: {}", what(), refusal["message"].as_str().unwrap_or("it refuses"));
        }
        let begun = serde_json::from_value(answer["result"].take()).unwrap_or_default();
        Ok(Self { entry: entry.clone(), process, begun })
    }

    /// Waits until it is gone, and says what it waits for when that takes a while.
    fn wait(self) -> anyhow::Result<()> {
        let Some(process) = &self.process else { return Ok(()) };
        let begin = Instant::now();
        let patience = PATIENCE + Duration::from_millis(self.begun.grace_ms);
        let mut pause = MOMENT;
        let mut told = Vec::new();
        while !ends_within(process, pause)? {
            let EndReport { waiting, fault, .. } = self.report().unwrap_or_default();
            anyhow::ensure!(
                begin.elapsed() < patience,
                "{}: it did not end within {patience:?}{}",
                cannot_end(&self.entry),
                fault.map(|fault| format!("; {fault}")).unwrap_or_default()
            );
            pause = REPORT_PAUSE;
            if !waiting.is_empty() && waiting != told {
                warn(&waits_for(&waiting, self.begun.grace_ms));
                told = waiting;
            }
        }
        let report = self.report();
        if let Some(path) = &self.begun.report {
            let _ = std::fs::remove_file(path);
        }
        let EndReport { survivors, fault, .. } = report.unwrap_or_default();
        if let Some(fault) = fault {
            anyhow::bail!("the server (pid {}) ended, but {fault}", self.entry.pid);
        }
        anyhow::ensure!(
            survivors.is_empty(),
            "the server (pid {}) ended, but these programs could not be killed: {}",
            self.entry.pid,
            printable(&survivors.join(", "))
        );
        Ok(())
    }

    /// What the server says of its end.
    fn report(&self) -> Option<EndReport> {
        let text = std::fs::read(self.begun.report.as_ref()?).ok()?;
        let report: EndReport = serde_json::from_slice(&text).ok()?;
        (report.pid == self.entry.pid).then_some(report)
    }
}

fn cannot_end(entry: &Entry) -> String {
    format!("cannot end the server with pid {}", entry.pid)
}

fn ends_within(process: &OwnedFd, time: Duration) -> anyhow::Result<bool> {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&time)) {
        Ok(ended) => Ok(ended > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The most names in one line.
const NAMES: usize = 5;

fn waits_for(waiting: &[String], grace_ms: u64) -> String {
    let first: Vec<_> = waiting.iter().take(NAMES).map(|name| printable(name)).collect();
    let more = match waiting.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let grace = Duration::from_millis(grace_ms);
    format!(
        "waiting for {}{more} to end; what is left after {grace:?} is killed (--now does not wait)",
        first.join(", ")
    )
}

/// A name that others chose, without what a terminal would obey.
fn printable(name: &str) -> String {
    let mut clean = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_control() {
            true => clean.extend(c.escape_default()),
            false => clean.push(c),
        }
    }
    clean
}

fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "patterm: {}", printable::lines(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_named_without_control_bytes() {
        let waiting: Vec<_> = (1..=7).map(|n| format!("p{n} (a\u{1b}[2J)")).collect();
        let line = waits_for(&waiting, 5_000);
        assert!(line.starts_with("waiting for p1 (a\\u{1b}[2J), p2"), "{line}");
        assert!(line.contains("and 2 more to end; what is left after 5s is killed"), "{line}");
    }
}
