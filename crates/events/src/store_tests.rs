//! Properties of the log: whatever is appended, crashes, is cut or dropped, what is left is in order and explained.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arbtest::arbitrary::Unstructured;
use arbtest::arbtest;
use patterm_store::clock::{Clock, Moment};
use patterm_wire::events::{Actor, EventClass, EventQuery, EventRecord, Fact, LogVerdict};
use tokio::sync::watch;

use crate::line::{self, HASH_DIGITS, hash_of};
use crate::new_event::{About, NewEvent};
use crate::reading::{self, EventSource};
use crate::segment::Segment;
use crate::store::{DEFAULT_BYTES, Store};
use crate::verify::{Snapshot, verify};

/// A log so small that events are dropped soon.
const BYTES: u64 = 200 << 10;

/// How long random runs are tried: a few hundred of them.
const PROPERTY_MS: u64 = 3_000;

fn clock() -> (Clock, Arc<watch::Sender<Moment>>) {
    let now = Moment { boot: "one".into(), up_ms: 0, wall_ms: 1_794_820_323_118 };
    let now = Arc::new(watch::Sender::new(now));
    (Clock::Fake(now.clone()), now)
}

pub(crate) fn event(fact: Fact) -> NewEvent {
    NewEvent { fact, about: About::process("p1"), actor: Actor::System, recovered: false }
}

fn fact_of(class: EventClass, text: String) -> Fact {
    match class {
        EventClass::Calls => Fact::ToolCalled { tool: text, outcome: "ok".into(), ms: 1 },
        EventClass::States => Fact::AgentIdle { reason: text },
        EventClass::People => Fact::AttentionRaised { reason: text },
    }
}

fn verdict(store: &Store) -> LogVerdict {
    let snapshot = Snapshot {
        files: store.files(),
        dropped_through: store.dropped_through(),
        checkpoint: store.checkpoint.clone(),
        last: store.written,
        newest: store.newest(),
    };
    verify(&snapshot).unwrap()
}

fn all(store: &Store) -> Vec<EventRecord> {
    let mut events = Vec::new();
    let mut since = 1;
    while since <= store.written {
        let query = EventQuery { since: Some(since), limit: Some(1_000), ..EventQuery::default() };
        let source = EventSource::Files(store.files());
        let page = reading::read(source, &query, since, store.written).unwrap();
        events.extend(page.events.iter().map(|text| serde_json::from_str(text).unwrap()));
        assert!(page.next > since, "a page makes progress");
        since = page.next;
    }
    events
}

fn last_file(store: &Store, class: usize) -> Option<Segment> {
    store.files()[class].last().cloned()
}

/// What the test knows about the log.
#[derive(Default)]
struct Model {
    /// The events that were appended: their class and text.
    appended: BTreeMap<u64, (EventClass, String)>,
    /// All of them up to this number were synced.
    synced: u64,
    /// Numbers that a power loss may have taken.
    doubtful: Vec<(u64, u64)>,
}

impl Model {
    fn check(&self, store: &Store) {
        let found = all(store);
        assert_eq!(verdict(store).first_break, None, "{:?}", store.files());
        let numbers: Vec<_> = found.iter().map(|event| event.seq).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order, without repeats");
        let by_number: BTreeMap<u64, &EventRecord> = found.iter().map(|e| (e.seq, e)).collect();
        for (class, dropped) in EventClass::ALL.into_iter().zip(store.dropped_through()) {
            let kept =
                |(seq, (of, _)): &(&u64, &(EventClass, String))| *of == class && **seq > dropped;
            for (seq, (_, text)) in self.appended.iter().filter(kept) {
                match by_number.get(seq) {
                    Some(event) => {
                        let data = serde_json::to_string(&event.data).unwrap();
                        assert!(data.contains(text.as_str()), "{seq} is another event: {data}");
                    }
                    None => {
                        let is_doubtful = |(a, b): &(u64, u64)| (a..=b).contains(&seq);
                        assert!(self.doubtful.iter().any(is_doubtful), "{seq} is lost");
                    }
                }
            }
        }
        for event in &found {
            if Fact::class_of(&event.kind) != Some(EventClass::People)
                || !event.kind.starts_with("system")
            {
                assert!(self.appended.contains_key(&event.seq), "{event:?} was never appended");
            }
        }
    }
}

