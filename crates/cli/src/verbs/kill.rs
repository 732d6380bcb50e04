//! `patterm kill`: ends servers and verifies that they are gone.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::shutdown::{EndReport, LONGEST_GRACE};
use patterm_store::state::StateDir;
use patterm_wire::requests::{ServerEntry, Shutdown, ShutdownBegun, ShutdownRequest};
use patterm_wire::{ErrorObject, Framing, Id, Incoming, Message, Method, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::ls;
use crate::connect::is_lost;
use crate::errors::ServerError;
use crate::hung::{NoAnswer, Watch};
use crate::print::{one_line, print, printable_path, warn};
use crate::start::{self, KEEPER_PATIENCE};
use crate::{find, hung};

/// How long a server may take to end in addition to the grace period: its own limits (calls in flight, shared servers,
/// the keeper) add up to less.
const PATIENCE: Duration = Duration::from_secs(40);

/// Progress is reported if it takes longer than this.
const MOMENT: Duration = Duration::from_millis(700);

/// How often the progress is read.
const REPORT_PAUSE: Duration = Duration::from_millis(250);

/// How long a server may take to exit after it has closed a connection without an answer: one that is killed
/// closes its sockets a moment before.
const DYING_PATIENCE: Duration = Duration::from_secs(5);

/// How many servers of a project may die while they are being ended. The keeper starts another each time; if
/// that does not help, something kills them all.
const DEATHS: usize = 5;

/// End this project's server and everything in it
#[derive(Debug, Args)]
pub(crate) struct KillVerb {
    /// End the servers of all your projects
    #[arg(long)]
    all: bool,
    /// Kill programs at once, without a grace period
    #[arg(long, conflicts_with = "grace")]
    now: bool,
    /// How long programs may take to end before they are killed [default: 5, or
    /// `end_grace_seconds` in `[limits]` of config.toml or patterm.toml]
    #[arg(long, value_name = "SECONDS", value_parser = grace)]
    grace: Option<Duration>,
}

impl KillVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.all, ShutdownRequest { grace_ms: self.grace_ms() })
    }

    /// The grace period in milliseconds, if one is set.
    fn grace_ms(&self) -> Option<u64> {
        let grace = if self.now { Some(Duration::ZERO) } else { self.grace };
        grace.and_then(|grace| u64::try_from(grace.as_millis()).ok())
    }
}

/// A grace period that the server accepts, in seconds.
fn grace(text: &str) -> Result<Duration, String> {
    let grace = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let most = LONGEST_GRACE.as_secs();
    grace
        .filter(|grace| *grace <= LONGEST_GRACE)
        .ok_or_else(|| format!("takes 0 to {most} seconds"))
}

fn run(all: bool, request: ShutdownRequest) -> anyhow::Result<()> {
    let folders = RuntimeDir::candidates(None);
    if all {
        if end_all(&registry::list(&folders), request)? == 0 {
            print("no servers are running");
        }
        return Ok(());
    }
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    if end_all(&registry::find(project.key(), &folders, state.as_ref()), request)? > 0 {
        return Ok(());
    }
    if !registry::is_kept(project.key(), &folders) {
        print("no server is running for this project");
        return Ok(());
    }
    // The server was killed, but its programs are alive: the next server ends them properly.
    let (entry, _) = start::find_or_start(&project)?;
    end_all(&[entry], request).map(drop)
}

/// Ends servers in parallel and returns how many there were. If one dies before it has ended its programs,
/// the keeper starts another, which is ended instead.
fn end_all(entries: &[ServerEntry], request: ShutdownRequest) -> anyhow::Result<usize> {
    let (mut count, mut failed) = (0, None);
    let mut next = entries.to_vec();
    for _ in 0..DEATHS {
        let died = end_once(&next, request, &mut count, &mut failed);
        next.clear();
        for server in died {
            match server.successor() {
                Ok(Some(successor)) => next.push(successor),
                // Server and keeper are gone, and everything they ran with them.
                Ok(None) if server.left.is_empty() => {
                    count += 1;
                    print_ended(&server.entry, None);
                }
                Ok(None) => keep_first(&mut failed, server.error("its keeper is gone as well")),
                Err(error) => keep_first(&mut failed, server.error(&format!("{error:#}"))),
            }
        }
    }
    for entry in next {
        let project = printable_path(&entry.project);
        let error = anyhow::anyhow!(
            "{DEATHS} servers of {project} in a row died before they had ended its programs; \
             `patterm doctor` shows where their log is; then run `patterm kill` again"
        );
        keep_first(&mut failed, error);
    }
    failed.map_or(Ok(count), Err)
}

