//! Keeps descriptors from being inherited, and raises the limit on their number.

use std::io;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Tells a keeper or server that is being started what the limit was before it was raised.
pub const LIMIT_VARIABLE: &str = "PATTERM_DESCRIPTORS";

/// The soft limit that the user set.
static ORIGINAL_LIMIT: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit on open files to the maximum: a pane takes three, so a shell's default of 1,024
/// would be reached at about three hundred panes. Programs get the original limit.
pub fn raise_limit() {
    let now = getrlimit(Resource::Nofile);
    let passed = std::env::var(LIMIT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let _ = ORIGINAL_LIMIT.set(passed.or(now.current));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, ..now });
}

/// Passes the original limit to a process that is about to be started.
pub(crate) fn pass_original_limit(command: &mut Command) {
    if let Some(Some(original)) = ORIGINAL_LIMIT.get() {
        command.env(LIMIT_VARIABLE, original.to_string());
    }
}

/// Restores the original limit in this process, which is about to become a program.
pub(crate) fn restore_limit() {
    if let Some(original) = ORIGINAL_LIMIT.get().copied().flatten() {
        let now = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(original), ..now });
    }
}

/// Makes every descriptor above standard error close on exec. A server in the background must not
/// hold open what happened to be open in the shell, test runner or agent that started it: their
/// pipes would never end.
pub fn close_on_exec_above_stderr() -> io::Result<()> {
    // SAFETY: close_range with CLOSE_RANGE_CLOEXEC takes three integers, closes nothing, and only
    // sets a flag that does not affect what the owners of those descriptors can do with them.
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
    fn descriptors_are_no_longer_inherited() {
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: duplicates a descriptor that `file` keeps open; the copy is never closed.
        let copy = unsafe { libc::dup(file.as_raw_fd()) };
        // SAFETY: F_GETFD only reads a flag.
        let flags = || unsafe { libc::fcntl(copy, libc::F_GETFD) };
        assert_eq!(flags() & libc::FD_CLOEXEC, 0);
        super::close_on_exec_above_stderr().unwrap();
        assert_ne!(flags() & libc::FD_CLOEXEC, 0);
    }
}
