//! A follower: a client that gets the whole project as one value, and again after each change.
//! Nothing is queued for it: while it does not read, changes accumulate, and then it gets only
//! the newest value.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_wire::follow::{
    self, ActivityState, DialogInfo, DialogOption, Follow, FollowRequest, HealthState, MessageInfo,
    NotificationInfo, ProcessInfo, ProcessKind, ProcessStatus, ProjectFileInfo, ProjectFileState,
    ProjectSnapshot, Selection, SelectionAnswer, TimerInfo, TimerKind,
};
use patterm_wire::{Decoder, ErrorObject, Frame, Framing, Id, Incoming, Message, Method, reply};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::fair_read::read_fairly;
use super::upgrade::Upgrade;
use crate::host::Host;
use crate::selections::add_open;
use crate::tools::{ErrorKind, ToolError, excerpt, last_messages, message_source, output_problem};
use crate::typing::is_anybody_typing;
use patterm_agents::activity;
use patterm_agents::delivery::{Delivery, ReceiptState};
use patterm_panes::Offset;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Kind, Process, ProcessId, Status};
use patterm_project::declared::{FileStatus, Health};
use patterm_store::clock::Moment;
use patterm_timers::{Mode, Timer, Wake};

/// The minimum time between two values: nobody reads twenty per second.
const PAUSE: Duration = Duration::from_millis(50);

/// The minimum time between two values that differ only in bells and notifications, so that a program that rings
/// endlessly costs little.
const NOTIFICATION_PAUSE: Duration = Duration::from_secs(1);

/// Bytes read from a follower at once, and its longest line: it only answers calls.
const READ_BYTES: usize = 1 << 10;

impl Upgrade<FollowRequest> {
    /// Parses a message as such a request.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::by(Follow::NAME, body)
    }

    /// Serves the follower until it disconnects, or sends an error.
    pub(super) async fn serve(self, stream: UnixStream, host: Arc<Host>) -> io::Result<()> {
        match self.check() {
            Ok(request) => Follower::new(stream, host, self.id, request).run().await,
            Err(error) => self.refuse(stream, &error).await,
        }
    }

    /// The request; the error says why it is refused.
    fn check(&self) -> Result<FollowRequest, ErrorObject> {
        let params = self.params.as_ref().map_err(|why| {
            ErrorObject::invalid_params(format!("`params` needs `version`: {why}"))
        })?;
        if params.version == follow::VERSION {
            return Ok(*params);
        }
        let message = format!(
            "this server speaks version {} of the follow protocol, but the client speaks {}; use the \
             same patterm for both (`patterm --version`, `patterm ls`)",
            follow::VERSION,
            params.version
        );
        Err(ToolError::new(ErrorKind::Unavailable, message).into_rpc())
    }
}

/// Everything that can change the value.
struct Changes {
    processes: watch::Receiver<u64>,
    activities: watch::Receiver<u64>,
    deliveries: watch::Receiver<u64>,
    timers: watch::Receiver<u64>,
    project_file: watch::Receiver<u64>,
    last_viewed: watch::Receiver<Option<ProcessId>>,
    selections: watch::Receiver<u64>,
}

/// What changed: a call of `select_process`, or anything else.
enum ChangeKind {
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
            last_viewed: host.last_viewed.subscribe(),
            selections: host.selections.changes(),
        }
    }

    async fn next(&mut self) -> ChangeKind {
        tokio::select! {
            _ = self.selections.changed() => return ChangeKind::Selected,
            _ = self.processes.changed() => {}
            _ = self.activities.changed() => {}
            _ = self.deliveries.changed() => {}
            _ = self.timers.changed() => {}
            _ = self.project_file.changed() => {}
            _ = self.last_viewed.changed() => {}
        }
        ChangeKind::Other
    }
}

struct Follower {
    stream: UnixStream,
    host: Arc<Host>,
    /// The request, until the first value answers it.
    asked: Option<Id>,
    /// Its number among the followers of `select_process`, if that concerns it, and whether it answers.
    number: Option<u64>,
    answers: bool,
    /// The last call of `select_process` that it got.
    last: u64,
    /// The calls that it has not answered.
    to_select: Vec<Selection>,
    /// For a follower that does not answer: the process to show, and how many there were.
    selected: Option<String>,
    selections: u64,
    decoder: Decoder,
    /// The last value that it got.
    sent_snapshot: Option<ProjectSnapshot>,
    outbox: Vec<u8>,
    sent: usize,
}

