//! The user's terminal while the TUI uses it. Its settings are restored afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;

use crate::outer::{ENTER, LEAVE};

/// The terminal in raw mode.
pub(crate) struct Terminal {
    /// Opened by us, so that flags that we set affect nobody else.
    file: OwnedFd,
    before: Termios,
    resized: UnixStream,
    ending: UnixStream,
    /// Bytes that are not written yet; a terminal may be slow.
    outbox: Vec<u8>,
}

impl Terminal {
    /// Puts the terminal into raw mode and switches to the alternate screen.
    pub(crate) fn enter() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/tty", flags, Mode::empty())?;
        let mut before = tcgetattr(&file)?;
        repair(&mut before);
        let (resized, on_resize) = UnixStream::pair()?;
        resized.set_nonblocking(true)?;
        pipe::register(SIGWINCH, on_resize)?;
        let (ending, on_end) = UnixStream::pair()?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            pipe::register(signal, on_end.try_clone()?)?;
        }
        let mut terminal = Self { file, before, resized, ending, outbox: Vec::new() };
        terminal.take_over()?;
        Ok(terminal)
    }

    fn take_over(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(&self.file, OptionalActions::Now, &raw)?;
        self.outbox.extend_from_slice(ENTER);
        Ok(())
    }

    /// Lends the terminal to something else.
    pub(crate) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.give_back();
        let done = work();
        self.take_over()?;
        Ok(done)
    }

    pub(crate) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.file) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Readable when the size has changed.
    pub(crate) fn resized(&self) -> BorrowedFd<'_> {
        self.resized.as_fd()
    }

    /// Readable after a signal to end.
    pub(crate) fn ending(&self) -> BorrowedFd<'_> {
        self.ending.as_fd()
    }

    pub(crate) fn take_resized(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.resized, &mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// The input; `None` if the terminal is gone.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        use rustix::io::Errno;
        match rustix::io::read(&self.file, &mut *buffer) {
            Ok(0) => None,
            Ok(bytes) => Some(&buffer[..bytes]),
            Err(Errno::AGAIN | Errno::INTR) => Some(&[]),
            Err(_) => None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    pub(crate) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Writes as much as the terminal accepts now.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        use rustix::io::Errno;
        let mut sent = 0;
        while sent < self.outbox.len() {
            match rustix::io::write(&self.file, &self.outbox[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.outbox.drain(..sent);
        Ok(())
    }

    fn give_back(&mut self) {
        // First, so that what is typed from now on is not read in raw mode.
        let _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
        // Unwritten output is dropped; a sequence that was cut off is terminated first.
        let cut = self.is_behind();
        self.outbox.clear();
        if cut {
            self.outbox.extend_from_slice(b"\x1b\\");
        }
        self.outbox.extend_from_slice(LEAVE);
        // The last bytes may have to wait for a slow terminal, but not for long.
        let patience = rustix::event::Timespec { tv_sec: 2, tv_nsec: 0 };
        while self.flush().is_ok() && self.is_behind() {
            use rustix::event::{PollFd, PollFlags, poll};
            let mut watched = [PollFd::new(&self.file, PollFlags::OUT)];
            if !poll(&mut watched, Some(&patience)).is_ok_and(|ready| ready > 0) {
                break;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Repairs the settings of a terminal that a killed program left in raw mode.
fn repair(modes: &mut Termios) {
    let raw = !modes.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO);
    if raw {
        modes.local_modes |= LocalModes::ICANON
            | LocalModes::ECHO
            | LocalModes::ECHOE
            | LocalModes::ISIG
            | LocalModes::IEXTEN;
        modes.input_modes |= InputModes::ICRNL | InputModes::IXON;
        modes.output_modes |= OutputModes::OPOST;
    }
}
