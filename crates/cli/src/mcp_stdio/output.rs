//! Standard output, only for protocol messages, and without blocking on a client that does not read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::SendFlags;

/// What a writable pipe accepts without blocking.
const PIPE_ATOM: usize = 4096;

/// The output to the client.
#[derive(Debug)]
pub(super) struct ClientOutput {
    descriptor: OwnedFd,
    /// Node gives its children sockets as pipes; those can be written without blocking.
    is_socket: bool,
    waiting: Vec<u8>,
    sent: usize,
}

impl ClientOutput {
    /// Reserves standard output for the protocol. Anything else that this process prints, for example a
    /// panic, goes to standard error from now on.
    pub(super) fn claim_stdout() -> io::Result<Self> {
        let descriptor = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Self::new(descriptor)
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&descriptor)?.st_mode);
        let is_socket = kind == FileType::Socket;
        Ok(Self { descriptor, is_socket, waiting: Vec::new(), sent: 0 })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Bytes not written yet.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() - self.sent
    }

    /// The buffer to append frames to; [`ClientOutput::flush`] sends them.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Writes as much as the client accepts now. An error means that it is gone.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.len() > 0 {
            match self.write_some() {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.drop_sent();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.waiting.clear();
        self.sent = 0;
        Ok(())
    }

    /// Frees what was sent, since a slow client may never empty the buffer. Not at every write, since the rest
    /// is moved.
    fn drop_sent(&mut self) {
        if self.sent >= self.waiting.len() / 2 {
            self.waiting.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn write_some(&self) -> rustix::io::Result<usize> {
        let rest = &self.waiting[self.sent..];
        if self.is_socket {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            return rustix::net::send(&self.descriptor, rest, flags);
        }
        let mut ready = [PollFd::new(&self.descriptor, PollFlags::OUT)];
        poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        if ready[0].revents().is_empty() {
            return Err(Errno::AGAIN);
        }
        rustix::io::write(&self.descriptor, &rest[..rest.len().min(PIPE_ATOM)])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[track_caller]
    fn check(output: OwnedFd, mut input: impl Read) {
        let mut output = ClientOutput::new(output).unwrap();
        let text: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        output.buffer().extend_from_slice(&text);
        output.flush().unwrap();
        assert!(output.len() > 0, "it does not block without a reader");
        let mut seen = Vec::new();
        let mut chunk = vec![0; 60_000];
        while seen.len() < text.len() {
            let bytes = input.read(&mut chunk).unwrap();
            seen.extend_from_slice(&chunk[..bytes]);
            output.flush().unwrap();
        }
        assert!(seen == text);
        drop(input);
        output.buffer().push(b'x');
        assert!(output.flush().is_err(), "the reader is gone");
    }

    #[test]
    fn pipes_and_sockets_are_written_without_blocking() {
        let (reader, writer) = io::pipe().unwrap();
        check(writer.into(), reader);
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        check(writer.into(), reader);
    }
}
