//! A follower: the whole project as one value, again whenever something changed. Nothing is queued
//! for it: while it does not read, changes gather, and then it gets the newest value only.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_wire::follow::{
    self, ActivityState, Follow, FollowRequest, MessageInfo, ProcessInfo, ProcessKind,
    ProcessStatus, ProjectFileInfo, ProjectFileState, ProjectSnapshot, Selection, SelectionAnswer,
    TimerInfo,
};
use patterm_wire::{Decoder, ErrorObject, Frame, Framing, Id, Incoming, Message, Method, reply};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::upgrade::Upgrade;
use crate::host::Host;
use crate::selections::add_open;
use crate::tools::{ErrorKind, ToolError, excerpt, last_messages, message_source, output_problem};
use crate::typing::somebody_types;
use patterm_agents::activity;
use patterm_agents::delivery::{Delivery, ReceiptState};
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Kind, Process, ProcessId, Status};
use patterm_project::declared::FileStatus;
use patterm_store::clock::now_ms;
use patterm_timers::{Mode, Moment, Timer, Wake};

/// How long one value stands at the least: nobody reads twenty a second.
const PAUSE: Duration = Duration::from_millis(50);

/// Bytes read from a follower in one go, and of the longest line it may say: it answers calls.
const READ_BYTES: usize = 1 << 10;

impl Upgrade<FollowRequest> {
    /// Whether a message asks for it.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(Follow::NAME, body)
    }

    /// Serves the follower to its end, or says why not.
    pub(super) async fn serve(self, stream: UnixStream, host: Arc<Host>) -> io::Result<()> {
        match self.check() {
            Ok(answers) => Follower::new(stream, host, self.id, answers).run().await,
            Err(error) => self.refuse(stream, &error).await,
        }
    }

    /// Whether it answers; or why it is not served.
    fn check(&self) -> Result<bool, ErrorObject> {
        let params = self
            .params
            .as_ref()
            .map_err(|why| ErrorObject::invalid_params(format!("`params` take version: {why}")))?;
        if params.version == follow::VERSION {
            return Ok(params.answers);
        }
        let message = format!(
            "this server speaks version {} of following and you speak {}; use the same patterm on \
             both sides (`patterm --version`, `patterm ls`)",
            follow::VERSION,
            params.version
        );
        Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc())
    }
}

/// Everything that can change what a follower sees.
struct Changes {
    processes: watch::Receiver<u64>,
    activities: watch::Receiver<u64>,
    deliveries: watch::Receiver<u64>,
    timers: watch::Receiver<u64>,
    project_file: watch::Receiver<u64>,
    looks: watch::Receiver<Option<ProcessId>>,
    selections: watch::Receiver<u64>,
}

/// Whether one of them rang for a process that was brought to the front.
enum Rang {
    Selected,
    Other,
}

impl Changes {
    fn of(host: &Host) -> Self {
        Self {
            processes: host.panes.processes.changes(),
            activities: host.agents.activities.changes(),
            deliveries: host.agents.deliveries.changes(),
            timers: host.timers.changes(),
            project_file: host.declared.changes(),
            looks: host.looks.subscribe(),
            selections: host.selections.changes(),
        }
    }

    async fn notify(&mut self) -> Rang {
        tokio::select! {
            _ = self.selections.changed() => return Rang::Selected,
            _ = self.processes.changed() => {}
            _ = self.activities.changed() => {}
            _ = self.deliveries.changed() => {}
            _ = self.timers.changed() => {}
            _ = self.project_file.changed() => {}
            _ = self.looks.changed() => {}
        }
        Rang::Other
    }
}

struct Follower {
    stream: UnixStream,
    host: Arc<Host>,
    /// The request, until it is answered.
    asked: Option<Id>,
    /// Its number among those who are asked to show processes, and whether it answers.
    number: u64,
    answers: bool,
    /// The last call of `select_process` it was told of.
    last: u64,
    /// Those that it has not answered.
    to_select: Vec<Selection>,
    /// What it was told to show, and how often, if it does not answer.
    selected: Option<String>,
    selections: u64,
    decoder: Decoder,
    /// What it was told last.
    told: Option<ProjectSnapshot>,
    outbox: Vec<u8>,
    sent: usize,
}

