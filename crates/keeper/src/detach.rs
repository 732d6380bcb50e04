//! Starts servers that are nobody's children: neither their client's, nor the keeper's, which would
//! kill what a server leaves behind as strays.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::environment::Environment;
use crate::helper::{HelperLimits, HelperOutput, run_helper};

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

/// The most bytes of each output of a start that are read: a registry entry or an error takes a few hundred.
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
) -> io::Result<HelperOutput> {
    let limits = HelperLimits { output_bytes: OUTPUT_BYTES, timeout };
    run_helper(program, arguments, folder, environment, &[], limits)
}