/// Appends a part of a line to a file, as a server does that is killed while it writes.
fn tear(store: &Store, u: &mut Unstructured<'_>, folder: &Path) -> arbtest::arbitrary::Result<()> {
    let json = format!("{{\"seq\":{},\"type\":\"agent.idle\"}}", store.written + 1);
    let whole = line::encode(&hash_of(&json), 1, &json);
    let cut = u.int_in_range(1..=whole.len() - 1)?;
    let path = match last_file(store, u.choose_index(3)?) {
        Some(segment) => segment.path,
        None => Segment::path_of(folder, EventClass::Calls, store.written + 1),
    };
    let before = fs::read(&path).unwrap_or_default();
    fs::write(path, [&before, &whole[..cut]].concat()).unwrap();
    Ok(())
}

/// Cuts every file anywhere behind what was synced, as a power loss does.
fn lose_power(
    store: &Store,
    synced: &[u64],
    u: &mut Unstructured<'_>,
) -> arbtest::arbitrary::Result<()> {
    for (class, synced) in synced.iter().enumerate() {
        let Some(segment) = last_file(store, class) else { continue };
        let keep =
            if *synced <= segment.bytes { u.int_in_range(*synced..=segment.bytes)? } else { 0 };
        let bytes = fs::read(&segment.path).unwrap();
        fs::write(&segment.path, &bytes[..keep as usize]).unwrap();
    }
    Ok(())
}

#[test]
fn crashes_at_any_byte_leave_a_log_without_gaps_repeats_or_torn_lines() {
    arbtest(|u| {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("events");
        let (clock, now) = clock();
        let mut store = Store::open(&folder, BYTES, clock.clone()).unwrap();
        let mut model = Model::default();
        for _ in 0..u.int_in_range(1..=12)? {
            for _ in 0..u.int_in_range(0..=60)? {
                let class = *u.choose(&EventClass::ALL)?;
                let text =
                    format!("{} {}", model.appended.len(), "x".repeat(u.int_in_range(0..=900)?));
                now.send_modify(|now| (now.up_ms, now.wall_ms) = (now.up_ms + 7, now.wall_ms + 7));
                let seq = store.append(event(fact_of(class, text.clone()))).unwrap();
                assert_eq!(seq, store.written, "on the disk before it is acknowledged");
                assert!(model.appended.insert(seq, (class, text)).is_none(), "{seq} is repeated");
            }
            let power = |store: &mut Store, model: &mut Model| {
                // Files that begin after this are not synced at all.
                store.take_unsynced();
                model.synced = store.written;
                store
                    .files()
                    .iter()
                    .map(|files| files.last().map_or(0, |f| f.bytes))
                    .collect::<Vec<_>>()
            };
            match u.int_in_range(0..=3)? {
                0 => {}
                1 => store.close().unwrap(),
                2 => tear(&store, u, &folder)?,
                _ => {
                    let synced = power(&mut store, &mut model);
                    let files: Vec<_> = (0..3).map(|class| last_file(&store, class)).collect();
                    for at in 0..u.int_in_range(0..=30)? {
                        let class = *u.choose(&EventClass::ALL)?;
                        let text = format!("late {at} {}", model.appended.len());
                        let seq = store.append(event(fact_of(class, text.clone()))).unwrap();
                        model.appended.insert(seq, (class, text));
                    }
                    let same = |class: usize| {
                        let path = |file: Option<Segment>| file.map(|file| file.path);
                        path(last_file(&store, class)) == path(files[class].clone())
                    };
                    let through = store.checkpoint.through;
                    let synced: Vec<_> =
                        (0..3).map(|c| if same(c) { synced[c] } else { 0 }).collect();
                    let covered = through > model.synced;
                    if !covered {
                        lose_power(&store, &synced, u)?;
                        model.doubtful.push((model.synced + 1, store.written));
                    }
                    now.send_modify(|now| now.boot = format!("{} again", now.boot).into());
                }
            }
            drop(store);
            store = Store::open(&folder, BYTES, clock.clone()).unwrap();
            assert!(model.appended.keys().all(|seq| *seq <= store.written), "numbers go on");
            model.check(&store);
        }
        Ok(())
    })
    .budget_ms(PROPERTY_MS);
}