impl Follower {
    fn new(stream: UnixStream, host: Arc<Host>, id: Id, answers: bool) -> Self {
        let (number, last) = host.selections.enter(answers);
        Self {
            stream,
            host,
            asked: Some(id),
            number,
            answers,
            last,
            to_select: Vec::new(),
            selected: None,
            selections: 0,
            decoder: Decoder::new(READ_BYTES),
            told: None,
            outbox: Vec::new(),
            sent: 0,
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut changes = Changes::of(&self.host);
        let shutdown = self.host.shutdown.clone();
        let mut scratch = vec![0; READ_BYTES];
        let mut changed = true;
        let mut next = Instant::now();
        loop {
            self.flush()?;
            let idle = self.outbox.is_empty();
            if changed && idle && next <= Instant::now() {
                changed = false;
                if self.tell() {
                    next = Instant::now() + PAUSE;
                }
                continue;
            }
            let mut prints: FuturesUnordered<_> =
                self.unprinted().into_iter().map(|(run, from)| prints_beyond(run, from)).collect();
            tokio::select! {
                biased;
                ready = self.stream.readable() => {
                    ready?;
                    match self.stream.try_read(&mut scratch) {
                        Ok(0) => return Ok(()),
                        Ok(bytes) => self.hear(&scratch[..bytes]),
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                        Err(e) => return Err(e),
                    }
                }
                ready = self.stream.writable(), if !idle => ready?,
                rang = changes.notify() => {
                    changed = true;
                    if matches!(rang, Rang::Selected) {
                        self.take_selections();
                    }
                }
                Some(()) = prints.next(), if !changed => changed = true,
                () = sleep_until(next), if changed && idle => {}
                () = shutdown.cancelled() => return self.tell_end(),
            }
        }
    }

    /// Takes the calls that came since it was last told of any. One that answers decides by itself; for
    /// one that would show every process at once, those that might move a keyboard in use are left out.
    fn take_selections(&mut self) {
        let new = self.host.selections.since(self.last);
        self.last = new.last().map_or(self.last, |selection| selection.number);
        if self.answers {
            add_open(&mut self.to_select, new);
            return;
        }
        let is_free = |selection: &Selection| {
            !selection.mark_only && selection.drafts.is_empty() && !somebody_types(&self.host.panes)
        };
        let shown: Vec<_> = new.into_iter().filter(is_free).collect();
        self.selections += shown.len() as u64;
        self.selected = shown.into_iter().next_back().map(|s| s.process).or(self.selected.take());
    }

    /// Takes what the follower says: what it did about calls.
    fn hear(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes);
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { continue };
            let Ok(Incoming::One(Message::Notification { method, params: Some(params) })) =
                Incoming::parse(body)
            else {
                continue;
            };
            if method != follow::SELECTION_ANSWER {
                continue;
            }
            if let Ok(SelectionAnswer { number, shown }) = serde_json::from_str(params.get()) {
                self.to_select.retain(|selection| selection.number != number);
                self.host.selections.answer(self.number, number, shown);
            }
        }
    }

    /// Says that there will be no other server, where that is so.
    fn tell_end(&mut self) -> io::Result<()> {
        if !self.host.handover.load(Ordering::Acquire) {
            Framing::Newline.encode(&reply::notification(follow::ENDED, None), &mut self.outbox);
        }
        self.flush()
    }

    /// Says how things are, if that is another way than it was said last.
    fn tell(&mut self) -> bool {
        let mut seen = seen(&self.host);
        (seen.selected, seen.selections) = (self.selected.clone(), self.selections);
        seen.to_select.clone_from(&self.to_select);
        if self.told.as_ref() == Some(&seen) {
            return false;
        }
        let Ok(text) = serde_json::to_string(&seen) else { return false };
        let body = match self.asked.take() {
            Some(id) => reply::result(&id, &text),
            None => reply::notification(follow::CHANGED, Some(&text)),
        };
        Framing::Newline.encode(&body, &mut self.outbox);
        self.told = Some(seen);
        true
    }

    /// Those that printed nothing since somebody looked, and nobody looks now: with the first
    /// byte of theirs that would be unread.
    fn unprinted(&self) -> Vec<(Arc<ProcessRun>, u64)> {
        let quiet = |process: &&ProcessInfo| !process.unread;
        let told = self.told.iter().flat_map(|told| &told.processes).filter(quiet);
        let runs = told.filter_map(|process| self.host.panes.run_of(&ProcessId::of(&process.id)));
        runs.filter_map(|run| {
            let from = run.views().unseen_from()?;
            Some((run, from))
        })
        .collect()
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

impl Drop for Follower {
    fn drop(&mut self) {
        self.host.selections.leave(self.number);
    }
}

/// Waits until a process prints its next byte; for ever if it ends without.
async fn prints_beyond(run: Arc<ProcessRun>, from: u64) {
    let mut progress = run.watch();
    if progress.wait_for(|progress| progress.parsed > from).await.is_err() {
        std::future::pending().await
    }
}

/// The project as it is now.
fn seen(host: &Host) -> ProjectSnapshot {
    let (timers, now) = host.timers.all();
    ProjectSnapshot {
        project: host.project.root().display().to_string(),
        server: crate::VERSION.to_owned(),
        looked_at: host.looks.borrow().as_ref().map(ToString::to_string),
        processes: host
            .panes
            .processes
            .all()
            .iter()
            .map(|process| seen_process(process, host))
            .collect(),
        messages: last_messages(&host.agents.deliveries).into_iter().map(seen_message).collect(),
        timers: timers.iter().map(|timer| seen_timer(timer, &now)).collect(),
        offers: host.lifecycle.offers(),
        project_file: seen_file(&host.declared.file_status()),
        disk_problem: host.panes.disk_problem(),
        ..ProjectSnapshot::default()
    }
}

fn seen_file(status: &FileStatus) -> ProjectFileInfo {
    let state = match status {
        FileStatus::Absent => ProjectFileState::Absent,
        FileStatus::Faulty { .. } => ProjectFileState::Faulty,
        FileStatus::Untrusted { .. } => ProjectFileState::Untrusted,
        FileStatus::Trusted { .. } => ProjectFileState::Trusted,
    };
    ProjectFileInfo { state, hash: status.hash().map(str::to_owned) }
}

fn seen_process(process: &Process, host: &Host) -> ProcessInfo {
    let activity = host.activity.of(process);
    let unread = host.panes.run_of(&process.id).is_some_and(|run| {
        let from = run.views().unseen_from();
        from.is_some_and(|from| run.watch().borrow().parsed > from)
    });
    ProcessInfo {
        id: process.id.to_string(),
        name: process.name.clone(),
        kind: match process.kind {
            Kind::Agent => ProcessKind::Agent,
            Kind::Command => ProcessKind::Command,
            Kind::Terminal => ProcessKind::Terminal,
        },
        preset: process.agent.as_ref().map(|agent| agent.preset.clone()),
        parent: process.parent_id.as_ref().map(ToString::to_string),
        status: match process.status {
            Status::Starting => ProcessStatus::Starting,
            Status::Running => ProcessStatus::Running,
            Status::Exited => ProcessStatus::Exited,
            Status::Failed => ProcessStatus::Failed,
            Status::Stopped => ProcessStatus::Stopped,
            Status::Lost => ProcessStatus::Lost,
        },
        activity: match activity.state {
            activity::ActivityState::Working => ActivityState::Working,
            activity::ActivityState::Idle => ActivityState::Idle,
            activity::ActivityState::Blocked => ActivityState::Blocked,
            // Clients before 0.1.1 know no limits; to them it is a state that nothing tells.
            activity::ActivityState::Limited | activity::ActivityState::Unknown => {
                ActivityState::Unknown
            }
        },
        limited: (activity.state == activity::ActivityState::Limited)
            .then(|| activity.limited_until.clone().unwrap_or_default()),
        reason: activity.reason,
        code: process.exit.and_then(|exit| exit.code),
        signal: process.exit.and_then(|exit| exit.signal),
        attention: process.attention.as_ref().map(|attention| attention.reason.clone()),
        output_problem: output_problem(process, host),
        unread,
        runs: process.runs,
    }
}

fn seen_message(delivery: Delivery) -> MessageInfo {
    let (kind, from) = message_source(delivery.source);
    let state = match delivery.receipt.state {
        ReceiptState::Delivered => "delivered",
        ReceiptState::Queued => "queued",
        ReceiptState::Stalled => "stalled",
    };
    MessageInfo {
        id: delivery.id,
        kind: kind.to_owned(),
        from,
        to: delivery.to.to_string(),
        at: delivery.at,
        excerpt: delivery.excerpt,
        state: state.to_owned(),
        evidence: delivery.receipt.evidence,
    }
}

fn seen_timer(timer: &Timer, now: &Moment) -> TimerInfo {
    let kind = match &timer.wake {
        Wake::Delay(_) => "delay",
        Wake::Idle { exits: true, .. } => "exit",
        Wake::Idle { mode: Mode::Any, .. } => "idle_any",
        Wake::Idle { mode: Mode::All, .. } => "idle_all",
    };
    // In whole seconds: what is left is measured anew each time, and must not look like a change.
    let due = |left: u64| if timer.paused { left } else { (now_ms() + left).div_ceil(1000) * 1000 };
    TimerInfo {
        id: timer.id.to_string(),
        kind: kind.to_owned(),
        paused: timer.paused,
        label: timer.label.clone(),
        owner: timer.owner.to_string(),
        due: timer.left_ms(now).map(due),
        waiting_on: timer.watched_that_rest(false).iter().map(ToString::to_string).collect(),
        excerpt: timer.body.as_deref().map(excerpt),
    }
}
