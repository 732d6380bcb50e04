//! A project for tests, and a TUI without a terminal.

use patterm_screen::Size;
use patterm_wire::digest::{AgentDigest, Digest, DigestEntry, MessageCounts, StateTimes};
use patterm_wire::events::format_time;
use patterm_wire::follow::{
    ActivityState, DialogInfo, DialogOption, MessageInfo, ProcessInfo, ProcessKind, ProcessStatus,
    ProjectSnapshot, TimerInfo,
};
use patterm_wire::requests::ServerEntry;
use patterm_wire::restore::{EndCause, RestoreMode, RestoreOffer};
use patterm_wire::tools::AgentInfo;
use patterm_wire::view::{ToView, ViewSize};

use crate::layout::PaneId;
use crate::model::Model;
use crate::overview::OverviewEvent;
use crate::update::{Effect, Event, update};
use patterm_screen::input::InputParser;

/// The current time, in milliseconds since 1970.
const NOW: u64 = 1_000_000_000;

pub(crate) fn process(
    id: &str,
    name: &str,
    kind: ProcessKind,
    activity: ActivityState,
) -> ProcessInfo {
    ProcessInfo {
        id: id.to_owned(),
        name: name.to_owned(),
        kind,
        activity,
        runs: 1,
        reason: "the screen says so".to_owned(),
        ..ProcessInfo::default()
    }
}

/// A lead with two helpers, a dev server that failed, and a shell.
pub(crate) fn project() -> ProjectSnapshot {
    let lead = process("p1", "lead", ProcessKind::Agent, ActivityState::Working);
    let lead = ProcessInfo {
        preset: Some("claude".to_owned()),
        reason: "the title shows a spinner: ✳ Refactoring the parser".to_owned(),
        ..lead
    };
    let below = |process: ProcessInfo| ProcessInfo { parent: Some("p1".to_owned()), ..process };
    let helper = below(process("p2", "helper", ProcessKind::Agent, ActivityState::Idle));
    let helper = ProcessInfo { unread: true, ..helper };
    let tests = below(process("p3", "tests", ProcessKind::Agent, ActivityState::Blocked));
    let tests = ProcessInfo { attention: Some("may I push?".to_owned()), ..tests };
    let dev = process("p4", "dev", ProcessKind::Command, ActivityState::Idle);
    let dev = ProcessInfo { status: ProcessStatus::Exited, code: Some(1), ..dev };
    let shell = process("p5", "bash", ProcessKind::Terminal, ActivityState::Idle);
    ProjectSnapshot {
        project: "/home/ada/compiler".to_owned(),
        server: "0.0.1".to_owned(),
        processes: vec![lead, helper, tests, dev, shell],
        messages: vec![message()],
        timers: vec![timer()],
        ..ProjectSnapshot::default()
    }
}

/// The same after everything was ended: the lead resumes, one helper starts a new conversation, another cannot
/// be started, and the shell starts again.
pub(crate) fn ended() -> ProjectSnapshot {
    let offer = |id: &str, how, reason: Option<&str>| RestoreOffer {
        id: id.to_owned(),
        how,
        reason: reason.map(str::to_owned),
        cause: EndCause::Kill,
        at: Some(NOW - 300_000),
    };
    let mut snapshot = project();
    for process in &mut snapshot.processes {
        (process.status, process.attention) = (ProcessStatus::Stopped, None);
    }
    snapshot.offers = vec![
        offer("p1", RestoreMode::Resumed, None),
        offer(
            "p2",
            RestoreMode::NewConversation,
            Some("its CLI never reported its conversation's id"),
        ),
        offer("p3", RestoreMode::Not, Some("`codex` is not in PATH")),
        offer("p5", RestoreMode::Again, None),
    ];
    snapshot
}

fn message() -> MessageInfo {
    MessageInfo {
        id: 1,
        kind: "message".to_owned(),
        from: "p1".to_owned(),
        to: "p2".to_owned(),
        at: NOW,
        excerpt: "please look at the lexer".to_owned(),
        state: "queued".to_owned(),
        evidence: "it is working; its turn must end first".to_owned(),
    }
}

fn timer() -> TimerInfo {
    TimerInfo {
        id: "t1".to_owned(),
        owner: "p1".to_owned(),
        due: Some(NOW + 90_000),
        excerpt: Some("look at the build".to_owned()),
        ..TimerInfo::default()
    }
}

pub(crate) fn agents() -> Vec<AgentInfo> {
    let agent = |agent: &str, title: &str, why: Option<&str>| AgentInfo {
        agent: agent.to_owned(),
        title: title.to_owned(),
        found: why.is_none(),
        why: why.map(str::to_owned),
        ..AgentInfo::default()
    };
    vec![
        agent("claude", "Claude Code", None),
        agent("codex", "Codex", Some("`codex` is not in PATH")),
    ]
}

const HOUR_MS: u64 = 3_600_000;

