//! A pane as the server holds it: the PTY's master, the way to its init, and its status.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};

use crate::control::Command;
use crate::spawn::Size;
use crate::status::Status;

/// The descriptors of one pane.
#[derive(Debug)]
pub struct Pane {
    pub(crate) master: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) status: OwnedFd,
}

/// What an init had to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaneEvent {
    /// The status may have changed.
    Changed,
    /// Nothing new.
    Quiet,
    /// The init is gone.
    Gone,
}

impl Pane {
    pub(crate) const DESCRIPTORS: usize = 3;

    pub(crate) fn from_descriptors(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let [master, control, status] = descriptors.try_into().ok()?;
        Some(Self { master, control, status })
    }

    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; Self::DESCRIPTORS] {
        [self.master.as_fd(), self.control.as_fd(), self.status.as_fd()]
    }

    /// The PTY's master: what the program prints is read here, what it reads is written here.
    pub fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Readable when the status may have changed; hung up when the init is gone.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    pub(crate) fn control(&self) -> &OwnedFd {
        &self.control
    }

    /// Takes one event; never waits.
    pub fn next_event(&self) -> PaneEvent {
        let mut packet = [0; 1];
        match recv(&self.control, &mut packet, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => PaneEvent::Gone,
            Ok(_) => PaneEvent::Changed,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => PaneEvent::Quiet,
            Err(_) => PaneEvent::Gone,
        }
    }

    /// How the program stands.
    pub fn status(&self) -> rustix::io::Result<Option<Status>> {
        Status::read(&self.status)
    }

    /// Sends a signal to the program's process group.
    pub fn signal(&self, signal: i32) -> rustix::io::Result<()> {
        Command::Signal(signal).send(&self.control)
    }

    /// Ends the program: the signal to its group, the grace time, then SIGKILL to everything
    /// it ever started.
    pub fn stop(&self, signal: i32, grace: Duration) -> rustix::io::Result<()> {
        Command::Stop { signal, grace }.send(&self.control)
    }

    /// Ends everything now.
    pub fn kill(&self) -> rustix::io::Result<()> {
        Command::Kill.send(&self.control)
    }

    /// Bytes that were typed and that the program has not read.
    pub fn unread(&self) -> rustix::io::Result<u64> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        rustix::io::ioctl_fionread(ioctl_tiocgptpeer(&self.master, flags)?)
    }

    /// Tells the program how large its terminal is.
    pub fn resize(&self, size: Size) -> rustix::io::Result<()> {
        rustix::termios::tcsetwinsize(&self.master, size.into())
    }
}
