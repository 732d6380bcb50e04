//! A reader of logs: a client that gets the lines of several processes, merged by their times. Nothing is queued for
//! it: the lines are read from the logs at its own pace.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_panes::data_plane::{ProcessRun, RunProgress};
use patterm_panes::process::ProcessId;
use patterm_wire::logs::{self, LogLine, LogLines, LogsBegun, LogsRequest, ReadLogs};
use patterm_wire::{ErrorObject, Framing, Method, follow, reply};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::fair_read::read_fairly;
use super::upgrade::Upgrade;
use crate::host::Host;
use crate::log_lines::{MergedLines, Wanted};
use crate::tools::{ErrorKind, ToolError};

/// The minimum time between two parts of new lines: lines that are printed at the same time come together, in order.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a client may take to read the rest when the server ends. One that reads at all needs much less, and
/// nothing may delay the shutdown.
const END_PATIENCE: Duration = Duration::from_millis(500);

/// Bytes read from a client at once: it sends nothing.
const READ_BYTES: usize = 64;

impl Upgrade<LogsRequest> {
    /// Parses a message as such a request.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(ReadLogs::NAME, body)
    }

    /// Serves the client until it disconnects or has everything, or sends an error.
    pub(super) async fn serve(self, stream: UnixStream, host: Arc<Host>) -> io::Result<()> {
        match self.check(&host) {
            Ok(wanted) => {
                let begun = serde_json::to_string(&LogsBegun { version: logs::VERSION })?;
                let mut outbox = Vec::new();
                Framing::Newline.encode(&reply::result(&self.id, &begun), &mut outbox);
                LogReader { stream, host, follows: wanted.follow, outbox, sent: 0 }
                    .run(wanted)
                    .await
            }
            Err(error) => self.refuse(stream, &error).await,
        }
    }

    /// What is wanted; the error says why it is refused.
    fn check(&self, host: &Host) -> Result<Wanted, ErrorObject> {
        let params = self.params.as_ref().map_err(|why| {
            ErrorObject::invalid_params(format!("`params` needs `version`: {why}"))
        })?;
        if params.version != logs::VERSION {
            let message = format!(
                "this server speaks version {} of the logs protocol, but the client speaks {}; use the \
                 same patterm for both (`patterm --version`, `patterm ls`)",
                logs::VERSION,
                params.version
            );
            return Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc());
        }
        let mut processes = Vec::new();
        for given in &params.processes {
            let id = ProcessId::of(given);
            if host.panes.processes.get(&id).is_none() {
                return Err(ToolError::from(host.panes.no_such_process(given)).into_rpc());
            }
            processes.push(id);
        }
        let LogsRequest { tail, since_ms, follow, continue_at, .. } = params.clone();
        Ok(Wanted { processes, tail, since_ms, continue_at, follow })
    }
}

struct LogReader {
    stream: UnixStream,
    host: Arc<Host>,
    follows: bool,
    /// At most one part; the next one is read once it is sent.
    outbox: Vec<u8>,
    sent: usize,
}

/// What ended a wait.
enum Woken {
    /// There may be something new, or everything was sent.
    Changed,
    /// The client is gone.
    Closed,
    /// The server ends.
    Shutdown,
}

impl LogReader {
    async fn run(mut self, wanted: Wanted) -> io::Result<()> {
        let mut changes = self.host.panes.processes.changes();
        let mut merged = MergedLines::new(wanted);
        // The client was told that it has everything.
        let mut current = false;
        loop {
            changes.borrow_and_update();
            let (lines, more);
            (merged, lines, more) = self.read(merged).await?;
            let was_empty = lines.is_empty();
            let done = was_empty && (!self.follows || merged.is_over());
            if !was_empty || !current || done {
                let is_current = was_empty && !current;
                let current_at = is_current.then(|| merged.offsets());
                current |= is_current;
                self.push(&LogLines { lines, current: current_at, done })?;
            }
            match self.flush().await? {
                Woken::Changed if !done => {}
                Woken::Changed | Woken::Closed => return Ok(()),
                Woken::Shutdown => return self.send_end().await,
            }
            // After the end there is nothing to wait for: the next part is the last one, and empty.
            if more || !current || merged.is_over() {
                continue;
            }
            // Also after new lines, so that a busy process does not separate them from those of others.
            match self.wait(&mut changes, &merged).await? {
                Woken::Changed => {}
                Woken::Closed => return Ok(()),
                Woken::Shutdown => return self.send_end().await,
            }
        }
    }

