//! Timers of a whole host on a clock that the test sets.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use patterm_agents::activity::{Activity, ActivityState, FAILED};
use patterm_agents::delivery::{NewDelivery, Pending, Receipt, ReceiptState, Source};
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::{AgentEntry, Attention, Kind, ProcessId, Status};
use patterm_store::clock::{Clock, Moment};
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::StateDir;
use patterm_timers::{Condition, Driver, Mode, NewTimer, TimerId};

use crate::host::{Host, Parts};

/// A folder, a clock, and the current host.
struct World {
    folder: tempfile::TempDir,
    clock: Arc<watch::Sender<Moment>>,
    host: Arc<Host>,
    driving: Option<JoinHandle<()>>,
}

fn state_of(folder: &tempfile::TempDir) -> StateDir {
    let project = Project::of(folder.path()).unwrap();
    StateDir::within(folder.path(), project.key())
}

fn host(folder: &tempfile::TempDir, clock: &Arc<watch::Sender<Moment>>) -> Arc<Host> {
    let project = Project::of(folder.path()).unwrap();
    let state = state_of(folder);
    state.ensure().unwrap();
    let keeper = KeeperClient::new(folder.path().join("keeper"), "patterm".into(), project.root());
    let parts = Parts {
        project,
        socket: folder.path().join("socket"),
        state,
        pipes: std::path::PathBuf::new(),
        report: folder.path().join("ended"),
        tools: Vec::new(),
        limits: Limits::default(),
        keeper,
        settings: None,
        program: "patterm".into(),
        clock: Clock::Fake(clock.clone()),
        events: patterm_events::EventLog::none(),
    };
    let (host, _) = Host::load(parts).unwrap();
    Arc::new(host)
}

impl World {
    /// A host with an owner, p1, and two other running processes, p2 and p3.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Moment { boot: "first".into(), up_ms: 0, wall_ms: 1_000_000 };
        let clock = Arc::new(watch::Sender::new(now));
        let host = host(&folder, &clock);
        for name in ["owner", "two", "three"] {
            let running =
                |process: &mut patterm_panes::process::Process| process.status = Status::Running;
            host.panes.processes.add_with(name, Kind::Agent, None, running).unwrap();
        }
        Self { folder, clock, host, driving: None }
    }

    fn drive(&mut self) {
        let driver = Driver::new(self.host.timers.clone()).unwrap();
        self.driving = Some(tokio::spawn(driver.run()));
    }

    /// The server dies, and another one continues.
    async fn next_server(&mut self) {
        if let Some(driving) = self.driving.take() {
            driving.abort();
            let _ = driving.await;
        }
        self.host = host(&self.folder, &self.clock);
        self.drive();
    }

    fn pass(&self, ms: u64) {
        self.clock.send_modify(|now| {
            now.up_ms += ms;
            now.wall_ms += ms;
        });
    }

    fn set(&self, body: &str, condition: Condition) -> TimerId {
        let (owner, body) = (ProcessId::new(1), Some(body.to_owned()));
        let new = NewTimer { owner, set_by: None, label: None, body, condition };
        self.host.timers.set(new).unwrap().0.id
    }

    fn becomes(&self, process: u64, state: ActivityState, settled: bool) {
        let activity = Activity::new(state, "as the test says");
        self.host.agents.activities.set(&ProcessId::new(process), activity, settled);
    }

    /// The queued texts.
    fn texts(&self) -> Vec<String> {
        self.host.agents.deliveries.all().into_iter().map(|delivery| delivery.text).collect()
    }

    /// Waits until this many texts are queued, and the driver is quiet.
    async fn queued(&self, texts: usize) -> Vec<String> {
        let mut changes = self.host.agents.deliveries.changes();
        changes.wait_for(|_| self.texts().len() >= texts).await.unwrap();
        self.quiet().await;
        self.texts()
    }

    /// Lets the driver do everything it can do now.
    async fn quiet(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

fn idle(mode: Mode, watched: &[u64]) -> Condition {
    let watched = watched.iter().map(|n| (ProcessId::new(*n), format!("name{n}"))).collect();
    Condition::Idle { mode, exits: false, watched, max_wait_ms: None }
}

fn run<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
}

