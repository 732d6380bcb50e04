//! Runs short programs for the server itself: they read at most a pipe full of input, may print only so much, and are
//! killed with their process group if they take too long.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::client::timespec;
use crate::environment::Environment;

/// What fits into a new pipe on every Linux, so that nobody has to write it while the program runs.
const INPUT_BYTES: usize = 64 << 10;

/// What a program that runs for the server may use.
#[derive(Debug, Clone, Copy)]
pub struct HelperLimits {
    /// The bytes that it may print, on each output.
    pub output_bytes: usize,
    /// The time it may take.
    pub timeout: Duration,
}

/// What such a program printed.
#[derive(Debug)]
pub struct HelperOutput {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Runs a program in a process group of its own, with exactly this environment. Fails if it could not be started, or
/// if it took or printed too much: it is killed then.
pub fn run_helper(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    environment: &Environment,
    input: &[u8],
    limits: HelperLimits,
) -> io::Result<HelperOutput> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter());
    command.stdin(input_of(input)?).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    crate::descriptors::pass_original_limit(&mut command);
    let mut child = command.spawn()?;
    // The command holds the other end of the input.
    drop(command);
    let output = read_outputs(&mut child, limits.output_bytes, Instant::now() + limits.timeout);
    if output.is_err() {
        // It has not been reaped yet, so its group id is still its own.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
    let code = child.wait()?.code();
    let [stdout, stderr] = output?;
    Ok(HelperOutput { code, stdout, stderr })
}

fn input_of(input: &[u8]) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    if input.len() > INPUT_BYTES {
        let message = format!("more than {INPUT_BYTES} bytes of input");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let (read, mut write) = io::pipe()?;
    write.write_all(input)?;
    Ok(read.into())
}

/// Reads both outputs of a child until it closes them.
fn read_outputs(child: &mut Child, most: usize, deadline: Instant) -> io::Result<[Vec<u8>; 2]> {
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
            if output[n].len() > most {
                let message = format!("it printed more than {most} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str, input: &[u8], timeout: Duration) -> io::Result<HelperOutput> {
        let arguments = ["-c".into(), script.into()];
        let environment = Environment::from([("WORD", "said")]);
        let limits = HelperLimits { output_bytes: 64 << 10, timeout };
        let folder = Path::new("/");
        run_helper(Path::new("/bin/sh"), &arguments, folder, &environment, input, limits)
    }

    #[test]
    fn outputs_and_the_exit_code_are_returned() {
        let output =
            ran("echo $WORD; cat; echo bad >&2; exit 3", b"in", Duration::from_secs(60)).unwrap();
        let expected: (&[u8], &[u8]) = (b"said\nin", b"bad\n");
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), expected);
        assert_eq!(output.code, Some(3));
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let error = ran("sleep 1000", b"", Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn input_that_would_block_is_refused() {
        let error = ran("cat", &vec![b'x'; INPUT_BYTES + 1], Duration::from_secs(60)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_program_that_prints_without_end_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let script = format!(
            "sleep 1000 & echo $$ $! > {}; while :; do echo $WORD$WORD; done",
            pids.display()
        );
        let error = ran(&script, b"", Duration::from_secs(60)).unwrap_err();
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
