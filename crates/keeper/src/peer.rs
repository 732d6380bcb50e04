//! The process at the other end of a connection, identified by a pidfd: its id may be reused once
//! it was reaped.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// The process that made a connection.
#[derive(Debug)]
pub struct PeerProcess(Option<OwnedFd>);

impl PeerProcess {
    /// Whether the process still has this id.
    #[must_use]
    pub fn is(&self, pid: i32) -> bool {
        let Some(pidfd) = &self.0 else { return false };
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
        let info = info.unwrap_or_default();
        let held = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        held.and_then(|held| held.trim().parse().ok()) == Some(pid)
    }
}

/// The process that made a connection; `None` if the kernel is older than 6.5 and cannot tell.
#[must_use]
pub fn peer_process(stream: BorrowedFd<'_>) -> Option<PeerProcess> {
    let mut pidfd: libc::c_int = -1;
    let mut length: libc::socklen_t = 4;
    // SAFETY: the kernel writes at most `length` bytes, the size of an int, to `pidfd`, and the
    // length to `length`; both outlive the call.
    let asked = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    if asked == 0 && pidfd >= 0 {
        // SAFETY: the kernel created this descriptor for us, and nothing else owns it.
        return Some(PeerProcess(Some(unsafe { OwnedFd::from_raw_fd(pidfd) })));
    }
    match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
        // Kernels before 6.16 report this for a process that is gone.
        Some(Errno::SRCH | Errno::INVAL) => Some(PeerProcess(None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_peer_is_identified_by_more_than_its_pid() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        // An older kernel cannot tell.
        if let Some(pidfd) = peer_process(ours.as_fd()) {
            assert!(pidfd.is(own));
            assert!(!pidfd.is(own + 1));
        }
        assert!(!PeerProcess(None).is(own));
    }
}
