//! What timers do at which moment, tested with values alone.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::book::{Book, Condition, NewTimer, Why};
use crate::error::TimerError;
use crate::firing_text;
use crate::interfaces::{Observe, StateChange};
use crate::limits::{ALL_BODY_BYTES, BODY_BYTES, OF_ONE_OWNER, OF_THE_PROJECT, REMEMBERED};
use crate::observation::{BusyAgent, Observation, ObservedActivity, WatchState};
use crate::record::{End, Mode, Timer, TimerId};
use patterm_panes::process::{Process, ProcessId, Status};
use patterm_store::clock::Moment;

const OWNER: u64 = 1;

/// Years after everything else here.
const LATE: u64 = 1 << 40;

fn at(up_ms: u64) -> Moment {
    Moment { boot: "boot".into(), up_ms, wall_ms: 1_000_000 + up_ms }
}

/// Processes as an observer reports them, and the timers that watch them.
#[derive(Default)]
struct World {
    book: Book,
    seen: RefCell<Processes>,
}

type Processes = HashMap<ProcessId, (Option<Status>, ObservedActivity)>;

fn see(seen: &Processes, id: &ProcessId) -> Observation {
    let unknown = (Some(Status::Running), ObservedActivity::default());
    let (status, activity) = seen.get(id).unwrap_or(&unknown);
    Observation::new(*status, *activity)
}

impl World {
    /// Something happens to a process, and the timers see it.
    fn happens(&mut self, process: u64, what: &str) {
        self.happens_unseen(process, what);
        let id = ProcessId::new(process);
        let observation = self.see(&id);
        self.book.observe(&id, observation);
    }

    /// The same, but the timers do not see it.
    fn happens_unseen(&self, process: u64, what: &str) {
        let mut seen = self.seen.borrow_mut();
        let (status, activity) = seen
            .entry(ProcessId::new(process))
            .or_insert_with(|| (Some(Status::Running), ObservedActivity::default()));
        let (state, settled) = match what {
            "works" => (WatchState::Working, false),
            "blocks" => (WatchState::Blocked, false),
            "blurs" => (WatchState::Unknown, false),
            "pauses" => (WatchState::Idle, false),
            "rests" | "exits" => (WatchState::Idle, true),
            "closes" => (WatchState::Unknown, false),
            other => panic!("{other}"),
        };
        match what {
            "exits" => *status = Some(Status::Exited),
            "closes" => *status = None,
            _ => *status = Some(Status::Running),
        }
        if what == "closes" {
            *activity = ObservedActivity::default();
            return;
        }
        activity.idle_periods += u64::from(settled && !activity.settled);
        activity.settled = settled;
        activity.state = state;
    }

    fn see(&self, id: &ProcessId) -> Observation {
        see(&self.seen.borrow(), id)
    }

    fn set(&mut self, new: NewTimer, now: &Moment) -> Result<(Timer, bool), TimerError> {
        let seen = self.seen.borrow();
        self.book.set(new, now, |id| see(&seen, id))
    }

    /// A new server loads the saved state, and has observed nothing yet.
    fn next_server(&mut self, now: &Moment) {
        let written = serde_json::to_string(&self.book).unwrap();
        self.book = serde_json::from_str(&written).unwrap();
        self.book.recover(now, &[], |_| true);
        for (_, activity) in self.seen.borrow_mut().values_mut() {
            *activity = ObservedActivity::default();
        }
    }

    /// Whether the only timer is ready at this moment.
    fn fires(&self, now: u64) -> bool {
        self.book.ready(&at(now), |_| true).is_some()
    }

    fn line(&self, now: u64) -> String {
        let (timer, why) = self.book.ready(&at(now), |_| true).expect("a timer that fires");
        firing_text::text(timer, why, &BlindObserver)
    }
}

/// An observer that knows nothing.
#[derive(Debug)]
struct BlindObserver;

