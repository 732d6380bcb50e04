//! The user's terminal while a process is shown on it. Its settings are restored afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use patterm_keeper::{CrashGuard, TerminalRestore};
use patterm_wire::view::ViewSize;
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::pipe;

/// Clears the screen and all modes.
pub(super) const RESET: &[u8] = b"\x1b[!p\x1b[?1049h\x1b[r\x1b[0m\x1b[H\x1b[2J";

/// Switches off everything that a program may have switched on: mouse, paste, focus, keyboard, margins.
const LEAVE: &[u8] = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\
    \x1b>\x1b[<99u\x1b[r\x1b[!p\x1b[?25h\x1b[0m\x1b[?1049l";

pub(super) struct Terminal {
    before: Termios,
    resized: UnixStream,
    /// Signals that end this process restore the terminal, too.
    _guard: CrashGuard,
}

/// The signals that end a process on request.
const ENDS: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];

impl Terminal {
    /// Puts the terminal into raw mode.
    pub(super) fn enter() -> anyhow::Result<Self> {
        let stdin = rustix::stdio::stdin();
        anyhow::ensure!(isatty(stdin), "standard input is not a terminal");
        let before = tcgetattr(stdin)?;
        let (resized, written_by_handler) = UnixStream::pair()?;
        resized.set_nonblocking(true)?;
        pipe::register(SIGWINCH, written_by_handler)?;
        let file = stdin.try_clone_to_owned()?;
        let restore = TerminalRestore { file, before: before.clone(), leave: LEAVE };
        let guard = patterm_keeper::restore_terminal(restore, &ENDS);
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin, OptionalActions::Now, &raw)?;
        let terminal = Self { before, resized, _guard: guard };
        terminal.write(RESET)?;
        Ok(terminal)
    }

    pub(super) fn size(&self) -> ViewSize {
        let size = tcgetwinsize(rustix::stdio::stdin());
        size.map_or(ViewSize { rows: 24, columns: 80 }, |size| ViewSize {
            rows: size.ws_row,
            columns: size.ws_col,
        })
    }

    /// Readable when the size has changed.
    pub(super) fn resized(&self) -> BorrowedFd<'_> {
        self.resized.as_fd()
    }

    pub(super) fn take_resized(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.resized, &mut bytes).is_ok_and(|read| read > 0) {}
    }

    /// Writes all of it.
    pub(super) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.write(LEAVE);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
