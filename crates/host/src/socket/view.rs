//! A view of a process: its screen as it is, then its output as it comes. Nothing is queued for a
//! view: it reads the log at its own pace, and one that falls too far behind begins anew from a
//! snapshot.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use patterm_screen::Size;
use patterm_wire::view::{
    self, FromView, SizePolicy, ToView, View, ViewAttached, ViewDecoder, ViewRequest, ViewSize,
};
use patterm_wire::{ErrorObject, Framing, Method, reply};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

use super::upgrade::Upgrade;
use crate::caller_origin::CallerOrigin;
use crate::host::Host;
use crate::tools::{ErrorKind, ToolError, is_owner, no_output, not_owner};
use patterm_panes::data_plane::{ProcessRun, Typed, Typist};
use patterm_panes::process::ProcessId;

/// Bytes of output in one frame.
const OUTPUT_BYTES: usize = 64 << 10;

/// A view this far behind is better served by a picture of the screen than by what led to it.
const LAG_BYTES: u64 = 256 << 10;

/// The same for a view that draws pictures anyway: what is more than this is not parsed twice.
const PICTURE_BYTES: u64 = 32 << 10;

/// Such a view gets a picture no sooner than this after the last: it would not be drawn.
const PICTURE_PAUSE: Duration = Duration::from_millis(16);

/// Bytes read from a view in one go.
const READ_BYTES: usize = 16 << 10;

/// How long an escape may be the beginning of a sequence.
const ESCAPE_PAUSE: Duration = Duration::from_millis(30);

impl Upgrade<ViewRequest> {
    /// Whether a message asks for it.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(View::NAME, body)
    }

    /// Attaches the view, or says why not, and serves it to its end.
    pub(super) async fn serve(
        self,
        stream: UnixStream,
        rest: Vec<u8>,
        host: Arc<Host>,
        origin: &CallerOrigin,
    ) -> io::Result<()> {
        match self.check(&host, origin) {
            Ok((run, size)) => {
                let mut line = Vec::new();
                let process_id = run.id.to_string();
                let result = ViewAttached { version: view::VERSION, process_id };
                let result = serde_json::to_string(&result)?;
                Framing::Newline.encode(&reply::result(&self.id, &result), &mut line);
                let params = self.params.as_ref().ok();
                let last = params.is_some_and(|params| params.sizes == SizePolicy::Last);
                let mut attached = Attached::new(stream, host, run, line, last);
                attached.pictures = params.is_some_and(|params| params.pictures);
                if params.is_some_and(|params| params.attends) {
                    attached.host.panes.attended(&attached.run.id);
                }
                attached.resize(size);
                attached.decoder.feed(&rest);
                attached.run().await
            }
            Err(error) => self.refuse(stream, &error).await,
        }
    }

    fn check(
        &self,
        host: &Host,
        origin: &CallerOrigin,
    ) -> Result<(Arc<ProcessRun>, Option<Size>), ErrorObject> {
        let params = self.params.as_ref().map_err(|why| {
            ErrorObject::invalid_params(format!("`params` take version and process_id: {why}"))
        })?;
        if params.version != view::VERSION {
            let message = format!(
                "this server speaks version {} of views and you speak {}; use the same patterm on \
                 both sides (`patterm --version`, `patterm ls`)",
                view::VERSION,
                params.version
            );
            return Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc());
        }
        let Ok(id) = params.process_id.parse::<ProcessId>();
        let process = host.panes.processes.get(&id);
        let process = process
            .ok_or_else(|| ToolError::from(host.panes.no_such_process(id.as_str())).into_rpc())?;
        // Who has a view types.
        if let CallerOrigin::Agents(me) = origin
            && !is_owner(&host.panes, me, &process)
        {
            return Err(not_owner(host, Some(me), &process).into_rpc());
        }
        let run = host.panes.run_of(&id).ok_or_else(|| no_output(&process, host).into_rpc())?;
        let size = params.rows.zip(params.columns).map(|(rows, columns)| Size::new(rows, columns));
        Ok((run, size))
    }
}

struct Attached {
    stream: UnixStream,
    host: Arc<Host>,
    run: Arc<ProcessRun>,
    decoder: ViewDecoder,
    /// One frame on its way, at the most; the next is made when it is gone.
    outbox: Vec<u8>,
    sent: usize,
    /// The offset after the last byte that the view has; `None` before its first picture.
    at: Option<u64>,
    /// The size its last picture had.
    shown: Option<Size>,
    told_end: bool,
    /// Its number among the views of this process.
    number: u64,
    pictures: bool,
    /// When it last got a picture.
    pictured: Instant,
    /// Much came, and the time of the next picture has not.
    waits: bool,
    /// Finds what a person typed.
    typist: Typist,
    /// When input last came.
    heard: Instant,
}

