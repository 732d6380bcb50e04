//! A pane as the server holds it: the PTY's master, the socket of its init, and its status.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};

use crate::control::InitCommand;
use crate::size::Size;
use crate::status::ProgramStatus;

/// The descriptors of one pane.
#[derive(Debug)]
pub struct Pane {
    pub(crate) master: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) status: OwnedFd,
}

/// An event of an init.
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

    /// The PTY's master, to read the program's output and write its input.
    pub fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// The program's terminal, by its major and minor number; `None` if it has none.
    pub fn terminal(&self) -> Option<(u32, u32)> {
        let path = rustix::pty::ptsname(&self.master, Vec::new()).ok()?;
        let device = rustix::fs::stat(path.as_c_str()).ok()?.st_rdev;
        Some((rustix::fs::major(device), rustix::fs::minor(device)))
    }

    /// Readable when the status may have changed; hung up when the init is gone.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Takes one event without blocking.
    pub fn next_event(&self) -> PaneEvent {
        let mut packet = [0; 1];
        match recv(&self.control, &mut packet, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => PaneEvent::Gone,
            Ok(_) => PaneEvent::Changed,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => PaneEvent::Quiet,
            Err(_) => PaneEvent::Gone,
        }
    }

    /// The status of the program.
    pub fn status(&self) -> rustix::io::Result<Option<ProgramStatus>> {
        ProgramStatus::read(&self.status)
    }

    /// Continues the init if the program or somebody else stopped it: a stopped init reads no
    /// commands. Never hits another process: the descriptor is opened first, and if the other end
    /// of the socket is still open afterwards, the init had that id when it was opened.
    pub(crate) fn continue_init(&self) {
        let init = self.status().ok().flatten().and_then(|status| Pid::from_raw(status.init));
        let Some(Ok(init)) = init.map(|init| pidfd_open(init, PidfdFlags::empty())) else { return };
        if !self.is_init_gone() {
            let _ = pidfd_send_signal(&init, Signal::CONT);
        }
    }

    /// Whether the init is gone.
    pub fn is_init_gone(&self) -> bool {
        let mut watched = [PollFd::new(&self.control, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::HUP | PollFlags::ERR;
        poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().intersects(gone)
    }

    /// Whether nothing is left in the pane: its init reports so, or is gone itself.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_init_gone() || self.status().ok().flatten().is_some_and(|status| status.empty)
    }

    /// Sends a signal to the program's process group.
    pub fn signal(&self, signal: i32) -> rustix::io::Result<()> {
        self.command(InitCommand::Signal(signal))
    }

    /// Ends the program: the signal to its group, the grace period, then SIGKILL to everything it
    /// ever started.
    pub fn stop(&self, signal: i32, grace: Duration) -> rustix::io::Result<()> {
        self.command(InitCommand::Stop { signal, grace })
    }

    /// Ends everything after this time, without a signal that asks for it before: something else asks
    /// the program to end. A suspended program is continued, so that it can. A shorter time that was
    /// set before stays in effect.
    pub fn kill_after(&self, grace: Duration) -> rustix::io::Result<()> {
        // There is no signal 0; an init sends only SIGCONT.
        self.stop(0, grace)
    }

    /// Ends the program as a service manager does: SIGTERM, the grace period, then SIGKILL to the
    /// rest. A program that ignores SIGTERM, as interactive shells do, gets SIGHUP first, as if its
    /// terminal was closed. Others do not: the SIGHUP would kill a program that catches SIGTERM to
    /// clean up.
    pub fn end(&self, grace: Duration) -> rustix::io::Result<()> {
        let status = self.status().ok().flatten();
        if status.is_some_and(|status| status.exit.is_none() && ignores_term(status.program)) {
            self.signal(libc::SIGHUP)?;
        }
        self.stop(libc::SIGTERM, grace)?;
        // A 0.1.0 init leaves a suspended program suspended, with its signals pending.
        self.signal(libc::SIGCONT)
    }

    /// Ends everything now.
    pub fn kill(&self) -> rustix::io::Result<()> {
        self.command(InitCommand::Kill)
    }

    fn command(&self, command: InitCommand) -> rustix::io::Result<()> {
        let sent = command.send(&self.control);
        self.continue_init();
        sent
    }

    /// Bytes of input that the program has not read.
    pub fn unread(&self) -> rustix::io::Result<u64> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        rustix::io::ioctl_fionread(ioctl_tiocgptpeer(&self.master, flags)?)
    }

    /// The size of the program's terminal.
    pub fn size(&self) -> rustix::io::Result<Size> {
        let size = rustix::termios::tcgetwinsize(&self.master)?;
        Ok(Size { rows: size.ws_row, columns: size.ws_col })
    }

    /// Sets the size of the program's terminal.
    pub fn resize(&self, size: Size) -> rustix::io::Result<()> {
        rustix::termios::tcsetwinsize(&self.master, size.into())
    }
}

/// Whether a process ignores SIGTERM.
fn ignores_term(pid: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (libc::SIGTERM - 1)) != 0)
}
