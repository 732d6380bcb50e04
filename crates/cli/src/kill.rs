//! `patterm kill`: ends servers and sees that they are gone.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_host::SHUTDOWN_METHOD;
use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;
use patterm_host::shutdown::{EndReport, ShutdownBegun, ShutdownRequest};
use patterm_store::state::StateDir;
use patterm_wire::{Framing, Id, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::args::Kill;
use crate::said::{one_line, say, shown_path, warn};
use crate::start::{self, KEEPER_PATIENCE};

/// How long a server may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to end beside the grace time: its own bounds (calls in flight, shared
/// servers, the keeper) add up to less.
const PATIENCE: Duration = Duration::from_secs(40);

/// An end that takes longer than this is reported on.
const MOMENT: Duration = Duration::from_millis(700);

/// How often the report is read then.
const REPORT_PAUSE: Duration = Duration::from_millis(250);

/// How long a server that closes a connection without an answer may take to be gone: one that was killed
/// closes its sockets a moment before.
const DYING_PATIENCE: Duration = Duration::from_secs(5);

/// How many servers of a project may die, one after the other, while they are ended. The keeper starts
/// another each time; where that does not help, something kills them all.
const DEATHS: usize = 5;

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

/// Ends servers, all at the same time; returns how many there were. Where one dies before it has ended its
/// programs, the keeper starts another, which is ended in its place.
fn end_all(entries: &[Entry], request: ShutdownRequest) -> anyhow::Result<usize> {
    let params = serde_json::to_string(&request)?;
    let (mut count, mut failed) = (0, None);
    let mut next = entries.to_vec();
    for _ in 0..DEATHS {
        let died = end_once(&next, &params, &mut count, &mut failed);
        next.clear();
        for server in died {
            match server.successor() {
                Ok(Some(successor)) => next.push(successor),
                // Server and keeper are gone, and with them everything that they ran.
                Ok(None) if server.left.is_empty() => {
                    count += 1;
                    say_ended(&server.entry);
                }
                Ok(None) => keep_first(&mut failed, server.error("its keeper is gone as well")),
                Err(error) => keep_first(&mut failed, server.error(&format!("{error:#}"))),
            }
        }
    }
    for entry in next {
        let project = shown_path(&entry.project);
        let error = anyhow::anyhow!(
            "{DEATHS} servers of {project} died one after the other before they had ended its programs; \
             `patterm doctor` names their log; then run `patterm kill` again"
        );
        keep_first(&mut failed, error);
    }
    failed.map_or(Ok(count), Err)
}

/// Ends each of these servers, and returns those that died before they had ended their programs.
fn end_once(
    entries: &[Entry],
    params: &str,
    count: &mut usize,
    failed: &mut Option<anyhow::Error>,
) -> Vec<Died> {
    let (mut ending, mut died) = (Vec::new(), Vec::new());
    for entry in entries {
        let begun = match start::connect(&entry.socket) {
            Ok(Some(stream)) => Ending::begin(entry, stream, SHUTDOWN_METHOD, Some(params)),
            // An entry whose server died by itself has no server behind it.
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match begun {
            Ok(Begun::Ending(begun)) => ending.push(begun),
            Ok(Begun::Died(server)) => died.push(server),
            Err(error) => keep_first(failed, error),
        }
    }
    for server in ending {
        let entry = server.entry.clone();
        match server.wait() {
            Ok(None) => {
                *count += 1;
                say_ended(&entry);
            }
            Ok(Some(server)) => {
                if !server.left.is_empty() {
                    let (pid, left) = (entry.pid, server.names());
                    warn(&format!("the server (pid {pid}) died before it had ended {left}"));
                }
                died.push(server);
            }
            Err(error) => keep_first(failed, error),
        }
    }
    died
}

fn say_ended(entry: &Entry) {
    say(&format!("ended the server of {} (pid {})", shown_path(&entry.project), entry.pid));
}

/// Errors beyond the first are printed at once.
fn keep_first(first: &mut Option<anyhow::Error>, error: anyhow::Error) {
    match first {
        None => *first = Some(error),
        Some(_) => warn(&format!("{error:#}")),
    }
}

/// Ends a server by one of its methods and waits until it is gone, by itself or otherwise.
pub(crate) fn end(entry: &Entry, stream: UnixStream, method: &str) -> anyhow::Result<()> {
    match Ending::begin(entry, stream, method, None)? {
        Begun::Ending(ending) => ending.wait().map(drop),
        Begun::Died(_) => Ok(()),
    }
}

/// The result of asking a server to end.
enum Begun {
    Ending(Ending),
    Died(Died),
}

/// A server that died before it had ended everything.
struct Died {
    entry: Entry,
    /// What it had not ended, as far as that is known.
    left: Vec<String>,
}

impl Died {
    /// The server that the keeper started in its place; `None` where no keeper lives.
    fn successor(&self) -> anyhow::Result<Option<Entry>> {
        let folders = RuntimeDir::candidates(Some(&self.entry.socket));
        let state = StateDir::from_env(&self.entry.key).ok();
        let server =
            registry::kept_server(&self.entry.key, &folders, state.as_ref(), KEEPER_PATIENCE)?;
        Ok(server)
    }

    fn names(&self) -> String {
        match self.left.is_empty() {
            true => "everything".into(),
            false => listed(&self.left),
        }
    }

    fn error(&self, why: &str) -> anyhow::Error {
        let (pid, left) = (self.entry.pid, self.names());
        anyhow::anyhow!("the server (pid {pid}) died before it had ended {left}: {why}")
    }
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
        stream: UnixStream,
        method: &str,
        params: Option<&str>,
    ) -> anyhow::Result<Begun> {
        let what = || cannot_end(entry);
        // The kernel knows whose connection it is; the entry may be old.
        let pid = rustix::net::sockopt::socket_peercred(&stream).with_context(what)?.pid;
        let process = Pid::from_raw(pid.as_raw_nonzero().get())
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let answer = match ask(stream, method, params) {
            Ok(answer) => answer,
            Err(error) => {
                // A server that was killed a moment ago closes its connections as well.
                let timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                let ended = |process: &OwnedFd| ends_within(process, DYING_PATIENCE);
                if timed_out || !process.as_ref().map_or(Ok(true), ended)? {
                    return Err(error).with_context(what);
                }
                return Ok(Begun::Died(Died { entry: entry.clone(), left: Vec::new() }));
            }
        };
        let mut answer: serde_json::Value = serde_json::from_str(&answer).with_context(what)?;
        if let Some(refusal) = answer.get("error") {
            anyhow::bail!("{}: {}", what(), refusal["message"].as_str().unwrap_or("it refuses"));
        }
        let begun = serde_json::from_value(answer["result"].take()).unwrap_or_default();
        Ok(Begun::Ending(Self { entry: entry.clone(), process, begun }))
    }

    /// Waits until it is gone, and says what it waits for when that takes a while. Returns it where it
    /// died before it had ended everything.
    fn wait(self) -> anyhow::Result<Option<Died>> {
        let begin = Instant::now();
        let patience = PATIENCE + Duration::from_millis(self.begun.grace_ms);
        let mut pause = MOMENT;
        let mut told = Vec::new();
        while !self.process.as_ref().map_or(Ok(true), |process| ends_within(process, pause))? {
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
        let EndReport { survivors, fault, .. } = report.clone().unwrap_or_default();
        if let Some(fault) = fault {
            anyhow::bail!("the server (pid {}) ended, but {fault}", self.entry.pid);
        }
        anyhow::ensure!(
            survivors.is_empty(),
            "the server (pid {}) ended, but these programs could not be killed: {}",
            self.entry.pid,
            one_line(&survivors.join(", "))
        );
        Ok(self.unless_finished(report))
    }

    /// The server as one that died, unless its last report says that it has ended everything. A server
    /// of 0.1.0 writes no reports.
    fn unless_finished(self, report: Option<EndReport>) -> Option<Died> {
        self.begun.report.as_ref()?;
        let left = match report {
            Some(report) if report.finished => return None,
            Some(report) => report.waiting,
            None => vec!["its programs".into()],
        };
        Some(Died { entry: self.entry, left })
    }

    /// What the server says of its end.
    fn report(&self) -> Option<EndReport> {
        let text = std::fs::read(self.begun.report.as_ref()?).ok()?;
        let report: EndReport = serde_json::from_slice(&text).ok()?;
        (report.pid == self.entry.pid).then_some(report)
    }
}

/// Sends a request and returns the line that answers it.
fn ask(mut stream: UnixStream, method: &str, params: Option<&str>) -> io::Result<String> {
    let mut line = Vec::new();
    Framing::Newline.encode(&reply::request(&Id::from_number(1), method, params), &mut line);
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    stream.write_all(&line)?;
    let mut answer = String::new();
    match BufReader::new(stream).read_line(&mut answer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer),
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

/// The first few of many names, in one line.
fn listed(names: &[String]) -> String {
    let first: Vec<_> = names.iter().take(NAMES).map(|name| one_line(name)).collect();
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    first.join(", ") + &more
}

fn waits_for(waiting: &[String], grace_ms: u64) -> String {
    let (names, grace) = (listed(waiting), Duration::from_millis(grace_ms));
    match grace.is_zero() {
        true => format!("killed {names}; waiting until nothing is left"),
        false => format!(
            "waiting for {names} to end; what is left after {grace:?} is killed (--now does not wait)"
        ),
    }
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
        let killed = waits_for(&["p1 (sh)".into()], 0);
        assert_eq!(killed, "killed p1 (sh); waiting until nothing is left");
    }
}