impl Attached {
    fn new(
        stream: UnixStream,
        host: Arc<Host>,
        run: Arc<ProcessRun>,
        outbox: Vec<u8>,
        sizes_last: bool,
    ) -> Self {
        let number = run.views().enter(sizes_last);
        host.looks.send_replace(Some(run.id.clone()));
        Self {
            stream,
            host,
            run,
            decoder: ViewDecoder::default(),
            outbox,
            sent: 0,
            at: None,
            shown: None,
            told_end: false,
            number,
            pictures: false,
            pictured: Instant::now(),
            waits: false,
            typist: Typist::default(),
            heard: Instant::now(),
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut progress = self.run.watch();
        let mut sizes = self.run.views().watch();
        let shutdown = self.host.shutdown.clone();
        let mut scratch = vec![0; READ_BYTES];
        loop {
            self.hear()?;
            self.flush()?;
            if self.outbox.is_empty() && self.next_frame() {
                tokio::task::consume_budget().await;
                continue;
            }
            let idle = self.outbox.is_empty() && !self.waits;
            tokio::select! {
                biased;
                ready = self.stream.readable() => {
                    ready?;
                    match self.stream.try_read(&mut scratch) {
                        Ok(0) => return Ok(()),
                        Ok(bytes) => self.decoder.feed(&scratch[..bytes]),
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                        Err(e) => return Err(e),
                    }
                }
                ready = self.stream.writable(), if !self.outbox.is_empty() => ready?,
                () = sleep_until(self.heard + ESCAPE_PAUSE), if self.typist.is_waiting() => {
                    let typed = self.typist.settle();
                    self.note_typed(typed);
                }
                () = sleep_until(self.pictured + PICTURE_PAUSE), if self.waits => {}
                changed = progress.changed(), if idle => drop(changed),
                changed = sizes.changed(), if idle => drop(changed),
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Takes what the view said.
    fn hear(&mut self) -> io::Result<()> {
        loop {
            match self.decoder.next_from_view() {
                Ok(Some(FromView::Input(bytes))) => {
                    let typed = self.typist.read(&bytes);
                    self.note_typed(typed);
                    self.heard = Instant::now();
                    let agreed = self.run.views().typed(self.number);
                    if agreed.is_some() {
                        self.take_size(agreed);
                    }
                    // A program that does not read loses what is typed into it, as on any terminal.
                    if self.run.type_in(bytes).is_ok() {
                        self.host.panes.data_plane.write(&self.run);
                    }
                }
                Ok(Some(FromView::Size(ViewSize { rows, columns }))) => {
                    self.resize(Some(Size::new(rows, columns)));
                }
                Ok(None) => return Ok(()),
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// A person who types into a process has seen what it asks for.
    fn note_typed(&self, typed: Typed) {
        self.run.note_typed(typed);
        if typed.any {
            self.host.panes.attended(&self.run.id);
        }
    }

    fn resize(&self, size: Option<Size>) {
        let agreed = self.run.views().set(self.number, size);
        self.take_size(agreed);
    }

    fn take_size(&self, agreed: Option<Size>) {
        self.run.resize(agreed);
        self.host.panes.note_size(&self.run.id, agreed);
    }

    /// Makes the next frame, if there is anything to say.
    fn next_frame(&mut self) -> bool {
        let progress = *self.run.watch().borrow();
        let size = self.run.views().agreed();
        let behind = self.at.map(|at| progress.parsed.saturating_sub(at));
        let bound = if self.pictures { PICTURE_BYTES } else { LAG_BYTES };
        let much = behind.is_some_and(|behind| behind > bound);
        self.waits = much && self.pictures && self.pictured.elapsed() < PICTURE_PAUSE;
        if self.waits {
            return false;
        }
        let anew = self.shown != size || behind.is_none() || much;
        let frame = match self.at {
            Some(at) if !anew => {
                let wanted = usize::try_from(progress.parsed.saturating_sub(at)).unwrap_or(0);
                if wanted == 0 {
                    return self.end_frame();
                }
                let copied = self.run.log.copy(at, wanted.min(OUTPUT_BYTES));
                if copied.offset > at {
                    // The log dropped what the view has not seen: begin anew.
                    self.snapshot(size)
                } else {
                    self.at = Some(at + copied.bytes.len() as u64);
                    ToView::Output { offset: at, bytes: copied.bytes }
                }
            }
            _ => self.snapshot(size),
        };
        frame.encode(&mut self.outbox);
        true
    }

    fn snapshot(&mut self, agreed: Option<Size>) -> ToView {
        let screen = self.run.screen();
        let (offset, size) = (screen.offset(), screen.size());
        let bytes = screen.snapshot();
        drop(screen);
        self.at = Some(offset);
        self.shown = agreed;
        self.pictured = Instant::now();
        let size = ViewSize { rows: size.rows, columns: size.columns };
        ToView::Snapshot { offset, size, bytes }
    }

    /// Tells the end, once.
    fn end_frame(&mut self) -> bool {
        let progress = *self.run.watch().borrow();
        if !progress.is_over() || self.told_end {
            return false;
        }
        self.told_end = true;
        let (code, signal) = progress.exit.map_or((None, None), |exit| (exit.code, exit.signal));
        ToView::Ended { code, signal }.encode(&mut self.outbox);
        true
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.outbox.len() {
            match self.stream.try_write(&self.outbox[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        self.outbox = Vec::new();
        self.sent = 0;
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let seen = self.run.watch().borrow().parsed;
        let agreed = self.run.views().leave(self.number, seen);
        self.take_size(agreed);
        self.host.looks.send_modify(|_| ());
    }
}
