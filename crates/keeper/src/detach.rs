//! Starting servers so that nobody keeps them: neither who asked for one, nor the keeper, which would
//! take what a server leaves behind for a stray.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// Starts a program from this process, a keeper with a single thread, as nobody's child: what it
/// leaves behind when it dies is not ours to end.
pub(crate) fn start_outside(command: &mut Command) -> io::Result<()> {
    // A child whose parent ends goes to the nearest subreaper above, which is us but for this moment.
    set_child_subreaper(None)?;
    let started = start_by_a_child(command);
    set_child_subreaper(Some(getpid()))?;
    started
}

/// Starts a program from a child that ends at once.
fn start_by_a_child(command: &mut Command) -> io::Result<()> {
    // SAFETY: this process has one thread, so that the child can do what we can. It ends without
    // running what belongs to us.
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
                _ => Err(io::Error::other("the program cannot be started")),
            }
        }
    }
}

/// Runs the patterm binary to start another project's server, with this environment and no other, and
/// returns what it said.
pub fn start_server(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    environment: &BTreeMap<String, String>,
) -> io::Result<Output> {
    crate::descriptors::close_on_exec_above_stderr()?;
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts programs")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(environment);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    crate::descriptors::tell_usual(&mut command);
    command.output()
}
