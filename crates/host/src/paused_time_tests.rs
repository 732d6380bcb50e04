//! Activity and deliveries on paused time: the test plays the agent's CLI by printing into the log of a run that has
//! no pane, and the clock jumps from one deadline to the next.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use patterm_agents::activity::ActivityState;
use patterm_agents::delivery::{NewDelivery, Pending, ReceiptState, Source};
use patterm_keeper::log::Log;
use patterm_panes::Offset;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::{AgentEntry, Kind, RunNumber, Status};
use patterm_screen::{Screen, Size};
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::StateDir;

use crate::host::{Host, Parts};

/// A host with one agent whose CLI is played by the test.
struct Stage {
    host: Arc<Host>,
    run: Arc<ProcessRun>,
    log: Log,
    _folder: tempfile::TempDir,
}

/// The host of an empty project.
pub(crate) fn host_within(folder: &Path) -> Host {
    let project = Project::of(folder).unwrap();
    let state = StateDir::within(folder, project.key());
    state.ensure().unwrap();
    let keeper = KeeperClient::new(folder.join("keeper"), "none".into(), project.root());
    let parts = Parts {
        project,
        socket: folder.join("socket"),
        state,
        pipes: PathBuf::new(),
        report: folder.join("ended"),
        tools: Vec::new(),
        limits: Limits::default(),
        keeper,
        settings: None,
        program: "patterm".into(),
        clock: Clock::system(),
        events: patterm_events::EventLog::none(),
    };
    Host::load(parts).unwrap().0
}

impl Stage {
    fn new(preset: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = host_within(folder.path());
        let agent = AgentEntry {
            preset: preset.to_owned(),
            conversation: "c".to_owned(),
            id_reported: false,
            had_turn: false,
            lost_conversation: false,
            turn_in_run: None,
        };
        let added = host.panes.processes.add_with(preset, Kind::Agent, None, |process| {
            process.agent = Some(agent);
            process.status = Status::Running;
            process.runs = RunNumber::FIRST;
        });
        let mut log = Log::open(&folder.path().join("log"), 1 << 20).unwrap();
        log.make_room().unwrap();
        let (id, screen) = (added.unwrap().id, Screen::new(Size::DEFAULT));
        let number = RunNumber::FIRST;
        let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
        let run = Arc::new(run);
        host.panes.set_run(run.clone());
        Self { host: Arc::new(host), run, log, _folder: folder }
    }

    /// Prints something, and blocks until the parser has it. The clock does not advance during that time. The observer
    /// is woken up from here: the parser's own thread may do so only after the clock has jumped.
    fn print(&mut self, text: &str) {
        let mut source = tempfile::tempfile().unwrap();
        source.write_all(text.as_bytes()).unwrap();
        source.rewind().unwrap();
        while self.log.read_from(&source, 16 << 10).unwrap() > 0 {}
        self.host.panes.data_plane.count(&self.run);
        let end = Offset::new(self.log.end());
        while self.run.watch().borrow().parsed < end {
            std::thread::yield_now();
        }
        self.host.agents.activities.signals(&self.run.id).notify();
    }

    /// Draws the screen of Claude Code, with this title and this text in its prompt.
    fn draw(&mut self, title: &str, prompt: &str) {
        let rule = "─".repeat(40);
        self.print(&format!(
            "\x1b[?2004h\x1b]0;{title}\x07\x1b[2J\x1b[H{rule}\r\n❯\u{a0}{prompt}\r\n{rule}\r\n"
        ));
    }

    fn observe(&self) {
        let agents = self.host.agents.clone();
        tokio::spawn(async move { agents.observe().await });
    }

    fn state(&self) -> (ActivityState, bool) {
        let status = self.host.agents.activities.get(&self.run.id);
        (status.activity.state, status.settled)
    }

    /// Queues a text and waits until it is being typed; returns its number.
    async fn deliver(&self, text: &str) -> u64 {
        let deliveries = &self.host.agents.deliveries;
        let source = Source::Timer { timer_id: "t1".into() };
        let (to, text) = (self.run.id.clone(), text.to_owned());
        let id = deliveries.enqueue(NewDelivery { to, source, key: None, text }).unwrap();
        let deliverer = self.host.agents.deliverer.clone();
        tokio::spawn(deliverer.run());
        let mut changes = deliveries.changes();
        while deliveries.get(id).unwrap().pending != Pending::Typing {
            changes.changed().await.unwrap();
        }
        id
    }

    /// Waits until a delivery is over; returns its state and evidence, and the time since `began`.
    async fn ended(&self, id: u64, began: Instant) -> (ReceiptState, String, Duration) {
        let deliveries = &self.host.agents.deliveries;
        let mut changes = deliveries.changes();
        loop {
            let receipt = deliveries.get(id).unwrap().receipt;
            if receipt.state != ReceiptState::Queued {
                return (receipt.state, receipt.evidence, began.elapsed());
            }
            changes.changed().await.unwrap();
        }
    }
}