#[test]
fn one_class_never_drops_another_and_the_size_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
    store.append(event(fact_of(EventClass::People, "the one approval".into()))).unwrap();
    for at in 0..5_000 {
        store.append(event(fact_of(EventClass::Calls, format!("poll {at}")))).unwrap();
    }
    let verdict = verdict(&store);
    assert_eq!((verdict.first, verdict.last), (Some(1), Some(5_001)));
    assert_eq!(verdict.first_break, None);
    assert_eq!(verdict.dropped, 5_001 - verdict.events);
    assert!(verdict.dropped > 1_000, "{verdict:?}");
    assert_eq!(all(&store)[0].kind, "attention.raised");
    let bytes: u64 =
        fs::read_dir(&folder).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < BYTES, "{bytes}");
}

#[test]
fn dropped_events_are_counted_for_a_reader_that_comes_late() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("events"), BYTES, clock().0).unwrap();
    for at in 0..2_000 {
        store.append(event(fact_of(EventClass::States, format!("state {at}")))).unwrap();
    }
    let query = EventQuery { since: Some(1), limit: Some(5), ..EventQuery::default() };
    let page = reading::read(EventSource::Files(store.files()), &query, 1, store.written).unwrap();
    let first: EventRecord = serde_json::from_str(&page.events[0]).unwrap();
    assert_eq!(page.dropped, first.seq - 1);
    assert_eq!((page.next, page.events.len()), (first.seq + 5, 5));
}

/// Writes 30 events of each class, in turn.
fn mixed(store: &mut Store) {
    for at in 0..90 {
        let class = EventClass::ALL[at % 3];
        store.append(event(fact_of(class, format!("event {at}")))).unwrap();
    }
}

#[test]
fn damage_is_reported_with_its_place_and_everything_else_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
    mixed(&mut store);
    let path = last_file(&store, 1).unwrap().path;
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    drop(store);
    let store = Store::open(&folder, BYTES, clock().0).unwrap();
    let found = all(&store);
    assert_eq!(found.len(), 89);
    let present: Vec<_> = found.iter().map(|event| event.seq).collect();
    let missing = (1..=90).find(|seq| !present.contains(seq)).unwrap();
    let broken = verdict(&store).first_break.unwrap();
    assert!(broken.seq <= missing && broken.seq + 3 > missing, "{broken:?}, missing {missing}");
    assert!(broken.what.contains("is damaged: "), "{broken:?}");
}

#[test]
fn a_missing_line_or_file_is_not_taken_for_a_dropped_one() {
    for whole_file in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("events");
        let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
        for _ in 0..20 {
            mixed(&mut store);
        }
        let oldest = store.files()[2][0].clone();
        let bytes = fs::read(&oldest.path).unwrap();
        let line = memchr::memchr(b'\n', &bytes).unwrap() + 1;
        match whole_file {
            true => fs::remove_file(&oldest.path).unwrap(),
            false => fs::write(&oldest.path, &bytes[line..]).unwrap(),
        }
        drop(store);
        let store = Store::open(&folder, BYTES, clock().0).unwrap();
        let broken = verdict(&store).first_break.unwrap();
        assert!(broken.what.contains("missing"), "{broken:?}");
        assert!(store.written == 1_800, "nothing is used again");
    }
}

