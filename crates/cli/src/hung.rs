//! Detects a server that does not answer because it is suspended or the machine is swapping. A call may take long
//! for good reasons, so the server is asked something else before it counts as hung.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use patterm_host::registry;
use patterm_host::runtime::{self, RuntimeDir};
use patterm_wire::{Framing, Id, reply};

use crate::print::warn;

/// After this long without an answer, the server is asked for a sign of life.
const FIRST_CHECK: Duration = Duration::from_secs(2);

/// How long it may take to give one.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// What it is asked. Any answer will do, and every version of the server answers that it does not know this method.
pub(crate) const SIGN_OF_LIFE_METHOD: &str = "patterm/alive";

/// How often a server that is known to be alive is asked again.
const NEXT_CHECK: Duration = Duration::from_secs(10);

/// After this long without a sign of life, the verb gives up.
const GIVE_UP: Duration = Duration::from_secs(10);

/// A server has given no sign of life for a long time.
#[derive(Debug)]
pub(crate) struct NoAnswer(
    /// What to do about it.
    String,
);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server does not answer: {}", self.0)
    }
}

impl std::error::Error for NoAnswer {}

/// Watches one call.
pub(crate) struct Watch {
    /// When the server last showed that it is alive.
    alive: Instant,
    warned: bool,
    /// The caller has set its own timeout.
    is_off: bool,
}

impl Watch {
    /// Begins with a request. If the caller has set a timeout itself, nothing is watched.
    pub(crate) fn begin(stream: &UnixStream) -> io::Result<Self> {
        let is_off = stream.read_timeout()?.is_some();
        if !is_off {
            stream.set_read_timeout(Some(FIRST_CHECK))?;
        }
        Ok(Self { alive: Instant::now(), warned: false, is_off })
    }

    /// Begins with a request to a server that has not answered another one for a while.
    pub(crate) fn begin_after_silence(stream: &UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(SIGN_OF_LIFE))?;
        Ok(Self { alive: Instant::now(), warned: false, is_off: false })
    }

    /// Ends with the answer, and removes the timeouts that the watch has set.
    pub(crate) fn end(&self, stream: &UnixStream) -> io::Result<()> {
        match self.is_off {
            true => Ok(()),
            false => stream.set_read_timeout(None),
        }
    }

    /// Handles an error while an answer is awaited. A timeout is not an error as long as the server is alive.
    pub(crate) fn check(&mut self, stream: &UnixStream, error: io::Error) -> anyhow::Result<()> {
        let timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        if error.kind() == ErrorKind::Interrupted {
            return Ok(());
        }
        if !timed_out || self.is_off {
            return Err(error.into());
        }
        // A socket without a name is not a server's.
        let Some(socket) = stream.peer_addr()?.as_pathname().map(Path::to_owned) else {
            return Ok(());
        };
        if is_alive(&socket) {
            self.alive = Instant::now();
            self.warned = false;
            stream.set_read_timeout(Some(NEXT_CHECK))?;
            return Ok(());
        }
        stream.set_read_timeout(Some(FIRST_CHECK))?;
        let advice = advice(&socket);
        if self.alive.elapsed() >= GIVE_UP {
            return Err(NoAnswer(advice).into());
        }
        if !std::mem::replace(&mut self.warned, true) {
            warn(&format!("the server does not answer, still waiting: {advice}"));
        }
        Ok(())
    }
}

/// Whether a server answers within [`FIRST_CHECK`], the time after which a verb would warn.
pub(crate) fn answers(socket: &Path) -> bool {
    let until = Instant::now() + FIRST_CHECK;
    while Instant::now() < until {
        if is_alive(socket) {
            return true;
        }
    }
    false
}

/// Whether a server answers at all.
fn is_alive(socket: &Path) -> bool {
    let ask = || -> anyhow::Result<bool> {
        let Some(mut stream) = runtime::connect(socket)? else { return Ok(false) };
        stream.set_read_timeout(Some(SIGN_OF_LIFE))?;
        stream.set_write_timeout(Some(SIGN_OF_LIFE))?;
        let mut line = Vec::new();
        Framing::Newline
            .encode(&reply::request(&Id::from_number(1), SIGN_OF_LIFE_METHOD, None), &mut line);
        io::Write::write_all(&mut stream, &line)?;
        let mut answer = Vec::new();
        io::BufRead::read_until(&mut io::BufReader::new(stream), b'\n', &mut answer)?;
        Ok(!answer.is_empty())
    };
    ask().unwrap_or(false)
}

/// What to do about a server that does not answer.
pub(crate) fn advice(socket: &Path) -> String {
    let entries = registry::list(&RuntimeDir::candidates(None));
    let Some(entry) = entries.into_iter().find(|entry| entry.socket == socket) else {
        return "it may have ended; try again".into();
    };
    advice_for(entry.pid)
}

/// The same for a server's process.
pub(crate) fn advice_for(pid: u32) -> String {
    match is_suspended(pid) {
        true => format!("it is suspended (pid {pid}); `kill -CONT {pid}` resumes it"),
        false => format!(
            "it is busy or the machine is swapping (pid {pid}); `kill -KILL {pid}` ends only the server: the \
             programs keep running, and the next verb starts a new one"
        ),
    }
}

/// Whether a process is stopped by a signal or a debugger.
pub(crate) fn is_suspended(pid: u32) -> bool {
    let stat =
        std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
    // The name before the state is in parentheses and may contain anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_process_is_recognised() {
        assert!(!is_suspended(std::process::id()));
        assert!(!is_suspended(u32::MAX));
    }
}
