//! Tests of a hook's task on paused time: what it does with events, with failures and with floods.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use patterm_events::{About, EventLog};
use patterm_panes::HookCommand;
use patterm_project::project_file::{HookRequest, ProjectFile};
use patterm_store::clock::{Clock, Moment};
use patterm_store::state::StateDir;
use patterm_store::sync::lock;
use patterm_wire::events::{EventQuery, Fact};
use patterm_wire::hooks::HookFile;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::action::{BoxFuture, HookContext};
use crate::failure::HookFailure;
use crate::hook::ActiveHook;
use crate::progress::{HookProgress, ProgressTable};
use crate::queue::{MOST_WAITING, OLDEST};
use crate::worker::{HookServices, Worker};

/// How the world outside answers.
#[derive(Debug)]
struct Outside {
    begun: Instant,
    /// When each command or request began, in seconds, and the number of its event.
    calls: Mutex<Vec<(u64, u64)>>,
    is_viewed: AtomicBool,
    /// Milliseconds that everything takes.
    takes: AtomicU64,
    /// It fails, and whether that may pass.
    fails: Mutex<Option<bool>>,
}

impl Outside {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            calls: Mutex::default(),
            is_viewed: AtomicBool::new(false),
            takes: AtomicU64::new(0),
            fails: Mutex::default(),
        })
    }

    /// The seconds and the numbers of all calls so far.
    fn calls(&self) -> Vec<(u64, u64)> {
        lock(&self.calls).clone()
    }

    fn numbers(&self) -> Vec<u64> {
        self.calls().into_iter().map(|(_, seq)| seq).collect()
    }

    async fn answer(&self, body: &[u8]) -> Result<(), HookFailure> {
        let body: Value = serde_json::from_slice(body).unwrap();
        lock(&self.calls).push((self.begun.elapsed().as_secs(), body["seq"].as_u64().unwrap()));
        sleep(Duration::from_millis(self.takes.load(Ordering::Relaxed))).await;
        match *lock(&self.fails) {
            None => Ok(()),
            Some(true) => Err(HookFailure::passing("it is down".into())),
            Some(false) => Err(HookFailure::lasting("it is wrong".into())),
        }
    }
}

#[derive(Debug)]
struct Fake(Arc<Outside>);

impl HookContext for Fake {
    fn process_name(&self, _: &str) -> Option<String> {
        None
    }

    fn is_viewed(&self, _: &str) -> bool {
        self.0.is_viewed.load(Ordering::Relaxed)
    }

    fn run(&self, command: HookCommand) -> BoxFuture<'_, Result<(), HookFailure>> {
        Box::pin(async move { self.0.answer(&command.input).await })
    }

    fn post<'a>(
        &'a self,
        _: &'a HookRequest,
        _: Option<&'a Path>,
        body: String,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async move { self.0.answer(body.as_bytes()).await })
    }
}

/// A log, a hook, and servers that run it one after the other.
struct Stage {
    _folder: tempfile::TempDir,
    state: StateDir,
    events: EventLog,
    time: Arc<watch::Sender<Moment>>,
    hook: Arc<ActiveHook>,
    outside: Arc<Outside>,
    task: Option<JoinHandle<()>>,
    progress: Arc<ProgressTable>,
}

const RUN: &str = "run = ['x']";
const POST: &str = "post = 'http://x'";

impl Stage {
    fn new(keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::within(folder.path(), "k");
        state.ensure().unwrap();
        let now = Moment { boot: "b".into(), up_ms: 0, wall_ms: 1_800_000_000_000 };
        let time = Arc::new(watch::Sender::new(now));
        let clock = Clock::Fake(time.clone());
        let events = EventLog::open(&folder.path().join("events"), 8 << 20, clock).unwrap();
        let text = format!("[[hooks]]\nname = 'h'\non = ['agent.blocked']\n{keys}");
        let definition = ProjectFile::parse(&text).unwrap().hooks.remove(0);
        let hook = Arc::new(ActiveHook { file: HookFile::Project, definition });
        let progress = Arc::new(ProgressTable::load(&state).unwrap());
        let outside = Outside::new();
        let mut stage =
            Self { _folder: folder, state, events, time, hook, outside, task: None, progress };
        stage.start();
        stage
    }

    /// A server begins.
    fn start(&mut self) {
        self.progress = Arc::new(ProgressTable::load(&self.state).unwrap());
        self.progress.add(&self.hook, *self.events.last().borrow() + 1);
        let services = HookServices {
            events: self.events.clone(),
            clock: Clock::Fake(self.time.clone()),
            progress: self.progress.clone(),
            context: Box::new(Fake(self.outside.clone())),
            project: "shop".into(),
        };
        let worker = Worker::new(Arc::new(services), self.hook.clone());
        self.task = Some(tokio::spawn(worker.run()));
    }

