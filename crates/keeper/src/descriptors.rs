//! Keeping descriptors from programs that are started.

use std::io;

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
