//! Reads what a process has shown, for `patterm export` and `patterm replay`.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use anyhow::Context;
use patterm_host::on_disk::StateCopy;
use patterm_wire::recording::{
    self, ReadRecording, RecordingBegun, RecordingPart, RecordingRequest,
};
use patterm_wire::{Incoming, Message};

use crate::client::Client;

/// The recording of a process, read part by part.
pub(super) struct RecordedParts {
    /// What the server said about it.
    pub(super) begun: RecordingBegun,
    stream: BufReader<UnixStream>,
    _copy: Option<StateCopy>,
    done: bool,
}

impl RecordedParts {
    /// Asks for a recording.
    pub(super) fn open(request: &RecordingRequest) -> anyhow::Result<Self> {
        let client = Client::connect_to_read()?;
        let (begun, stream, copy) = client.upgrade_with_result::<ReadRecording>(request)?;
        Ok(Self { begun, stream, _copy: copy, done: false })
    }

    /// The next part; `None` after the last one.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<RecordingPart>> {
        const LOST: &str = "the server ended in the middle of the recording; try again";
        let mut line = Vec::new();
        while !self.done {
            line.clear();
            self.stream.read_until(b'\n', &mut line).context(LOST)?;
            anyhow::ensure!(line.ends_with(b"\n"), LOST);
            let Ok(Incoming::One(Message::Notification { method, params })) =
                Incoming::parse(line.trim_ascii_end())
            else {
                continue;
            };
            if let Some(params) = params.filter(|_| method == recording::PART) {
                let part: RecordingPart = serde_json::from_str(params.get())?;
                self.done = part.done;
                return Ok(Some(part));
            }
        }
        Ok(None)
    }
}
