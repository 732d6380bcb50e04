//! Runs in front of a server inside a container, so that nothing of it stays behind: forwards its
//! input, adopts everything that the server starts, and ends all of it when its own input ends or,
//! if that is never seen, when heartbeats are missing.
//!
//!     patterm-wrapper [--heartbeat] [--env N] -- COMMAND …
//!
//! A heartbeat is a NUL byte in the input; none reaches the server. With `--env N` the input begins
//! with N variables, each followed by a NUL: argv is visible to everybody.
//!
//! A separate program, compiled by `build.rs` without any crate: it must run in an empty container.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod system;

use system::{
    Exit, IN, PollFd, SIGKILL, SIGTERM, Signals, Waited, adopt_orphans, close, kill, read,
    set_nonblocking, wait, write,
};

/// Heartbeats arrive every two seconds; three may be lost.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(8);

/// A server that reads nothing for this long is given up by its writer, too.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a server may take to exit after its input was closed.
const CLOSE_GRACE: Duration = Duration::from_millis(1_000);

/// How long it may take after SIGTERM before it is killed.
const TERM_GRACE: Duration = Duration::from_millis(1_000);

/// How often processes are checked while they are being ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Exit codes of a shell for a command that cannot be run, and for one that does not exist.
const NOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Bytes buffered for a server that does not read.
const BUFFER_BYTES: usize = 64 << 10;

struct Options {
    heartbeat: bool,
    variables: usize,
    command: Vec<OsString>,
}

fn parse_options() -> Option<Options> {
    let mut options = Options { heartbeat: false, variables: 0, command: Vec::new() };
    let mut words = std::env::args_os().skip(1);
    loop {
        let word = words.next()?;
        match word.to_str() {
            Some("--heartbeat") => options.heartbeat = true,
            Some("--env") => options.variables = words.next()?.to_str()?.parse().ok()?,
            // Tests whether it can be run where it was put.
            Some("--check") => std::process::exit(0),
            Some("--") => break,
            _ => return None,
        }
    }
    options.command = words.collect();
    (!options.command.is_empty()).then_some(options)
}

fn main() {
    let Some(options) = parse_options() else {
        log("usage: patterm-wrapper [--heartbeat] [--env N] -- COMMAND …");
        std::process::exit(NOT_RUN);
    };
    adopt_orphans();
    let signals = Signals::new();
    let mut input =
        Input { buffer: Vec::new(), heartbeat: options.heartbeat, last: Instant::now() };
    let Some(variables) = input.variables(options.variables) else { std::process::exit(NOT_RUN) };
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]).envs(variables).stdin(Stdio::piped()).process_group(0);
    let mut server = match command.spawn() {
        Ok(server) => server,
        Err(error) => {
            log(&format!("cannot start `{}`: {error}", options.command[0].to_string_lossy()));
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            std::process::exit(if missing { NOT_FOUND } else { NOT_RUN });
        }
    };
    let pid = i32::try_from(server.id()).unwrap_or(-1);
    let Some(to) = server.stdin.take() else { std::process::exit(NOT_RUN) };
    let to = to.into_raw_fd();
    set_nonblocking(to);
    let exit = match serve(&mut input, to, &signals, pid) {
        Some(exit) => Some(exit),
        None => {
            close(to);
            wait_for_exit(pid, &signals)
        }
    };
    let exit = end_all(pid, exit, &signals);
    std::process::exit(match exit {
        Some(Exit::Code(code)) => code,
        Some(Exit::Signal(signal)) => 128 + signal,
        None => 128 + SIGKILL,
    });
}

fn log(text: &str) {
    let _ = writeln!(std::io::stderr(), "patterm-wrapper: {text}");
}

/// The input.
struct Input {
    /// Not yet read by the server.
    buffer: Vec<u8>,
    heartbeat: bool,
    /// When the last byte arrived.
    last: Instant,
}

impl Input {
    /// Reads what is available; `false` at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        let count = read(std::io::stdin().as_raw_fd(), &mut bytes);
        if count > 0 {
            self.last = Instant::now();
            self.buffer.extend_from_slice(&bytes[..count]);
        }
        count > 0
    }

    /// The variables at the beginning.
    fn variables(&mut self, count: usize) -> Option<Vec<(OsString, OsString)>> {
        let mut variables = Vec::new();
        while variables.len() < count {
            let Some(end) = self.buffer.iter().position(|byte| *byte == 0) else {
                if self.buffer.len() > BUFFER_BYTES || !self.read() {
                    return None;
                }
                continue;
            };
            let rest = self.buffer.split_off(end + 1);
            let mut variable = std::mem::replace(&mut self.buffer, rest);
            variable.pop();
            let equals = variable.iter().position(|byte| *byte == b'=')?;
            let value = variable.split_off(equals + 1);
            variable.pop();
            variables.push((OsString::from_vec(variable), OsString::from_vec(value)));
        }
        self.buffer.retain(|byte| *byte != 0);
        Some(variables)
    }

    /// How long until something must have happened.
    fn time_left(&self) -> Option<Duration> {
        let limit = match (self.buffer.is_empty(), self.heartbeat) {
            (false, _) => WRITE_TIMEOUT,
            (true, true) => HEARTBEAT_TIMEOUT,
            (true, false) => return None,
        };
        Some((self.last + limit).saturating_duration_since(Instant::now()))
    }
}