impl Follower {
    fn new(stream: UnixStream, host: Arc<Host>, id: Id, request: FollowRequest) -> Self {
        let FollowRequest { answers, observes, .. } = request;
        let (number, last) = match observes {
            true => (None, 0),
            false => {
                let (number, last) = host.selections.enter(answers);
                (Some(number), last)
            }
        };
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
            sent_snapshot: None,
            outbox: Vec::new(),
            sent: 0,
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut changes = Changes::of(&self.host);
        let mut notifications = self.host.panes.data_plane.notifications();
        let mut next_notification = Instant::now();
        let shutdown = self.host.shutdown.clone();
        let mut scratch = vec![0; READ_BYTES];
        let mut changed = true;
        let mut next = Instant::now();
        loop {
            self.flush()?;
            let idle = self.outbox.is_empty();
            if changed && idle && next <= Instant::now() {
                changed = false;
                if self.send_snapshot() {
                    next = Instant::now() + PAUSE;
                }
                continue;
            }
            let mut prints: FuturesUnordered<_> =
                self.unprinted().into_iter().map(|(run, from)| prints_beyond(run, from)).collect();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return self.send_end(),
                read = read_fairly(&self.stream, &mut scratch) => match read? {
                    0 => return Ok(()),
                    bytes => self.read_answers(&scratch[..bytes]),
                },
                ready = self.stream.writable(), if !idle => ready?,
                change = changes.next() => {
                    changed = true;
                    if matches!(change, ChangeKind::Selected) {
                        self.take_selections();
                    }
                }
                Some(()) = prints.next(), if !changed => changed = true,
                () = notified(&mut notifications, next_notification), if !changed => {
                    changed = true;
                    next_notification = Instant::now() + NOTIFICATION_PAUSE;
                }
                () = sleep_until(next), if changed && idle => {}
            }
        }
    }

    /// Takes the new calls. A follower that answers decides by itself; one that would show
    /// every process at once does not get those that might move the focus of a keyboard in
    /// use.
    fn take_selections(&mut self) {
        if self.number.is_none() {
            return;
        }
        let new = self.host.selections.since(self.last);
        self.last = new.last().map_or(self.last, |selection| selection.number);
        if self.answers {
            add_open(&mut self.to_select, new);
            return;
        }
        let is_free = |selection: &Selection| {
            !selection.mark_only
                && selection.drafts.is_empty()
                && !is_anybody_typing(&self.host.panes)
        };
        let shown: Vec<_> = new.into_iter().filter(is_free).collect();
        self.selections += shown.len() as u64;
        self.selected = shown.into_iter().next_back().map(|s| s.process).or(self.selected.take());
    }

    /// Reads the follower's answers to calls.
    fn read_answers(&mut self, bytes: &[u8]) {
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
            let Some(follower) = self.number else { continue };
            if let Ok(SelectionAnswer { number, shown }) = serde_json::from_str(params.get()) {
                self.to_select.retain(|selection| selection.number != number);
                self.host.selections.answer(follower, number, shown);
            }
        }
    }

    /// Announces the shutdown, unless another server takes over.
    fn send_end(&mut self) -> io::Result<()> {
        if !self.host.handover.load(Ordering::Acquire) {
            Framing::Newline.encode(&reply::notification(follow::ENDED, None), &mut self.outbox);
        }
        self.flush()
    }

    /// Sends the current value, if it changed.
    fn send_snapshot(&mut self) -> bool {
        let mut seen = snapshot(&self.host);
        (seen.selected, seen.selections) = (self.selected.clone(), self.selections);
        seen.to_select.clone_from(&self.to_select);
        if self.sent_snapshot.as_ref() == Some(&seen) {
            return false;
        }
        let Ok(text) = serde_json::to_string(&seen) else { return false };
        let body = match self.asked.take() {
            Some(id) => reply::result(&id, &text),
            None => reply::notification(follow::CHANGED, Some(&text)),
        };
        Framing::Newline.encode(&body, &mut self.outbox);
        self.sent_snapshot = Some(seen);
        true
    }

    /// The runs that no view shows and that have no unread output, each with the offset at
    /// which unread output would begin.
    fn unprinted(&self) -> Vec<(Arc<ProcessRun>, Offset)> {
        let quiet = |process: &&ProcessInfo| !process.unread;
        let sent = self.sent_snapshot.iter().flat_map(|sent| &sent.processes).filter(quiet);
        let runs = sent.filter_map(|process| self.host.panes.run_of(&ProcessId::of(&process.id)));
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
        if let Some(number) = self.number {
            self.host.selections.leave(number);
        }
    }
}

/// Waits until a process prints its next byte; never returns if it ends without printing.
async fn prints_beyond(run: Arc<ProcessRun>, from: Offset) {
    let mut progress = run.watch();
    if progress.wait_for(|progress| progress.parsed > from).await.is_err() {
        std::future::pending().await
    }
}

/// Waits for a bell or a notification of a program, at least until `from`.
async fn notified(notifications: &mut watch::Receiver<u64>, from: Instant) {
    sleep_until(from).await;
    if notifications.changed().await.is_err() {
        std::future::pending().await
    }
}

