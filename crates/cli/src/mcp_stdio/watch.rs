//! What ends the proxy from outside: a signal, or the death of its parent.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;

/// Descriptors that become readable when the proxy should end. SIGINT is not included: its default, to end at
/// once, is right.
#[derive(Debug)]
pub(super) struct Watch {
    terminate: UnixStream,
    /// `None` if the parent is not visible, for example outside of this process's container.
    parent: Option<OwnedFd>,
}

impl Watch {
    pub(super) fn begin() -> io::Result<Self> {
        let (terminate, written_by_handler) = UnixStream::pair()?;
        pipe::register(SIGTERM, written_by_handler)?;
        Ok(Self { terminate, parent: watch_parent(getppid()) })
    }

    pub(super) fn terminate(&self) -> BorrowedFd<'_> {
        self.terminate.as_fd()
    }

    pub(super) fn parent(&self) -> Option<BorrowedFd<'_>> {
        self.parent.as_ref().map(AsFd::as_fd)
    }
}

/// A descriptor for the parent process. (The kernel's death signal would fire when the *thread* that started
/// us ends, which with some clients is before the client does.)
fn watch_parent(parent: Option<Pid>) -> Option<OwnedFd> {
    let descriptor = pidfd_open(parent?, PidfdFlags::empty()).ok()?;
    // It may have died, and its id been reused, before it was opened.
    (getppid() == parent).then_some(descriptor)
}