#[test]
fn clock_changes_and_suspended_machines_are_handled() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.set("later", Condition::After { ms: 10_000 });
        world.pass(9_000);
        world.clock.send_modify(|now| now.wall_ms += 86_400_000);
        world.quiet().await;
        assert!(world.texts().is_empty(), "a wall clock that jumps ahead makes no timer early");
        world.clock.send_modify(|now| now.wall_ms = 0);
        world.pass(1_000);
        world.quiet().await;
        assert!(world.texts().is_empty());
        world.pass(1);
        assert_eq!(
            world.queued(1).await,
            ["later"],
            "a wall clock that was set back makes no timer late"
        );
        world.set("after a night", Condition::After { ms: 3_600_000 });
        world.quiet().await;
        world.pass(30_000_000);
        assert_eq!(world.queued(2).await[1], "after a night");
    });
}

#[test]
fn timers_that_became_due_without_a_server_fire_when_one_is_back() {
    run(async {
        let mut world = World::new();
        world.set("second", Condition::After { ms: 9_000 });
        world.set("first", Condition::After { ms: 5_000 });
        world.set("not yet", Condition::After { ms: 90_000 });
        world.pass(60_000);
        world.next_server().await;
        assert_eq!(world.queued(2).await, ["first", "second"]);
        world.next_server().await;
        world.quiet().await;
        assert_eq!(world.texts().len(), 2, "once");
        // Another boot: only the wall clock is left.
        world.clock.send_modify(|now| {
            *now = Moment { boot: "second".into(), up_ms: 10, wall_ms: now.wall_ms + 20_000 };
        });
        world.next_server().await;
        world.pass(9_000);
        world.quiet().await;
        assert_eq!(world.texts().len(), 2);
        world.pass(1_500);
        assert_eq!(world.queued(3).await[2], "not yet");
    });
}

#[test]
fn a_server_that_dies_between_queueing_and_recording_fires_once() {
    run(async {
        let mut world = World::new();
        world.becomes(2, ActivityState::Working, false);
        let id = world.set("wake up", idle(Mode::Any, &[2]));
        let source = Source::Timer { timer_id: id.to_string() };
        let key = Some(format!("timer {id}"));
        let to = ProcessId::new(1);
        let new = NewDelivery { to, source, key, text: "wake up".into() };
        world.host.agents.deliveries.enqueue(new).unwrap();
        world.next_server().await;
        world.becomes(2, ActivityState::Idle, true);
        world.quiet().await;
        assert_eq!(world.texts(), ["wake up"]);
        let error = world.host.timers.find(&id).unwrap_err();
        assert!(error.to_string().contains("already fired"), "{}", error.to_string());
    });
}

#[test]
fn after_damage_a_new_timer_is_not_mistaken_for_an_old_one() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.set("old", Condition::After { ms: 0 });
        world.pass(1);
        world.queued(1).await;
        std::fs::write(state_of(&world.folder).file("timers.json"), "{").unwrap();
        world.next_server().await;
        assert_eq!(world.set("new", Condition::After { ms: 0 }), TimerId::named("t2"));
        world.pass(1);
        assert_eq!(world.queued(2).await, ["old", "new"]);
    });
}

#[test]
fn idle_processes_are_noticed_at_once() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.becomes(2, ActivityState::Working, false);
        world.becomes(3, ActivityState::Idle, true);
        world.set("any", idle(Mode::Any, &[2, 3]));
        world.set("all", idle(Mode::All, &[2, 3]));
        world.quiet().await;
        world.becomes(2, ActivityState::Idle, false);
        world.quiet().await;
        world.becomes(2, ActivityState::Blocked, false);
        world.quiet().await;
        assert!(world.texts().is_empty(), "not confirmed, and blocked is not idle");
        world.becomes(2, ActivityState::Idle, true);
        assert_eq!(
            world.queued(2).await,
            [
                "[system] timer t1: two (p2) is idle. The others: three (p3) is idle.\nany",
                "[system] timer t2: all are idle: two (p2) is idle; three (p3) is idle.\nall"
            ]
        );
        world.becomes(2, ActivityState::Working, false);
        world.becomes(2, ActivityState::Idle, true);
        world.quiet().await;
        assert_eq!(world.texts().len(), 2, "each fires once");
    });
}