/// The current state of the project.
fn snapshot(host: &Host) -> ProjectSnapshot {
    let (timers, now) = host.timers.all();
    ProjectSnapshot {
        project: host.project.root().display().to_string(),
        server: crate::VERSION.to_owned(),
        looked_at: host.last_viewed.borrow().as_ref().map(ToString::to_string),
        processes: host
            .panes
            .processes
            .all()
            .iter()
            .map(|process| process_info(process, host))
            .collect(),
        messages: last_messages(&host.agents.deliveries).into_iter().map(message_info).collect(),
        timers: timers.iter().map(|timer| timer_info(timer, &now)).collect(),
        offers: host.lifecycle.offers(),
        project_file: file_info(&host.declared.file_status()),
        disk_problem: host.panes.disk_problem(),
        settings_problem: host.declared.settings_problems().summary(),
        ..ProjectSnapshot::default()
    }
}

fn file_info(status: &FileStatus) -> ProjectFileInfo {
    let state = match status {
        FileStatus::Absent => ProjectFileState::Absent,
        FileStatus::Faulty { .. } => ProjectFileState::Faulty,
        FileStatus::Untrusted { .. } => ProjectFileState::Untrusted,
        FileStatus::Trusted { .. } => ProjectFileState::Trusted,
    };
    let changed = matches!(status, FileStatus::Untrusted { changes: Some(_), .. });
    ProjectFileInfo { state, hash: status.hash().map(str::to_owned), changed }
}

fn process_info(process: &Process, host: &Host) -> ProcessInfo {
    let activity = host.activity.of(process);
    let run = host.panes.run_of(&process.id);
    let unread = run.as_ref().is_some_and(|run| {
        let from = run.views().unseen_from();
        from.is_some_and(|from| run.watch().borrow().parsed > from)
    });
    let status = host.declared.status(process).unwrap_or_default();
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
            // Clients before 0.1.1 do not know this state.
            activity::ActivityState::Limited | activity::ActivityState::Unknown => {
                ActivityState::Unknown
            }
        },
        limited: (activity.state == activity::ActivityState::Limited)
            .then(|| activity.limited_until.clone().unwrap_or_default()),
        reason: activity.for_people().to_owned(),
        dialog: activity.dialog.as_ref().filter(|_| process.status.is_alive()).map(dialog_info),
        code: process.exit.and_then(|exit| exit.code),
        signal: process.exit.and_then(|exit| exit.signal),
        attention: process.attention.as_ref().map(|attention| attention.reason.clone()),
        interrupted: host.lifecycle.interruption_text(process),
        output_problem: output_problem(process, host),
        declared: process.declared.is_some(),
        waiting_for: host.declared.starts_after(process).unwrap_or_default(),
        restarts: process.declared.as_ref().map(|declared| declared.restarts),
        why_not_running: host.declared.why_not_running(process),
        health: status.health.map(|health| match health {
            Health::Healthy => HealthState::Healthy,
            Health::Unhealthy => HealthState::Unhealthy,
        }),
        problem: status.problem.filter(|_| process.status.is_alive()),
        unread,
        rang: run.as_ref().is_some_and(|run| run.has_unseen_bell()),
        notification: run.and_then(|run| run.notification()).map(|notification| NotificationInfo {
            number: notification.number,
            text: notification.text,
        }),
        runs: process.runs.get(),
    }
}

fn dialog_info(dialog: &activity::Dialog) -> DialogInfo {
    let option = |(at, label): (usize, &String)| DialogOption {
        label: label.clone(),
        answerable: dialog.can_answer(at),
    };
    DialogInfo {
        version: dialog.version.clone(),
        question: dialog.question.clone(),
        options: dialog.options.iter().enumerate().map(option).collect(),
    }
}

pub(super) fn message_info(delivery: Delivery) -> MessageInfo {
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

fn timer_info(timer: &Timer, now: &Moment) -> TimerInfo {
    let kind = match &timer.wake {
        Wake::Delay(_) => TimerKind::Delay,
        Wake::Idle { exits: true, .. } => TimerKind::Exit,
        Wake::Idle { mode: Mode::Any, .. } => TimerKind::IdleAny,
        Wake::Idle { mode: Mode::All, .. } => TimerKind::IdleAll,
    };
    // In whole seconds: the time left is measured each time, and must not look like a change.
    let due =
        |left: u64| if timer.paused { left } else { (now.wall_ms + left).div_ceil(1000) * 1000 };
    TimerInfo {
        id: timer.id.to_string(),
        kind,
        paused: timer.paused,
        label: timer.label.clone(),
        owner: timer.owner.to_string(),
        due: timer.left_ms(now).map(due),
        waiting_on: timer.watched_done(false).iter().map(ToString::to_string).collect(),
        excerpt: timer.body.as_deref().map(excerpt),
    }
}