impl Observe for BlindObserver {
    fn process(&self, _: &ProcessId) -> Option<Process> {
        None
    }

    fn observation(&self, _: &ProcessId) -> Observation {
        Observation::default()
    }

    fn changed(&self, _: ProcessId) -> StateChange {
        Box::pin(std::future::pending())
    }

    fn busy_below(&self, _: &ProcessId) -> Vec<BusyAgent> {
        Vec::new()
    }

    fn has_failed(&self, _: &ProcessId) -> bool {
        false
    }

    fn awaits_text(&self, _: &ProcessId) -> bool {
        false
    }

    fn limited_until(&self, _: &ProcessId) -> Option<String> {
        None
    }
}

fn after(ms: u64) -> NewTimer {
    new(Condition::After { ms })
}

fn new(condition: Condition) -> NewTimer {
    let body = Some("go on".to_owned());
    NewTimer { owner: ProcessId::new(OWNER), set_by: None, label: None, body, condition }
}

fn idle(mode: Mode, watched: &[u64], max_wait_ms: Option<u64>) -> NewTimer {
    let watched = watched.iter().map(|n| (ProcessId::new(*n), format!("name{n}"))).collect();
    new(Condition::Idle { mode, exits: false, watched, max_wait_ms })
}

fn ids(numbers: &[u64]) -> Vec<ProcessId> {
    numbers.iter().copied().map(ProcessId::new).collect()
}

/// `before` is what happens to p2 and p3 before arming, and `after` what happens then; the
/// timer must fire at the last step and not before. `…` means that it never fires, `|` that the
/// server is replaced, `~` that the next event is not observed.
#[track_caller]
fn check(mode: Mode, before: &str, after: &str) {
    let story = format!("{mode:?}: {before} / {after}");
    let mut world = World::default();
    for what in before.split(", ").filter(|what| !what.is_empty()) {
        happen(&mut world, what);
    }
    world.set(idle(mode, &[2, 3], None), &at(0)).unwrap();
    let mut steps: Vec<&str> = after.split(", ").filter(|what| !what.is_empty()).collect();
    let never = steps.last() == Some(&"…");
    if never {
        steps.pop();
    }
    for (n, what) in steps.iter().enumerate() {
        assert!(!world.fires(n as u64), "{story}: too early, before step {n}");
        happen(&mut world, what);
    }
    assert_eq!(world.fires(LATE), !never, "{story}");
}

fn happen(world: &mut World, what: &str) {
    if what == "|" {
        world.next_server(&at(500));
        return;
    }
    let (what, unseen) = match what.strip_prefix('~') {
        Some(what) => (what, true),
        None => (what, false),
    };
    let (process, what) = what.split_once(' ').unwrap();
    let process = process.parse().unwrap();
    match unseen {
        true => world.happens_unseen(process, what),
        false => world.happens(process, what),
    }
}

#[test]
fn any_fires_when_one_becomes_idle() {
    for (before, after) in [
        ("2 works, 3 works", "2 rests"),
        ("2 works, 3 works", "3 pauses, 3 works, 2 blocks, 2 works, 3 rests"),
        ("", "2 blurs, 2 rests"),
        ("2 works, 3 works", "2 blocks, 2 blurs, 3 pauses, …"),
        // Processes that are idle at arming do not count until they have worked.
        ("2 rests, 3 works", "…"),
        ("2 rests, 3 works", "2 works, 2 rests"),
        ("2 rests, 3 rests", "3 works, 3 pauses, 3 rests"),
        ("2 pauses, 3 works", "2 rests, …"),
        ("2 pauses, 3 works", "2 works, 2 rests"),
        ("2 pauses, 3 works", "2 rests, 2 works, 2 rests"),
        ("2 rests, 3 works", "2 blurs, 3 blurs, 3 works, …"),
        // Exits.
        ("2 works, 3 works", "2 exits"),
        ("2 works, 3 works", "3 closes"),
        ("2 exits, 3 works", "…"),
        ("2 rests, 3 works", "2 exits, …"),
        ("2 rests, 3 works", "2 closes, …"),
        ("2 rests, 3 works", "2 closes, 3 rests"),
        ("2 rests, 3 rests", "2 closes, 3 closes"),
        ("2 exits, 3 works", "2 works, 2 exits"),
        // An idle period so short that it was not observed.
        ("2 works, 3 works", "~2 rests, 2 works"),
        ("2 rests, 3 works", "~2 works, ~2 rests, 2 works"),
    ] {
        check(Mode::Any, before, after);
    }
}

