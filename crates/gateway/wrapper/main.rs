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
    Ended, IN, SIGKILL, SIGTERM, Signals, Waited, Watched, adopt_orphans, close, kill, read,
    set_nonblocking, wait, write,
};

/// Heartbeats arrive every two seconds; three may be lost.
const SILENCE: Duration = Duration::from_secs(8);

/// A server that reads nothing for this long is given up by its writer, too.
const STALL: Duration = Duration::from_secs(60);

/// How long a server may take to exit after its input was closed.
const CLOSE_GRACE: Duration = Duration::from_millis(1_000);

/// How long it may take after SIGTERM before it is killed.
const TERM_GRACE: Duration = Duration::from_millis(1_000);

/// How often processes are checked while they are being ended.
const LOOK: Duration = Duration::from_millis(50);

/// Exit codes of a shell for a command that cannot be run, and for one that does not exist.
const NOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Bytes buffered for a server that does not read.
const HELD: usize = 64 << 10;

struct Asked {
    heartbeat: bool,
    variables: usize,
    command: Vec<OsString>,
}

fn asked() -> Option<Asked> {
    let mut asked = Asked { heartbeat: false, variables: 0, command: Vec::new() };
    let mut words = std::env::args_os().skip(1);
    loop {
        let word = words.next()?;
        match word.to_str() {
            Some("--heartbeat") => asked.heartbeat = true,
            Some("--env") => asked.variables = words.next()?.to_str()?.parse().ok()?,
            // Tests whether it can be run where it was put.
            Some("--check") => std::process::exit(0),
            Some("--") => break,
            _ => return None,
        }
    }
    asked.command = words.collect();
    (!asked.command.is_empty()).then_some(asked)
}

fn main() {
    let Some(asked) = asked() else {
        say("usage: patterm-wrapper [--heartbeat] [--env N] -- COMMAND …");
        std::process::exit(NOT_RUN);
    };
    adopt_orphans();
    let signals = Signals::new();
    let mut input = Input { buffer: Vec::new(), heartbeat: asked.heartbeat, last: Instant::now() };
    let Some(variables) = input.variables(asked.variables) else { std::process::exit(NOT_RUN) };
    let mut command = Command::new(&asked.command[0]);
    command.args(&asked.command[1..]).envs(variables).stdin(Stdio::piped()).process_group(0);
    let mut server = match command.spawn() {
        Ok(server) => server,
        Err(error) => {
            say(&format!("cannot start `{}`: {error}", asked.command[0].to_string_lossy()));
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            std::process::exit(if missing { NOT_FOUND } else { NOT_RUN });
        }
    };
    let pid = i32::try_from(server.id()).unwrap_or(-1);
    let Some(to) = server.stdin.take() else { std::process::exit(NOT_RUN) };
    let to = to.into_raw_fd();
    set_nonblocking(to);
    let ended = match serve(&mut input, to, &signals, pid) {
        Some(ended) => Some(ended),
        None => {
            close(to);
            end_by_itself(pid, &signals)
        }
    };
    let ended = end_all(pid, ended, &signals);
    std::process::exit(match ended {
        Some(Ended::Code(code)) => code,
        Some(Ended::Signal(signal)) => 128 + signal,
        None => 128 + SIGKILL,
    });
}

fn say(text: &str) {
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
                if self.buffer.len() > HELD || !self.read() {
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
    fn patience(&self) -> Option<Duration> {
        let limit = match (self.buffer.is_empty(), self.heartbeat) {
            (false, _) => STALL,
            (true, true) => SILENCE,
            (true, false) => return None,
        };
        Some((self.last + limit).saturating_duration_since(Instant::now()))
    }
}

/// Forwards input. Returns how the server ended, or `None` if it must be ended.
fn serve(input: &mut Input, to: i32, signals: &Signals, pid: i32) -> Option<Ended> {
    let mut open = true;
    loop {
        let stdin = Watched::new(if input.buffer.is_empty() { 0 } else { -1 }, IN);
        let out = if open && !input.buffer.is_empty() { to } else { -1 };
        let mut watched = [stdin, signals.watched(), Watched::new(out, system::OUT)];
        let patience = input.patience();
        if patience.is_some_and(|patience| patience.is_zero()) {
            say("the connection is lost; ending the server");
            return None;
        }
        system::poll(&mut watched, patience);
        if watched[1].is_ready() {
            let asked = signals.take();
            if let Some(ended) = reap(pid).server {
                return Some(ended);
            }
            if asked {
                return None;
            }
        }
        if watched[0].is_ready() {
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
    server: Option<Ended>,
    /// No child is left, not even a zombie.
    is_all: bool,
}

/// Reaps all children that ended.
fn reap(pid: i32) -> Reaped {
    let mut server = None;
    loop {
        match wait() {
            Waited::Ended(ended, how) if ended == pid => server = Some(how),
            Waited::Ended(..) => {}
            Waited::Running => return Reaped { server, is_all: false },
            Waited::NoChild => return Reaped { server, is_all: true },
        }
    }
}

/// Waits a moment for a server whose input is closed.
fn end_by_itself(pid: i32, signals: &Signals) -> Option<Ended> {
    let until = Instant::now() + CLOSE_GRACE;
    loop {
        if let Some(ended) = reap(pid).server {
            return Some(ended);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        system::poll(&mut [signals.watched()], Some(left));
        signals.take();
    }
}

/// Ends everything that was started here, and reaps all of it: the first process of the container,
/// which would inherit zombies, may never reap.
fn end_all(pid: i32, mut ended: Option<Ended>, signals: &Signals) -> Option<Ended> {
    let until = Instant::now() + TERM_GRACE;
    let last = until + TERM_GRACE;
    let mut signal = SIGTERM;
    let mut told = Vec::new();
    loop {
        let reaped = reap(pid);
        ended = reaped.server.or(ended);
        let left = descendants();
        // Without `/proc` no process can be found.
        if reaped.is_all || (left.is_empty() && Instant::now() >= last) {
            return ended;
        }
        for process in left {
            // SIGTERM is sent once, SIGKILL repeatedly: a process that was just being started
            // appears later.
            if signal == SIGKILL || !told.contains(&process) {
                kill(process, signal);
                told.push(process);
            }
        }
        system::poll(&mut [signals.watched()], Some(LOOK));
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