    /// The server dies.
    async fn kill(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }

    fn blocked(&self, process: &str) -> u64 {
        let fact = Fact::AgentBlocked { reason: "r".into(), question: None, options: Vec::new() };
        self.record(process, fact)
    }

    fn record(&self, process: &str, fact: Fact) -> u64 {
        self.events.record(About::process(process), fact);
        *self.events.last().borrow()
    }

    fn progress(&self) -> HookProgress {
        self.progress.of(&self.hook.id())
    }

    /// How often it was reported that the hook failed.
    fn reports(&self) -> usize {
        let types = vec!["hook.failed".to_owned()];
        let query = EventQuery { since: Some(1), types, ..EventQuery::default() };
        self.events.read(&query).unwrap().events.len()
    }
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_fires_only_for_what_is_still_true() {
    let stage = Stage::new(&format!("{RUN}\nafter_seconds = 5"));
    stage.blocked("p1");
    let other = stage.blocked("p2");
    seconds(3).await;
    stage.record("p1", Fact::AgentWorking { reason: "r".into() });
    seconds(10).await;
    assert_eq!(stage.outside.calls(), [(5, other)]);
    // A second question takes the place of the first.
    stage.blocked("p1");
    seconds(3).await;
    let second = stage.blocked("p1");
    seconds(10).await;
    assert_eq!(stage.outside.calls()[1..], [(21, second)]);
    let progress = stage.progress();
    assert_eq!((progress.fired, progress.suppressed, progress.dropped), (2, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hook_does_not_fire_for_what_is_viewed_or_too_often() {
    let stage = Stage::new(&format!("{RUN}\nunless_viewed = true\nat_most = '2/min'"));
    stage.outside.is_viewed.store(true, Ordering::Relaxed);
    stage.blocked("p1");
    seconds(1).await;
    stage.outside.is_viewed.store(false, Ordering::Relaxed);
    let mut expected = Vec::new();
    for n in 0..1_000 {
        let seq = stage.blocked("p1");
        expected.extend((n < 2).then_some(seq));
        sleep(Duration::from_millis(1)).await;
    }
    seconds(2).await;
    expected.push(stage.blocked("p2"));
    seconds(61).await;
    expected.push(stage.blocked("p1"));
    seconds(1).await;
    assert_eq!(stage.outside.numbers(), expected);
    let progress = stage.progress();
    assert_eq!((progress.fired, progress.suppressed, progress.dropped), (4, 999, 0));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_fails_is_not_repeated_and_reported_once() {
    let stage = Stage::new(RUN);
    *lock(&stage.outside.fails) = Some(true);
    let mut expected = vec![stage.blocked("p1"), stage.blocked("p1")];
    seconds(300).await;
    assert_eq!((stage.outside.numbers(), stage.reports()), (expected.clone(), 1));
    let progress = stage.progress();
    assert_eq!((progress.fired, progress.failures, progress.failing), (0, 2, true));
    *lock(&stage.outside.fails) = None;
    expected.push(stage.blocked("p1"));
    seconds(1).await;
    assert!(!stage.progress().failing);
    *lock(&stage.outside.fails) = Some(false);
    expected.push(stage.blocked("p1"));
    seconds(1).await;
    assert_eq!((stage.outside.numbers(), stage.reports()), (expected, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_repeated_with_growing_pauses_until_it_succeeds() {
    let stage = Stage::new(POST);
    *lock(&stage.outside.fails) = Some(true);
    let first = stage.blocked("p1");
    seconds(20).await;
    let second = stage.blocked("p1");
    *lock(&stage.outside.fails) = None;
    seconds(100).await;
    let expected = [(0, first), (1, first), (3, first), (7, first), (15, first), (31, first)];
    assert_eq!(stage.outside.calls()[..6], expected);
    assert_eq!(stage.outside.calls()[6..], [(31, second)]);
    let progress = stage.progress();
    assert_eq!((progress.fired, progress.failures, stage.reports()), (2, 0, 1));
    *lock(&stage.outside.fails) = Some(false);
    stage.blocked("p1");
    seconds(1_000).await;
    assert_eq!((stage.outside.calls().len(), stage.progress().failures), (8, 1), "not repeated");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_for_an_hour_costs_a_bounded_queue_and_every_event_is_counted() {
    let stage = Stage::new(POST);
    *lock(&stage.outside.fails) = Some(true);
    let mut last = 0;
    for _ in 0..3_700 {
        last = stage.blocked("p1");
        seconds(1).await;
        assert!(stage.progress().waiting <= MOST_WAITING as u64);
    }
    *lock(&stage.outside.fails) = None;
    seconds(300).await;
    let progress = stage.progress();
    assert_eq!(progress.fired + progress.dropped + progress.failures, 3_700, "{progress:?}");
    assert!((1..=MOST_WAITING as u64 + 1).contains(&progress.fired), "{progress:?}");
    assert_eq!(progress.last_error.as_deref(), Some("it is down"));
    assert_eq!((stage.outside.calls().last().unwrap().1, progress.waiting), (last, 0));
    // Once that it is down, and once that events are dropped.
    assert_eq!(stage.reports(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_events_delays_neither_the_log_nor_another_hook() {
    let slow = Stage::new(RUN);
    slow.outside.takes.store(1_000, Ordering::Relaxed);
    let quick = Outside::new();
    let services = HookServices {
        events: slow.events.clone(),
        clock: Clock::Fake(slow.time.clone()),
        progress: slow.progress.clone(),
        context: Box::new(Fake(quick.clone())),
        project: "shop".into(),
    };
    let text = "[[hooks]]\nname = 'quick'\non = ['agent.idle']\nrun = ['x']";
    let definition = ProjectFile::parse(text).unwrap().hooks.remove(0);
    let hook = Arc::new(ActiveHook { file: HookFile::Project, definition });
    slow.progress.add(&hook, 1);
    let task = tokio::spawn(Worker::new(Arc::new(services), hook).run());
    for _ in 0..30 {
        for _ in 0..100 {
            slow.blocked("p1");
        }
        sleep(Duration::from_millis(100)).await;
    }
    let begun = Instant::now();
    slow.record("p1", Fact::AgentIdle { reason: "r".into() });
    while quick.calls().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    seconds(200).await;
    let progress = slow.progress();
    assert_eq!((progress.fired + progress.dropped, progress.waiting), (3_000, 0), "{progress:?}");
    assert!(progress.fired <= MOST_WAITING as u64 + 5, "{progress:?}");
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn the_next_server_repeats_nothing_and_misses_nothing() {
    let mut stage = Stage::new(POST);
    let mut expected: Vec<u64> = (0..3).map(|_| stage.blocked("p1")).collect();
    seconds(1).await;
    stage.kill().await;
    // Nothing but what was stored before each event was acknowledged.
    expected.extend((0..2).map(|_| stage.blocked("p1")));
    stage.start();
    seconds(1).await;
    stage.kill().await;
    stage.start();
    seconds(1).await;
    assert_eq!(stage.outside.numbers(), expected);
    // A request that failed is continued.
    *lock(&stage.outside.fails) = Some(true);
    let pending = stage.blocked("p1");
    seconds(1).await;
    stage.progress.save();
    stage.kill().await;
    *lock(&stage.outside.fails) = None;
    stage.start();
    seconds(1).await;
    assert_eq!((stage.outside.numbers().last(), stage.progress().fired), (Some(&pending), 6));
    // What is older than an hour is counted, not sent.
    stage.kill().await;
    stage.blocked("p1");
    let old = u64::try_from(OLDEST.as_millis()).unwrap();
    stage.time.send_modify(|now| now.wall_ms += old);
    let fresh = stage.blocked("p1");
    stage.start();
    seconds(1).await;
    assert_eq!((stage.outside.numbers().last(), stage.progress().dropped), (Some(&fresh), 1));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_ran_when_the_server_died_is_not_run_again() {
    let mut stage = Stage::new(RUN);
    stage.outside.takes.store(60_000, Ordering::Relaxed);
    let first = stage.blocked("p1");
    let second = stage.blocked("p1");
    seconds(10).await;
    stage.kill().await;
    stage.outside.takes.store(0, Ordering::Relaxed);
    stage.start();
    seconds(1).await;
    assert_eq!(stage.outside.numbers(), [first, second]);
    let progress = stage.progress();
    assert_eq!((progress.fired, progress.failures), (1, 1));
    assert!(progress.last_error.unwrap().contains("server ended"));
}

#[tokio::test(start_paused = true)]
async fn what_happened_before_a_hook_was_added_does_not_fire_it() {
    let mut stage = Stage::new(RUN);
    stage.kill().await;
    let text = "[[hooks]]\nname = 'other'\non = ['agent.blocked']\nrun = ['x']";
    let definition = ProjectFile::parse(text).unwrap().hooks.remove(0);
    stage.blocked("p1");
    stage.hook = Arc::new(ActiveHook { file: HookFile::Project, definition });
    stage.start();
    seconds(1).await;
    let later = stage.blocked("p1");
    seconds(1).await;
    assert_eq!(stage.outside.numbers(), [later]);
}
