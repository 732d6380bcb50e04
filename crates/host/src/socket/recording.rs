//! A reader of a recording: a client that gets what a process has shown, in parts, at its own pace.

use std::io;
use std::sync::Arc;

use patterm_keeper::log::time_at;
use patterm_panes::Offset;
use patterm_panes::process::ProcessId;
use patterm_wire::recording::{
    self, ReadRecording, RecordingBegun, RecordingPart, RecordingRequest,
};
use patterm_wire::{ErrorObject, Framing, Method, reply};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::upgrade::Upgrade;
use crate::host::Host;
use crate::recorded::Recorded;
use crate::tools::{ErrorKind, Moment, ToolError, gone, no_output};

impl Upgrade<RecordingRequest> {
    /// Parses a message as such a request.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(ReadRecording::NAME, body)
    }

    /// Serves the client until it disconnects or has everything, or sends an error.
    pub(super) async fn serve(self, mut stream: UnixStream, host: Arc<Host>) -> io::Result<()> {
        let request = match self.check() {
            Ok(request) => request,
            Err(error) => return self.refuse(stream, &error).await,
        };
        let shutdown = host.shutdown.clone();
        let begin = tokio::task::spawn_blocking(move || begin(&host, &request));
        let (mut recorded, begun) = match begin.await.map_err(io::Error::other)? {
            Ok(begun) => begun,
            Err(error) => return self.refuse(stream, &error.into_rpc()).await,
        };
        let mut line = Vec::new();
        let begun = serde_json::to_string(&begun)?;
        Framing::Newline.encode(&reply::result(&self.id, &begun), &mut line);
        loop {
            tokio::select! {
                biased;
                sent = stream.write_all(&line) => sent?,
                () = shutdown.cancelled() => return Ok(()),
            }
            let (next, part) = tokio::task::spawn_blocking(move || {
                let part = recorded.next_part();
                (recorded, part)
            })
            .await
            .map_err(io::Error::other)?;
            recorded = next;
            line = encoded(&part)?;
            if part.done {
                return stream.write_all(&line).await;
            }
        }
    }

    fn check(&self) -> Result<RecordingRequest, ErrorObject> {
        let params = self.params.as_ref().map_err(|why| {
            ErrorObject::invalid_params(format!(
                "`params` needs `version`, `process_id` and `form`: {why}"
            ))
        })?;
        if params.version != recording::VERSION {
            let message = format!(
                "this server speaks version {} of the recording protocol, but the client speaks {}; use the \
                 same patterm for both (`patterm --version`, `patterm ls`)",
                recording::VERSION,
                params.version
            );
            return Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc());
        }
        Ok(params.clone())
    }
}

/// Begins to read; this may wait for a screen that is being rebuilt.
fn begin(host: &Host, request: &RecordingRequest) -> Result<(Recorded, RecordingBegun), ToolError> {
    let id = ProcessId::of(&request.process_id);
    let process = host.panes.processes.get(&id);
    let process =
        process.ok_or_else(|| ToolError::from(host.panes.no_such_process(&request.process_id)))?;
    let run = host.panes.run_of(&id).ok_or_else(|| no_output(&process, host))?;
    let (run_begin, end) = (process.run_offset, run.log.end());
    let place = |argument, moment: &Option<_>, default| match moment.clone().map(Moment::from) {
        Some(moment) => moment.offset(argument, &run, run_begin, &host.events),
        None => Ok(default),
    };
    let first = run.first_moment(run_begin);
    let from = place("from", &request.from, first)?;
    let to = place("to", &request.to, Offset::new(end))?;
    if from > to {
        let why = format_args!("is offset {to}, which is before `from`, offset {from}");
        return Err(ToolError::invalid("to", why));
    }
    if end == run_begin.get() {
        let message = format!("{} ({}) has printed nothing yet", process.id, process.name);
        return Err(ToolError::new(ErrorKind::Unavailable, message));
    }
    let recorded = Recorded::new(&run, run_begin, (from, to), request);
    let recorded = recorded.ok_or_else(|| gone(&run, run_begin))?;
    let time_of = |at: u64| time_at(&run.log.times(at, at + 1), at);
    let begun = RecordingBegun {
        version: recording::VERSION,
        name: process.name,
        size: recorded.size(),
        from: from.get(),
        to: to.get(),
        from_ms: time_of(from.get()).or(recorded.time_ms()),
        to_ms: time_of(to.get().saturating_sub(1)).or(recorded.time_ms()),
        gone: match request.from {
            Some(_) => 0,
            None => from.get() - run_begin.get(),
        },
    };
    Ok((recorded, begun))
}

fn encoded(part: &RecordingPart) -> io::Result<Vec<u8>> {
    let (mut line, text) = (Vec::new(), serde_json::to_string(part)?);
    Framing::Newline.encode(&reply::notification(recording::PART, Some(&text)), &mut line);
    Ok(line)
}
