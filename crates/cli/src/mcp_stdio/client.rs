//! The client's side: messages from standard input, and responses in the same framing.

use patterm_wire::{Decoder, Frame, Framing};

use super::output::ClientOutput;

/// Bytes per read: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Client {
    decoder: Decoder,
    scratch: Vec<u8>,
    pub(super) output: ClientOutput,
}

impl Client {
    pub(super) fn new(output: ClientOutput, message_bytes: usize) -> Self {
        Self { decoder: Decoder::new(message_bytes), scratch: vec![0; READ_BYTES], output }
    }

    /// Reads what is available and passes every message to `take`; `false` at the end of the input.
    pub(super) fn read(&mut self, mut take: impl FnMut(Frame<'_>)) -> bool {
        use rustix::io::Errno;
        let bytes = match rustix::io::read(rustix::stdio::stdin(), &mut self.scratch) {
            Ok(bytes) => bytes,
            Err(Errno::INTR | Errno::AGAIN) => return true,
            // A terminal that hung up reads as an error, which is the end of the input, too.
            Err(_) => 0,
        };
        self.decoder.feed(&self.scratch[..bytes]);
        while self.decoder.next_frame().map(&mut take).is_some() {}
        if bytes == 0 {
            self.decoder.finish().map(take);
        }
        bytes > 0
    }

    /// Appends a message to the output.
    pub(super) fn write(&mut self, body: &[u8]) {
        let framing = self.decoder.framing().unwrap_or(Framing::Newline);
        framing.encode(body, self.output.buffer());
    }
}