    /// Reads the next lines, on a thread that may wait for the disk.
    async fn read(&self, mut merged: MergedLines) -> io::Result<(MergedLines, Vec<LogLine>, bool)> {
        let host = self.host.clone();
        let read = move || {
            merged.update(&host.panes);
            let (lines, more) = merged.next_part();
            (merged, lines, more)
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)
    }

    /// Waits until there may be new lines.
    async fn wait(
        &self,
        changes: &mut tokio::sync::watch::Receiver<u64>,
        merged: &MergedLines,
    ) -> io::Result<Woken> {
        let shutdown = self.host.shutdown.clone();
        let at_least = Instant::now() + PAUSE;
        let mut prints: FuturesUnordered<_> = merged
            .runs()
            .into_iter()
            .map(|(run, from, over)| prints_or_ends(run, from, over))
            .collect();
        tokio::select! {
            biased;
            closed = self.closed() => return closed.map(|()| Woken::Closed),
            () = shutdown.cancelled() => return Ok(Woken::Shutdown),
            _ = changes.changed() => {}
            Some(()) = prints.next() => {}
            () = sleep_until(at_least), if merged.is_starting() => {}
        }
        tokio::select! {
            biased;
            closed = self.closed() => closed.map(|()| Woken::Closed),
            () = sleep_until(at_least) => Ok(Woken::Changed),
        }
    }

    /// Waits until the client disconnects. What it sends is ignored.
    async fn closed(&self) -> io::Result<()> {
        let mut scratch = [0; READ_BYTES];
        loop {
            if read_fairly(&self.stream, &mut scratch).await? == 0 {
                return Ok(());
            }
        }
    }

    fn push(&mut self, lines: &LogLines) -> io::Result<()> {
        let text = serde_json::to_string(lines)?;
        let body = reply::notification(logs::LINES, Some(&text));
        Framing::Newline.encode(&body, &mut self.outbox);
        Ok(())
    }

    /// Announces the shutdown, unless another server takes over.
    async fn send_end(&mut self) -> io::Result<()> {
        if !self.host.handover.load(Ordering::Acquire) {
            Framing::Newline.encode(&reply::notification(follow::ENDED, None), &mut self.outbox);
        }
        timeout(END_PATIENCE, self.send()).await.unwrap_or(Ok(true)).map(drop)
    }

    /// Sends everything, as fast as the client reads it; not beyond the end of the server.
    async fn flush(&mut self) -> io::Result<Woken> {
        let shutdown = self.host.shutdown.clone();
        tokio::select! {
            biased;
            sent = self.send() => Ok(if sent? { Woken::Changed } else { Woken::Closed }),
            () = shutdown.cancelled() => Ok(Woken::Shutdown),
        }
    }

    /// Sends everything; `false` if the client disconnects. If this is cancelled, the next call sends the rest.
    async fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.outbox.len() {
            match self.stream.try_write(&self.outbox[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => tokio::select! {
                    biased;
                    ready = self.stream.writable() => ready?,
                    closed = self.closed() => return closed.map(|()| false),
                },
                Err(e) => return Err(e),
            }
        }
        (self.outbox, self.sent) = (Vec::new(), 0);
        Ok(true)
    }
}

/// Waits until a process prints something beyond an offset, or ends.
async fn prints_or_ends(run: Arc<ProcessRun>, from: u64, was_over: bool) {
    let mut progress = run.watch();
    let is_new =
        |progress: &RunProgress| progress.parsed.get() > from || (progress.is_over() && !was_over);
    if progress.wait_for(is_new).await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paused_time_tests::host_within;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_does_not_delay_the_shutdown() {
        let folder = tempfile::tempdir().unwrap();
        let host = Arc::new(host_within(folder.path()));
        host.shutdown.cancel();
        let (_client, stream) = UnixStream::pair().unwrap();
        // More than the socket holds.
        let outbox = vec![b'x'; 16 << 20];
        let reader = LogReader { stream, host, follows: true, outbox, sent: 0 };
        let wanted = Wanted { follow: true, ..Wanted::default() };
        let began = Instant::now();
        timeout(Duration::from_secs(60), reader.run(wanted)).await.unwrap().unwrap();
        assert!(began.elapsed() <= END_PATIENCE + PAUSE, "{:?}", began.elapsed());
    }
}
