//! A terminal with a program on it: the master side of a PTY, like the window of a terminal emulator.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use patterm_screen::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Bytes read at once: more than a PTY buffers.
const READ_BYTES: usize = 64 << 10;

/// How long a program may take to exit after its terminal is gone.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The terminal, and the program that it was opened for.
#[derive(Debug)]
pub struct Terminal {
    master: Option<OwnedFd>,
    child: Child,
    buffer: Vec<u8>,
}

impl Terminal {
    /// Opens a terminal of this size and runs an `sh` command line on it. `setsid` is the command of that
    /// name, with the environment to use: it makes the terminal the controlling one.
    pub fn start(mut setsid: Command, line: &str, size: Size) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let (ws_row, ws_col) = (size.rows, size.columns);
        tcsetwinsize(&master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        setsid.args(["--ctty", "sh", "-c", line]).env("TERM", "xterm-256color");
        setsid.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        let child = setsid.spawn()?;
        // The command's own copy of the slave must not keep the terminal open.
        drop(setsid);
        Ok(Self { master: Some(master), child, buffer: vec![0; READ_BYTES] })
    }

    /// The program's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub fn type_in(&self, mut bytes: &[u8]) -> io::Result<()> {
        let master = self.master.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        while !bytes.is_empty() {
            bytes = &bytes[rustix::io::write(master, bytes)?..];
        }
        Ok(())
    }

    /// Waits for output and returns it; empty after the deadline, an error once the program is gone.
    pub fn read(&mut self, deadline: Instant) -> io::Result<&[u8]> {
        let master = self.master.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let time =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut watched = [PollFd::new(master, PollFlags::IN)];
        if poll(&mut watched, Some(&time))? == 0 {
            return Ok(&[]);
        }
        let bytes = rustix::io::read(master, &mut self.buffer)?;
        Ok(&self.buffer[..bytes])
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // As when the window is closed: the program gets SIGHUP and exits.
        drop(self.master.take());
        let until = Instant::now() + TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            let _ = poll(&mut [], Some(&moment));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
