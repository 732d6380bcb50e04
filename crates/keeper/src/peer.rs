//! The process at the other end of a connection, identified by a pidfd: its id may be reused once
//! it was reaped.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The process at the other end: the one that connected, or the one that listens.
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

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let Some(pidfd) = &self.0 else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A pidfd is readable once the process has ended, reaped or not.
        poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

/// The process at the other end of a connection; `None` if the kernel is older than 6.5 and cannot tell.
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

    #[test]
    fn a_listener_that_ended_is_known_though_its_socket_is_held_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let ended =
            |stream: &UnixStream| peer_process(stream.as_fd()).is_none_or(|peer| peer.has_ended());
        let first = UnixStream::connect(&path).unwrap();
        // An older kernel cannot tell.
        if peer_process(first.as_fd()).is_none() {
            return;
        }
        assert!(!ended(&first), "this process listens");
        // The credentials of a socket are those of the process that called `listen` last.
        // SAFETY: the child only calls `listen` and `_exit`, which are safe after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: see above; the descriptor is open.
            unsafe {
                libc::listen(listener.as_raw_fd(), 8);
                libc::_exit(0)
            }
        }
        // SAFETY: a null pointer asks for no status.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        let held = UnixStream::connect(&path).unwrap();
        assert!(ended(&held), "it was accepted, but its listener is gone");
    }
}