#[test]
fn a_limited_agent_is_not_idle_and_the_text_says_until_when() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.becomes(2, ActivityState::Working, false);
        let watched = vec![(ProcessId::new(2), "two".into()), (ProcessId::new(3), "three".into())];
        world.set("any", idle(Mode::Any, &[2]));
        let max_wait_ms = Some(5_000);
        world.set("all", Condition::Idle { mode: Mode::All, exits: false, watched, max_wait_ms });
        for (process, until) in [(2, Some("3 PM".to_owned())), (3, None)] {
            let activity = Activity::limited("as the test says", until);
            world.host.agents.activities.set(&ProcessId::new(process), activity, false);
        }
        world.quiet().await;
        assert!(world.texts().is_empty(), "limited is not idle");
        world.pass(5_001);
        let says = "two (p2) is limited until 3 PM; three (p3) is limited, and its CLI does not say \
            until when";
        let missed = "timed out after 5 seconds";
        let text = format!("[system] timer t2: {missed}: {says}.\nall");
        assert_eq!(world.queued(1).await, [text]);
        world.becomes(2, ActivityState::Idle, true);
        assert_eq!(world.queued(2).await.len(), 2, "it is idle after its next turn");
    });
}

#[test]
fn a_timer_whose_agent_was_restarted_without_its_conversation_says_so() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.becomes(2, ActivityState::Working, false);
        world.set("any", idle(Mode::Any, &[2]));
        world.host.panes.processes.note(&ProcessId::new(2), |process| {
            let (preset, conversation) = ("codex".to_owned(), "new".to_owned());
            let agent = AgentEntry {
                preset,
                conversation,
                id_reported: false,
                had_turn: false,
                lost_conversation: true,
                turn_in_run: None,
            };
            (process.agent, process.started_at) = (Some(agent), Some(u64::MAX));
        });
        world.becomes(2, ActivityState::Idle, true);
        let text = "[system] timer t1: two (p2) is idle; it was restarted without its conversation, \
            and the turn you waited for is lost.\nany";
        assert_eq!(world.queued(1).await, [text]);
    });
}

#[test]
fn the_reason_of_an_idle_agent_names_the_busy_agents_below_it() {
    let world = World::new();
    world.host.panes.processes.note(&ProcessId::new(2), |p| p.parent_id = Some(ProcessId::new(1)));
    world.becomes(1, ActivityState::Idle, true);
    let reason = || {
        let lead = world.host.panes.processes.get(&ProcessId::new(1)).unwrap();
        world.host.activity.of(&lead).reason
    };
    for (state, how) in [
        (ActivityState::Working, "is working"),
        (ActivityState::Blocked, "waits for a person"),
        (ActivityState::Limited, "is limited"),
    ] {
        world.becomes(2, state, false);
        assert_eq!(reason(), format!("as the test says; below it, two (p2) {how}"));
    }
    world.becomes(2, ActivityState::Idle, true);
    assert_eq!(reason(), "as the test says");
}

#[test]
fn the_reason_of_an_idle_agent_mentions_its_queued_texts() {
    let world = World::new();
    world.becomes(2, ActivityState::Idle, true);
    let reason = || {
        let agent = world.host.panes.processes.get(&ProcessId::new(2)).unwrap();
        world.host.activity.of(&agent).reason
    };
    let send = |key: &str| {
        let source = Source::Timer { timer_id: "t9".to_owned() };
        let (to, key) = (ProcessId::new(2), Some(key.to_owned()));
        let new = NewDelivery { to, source, key, text: "go on".to_owned() };
        world.host.agents.deliveries.enqueue(new).unwrap()
    };
    let first = send("one");
    world.host.agents.deliveries.explain(first, Pending::Gate, "its prompt has a draft");
    let why = "its prompt has a draft";
    assert_eq!(reason(), format!("as the test says; a text is queued for it: {why}"));
    send("two");
    assert_eq!(reason(), format!("as the test says; 2 texts are queued for it: {why}"));
}

#[test]
fn a_timer_reports_only_a_failure_of_the_last_turn() {
    run(async {
        let mut world = World::new();
        world.drive();
        let failed = Activity::new(ActivityState::Idle, format!("{FAILED}the model is overloaded"));
        world.host.agents.activities.set(&ProcessId::new(2), failed, true);
        world.host.panes.processes.note(&ProcessId::new(2), |process| {
            let reason = format!("{FAILED}the model is overloaded");
            process.attention = Some(Attention { reason, by: "p2".to_owned(), at: 1 });
        });
        world.set("failed", idle(Mode::All, &[2]));
        let failed =
            "[system] timer t1: all are idle: two (p2) is idle: its last turn failed.\nfailed";
        assert_eq!(world.queued(1).await, [failed]);
        // The next turn succeeds; the request for attention is still there.
        world.becomes(2, ActivityState::Idle, true);
        world.set("done", idle(Mode::All, &[2]));
        let done = "[system] timer t2: all are idle: two (p2) is idle.\ndone";
        assert_eq!(world.queued(2).await, [failed, done]);
    });
}