#[test]
fn the_newest_lines_or_all_files_do_not_disappear_unnoticed() {
    for gone in [Some(0), Some(1), Some(2), None] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("events");
        let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
        mixed(&mut store);
        match gone {
            Some(class) => {
                let path = last_file(&store, class).unwrap().path;
                let bytes = fs::read(&path).unwrap();
                let keep = memchr::memrchr(b'\n', &bytes[..bytes.len() - 1]).unwrap() + 1;
                fs::write(&path, &bytes[..keep]).unwrap();
            }
            None => {
                for segment in store.files().into_iter().flatten() {
                    fs::remove_file(segment.path).unwrap();
                }
            }
        }
        let lost = if gone.is_some() { 1 } else { 90 };
        let check = |store: &Store| {
            let verdict = verdict(store);
            let broken = verdict.first_break.unwrap();
            assert!(broken.what.contains("missing"), "{gone:?}: {broken:?}");
            assert_eq!((verdict.missing, verdict.dropped), (lost, 0), "{gone:?}");
        };
        check(&store);
        drop(store);
        check(&Store::open_to_read(&folder, clock().0).unwrap());
        let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
        check(&store);
        let next = store.append(event(fact_of(EventClass::People, "next".into()))).unwrap();
        assert_eq!(next, 91, "no number is used again");
        check(&store);
    }
}

#[test]
fn events_that_are_gone_are_not_counted_as_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
    for at in 0..3_000 {
        store.append(event(fact_of(EventClass::Calls, format!("poll {at}")))).unwrap();
    }
    let before = verdict(&store);
    assert!(before.dropped > 0 && before.missing == 0 && before.first_break.is_none());
    let last = last_file(&store, 0).unwrap();
    fs::remove_file(&last.path).unwrap();
    let after = verdict(&store);
    assert_eq!(after.dropped, before.dropped);
    assert_eq!(after.missing, before.events - after.events);
    assert_eq!(after.first_break.unwrap().seq, last.first);
}

#[test]
fn a_last_event_that_was_rewritten_is_not_the_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
    store.append(event(fact_of(EventClass::People, "yes".into()))).unwrap();
    let path = last_file(&store, 2).unwrap().path;
    let json =
        fs::read_to_string(&path).unwrap().trim_end()[HASH_DIGITS + 3..].replace("yes", "no");
    fs::write(&path, line::encode(&hash_of(&json), 0, &json)).unwrap();
    drop(store);
    let store = Store::open_to_read(&folder, clock().0).unwrap();
    assert_eq!(verdict(&store).first_break.unwrap().seq, 1);
}

#[test]
fn what_was_told_is_the_same_after_any_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, BYTES, clock().0).unwrap();
    for id in 1..=3_000 {
        let accepted =
            Fact::MessageAccepted { message_id: id, kind: "message".into(), length: 3, text: None };
        store.append(event(accepted)).unwrap();
        if id % 3 != 0 {
            store
                .append(event(Fact::MessageDelivered { message_id: id, evidence: "seen".into() }))
                .unwrap();
        }
        if id % 700 == 0 {
            let known_state = store.known_state.clone();
            drop(store);
            store = Store::open(&folder, BYTES, clock().0).unwrap();
            assert_eq!(store.known_state, known_state);
        }
    }
    assert!(verdict(&store).dropped > 0 && store.known_state.open_messages.len() == 1_000);
}

#[test]
fn events_wait_while_nothing_can_be_written_and_what_is_refused_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let mut store = Store::open(&folder, DEFAULT_BYTES, clock().0).unwrap();
    store.append(event(fact_of(EventClass::Calls, "before".into()))).unwrap();
    // No file can be created here, as on a full disk.
    let place = Segment::path_of(&folder, EventClass::People, 2);
    fs::create_dir(&place).unwrap();
    let ask = |at: u64| event(fact_of(EventClass::People, format!("{at}")));
    let mut waiting = 0;
    let refusal = loop {
        match store.append(ask(waiting)) {
            Ok(_) => waiting += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refusal.contains(&format!("{waiting} events already wait")), "{refusal}");
    assert!((store.written, store.trouble.is_some(), store.is_dirty()) == (1, true, true));
    fs::remove_dir(&place).unwrap();
    store.write_waiting().unwrap();
    assert_eq!((store.written, &store.trouble), (waiting + 2, &None));
    let found = all(&store);
    let numbers: Vec<_> = found.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=waiting + 2).collect::<Vec<_>>());
    let last = found.last().unwrap();
    assert_eq!((last.kind.as_str(), &last.data["not_stored"]), ("system.recovered", &1.into()));
    assert_eq!(verdict(&store).first_break, None);
}