#[test]
fn any_continues_with_the_next_server() {
    for (before, after) in [
        ("2 works, 3 works", "|, 2 rests"),
        ("2 works, 3 works", "|, 2 blurs, 3 works, …"),
        ("2 rests, 3 works", "|, 2 rests, …"),
        ("2 rests, 3 works", "|, 2 rests, 2 works, 2 rests"),
        ("2 rests, 3 works", "2 works, |, 2 rests"),
        ("2 rests, 3 works", "|, 2 works, |, 2 rests"),
        ("2 rests, 3 works", "|, 2 exits, …"),
        ("2 works, 3 works", "|, 2 closes"),
        ("2 works, 3 works", "|, 3 exits"),
    ] {
        check(Mode::Any, before, after);
    }
}

#[test]
fn all_fires_when_all_are_idle() {
    for (before, after) in [
        ("2 rests, 3 rests", ""),
        ("2 rests, 3 exits", ""),
        ("2 rests, 3 works", "3 rests"),
        ("2 rests, 3 pauses", "3 rests"),
        ("2 works, 3 works", "2 rests, 2 works, 3 rests, 2 rests"),
        ("2 works, 3 works", "2 closes, 3 exits"),
        ("2 works, 3 works", "2 rests, 3 blocks, …"),
        ("2 rests, 3 works", "|, 3 rests, 2 rests"),
        ("2 rests, 3 works", "|, 3 closes, 2 blurs, …"),
        ("", "…"),
    ] {
        check(Mode::All, before, after);
    }
}

#[test]
fn a_timer_knows_which_processes_are_idle_and_which_it_waits_for() {
    for (mode, two, idle_now, waited_for) in [
        (Mode::Any, "rests", &[2][..], &[3][..]),
        (Mode::Any, "exits", &[2], &[3]),
        (Mode::Any, "pauses", &[2], &[3]),
        (Mode::All, "pauses", &[], &[2, 3]),
        (Mode::All, "blocks", &[], &[2, 3]),
        (Mode::All, "rests", &[2], &[3]),
    ] {
        let mut world = World::default();
        world.happens(2, two);
        let (timer, _) = world.set(idle(mode, &[2, 3], None), &at(0)).unwrap();
        assert_eq!(timer.watched_done(true), ids(idle_now), "{mode:?} {two}");
        assert_eq!(timer.watched_done(false), ids(waited_for), "{mode:?} {two}");
    }
}

#[test]
fn a_delay_is_over_neither_early_nor_late_and_the_earliest_comes_first() {
    let mut world = World::default();
    for ms in [5_000, 1_000, 3_000] {
        world.set(after(ms), &at(100)).unwrap();
    }
    let next = |world: &World| world.book.next_due(|_| true);
    assert_eq!(next(&world), Some(1_101));
    assert!(!world.fires(1_100) && world.fires(1_101));
    let mut order = Vec::new();
    while let Some((timer, why)) = world.book.ready(&at(60_000), |_| true) {
        let id = timer.id.clone();
        assert_eq!(why, Why::Time);
        world.book.end(&id, End::Fired);
        order.push(id.to_string());
    }
    assert_eq!(order, ["t2", "t3", "t1"], "in the order in which they became due");
    assert_eq!(next(&world), None, "no alarm without a timer");
}