/// Ends these servers, and returns those that died before they had ended their programs.
fn end_once(
    entries: &[ServerEntry],
    request: ShutdownRequest,
    count: &mut usize,
    failed: &mut Option<anyhow::Error>,
) -> Vec<Died> {
    let (mut ending, mut died) = (Vec::new(), Vec::new());
    for entry in entries {
        let stream = match start::connect(&entry.socket) {
            Ok(Some(stream)) => stream,
            // The server of this entry has died.
            Ok(None) => continue,
            Err(error) => {
                keep_first(failed, error);
                continue;
            }
        };
        let process = ServerProcess::of(&stream);
        let is_suspended = process.as_ref().is_some_and(ServerProcess::is_suspended);
        let now = process.filter(|_| request.grace_ms == Some(0));
        if let Some(server) = now.as_ref().filter(|_| is_suspended) {
            match server.kill(entry) {
                Ok(server) => died.push(server),
                Err(error) => keep_first(failed, error),
            }
            continue;
        }
        let programs = if is_suspended { None } else { ls::running(entry) };
        let silent = programs.is_none() && !is_suspended;
        let begun = match (Ending::begin::<Shutdown>(entry, stream, &request, silent), now) {
            (Err(error), Some(server)) if error.is::<NoAnswer>() => {
                server.kill(entry).map(Begun::Died)
            }
            (begun, _) => begun,
        };
        match begun {
            Ok(Begun::Ending(begun)) => ending.push((begun, programs)),
            Ok(Begun::Died(server)) => died.push(server),
            Err(error) => keep_first(failed, error),
        }
    }
    for (server, programs) in ending {
        let entry = server.entry.clone();
        match server.wait() {
            Ok(None) => {
                *count += 1;
                print_ended(&entry, programs);
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

fn print_ended(entry: &ServerEntry, programs: Option<usize>) {
    let project = printable_path(&entry.project);
    let programs = ended_programs(programs.unwrap_or_default());
    print(&format!("ended the server of {project} (pid {}){programs}", entry.pid));
}

/// The programs that ended with a server, and how to get them back.
fn ended_programs(programs: usize) -> String {
    match programs {
        0 => String::new(),
        1 => " and 1 program, which `patterm restore` offers again".to_owned(),
        many => format!(" and {many} programs, which `patterm restore` offers again"),
    }
}

/// Keeps the first error and prints the others.
fn keep_first(first: &mut Option<anyhow::Error>, error: anyhow::Error) {
    match first {
        None => *first = Some(error),
        Some(_) => warn(&format!("{error:#}")),
    }
}

/// Sends a request that ends the server, and waits until it is gone.
pub(super) fn end<M: Method<Result = ShutdownBegun>>(
    entry: &ServerEntry,
    stream: UnixStream,
    params: &M::Params,
) -> anyhow::Result<()> {
    match Ending::begin::<M>(entry, stream, params, false)? {
        Begun::Ending(ending) => ending.wait().map(drop),
        Begun::Died(_) => Ok(()),
    }
}

/// The result of asking a server to end.
enum Begun {
    Ending(Ending),
    Died(Died),
}

/// The process of a server that does not respond.
struct ServerProcess {
    pid: u32,
    handle: OwnedFd,
}

impl ServerProcess {
    /// The process at the other end of a connection. The kernel knows it; the entry may be old.
    fn of(stream: &UnixStream) -> Option<Self> {
        let pid = find::server_of(stream)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid: pid.as_raw_nonzero().get().cast_unsigned(), handle })
    }

    fn is_suspended(&self) -> bool {
        hung::is_suspended(self.pid)
    }

    /// Kills it. The keeper then starts a server that ends the programs, as after a crash.
    fn kill(&self, entry: &ServerEntry) -> anyhow::Result<Died> {
        warn(&format!("the server (pid {}) does not answer and is killed", self.pid));
        pidfd_send_signal(&self.handle, Signal::KILL).with_context(|| cannot_end(entry))?;
        let is_gone = ends_within(&self.handle, DYING_PATIENCE)?;
        anyhow::ensure!(is_gone, "{}: SIGKILL did not end it", cannot_end(entry));
        Ok(Died { entry: entry.clone(), left: Vec::new() })
    }
}

/// A server that died before it had ended everything.
struct Died {
    entry: ServerEntry,
    /// The programs it had not ended, as far as they are known.
    left: Vec<String>,
}

impl Died {
    /// The server that the keeper started instead; `None` if there is no keeper.
    fn successor(&self) -> anyhow::Result<Option<ServerEntry>> {
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

/// A server that is ending.
struct Ending {
    entry: ServerEntry,
    process: Option<OwnedFd>,
    begun: ShutdownBegun,
}

impl Ending {
    fn begin<M: Method<Result = ShutdownBegun>>(
        entry: &ServerEntry,
        stream: UnixStream,
        params: &M::Params,
        silent: bool,
    ) -> anyhow::Result<Begun> {
        let what = || cannot_end(entry);
        let process = ServerProcess::of(&stream).map(|server| server.handle);
        let answer = match request(stream, M::NAME, &serde_json::to_string(params)?, silent) {
            Ok(answer) => answer,
            Err(error) => {
                // A server that was just killed closes its connections as well.
                let ended = |process: &OwnedFd| ends_within(process, DYING_PATIENCE);
                if !is_lost(&error) || !process.as_ref().map_or(Ok(true), ended)? {
                    return Err(error.context(what()));
                }
                return Ok(Begun::Died(Died { entry: entry.clone(), left: Vec::new() }));
            }
        };
        let begun = match Incoming::parse(answer.trim().as_bytes()) {
            Ok(Incoming::One(Message::Response { outcome: Ok(result), .. })) => {
                serde_json::from_str(result.get()).unwrap_or_default()
            }
            Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
                let error: ErrorObject = serde_json::from_str(error.get()).with_context(what)?;
                return Err(ServerError(error)).with_context(what);
            }
            _ => anyhow::bail!("{}: it sent {answer:?}", what()),
        };
        Ok(Begun::Ending(Self { entry: entry.clone(), process, begun }))
    }

    /// Waits until it is gone, and reports what it is waiting for if that takes a while. Returns it if it
    /// died before it had ended everything.
    fn wait(self) -> anyhow::Result<Option<Died>> {
        let begin = Instant::now();
        let patience = PATIENCE + Duration::from_millis(self.begun.grace_ms);
        let mut pause = MOMENT;
        let mut reported = Vec::new();
        while !self.process.as_ref().map_or(Ok(true), |process| ends_within(process, pause))? {
            let EndReport { waiting, fault, .. } = self.report().unwrap_or_default();
            anyhow::ensure!(
                begin.elapsed() < patience,
                "{}: it is still running after {patience:?}{}",
                cannot_end(&self.entry),
                fault.map(|fault| format!("; {fault}")).unwrap_or_default()
            );
            pause = REPORT_PAUSE;
            if !waiting.is_empty() && waiting != reported {
                warn(&waits_for(&waiting, self.begun.grace_ms));
                reported = waiting;
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

    /// The server as one that died, unless its last report says that it has ended everything. A server of
    /// 0.1.0 writes no reports.
    fn unless_finished(self, report: Option<EndReport>) -> Option<Died> {
        self.begun.report.as_ref()?;
        let left = match report {
            Some(report) if report.finished => return None,
            Some(report) => report.waiting,
            None => vec!["its programs".into()],
        };
        Some(Died { entry: self.entry, left })
    }

    /// The server's progress report.
    fn report(&self) -> Option<EndReport> {
        let text = std::fs::read(self.begun.report.as_ref()?).ok()?;
        let report: EndReport = serde_json::from_slice(&text).ok()?;
        (report.pid == self.entry.pid).then_some(report)
    }
}

/// Sends a request and returns the line of its response. `silent`: the server has not answered another request.
fn request(
    mut stream: UnixStream,
    method: &str,
    params: &str,
    silent: bool,
) -> anyhow::Result<String> {
    let mut line = Vec::new();
    Framing::Newline.encode(&reply::request(&Id::from_number(1), method, Some(params)), &mut line);
    let mut watch = match silent {
        true => Watch::begin_after_silence(&stream)?,
        false => Watch::begin(&stream)?,
    };
    stream.write_all(&line)?;
    let (mut reader, mut answer) = (BufReader::new(stream), Vec::new());
    while let Err(error) = reader.read_until(b'\n', &mut answer) {
        watch.check(reader.get_ref(), error)?;
    }
    match answer.is_empty() {
        true => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
        false => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

fn cannot_end(entry: &ServerEntry) -> String {
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

/// The maximum number of names in one line.
const NAMES: usize = 5;

/// The first names of a list, in one line.
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
        true => format!("killed {names}; waiting until they are gone"),
        false => format!(
            "waiting for {names} to end; after {grace:?} they are killed (--now does not wait)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_waiting_programs_are_escaped() {
        let waiting: Vec<_> = (1..=7).map(|n| format!("p{n} (a\u{1b}[2J)")).collect();
        let line = waits_for(&waiting, 5_000);
        assert!(line.starts_with("waiting for p1 (a\\u{1b}[2J), p2"), "{line}");
        assert!(line.contains("and 2 more to end; after 5s they are killed"), "{line}");
        let killed = waits_for(&["p1 (sh)".into()], 0);
        assert_eq!(killed, "killed p1 (sh); waiting until they are gone");
        assert_eq!(ended_programs(0), "");
        assert_eq!(ended_programs(2), " and 2 programs, which `patterm restore` offers again");
    }
}