/// Forwards input. Returns how the server ended, or `None` if it must be ended.
fn serve(input: &mut Input, to: i32, signals: &Signals, pid: i32) -> Option<Exit> {
    let mut open = true;
    loop {
        let stdin = PollFd::new(if input.buffer.is_empty() { 0 } else { -1 }, IN);
        let out = if open && !input.buffer.is_empty() { to } else { -1 };
        let mut polled = [stdin, signals.polled(), PollFd::new(out, system::OUT)];
        let time_left = input.time_left();
        if time_left.is_some_and(|left| left.is_zero()) {
            log("the connection is lost; ending the server");
            return None;
        }
        system::poll(&mut polled, time_left);
        if polled[1].is_ready() {
            let must_end = signals.take();
            if let Some(exit) = reap(pid).server {
                return Some(exit);
            }
            if must_end {
                return None;
            }
        }
        if polled[0].is_ready() {
            if !input.read() {
                return None;
            }
            input.buffer.retain(|byte| *byte != 0);
        }
        if !input.buffer.is_empty() {
            match (open, write(to, &input.buffer)) {
                (true, Ok(count)) => {
                    if count > 0 {
                        input.last = Instant::now();
                    }
                    input.buffer.drain(..count);
                }
                // It no longer reads: input is dropped, and its end is awaited.
                _ => {
                    open = false;
                    input.buffer.clear();
                }
            }
        }
    }
}

struct Reaped {
    /// How the server ended, if it did.
    server: Option<Exit>,
    /// No child is left, not even a zombie.
    is_all: bool,
}

/// Reaps all children that ended.
fn reap(pid: i32) -> Reaped {
    let mut server = None;
    loop {
        match wait() {
            Waited::Exited(child, exit) if child == pid => server = Some(exit),
            Waited::Exited(..) => {}
            Waited::Running => return Reaped { server, is_all: false },
            Waited::NoChild => return Reaped { server, is_all: true },
        }
    }
}

/// Waits a moment for a server whose input is closed.
fn wait_for_exit(pid: i32, signals: &Signals) -> Option<Exit> {
    let until = Instant::now() + CLOSE_GRACE;
    loop {
        if let Some(exit) = reap(pid).server {
            return Some(exit);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        system::poll(&mut [signals.polled()], Some(left));
        signals.take();
    }
}

/// Ends everything that was started here, and reaps all of it: the first process of the container,
/// which would inherit zombies, may never reap.
fn end_all(pid: i32, mut exit: Option<Exit>, signals: &Signals) -> Option<Exit> {
    let until = Instant::now() + TERM_GRACE;
    let last = until + TERM_GRACE;
    let mut signal = SIGTERM;
    let mut signalled = Vec::new();
    loop {
        let reaped = reap(pid);
        exit = reaped.server.or(exit);
        let left = descendants();
        // Without `/proc` no process can be found.
        if reaped.is_all || (left.is_empty() && Instant::now() >= last) {
            return exit;
        }
        for process in left {
            // SIGTERM is sent once, SIGKILL repeatedly: a process that was just being started
            // appears later.
            if signal == SIGKILL || !signalled.contains(&process) {
                kill(process, signal);
                signalled.push(process);
            }
        }
        system::poll(&mut [signals.polled()], Some(CHECK_INTERVAL));
        signals.take();
        if Instant::now() >= until {
            signal = SIGKILL;
        }
    }
}

/// All living descendants of this process, from `/proc`.
fn descendants() -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        // The name in parentheses may contain anything.
        let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { continue };
        let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
        let mut words = rest.split_whitespace();
        let (state, parent) = (words.next(), words.next().and_then(|parent| parent.parse().ok()));
        if let (Some(parent), false) = (parent, matches!(state, Some("Z" | "X"))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let own = i32::try_from(std::process::id()).unwrap_or(-1);
    let (mut found, mut next) = (Vec::new(), vec![own]);
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        next.extend(&below);
        found.extend(below);
    }
    found
}
