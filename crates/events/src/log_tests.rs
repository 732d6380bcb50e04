//! Digests of a real log, also of one that is reopened, too small, or was removed.

use std::path::Path;
use std::sync::Arc;

use patterm_store::clock::{Clock, Moment};
use patterm_wire::digest::StateTimes;
use patterm_wire::events::{EventRecord, Fact};
use tokio::sync::watch;

use crate::digest::DigestSize;
use crate::log::{DigestStart, EventLog};
use crate::new_event::About;

const SIZE: DigestSize = DigestSize { agents: 9, entries: 99 };
const MINUTE: u64 = 60_000;
const START: u64 = 1_794_820_000_000;

/// A log so small that calls are dropped soon.
const BYTES: u64 = 200 << 10;

fn clock() -> (Clock, Arc<watch::Sender<Moment>>) {
    let now = Moment { boot: "one".into(), up_ms: 0, wall_ms: START };
    let now = Arc::new(watch::Sender::new(now));
    (Clock::Fake(now.clone()), now)
}

fn pass(now: &watch::Sender<Moment>, minutes: u64) {
    now.send_modify(|now| {
        now.up_ms += minutes * MINUTE;
        now.wall_ms += minutes * MINUTE;
    });
}

fn p1() -> About {
    About::process("p1").run(1)
}

/// An agent that was idle for ten minutes, worked for ten and asks something since then.
fn busy(folder: &Path, clock: &Clock, now: &watch::Sender<Moment>) -> EventLog {
    let log = EventLog::open(folder, BYTES, clock.clone()).unwrap();
    let (name, kind) = ("lead".to_owned(), "agent".to_owned());
    log.record(p1(), Fact::ProcessCreated { name, kind, preset: None, parent: None });
    log.record(p1(), Fact::ProcessStarted {});
    log.record(p1(), Fact::AgentIdle { reason: String::new() });
    pass(now, 10);
    log.record(p1(), Fact::AgentWorking { reason: String::new() });
    pass(now, 10);
    let question = Some("Go on?".to_owned());
    log.record(p1(), Fact::AgentBlocked { reason: String::new(), question, options: Vec::new() });
    pass(now, 3);
    log
}

#[test]
fn a_digest_begins_at_a_time_a_number_or_where_the_last_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, now) = clock();
    let log = busy(dir.path(), &clock, &now);
    let times = |start| log.digest(start, SIZE).unwrap().agents[0].time;
    let of = |idle, working, blocked| StateTimes {
        idle_ms: idle * MINUTE,
        working_ms: working * MINUTE,
        blocked_ms: blocked * MINUTE,
        ..StateTimes::default()
    };
    assert_eq!(times(DigestStart::Beginning), of(10, 10, 3));
    assert_eq!(times(DigestStart::Time(START + 5 * MINUTE)), of(5, 10, 3));
    assert_eq!(times(DigestStart::Time(START + 15 * MINUTE)), of(0, 5, 3));
    assert_eq!(times(DigestStart::Time(START + 21 * MINUTE)), of(0, 0, 2));
    assert_eq!(times(DigestStart::Seq(4)), of(0, 10, 3));
    let whole = log.digest(DigestStart::Beginning, SIZE).unwrap();
    pass(&now, 4);
    let next = DigestStart::Continued(whole.next, START + 23 * MINUTE);
    assert_eq!(times(next), of(0, 0, 4));
    // The numbers of a removed log say nothing; its times do.
    assert_eq!(times(DigestStart::Continued(99, START + 19 * MINUTE)), of(0, 1, 7));
    assert_eq!(times(DigestStart::Seq(99)), of(0, 0, 0));
    let nothing = EventLog::none().digest(DigestStart::Beginning, SIZE).unwrap();
    assert_eq!((nothing.next, nothing.is_empty()), (1, true));
}

#[test]
fn the_event_before_and_after_a_time_is_found_however_many_are_between() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, now) = clock();
    let log = EventLog::open(dir.path(), 8 << 20, clock).unwrap();
    let blocked = || Fact::AgentBlocked { reason: "r".into(), question: None, options: Vec::new() };
    log.record(p1(), blocked());
    pass(&now, 1);
    for _ in 0..3_000 {
        log.record(p1(), Fact::PadDeleted { name: "notes".into() });
    }
    pass(&now, 1);
    log.record(p1(), blocked());
    let at = |minutes: u64| START + minutes * MINUTE;
    let is_blocked = |event: &EventRecord| event.kind == "agent.blocked";
    let before = |ms| log.last_before(ms, is_blocked).unwrap().map(|event| event.seq);
    let after = |ms| log.first_after(ms, is_blocked).unwrap().map(|event| event.seq);
    assert_eq!([before(at(0)), before(at(0) + 1), before(at(2)), before(at(3))], {
        [None, Some(1), Some(1), Some(3_002)]
    });
    assert_eq!([after(0), after(at(0)), after(at(1)), after(at(2))], {
        [Some(1), Some(3_002), Some(3_002), None]
    });
    let nothing = |_: &EventRecord| false;
    assert!(log.last_before(at(9), nothing).unwrap().is_none());
    assert!(log.first_after(0, nothing).unwrap().is_none());
    assert!(EventLog::none().last_before(at(9), is_blocked).unwrap().is_none());
}

#[test]
fn calls_that_were_dropped_are_not_missed_and_a_reader_without_a_server_sees_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, now) = clock();
    let log = busy(dir.path(), &clock, &now);
    for _ in 0..5_000 {
        let (tool, outcome) = ("list_processes".to_owned(), "ok".to_owned());
        log.record(About::project(), Fact::ToolCalled { tool, outcome, ms: 1 });
    }
    let digest = log.digest(DigestStart::Beginning, SIZE).unwrap();
    assert_eq!((digest.missing, digest.agents[0].entries.len()), (0, 1));
    assert_eq!(digest.needs_you[0].text, "lead is blocked: Go on?");
    let read = EventLog::open_to_read(dir.path(), clock).unwrap();
    assert_eq!(read.digest(DigestStart::Beginning, SIZE).unwrap(), digest);
}

#[test]
fn states_that_were_dropped_are_missed_and_what_is_known_of_the_end_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, now) = clock();
    let log = busy(dir.path(), &clock, &now);
    let other = || About::process("p2").run(1);
    let (name, kind) = ("other".to_owned(), "agent".to_owned());
    log.record(other(), Fact::ProcessCreated { name, kind, preset: None, parent: None });
    log.record(other(), Fact::ProcessStarted {});
    for turn in 0..2_000 {
        let reason = "x".repeat(100);
        log.record(
            other(),
            match turn % 2 {
                0 => Fact::AgentWorking { reason },
                _ => Fact::AgentIdle { reason },
            },
        );
    }
    pass(&now, 1);
    let digest = log.digest(DigestStart::Beginning, SIZE).unwrap();
    assert!(digest.missing > 5, "{}", digest.missing);
    // What it asked was dropped, but not that it asks.
    let text = "lead is blocked since before the events that were read";
    assert_eq!(digest.needs_you[0].text, text);
    assert_eq!(digest.agents[1].name, "other");
}
