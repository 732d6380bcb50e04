//! What may end the proxy from outside: a signal, the death of its parent.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;

/// Descriptors that become readable when it is time to end. SIGINT is not among them: its own
/// default, to end at once, is what is wanted.
#[derive(Debug)]
pub(super) struct Watch {
    terminate: UnixStream,
    /// `None` where the parent is not visible, as outside this process's container.
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

/// A descriptor for the parent's life. (The kernel's death signal would fire at the end of the
/// *thread* that started us, which with some clients lives shorter than the client.)
fn watch_parent(parent: Option<Pid>) -> Option<OwnedFd> {
    let descriptor = pidfd_open(parent?, PidfdFlags::empty()).ok()?;
    // It may have died, and its id been given away, before it could be opened.
    (getppid() == parent).then_some(descriptor)
}