/// What happened in an hour: one agent asks something.
pub(crate) fn digest(now: u64) -> Digest {
    let entry = |seq, process: &str, text: &str| DigestEntry {
        seq,
        time: format_time(now - HOUR_MS / 2),
        kind: "agent.blocked".into(),
        process_id: Some(process.into()),
        run: Some(1),
        offset: Some(2_000),
        text: text.into(),
        ms: None,
    };
    let agent = AgentDigest {
        process_id: "p1".into(),
        name: "lead".into(),
        turns: 2,
        time: StateTimes { working_ms: 2_400_000, idle_ms: 1_200_000, ..StateTimes::default() },
        messages: MessageCounts { delivered: 3, ..MessageCounts::default() },
        commits: 1,
        files_changed: 4,
        entries: vec![entry(8, "p1", "person answered “Go on?”: Yes")],
        ..AgentDigest::default()
    };
    Digest {
        since: 5,
        next: 99,
        from: Some(format_time(now - HOUR_MS)),
        until: format_time(now),
        needs_you: vec![entry(9, "p3", "tests is blocked: may I push? [Yes / No]")],
        agents: vec![agent],
        processes: vec![entry(10, "p4", "dev: exited with code 1")],
        ..Digest::default()
    }
}

/// A TUI without a terminal.
pub(crate) struct Sample {
    pub(crate) model: Model,
    pub(crate) effects: Vec<Effect>,
}

impl Sample {
    /// A project without processes.
    pub(crate) fn empty(width: u16, height: u16) -> Self {
        let mut sample = Self { model: Model::new(width, height, None), effects: Vec::new() };
        sample.model.now = NOW;
        sample.handle(Event::Snapshot(ProjectSnapshot { processes: Vec::new(), ..project() }));
        sample.model.agents = Some(agents());
        sample
    }

    /// The TUI after everything was ended.
    pub(crate) fn after_the_end(width: u16, height: u16) -> Self {
        let mut sample = Self { model: Model::new(width, height, None), effects: Vec::new() };
        sample.model.now = NOW;
        sample.handle(Event::Snapshot(ended()));
        sample.model.agents = Some(agents());
        sample
    }

    /// The project above, with the lead selected.
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let mut sample = Self::empty(width, height);
        sample.handle(Event::Snapshot(ProjectSnapshot {
            looked_at: Some("p1".to_owned()),
            ..project()
        }));
        let pane = sample.model.focus;
        sample.show(pane, "lead says hello\r\n\x1b[1;32m>\x1b[0m what next?");
        sample
    }

    pub(crate) fn handle(&mut self, event: Event) -> &[Effect] {
        self.effects = update(&mut self.model, event);
        &self.effects
    }

    /// Input from the terminal.
    pub(crate) fn type_in(&mut self, typed: &str) -> &[Effect] {
        let mut parser = InputParser::default();
        parser.feed(typed.as_bytes());
        let mut tokens: Vec<_> = std::iter::from_fn(|| parser.next_event()).collect();
        tokens.extend(std::iter::from_fn(|| parser.flush()));
        let all = tokens.into_iter().flat_map(|token| update(&mut self.model, Event::Input(token)));
        self.effects = all.collect();
        &self.effects
    }

    /// A snapshot from the server, with this text.
    pub(crate) fn show(&mut self, pane: PaneId, text: &str) {
        let size = self.model.panes[&pane].requested.unwrap_or(Size::DEFAULT);
        let size = ViewSize { rows: size.rows, columns: size.columns };
        let frame = ToView::Snapshot { offset: 0, size, bytes: text.as_bytes().to_vec() };
        self.handle(Event::Frame(pane, frame));
    }
}

/// The server of another project.
pub(crate) fn server(key: &str) -> ServerEntry {
    let name = match key {
        "k1" => "compiler",
        "k2" => "website",
        _ => "a-project-with-a-name-that-is-rather-long-for-a-folder",
    };
    ServerEntry {
        pid: 7,
        socket: format!("/run/{key}.sock").into(),
        project: format!("/home/ada/{name}").into(),
        key: key.to_owned(),
        patterm: "0.0.1".to_owned(),
        started_at: 0,
        http: None,
    }
}

/// Another project, whose only agent asks something.
pub(crate) fn asking() -> ProjectSnapshot {
    let option = |label: &str| DialogOption { label: label.to_owned(), answerable: true };
    let writer = process("p1", "writer", ProcessKind::Agent, ActivityState::Blocked);
    let dialog = DialogInfo {
        version: "1-a".to_owned(),
        question: "Do you want to proceed? git push --force-with-lease origin main".to_owned(),
        options: ["1. Yes", "2. Yes, and don't ask again for git push", "3. No"]
            .map(option)
            .to_vec(),
    };
    let writer = ProcessInfo { dialog: Some(dialog), ..writer };
    ProjectSnapshot {
        project: "/home/ada/website".to_owned(),
        processes: vec![writer],
        ..ProjectSnapshot::default()
    }
}

/// Three servers for the open overview: of this project, of one that asks something, and one that is suspended.
pub(crate) fn others(sample: &mut Sample) {
    let overview = |event| Event::Overview(event);
    let servers = ["k1", "k2", "k3"].map(server).to_vec();
    sample.handle(overview(OverviewEvent::Servers(servers)));
    sample.handle(overview(OverviewEvent::Snapshot("k1".to_owned(), Box::new(project()))));
    sample.handle(overview(OverviewEvent::Snapshot("k2".to_owned(), Box::new(asking()))));
    let advice = "it is suspended (pid 7); `kill -CONT 7` resumes it";
    sample.handle(overview(OverviewEvent::Hung("k3".to_owned(), advice.to_owned())));
}