#[test]
fn a_paused_delay_keeps_the_time_left_even_across_servers() {
    let mut world = World::default();
    let (timer, _) = world.set(after(10_000), &at(0)).unwrap();
    world.book.pause(&timer.id, &at(4_001));
    world.book.pause(&timer.id, &at(9_000));
    world.next_server(&at(900_000));
    assert_eq!((world.fires(LATE), world.book.next_due(|_| true)), (false, None));
    assert_eq!(world.book.find(&timer.id).unwrap().left_ms(&at(950_000)), Some(6_000));
    world.book.resume(&timer.id, &at(1_000_000), |_| Observation::default());
    world.book.resume(&timer.id, &at(1_003_000), |_| Observation::default());
    assert!(!world.fires(1_006_000) && world.fires(1_006_001));
}

#[test]
fn a_paused_idle_timer_ignores_changes_and_is_armed_again() {
    for (mode, after_resuming, fires) in [
        // It became idle while the timer was paused: idle at arming, which does not
        // count for `any`.
        (Mode::Any, &[][..], false),
        (Mode::Any, &["works"], false),
        (Mode::Any, &["works", "rests"], true),
        (Mode::All, &[], true),
        (Mode::All, &["works"], false),
    ] {
        let mut world = World::default();
        world.happens(2, "works");
        let (timer, _) = world.set(idle(mode, &[2], Some(10_000)), &at(0)).unwrap();
        world.book.pause(&timer.id, &at(1_001));
        assert!(world.book.watched_processes().is_empty());
        world.happens(2, "rests");
        assert!(!world.fires(LATE), "{mode:?}");
        let seen = world.see(&ProcessId::new(2));
        world.book.resume(&timer.id, &at(50_000), |_| seen);
        for what in after_resuming {
            world.happens(2, what);
        }
        assert_eq!(world.fires(50_000), fires, "{mode:?} {after_resuming:?}");
        assert!(world.fires(59_001), "its time continued from where it was held");
    }
}

#[test]
fn an_exit_timer_does_not_mistake_idle_for_exited_and_continues_with_the_next_server() {
    let mut world = World::default();
    world.happens(2, "rests");
    world.happens(3, "works");
    let watched = [2, 3].map(|n| (ProcessId::new(n), format!("name{n}"))).to_vec();
    let condition = Condition::Idle { mode: Mode::All, exits: true, watched, max_wait_ms: None };
    let (timer, _) = world.set(new(condition), &at(0)).unwrap();
    assert_eq!(timer.watched_done(false), ids(&[2, 3]));
    world.happens(3, "rests");
    assert!(!world.fires(0), "all are idle, and none has exited");
    world.happens(3, "exits");
    world.next_server(&at(0));
    world.happens(2, "rests");
    world.happens(3, "exits");
    assert!(!world.fires(0));
    world.happens(2, "exits");
    let line = world.line(0);
    assert!(line.starts_with("[system] timer t1: all ended: name2 (p2) exited"), "{line}");
}

#[test]
fn an_idle_timer_fires_after_its_maximum_wait() {
    let mut world = World::default();
    world.happens(2, "blocks");
    world.happens(3, "rests");
    world.set(idle(Mode::All, &[2, 3], Some(60_000)), &at(0)).unwrap();
    assert!(!world.fires(60_000));
    assert_eq!(
        world.line(60_001),
        "[system] timer t1: timed out after 60 seconds: name2 (p2) waits for a person; \
         name3 (p3) is idle.\ngo on"
    );
}

