//! Keeping descriptors from programs that are started, and having enough of them ourselves.

use std::io;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Tells a keeper or a server that another one starts what the limit was before it was raised.
pub const VARIABLE: &str = "PATTERM_DESCRIPTORS";

/// The soft limit as the person set it.
static USUAL: OnceLock<Option<u64>> = OnceLock::new();

/// Lets this process open as many files as it may: a pane costs three, and the usual limit of a
/// shell, 1,024, would be reached at some three hundred. Programs get the usual one.
pub fn raise_limit() {
    let now = getrlimit(Resource::Nofile);
    let told = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let _ = USUAL.set(told.or(now.current));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, ..now });
}

/// Tells a process that is about to be started what the usual limit is.
pub(crate) fn tell_usual(command: &mut Command) {
    if let Some(Some(usual)) = USUAL.get() {
        command.env(VARIABLE, usual.to_string());
    }
}

/// Gives this process, a program to be, the usual limit again.
pub(crate) fn lower_limit() {
    if let Some(usual) = USUAL.get().copied().flatten() {
        let now = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(usual), ..now });
    }
}

/// Makes every descriptor above standard error close when a program is started. A server in the
/// background must not hold what happened to be open in the shell, the test runner or the agent
/// that started it: their pipes would never end.
pub fn close_on_exec_above_stderr() -> io::Result<()> {
    // SAFETY: close_range with CLOSE_RANGE_CLOEXEC takes three integers, closes nothing, and only
    // sets a flag that does not change what the owners of those descriptors can do with them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    #[test]
    fn a_descriptor_that_would_be_inherited_no_longer_is() {
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: duplicates a descriptor that `file` keeps open; the copy lives to the end.
        let copy = unsafe { libc::dup(file.as_raw_fd()) };
        // SAFETY: F_GETFD only reads a flag.
        let flags = || unsafe { libc::fcntl(copy, libc::F_GETFD) };
        assert_eq!(flags() & libc::FD_CLOEXEC, 0);
        super::close_on_exec_above_stderr().unwrap();
        assert_ne!(flags() & libc::FD_CLOEXEC, 0);
    }
}
