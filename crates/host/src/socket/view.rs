//! Attaches views of processes. The data plane serves them from then on ([`patterm_panes::data_plane::NewView`]); what
//! concerns the control plane is done here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use patterm_events::{About, in_scope};
use patterm_screen::Size;
use patterm_wire::events::{Actor, Fact};
use patterm_wire::view::{self, SizePolicy, View, ViewAttached, ViewRequest};
use patterm_wire::{ErrorObject, Framing, Method, reply};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

use super::upgrade::Upgrade;
use crate::caller_origin::CallerOrigin;
use crate::host::Host;
use crate::tools::{ErrorKind, ToolError, is_owner, no_output, not_owner};
use patterm_panes::data_plane::{AttachedView, NewView, ProcessRun};
use patterm_panes::process::ProcessId;

/// The control plane looks at a person's typing at most this often: nobody types a request for attention away faster,
/// and each look costs a wake-up.
const TYPED_PAUSE: Duration = Duration::from_millis(100);

impl Upgrade<ViewRequest> {
    /// Parses a message as such a request.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(View::NAME, body)
    }

    /// Attaches the view and serves it until it disconnects, or sends an error.
    pub(super) async fn serve(
        self,
        stream: UnixStream,
        rest: Vec<u8>,
        host: Arc<Host>,
        origin: &CallerOrigin,
    ) -> io::Result<()> {
        match self.check(&host, origin) {
            Ok((run, size)) => {
                host.panes.data_plane.rebuilt(&run).await;
                let mut line = Vec::new();
                let process_id = run.id.to_string();
                let result = ViewAttached { version: view::VERSION, process_id };
                let result = serde_json::to_string(&result)?;
                Framing::Newline.encode(&reply::result(&self.id, &result), &mut line);
                let params = self.params.as_ref().ok();
                let last = params.is_some_and(|params| params.sizes == SizePolicy::Last);
                let number = run.views().enter(last);
                host.last_viewed.send_replace(Some(run.id.clone()));
                let agreed = run.views().set(number, size);
                if run.resize(agreed) {
                    host.panes.data_plane.write(&run);
                }
                host.panes.note_size(&run.id, agreed);
                let actor = origin.actor_at_view();
                let view = NewView {
                    typist: Arc::new(actor.clone()),
                    stream: stream.into_std()?,
                    run: run.clone(),
                    number,
                    greeting: line,
                    received: rest,
                    prefers_snapshots: params.is_some_and(|params| params.pictures),
                };
                let about = || About::process(&run.id).run(run.number.get());
                host.events.record_by(actor.clone(), about(), Fact::ViewAttached {});
                let view = host.panes.data_plane.attach(view);
                follow(view, &host, &run, &actor).await;
                host.events.record_by(actor, about(), Fact::ViewDetached {});
                host.panes.note_size(&run.id, run.views().agreed());
                host.last_viewed.send_modify(|_| ());
                Ok(())
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
            ErrorObject::invalid_params(format!("`params` needs `version` and `process_id`: {why}"))
        })?;
        if params.version != view::VERSION {
            let message = format!(
                "this server speaks version {} of the view protocol, but the client speaks {}; use the \
                 same patterm for both (`patterm --version`, `patterm ls`)",
                view::VERSION,
                params.version
            );
            return Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc());
        }
        let Ok(id) = params.process_id.parse::<ProcessId>();
        let process = host.panes.processes.get(&id);
        let process = process
            .ok_or_else(|| ToolError::from(host.panes.no_such_process(id.as_str())).into_rpc())?;
        // A view can type into the process, so the caller must own it.
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

/// Input that follows other input within this time belongs to the same burst: a person types a line without a longer
/// pause.
const BURST_PAUSE: Duration = Duration::from_secs(2);

/// How long a burst is at most, so that somebody who never pauses is recorded, too.
const BURST_TIME: Duration = Duration::from_secs(30);

/// Input of one view without long pauses.
#[derive(Debug, Default)]
struct InputBurst {
    /// The bytes of all bursts before.
    recorded: u64,
    /// When it began, and when it is over.
    open: Option<(Instant, Instant)>,
}

impl InputBurst {
    /// There was more input.
    fn go_on(&mut self) {
        let now = Instant::now();
        let began = self.open.map_or(now, |(began, _)| began);
        self.open = Some((began, (now + BURST_PAUSE).min(began + BURST_TIME)));
    }

    /// Waits until it is over; forever while there is none.
    async fn is_over(&self) {
        match self.open {
            Some((_, over)) => sleep_until(over).await,
            None => std::future::pending().await,
        }
    }

    /// Its length; `bytes` are those of all bursts.
    fn take(&mut self, bytes: u64) -> u64 {
        self.open = None;
        bytes - std::mem::replace(&mut self.recorded, bytes)
    }
}

/// Does what the control plane has to do for a view, until its client is gone.
async fn follow(mut view: AttachedView, host: &Host, run: &ProcessRun, actor: &Actor) {
    let (news, shutdown) = (view.news.clone(), host.shutdown.clone());
    let mut listens_from = Instant::now();
    let mut burst = InputBurst::default();
    let record = |burst: &mut InputBurst| {
        let length = burst.take(news.typed_bytes.load(Ordering::Relaxed));
        let about = About::process(&run.id).run(run.number.get());
        let about = about.at(run.watch().borrow().parsed.get());
        if length > 0 {
            host.events.record_by(actor.clone(), about, Fact::InputSent { length });
        }
    };
    loop {
        let listens = Instant::now() >= listens_from;
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return record(&mut burst),
            _ = &mut view.over => return record(&mut burst),
            () = burst.is_over() => record(&mut burst),
            () = news.resized.notified() => host.panes.note_size(&run.id, run.views().agreed()),
            // A person who types into a process has seen its request for attention.
            () = news.typed.notified(), if listens => {
                in_scope(actor.clone(), || host.panes.attended(&run.id));
                burst.go_on();
                listens_from = Instant::now() + TYPED_PAUSE;
            }
            () = sleep_until(listens_from), if !listens => {}
        }
    }
}