#[test]
fn the_line_before_the_body_says_why() {
    for (mode, steps, line) in [
        (Mode::Any, "2 rests", "name2 (p2) is idle. The others: name3 (p3) is working."),
        (Mode::Any, "3 exits", "name3 (p3) exited. The others: name2 (p2) is working."),
        (Mode::Any, "2 closes", "name2 (p2) was closed. The others: name3 (p3) is working."),
        (
            Mode::Any,
            "~2 rests, 2 works",
            "name2 (p2) was idle and is working again. The others: name3 (p3) is working.",
        ),
        (
            Mode::All,
            "2 rests, 3 closes",
            "all are idle: name2 (p2) is idle; name3 (p3) was closed.",
        ),
    ] {
        let mut world = World::default();
        world.happens(2, "works");
        world.happens(3, "works");
        let mut new = idle(mode, &[2, 3], None);
        new.label = Some("team\n[system] lies".into());
        world.set(new, &at(0)).unwrap();
        for what in steps.split(", ") {
            happen(&mut world, what);
        }
        let expected = format!("[system] timer t1 (team [system] lies): {line}\ngo on");
        assert_eq!(world.line(0), expected);
    }
}

#[test]
fn a_delay_delivers_only_its_body_and_timer_wait_a_line() {
    for (body, ms, text) in [
        (Some("  exactly\nthis "), 1_000, "  exactly\nthis "),
        (None, 1_000, "[system] timer t1: 1 second has passed."),
        (None, 1_500, "[system] timer t1: 1.500 seconds have passed."),
        (None, 0, "[system] timer t1: 0 seconds have passed."),
    ] {
        let mut world = World::default();
        world.set(NewTimer { body: body.map(Into::into), ..after(ms) }, &at(0)).unwrap();
        assert_eq!(world.line(5_000), text);
    }
}

#[test]
fn the_same_idle_timer_is_set_once() {
    let mut world = World::default();
    world.happens(2, "works");
    let mut set = |new: NewTimer| {
        let (timer, already) = world.set(new, &at(0)).unwrap();
        (timer.id.to_string(), already)
    };
    assert_eq!(set(idle(Mode::Any, &[2, 3], None)), ("t1".into(), false));
    assert_eq!(set(idle(Mode::Any, &[3, 2], Some(9))), ("t1".into(), true));
    assert_eq!(set(idle(Mode::All, &[2, 3], None)), ("t2".into(), false));
    assert_eq!(set(idle(Mode::Any, &[2], None)), ("t3".into(), false));
    let body = Some("other words".to_owned());
    assert_eq!(set(NewTimer { body, ..idle(Mode::Any, &[2, 3], None) }), ("t4".into(), false));
    let owner = ProcessId::new(9);
    assert_eq!(set(NewTimer { owner, ..idle(Mode::Any, &[2, 3], None) }), ("t5".into(), false));
    assert_eq!(set(after(1)), ("t6".into(), false));
    assert_eq!(set(after(1)), ("t7".into(), false), "equal delays are separate timers");
    let first = TimerId::new(1);
    assert_eq!(
        world.book.find(&first).unwrap().left_ms(&at(0)),
        Some(9),
        "the newest time applies"
    );
    world.book.pause(&first, &at(0));
    let (timer, already) = world.set(idle(Mode::Any, &[2, 3], None), &at(0)).unwrap();
    assert_eq!((timer.id, already), (TimerId::new(8), false), "a paused timer is not reused");
}

#[test]
fn ids_are_never_reused_and_ended_timers_say_how_they_ended() {
    let mut world = World::default();
    for _ in 0..3 {
        world.set(after(1), &at(0)).unwrap();
    }
    world.set(NewTimer { owner: ProcessId::new(9), ..after(1) }, &at(0)).unwrap();
    world.book.end(&TimerId::new(1), End::Fired);
    world.book.end(&TimerId::new(2), End::Cancelled);
    assert!(world.book.close_owner(&ProcessId::new(9)));
    assert!(!world.book.close_owner(&ProcessId::new(9)));
    world.next_server(&at(0));
    for (id, words) in [
        ("t1", "timer t1 has already fired"),
        ("t2", "timer t2 was cancelled"),
        ("t4", "timer t4 ended when its owner was closed"),
        ("t5", "there is no timer `t5`"),
        ("t0", "there is no timer `t0`"),
        ("p1", "there is no timer `p1`"),
        ("", "there is no timer ``"),
    ] {
        let error = world.book.find(&TimerId::named(id)).unwrap_err();
        assert!(!error.is_limit());
        assert!(error.to_string().starts_with(words), "{error}");
    }
    assert_eq!(world.set(after(1), &at(0)).unwrap().0.id, TimerId::new(5));
    for _ in 0..REMEMBERED {
        let (timer, _) = world.set(after(1), &at(0)).unwrap();
        world.book.end(&timer.id, End::Fired);
    }
    let error = world.book.find(&TimerId::new(1)).unwrap_err();
    assert!(error.to_string().starts_with("timer t1 has ended"), "{error}");
}