#[test]
fn all_may_fire_at_once() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.becomes(2, ActivityState::Idle, true);
        world.set("now", idle(Mode::All, &[2]));
        assert_eq!(world.queued(1).await.len(), 1);
    });
}

#[test]
fn the_next_server_knows_which_processes_were_idle_at_arming() {
    run(async {
        let mut world = World::new();
        world.becomes(2, ActivityState::Idle, true);
        world.becomes(3, ActivityState::Working, false);
        world.set("wake up", idle(Mode::Any, &[2, 3]));
        world.next_server().await;
        world.becomes(2, ActivityState::Idle, true);
        world.quiet().await;
        assert!(world.texts().is_empty());
        world.becomes(2, ActivityState::Working, false);
        world.quiet().await;
        world.next_server().await;
        world.quiet().await;
        // It became idle while no server was running.
        world.becomes(2, ActivityState::Idle, true);
        assert_eq!(world.queued(1).await.len(), 1);
    });
}

#[test]
fn watched_processes_may_exit_or_be_closed_and_closed_owners_lose_their_timers() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.set("gone", idle(Mode::All, &[2, 3]));
        world.quiet().await;
        let exited = |process: &mut patterm_panes::process::Process| {
            process.status = Status::Exited;
            process.exit = Some(patterm_panes::process::Exit { code: Some(3), signal: None });
        };
        world.host.panes.processes.note(&ProcessId::new(2), exited);
        world.host.timers.notify();
        world.quiet().await;
        assert!(world.texts().is_empty());
        let three = world.host.panes.processes.get(&ProcessId::new(3)).unwrap();
        world.host.lifecycle.close(&three).await.unwrap();
        assert_eq!(
            world.queued(1).await,
            [
                "[system] timer t1: all are idle: two (p2) exited with 3; name3 (p3) was closed.\ngone"
            ]
        );
        let id = world.set("never", Condition::After { ms: 1_000 });
        let owner = world.host.panes.processes.get(&ProcessId::new(1)).unwrap();
        world.host.lifecycle.close(&owner).await.unwrap();
        world.pass(2_000);
        world.quiet().await;
        assert_eq!(world.texts().len(), 1);
        let error = world.host.timers.find(&id).unwrap_err();
        assert!(error.to_string().contains("owner was closed"), "{}", error.to_string());
    });
}

#[test]
fn a_text_that_cannot_be_queued_is_queued_when_there_is_room() {
    run(async {
        let mut world = World::new();
        let mut last = 0;
        for n in 0..100 {
            let source = Source::Message { from: None, tag: "human".into() };
            let (to, text) = (ProcessId::new(1), n.to_string());
            last = world
                .host
                .agents
                .deliveries
                .enqueue(NewDelivery { to, source, key: None, text })
                .unwrap();
        }
        world.drive();
        world.set("at last", Condition::After { ms: 0 });
        world.pass(1);
        world.quiet().await;
        assert_eq!(world.texts().len(), 100);
        let (timers, _) = world.host.timers.all();
        assert_eq!(timers.len(), 1, "it is not lost");
        world.host.agents.deliveries.finish(last, Receipt::new(ReceiptState::Delivered, "seen"));
        assert_eq!(world.queued(101).await[100], "at last");
    });
}

#[test]
fn a_paused_timer_neither_counts_down_nor_watches() {
    run(async {
        let mut world = World::new();
        world.drive();
        world.becomes(2, ActivityState::Working, false);
        let delay = world.set("delay", Condition::After { ms: 10_000 });
        let any = world.set("any", idle(Mode::Any, &[2]));
        world.pass(4_000);
        for id in [&delay, &any] {
            assert!(world.host.timers.pause(id,).unwrap().paused);
        }
        world.pass(60_000);
        world.becomes(2, ActivityState::Idle, true);
        world.next_server().await;
        world.becomes(2, ActivityState::Idle, true);
        world.quiet().await;
        assert!(world.texts().is_empty());
        for id in [&delay, &any] {
            assert!(!world.host.timers.resume(id,).unwrap().paused);
        }
        world.pass(5_000);
        world.quiet().await;
        assert!(world.texts().is_empty(), "it was idle when it was resumed");
        world.pass(1_002);
        assert_eq!(world.queued(1).await, ["delay"]);
        world.becomes(2, ActivityState::Working, false);
        world.quiet().await;
        world.becomes(2, ActivityState::Idle, true);
        assert_eq!(world.queued(2).await.len(), 2);
    });
}