fn assert_about(time: Duration, expected_ms: u64) {
    let expected = Duration::from_millis(expected_ms);
    // The screen is looked at every 25 ms.
    assert!((expected..expected + Duration::from_millis(300)).contains(&time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_other_evidence_is_idle_after_five_quiet_seconds() {
    let mut stage = Stage::new("generic");
    stage.observe();
    sleep(Duration::from_millis(100)).await;
    for _ in 0..2 {
        stage.print("some output\r\n");
        sleep(Duration::from_millis(4_900)).await;
        assert_eq!(stage.state(), (ActivityState::Working, false));
        sleep(Duration::from_millis(300)).await;
        assert_eq!(stage.state(), (ActivityState::Idle, false), "not confirmed yet");
        sleep(Duration::from_millis(1_000)).await;
        assert_eq!(stage.state(), (ActivityState::Idle, true));
    }
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(stage.state(), (ActivityState::Idle, true));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_its_prompt_never_shows_is_stalled_without_enter() {
    let mut stage = Stage::new("claude");
    stage.draw("✳ ready", "");
    stage.observe();
    let id = stage.deliver("hello").await;
    let (state, evidence, time) = stage.ended(id, Instant::now()).await;
    assert_eq!(state, ReceiptState::Stalled, "{evidence}");
    assert!(evidence.contains("did not show it; Enter was not pressed"), "{evidence}");
    assert_about(time, 5_000);
}

#[tokio::test(start_paused = true)]
async fn enter_is_pressed_twice_before_a_text_that_stays_in_the_prompt_is_stalled() {
    let mut stage = Stage::new("claude");
    stage.draw("✳ ready", "");
    stage.observe();
    let id = stage.deliver("hello").await;
    let began = Instant::now();
    stage.draw("✳ ready", "hello");
    // A sender waits no longer than this for a text that is on its way.
    let receipt = stage.host.agents.deliverer.receipt(id).await;
    assert_eq!(receipt.state, ReceiptState::Queued);
    assert_about(began.elapsed(), 5_000);
    let (state, evidence, time) = stage.ended(id, began).await;
    assert_eq!(state, ReceiptState::Stalled, "{evidence}");
    assert!(evidence.contains("was pressed twice"), "{evidence}");
    // The echo, Enter and the attempt to erase the text have 5, 5 and 2 seconds.
    assert_about(time, 12_000);
    let left = stage.host.agents.deliveries.get(id).unwrap().left;
    assert_eq!(left.as_deref(), Some("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_empty_after_enter_is_evidence_that_the_text_was_accepted() {
    let mut stage = Stage::new("claude");
    stage.draw("✳ ready", "");
    stage.observe();
    let id = stage.deliver("hello").await;
    let began = Instant::now();
    stage.draw("✳ ready", "hello");
    sleep(Duration::from_millis(6_000)).await;
    assert_eq!(stage.host.agents.deliveries.get(id).unwrap().receipt.state, ReceiptState::Queued);
    stage.draw("◐ hello", "");
    let (state, evidence, time) = stage.ended(id, began).await;
    assert_eq!(state, ReceiptState::Delivered, "{evidence}");
    assert_about(time, 6_000);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_waits_while_a_person_types_and_two_seconds_longer() {
    let mut stage = Stage::new("claude");
    stage.draw("✳ ready", "");
    stage.observe();
    sleep(Duration::from_secs(10)).await;
    let (mut typist, began) = (patterm_panes::data_plane::Typist::default(), Instant::now());
    let run = stage.run.clone();
    let typing = async {
        for _ in 0..5 {
            run.note_typed(typist.read(b"\x1b[A"));
            sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = typing => {}
        _ = stage.deliver("hello") => {}
    }
    // The last key was pressed after four seconds.
    assert_about(began.elapsed(), 6_000);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_arrives_late_does_not_end_the_turn_that_was_submitted_after_it() {
    for (age_ms, state) in [(20_000, ActivityState::Working), (0, ActivityState::Idle)] {
        let mut stage = Stage::new("claude");
        stage.draw("✳ ready", "");
        stage.observe();
        let id = stage.deliver("hello").await;
        stage.draw("✳ ready", "hello");
        // Enter is pressed after five seconds: the run has no pane that would take the text.
        sleep(Duration::from_millis(6_000)).await;
        // The prompt is empty again, but nothing shows yet that it works.
        stage.draw("✳ ready", "");
        stage.ended(id, Instant::now()).await;
        for event in ["UserPromptSubmit", "Stop"] {
            let at_ms = stage.host.panes.clock().wall_ms() - age_ms;
            stage.host.agents.handle_hook(
                &stage.run.id,
                event,
                &serde_json::json!({}),
                Some(at_ms),
            );
            sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(stage.state().0, state, "hooks of {age_ms} ms ago");
    }
}