#[test]
fn queued_timers_do_not_fire_again_and_timers_of_closed_owners_end() {
    let mut world = World::default();
    for owner in [1, 1, 9] {
        let owner = ProcessId::new(owner);
        world.set(NewTimer { owner, ..after(1) }, &at(0)).unwrap();
    }
    // The book of a server that died, or a new one after damage.
    let gone = ProcessId::new(9);
    world.book.recover(&at(0), &[TimerId::new(1), TimerId::new(40)], |owner| *owner != gone);
    let left: Vec<_> = world.book.all().iter().map(|timer| timer.id.to_string()).collect();
    assert_eq!(left, ["t2"]);
    assert_eq!(world.set(after(1), &at(0)).unwrap().0.id, TimerId::new(41));
}

#[test]
fn the_number_of_timers_is_limited() {
    let refused = |world: &mut World, new: NewTimer| {
        let error = world.set(new, &at(0)).unwrap_err();
        assert!(error.is_limit());
        error.to_string()
    };
    let mut world = World::default();
    for _ in 0..OF_ONE_OWNER {
        world.set(after(1), &at(0)).unwrap();
    }
    assert!(refused(&mut world, after(1)).starts_with("p1 has 100 timers"));
    for n in OF_ONE_OWNER..OF_THE_PROJECT {
        let owner = ProcessId::new(2 + (n / OF_ONE_OWNER) as u64);
        world.set(NewTimer { owner, ..after(1) }, &at(0)).unwrap();
    }
    let other = NewTimer { owner: ProcessId::new(999), ..after(1) };
    assert!(refused(&mut world, other).starts_with("the project has 1000 timers"));

    let mut world = World::default();
    let long = NewTimer { body: Some("x".repeat(BODY_BYTES)), ..after(1) };
    for _ in 0..ALL_BODY_BYTES / BODY_BYTES {
        world.set(long.clone(), &at(0)).unwrap();
    }
    assert!(refused(&mut world, after(1)).contains("4 MiB"));
}

#[test]
fn a_process_is_idle_only_when_that_is_certain() {
    let activity = |state, settled| ObservedActivity { state, settled, idle_periods: 0 };
    for (status, state, settled, expected) in [
        (Some(Status::Running), WatchState::Idle, true, WatchState::Idle),
        (Some(Status::Running), WatchState::Idle, false, WatchState::Settling),
        (Some(Status::Running), WatchState::Unknown, false, WatchState::Unknown),
        (Some(Status::Starting), WatchState::Unknown, false, WatchState::Unknown),
        (Some(Status::Running), WatchState::Blocked, false, WatchState::Blocked),
        (Some(Status::Exited), WatchState::Working, false, WatchState::Exited),
        (Some(Status::Stopped), WatchState::Idle, true, WatchState::Exited),
        (Some(Status::Failed), WatchState::Unknown, false, WatchState::Exited),
        (Some(Status::Lost), WatchState::Unknown, false, WatchState::Exited),
        (None, WatchState::Idle, true, WatchState::Closed),
    ] {
        assert_eq!(Observation::new(status, activity(state, settled)).state, expected);
    }
}
