//! Starts servers that are nobody's children: neither their client's, nor the keeper's, which would
//! kill what a server leaves behind as strays.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, waitpid,
};

use crate::client::timespec;
use crate::environment::Environment;

/// Starts a program from this process, a single-threaded keeper, as nobody's child: what it leaves
/// behind when it dies is not ours to kill.
pub(crate) fn start_detached(command: &mut Command) -> io::Result<()> {
    // An orphan goes to the nearest subreaper above it, which is this process except for this
    // moment.
    set_child_subreaper(None)?;
    let started = start_from_child(command);
    set_child_subreaper(Some(getpid()))?;
    started
}

/// Starts a program from a child that exits immediately.
fn start_from_child(command: &mut Command) -> io::Result<()> {
    // SAFETY: this process has one thread, so the child can do what we can. It exits without
    // running our destructors.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = i32::from(command.spawn().is_err());
            // SAFETY: _exit runs no destructors and no exit handlers.
            unsafe { libc::_exit(code) }
        }
        child => {
            let ended = waitpid(Pid::from_raw(child), WaitOptions::empty())?;
            match ended.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(io::Error::other("cannot start the program")),
            }
        }
    }
}

/// The output of the binary when it started a server.
#[derive(Debug)]
pub struct StartOutput {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// The most bytes of each that are read: a registry entry or an error takes a few hundred.
const OUTPUT_BYTES: usize = 64 << 10;

/// Runs the patterm binary to start another project's server, with exactly this environment, and
/// returns its output. If it takes or prints too much, it is killed with its process group; a
/// server that is running by then leads a session of its own.
pub fn start_server(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    environment: &Environment,
    timeout: Duration,
) -> io::Result<StartOutput> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    crate::descriptors::pass_original_limit(&mut command);
    let mut child = command.spawn()?;
    let output = read_outputs(&mut child, Instant::now() + timeout);
    if output.is_err() {
        // It has not been reaped yet, so its group id is still its own.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
    child.wait()?;
    output
}

/// Reads both outputs of a child until it closes them.
fn read_outputs(child: &mut Child, deadline: Instant) -> io::Result<StartOutput> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let pipes = [OwnedFd::from(stdout), OwnedFd::from(stderr)];
    let mut output = [Vec::new(), Vec::new()];
    let mut open = [true, true];
    while open.contains(&true) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let asked: Vec<usize> = (0..pipes.len()).filter(|n| open[*n]).collect();
        let mut watched: Vec<_> =
            asked.iter().map(|n| PollFd::new(&pipes[*n], PollFlags::IN)).collect();
        match poll(&mut watched, Some(&timespec(left))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = watched.iter().map(|watched| !watched.revents().is_empty());
        for (n, _) in asked.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            let mut piece = [0; 4096];
            let bytes = rustix::io::read(&pipes[n], &mut piece)?;
            open[n] = bytes > 0;
            output[n].extend_from_slice(&piece[..bytes]);
            if output[n].len() > OUTPUT_BYTES {
                let message = format!("it printed more than {OUTPUT_BYTES} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
    let [stdout, stderr] = output;
    Ok(StartOutput { stdout, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str, timeout: Duration) -> io::Result<StartOutput> {
        let arguments = ["-c".into(), script.into()];
        let environment = Environment::from([("WORD", "said")]);
        start_server(Path::new("/bin/sh"), &arguments, Path::new("/"), &environment, timeout)
    }

    #[test]
    fn both_outputs_of_a_start_are_returned() {
        let output = started("echo $WORD; echo bad >&2", Duration::from_secs(60)).unwrap();
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"said\n"[..], &b"bad\n"[..])
        );
    }

    #[test]
    fn a_start_that_takes_too_long_is_aborted() {
        let error = started("sleep 1000", Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_start_that_prints_without_end_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let script = format!(
            "sleep 1000 & echo $$ $! > {}; while :; do echo $WORD$WORD; done",
            pids.display()
        );
        let error = started(&script, Duration::from_secs(60)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        for pid in std::fs::read_to_string(pids).unwrap().split_whitespace() {
            let pid = pid.parse().ok().and_then(Pid::from_raw).unwrap();
            // It was signalled, and may take a moment to exit.
            let since = Instant::now();
            while !has_exited(pid) {
                assert!(since.elapsed() < Duration::from_secs(60), "{pid:?} is still running");
                std::thread::yield_now();
            }
        }
    }

    /// Whether a process is gone or a zombie.
    fn has_exited(pid: Pid) -> bool {
        matches!(crate::init::process_state(pid.as_raw_nonzero().get()), None | Some('Z' | 'X'))
    }
}
