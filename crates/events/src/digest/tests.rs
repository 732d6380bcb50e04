//! Digests of hand-written events, and of generated ones.

use arbtest::arbitrary::{self, Unstructured};
use patterm_wire::digest::{AgentDigest, Digest, StateTimes};
use patterm_wire::events::{Actor, AnswerEvidence, EventRecord, Fact, format_time};
use serde_json::{Map, Value, json, to_value};

use super::{DigestSize, Window, digest_of};
use crate::known_state::KnownState;
use crate::new_event::About;

const SIZE: DigestSize = DigestSize { agents: 20, entries: 100 };
const MINUTE: u64 = 60_000;
const START: u64 = 1_794_820_000_000;

/// A log that is written by hand.
#[derive(Default)]
struct Log {
    events: Vec<EventRecord>,
    known_state: KnownState,
    now: u64,
    actor: Actor,
}

impl Log {
    fn new() -> Self {
        Self { now: START, ..Self::default() }
    }

    fn add(&mut self, about: About, fact: Fact) -> &mut Self {
        let seq = self.events.len() as u64 + 1;
        self.known_state.note(&about, &fact);
        let data: Map<String, Value> = match to_value(&fact).unwrap()["data"].take() {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        self.events.push(EventRecord {
            seq,
            time: format_time(self.now),
            kind: fact.name().to_owned(),
            process_id: about.process_id,
            run: about.run,
            offset: about.offset,
            actor: self.actor.clone(),
            data,
            ..EventRecord::default()
        });
        self
    }

    fn about(&mut self, id: &str, fact: Fact) -> &mut Self {
        let offset = self.events.len() as u64 * 100;
        self.add(About::process(id).run(1).at(offset), fact)
    }

    fn by(&mut self, actor: Actor) -> &mut Self {
        self.actor = actor;
        self
    }

    fn minutes(&mut self, minutes: u64) -> &mut Self {
        self.now += minutes * MINUTE;
        self
    }

    fn agent(&mut self, id: &str, name: &str) -> &mut Self {
        self.process(id, name, "agent")
    }

    fn process(&mut self, id: &str, name: &str, kind: &str) -> &mut Self {
        let created = Fact::ProcessCreated {
            name: name.into(),
            kind: kind.into(),
            preset: None,
            parent: None,
        };
        self.about(id, created).about(id, Fact::ProcessStarted {})
    }

    fn last(&self) -> u64 {
        self.events.len() as u64
    }

    fn window(&self, since: u64, from_ms: Option<u64>) -> Window {
        Window { since, from_ms, last: self.last(), until_ms: self.now }
    }

    fn digest(&self, since: u64) -> Digest {
        digest_of(&self.events, self.window(since, None), &self.known_state, SIZE)
    }
}

fn reason() -> String {
    "its title says so".into()
}

fn working() -> Fact {
    Fact::AgentWorking { reason: reason() }
}

fn idle() -> Fact {
    Fact::AgentIdle { reason: reason() }
}

fn blocked(question: &str) -> Fact {
    let options = vec!["Yes".into(), "No".into()];
    Fact::AgentBlocked { reason: reason(), question: Some(question.into()), options }
}

/// By its data, which grew since the type was named.
fn git_commit(data: Value) -> Fact {
    serde_json::from_value(json!({"type": "git.commit", "data": data})).unwrap()
}

fn accepted(message_id: u64) -> Fact {
    Fact::MessageAccepted { message_id, kind: "message".into(), length: 1, text: None }
}

fn texts(digest: &Digest) -> Vec<String> {
    digest.lines().into_iter().map(|line| line.text).collect()
}

/// A morning of a small team, while nobody looked.
fn morning() -> Log {
    let mut log = Log::new();
    log.by(Actor::cli()).agent("p1", "lead").by(Actor::agent("p1")).agent("p2", "tests");
    log.process("p3", "dev", "command").by(Actor::System);
    log.about("p1", idle()).about("p2", idle());
    // The person leaves here, with event 9.
    log.minutes(10).about("p1", working());
    log.by(Actor::agent("p1")).about("p2", accepted(1));
    log.by(Actor::System);
    log.about("p2", Fact::MessageDelivered { message_id: 1, evidence: "seen".into() });
    log.about("p2", working()).minutes(5);
    log.about("p2", blocked("Allow\n git push?")).minutes(3).by(Actor::cli());
    log.about(
        "p2",
        Fact::DialogAnswered {
            question: "Allow git push?".into(),
            option: Some("Yes".into()),
            key: None,
            evidence: AnswerEvidence::Chosen,
        },
    );
    log.by(Actor::System).about("p2", working()).minutes(2);
    log.about(
        "p2",
        git_commit(json!({
            "commit": "0123456789abcdef",
            "subject": "fix the lexer",
            "branch": "main",
            "files": ["a.rs", "b.rs"],
            "evidence": "process_tree",
        })),
    );
    log.about("p2", Fact::AgentTurnEnded { ms: 600_000, tokens: None }).about("p2", idle());
    log.by(Actor::agent("p1")).about("p2", accepted(2)).by(Actor::System);
    log.about("p2", Fact::MessageStalled { message_id: 2, evidence: "not on its screen".into() });
    log.about("p3", Fact::PortOpened { port: 3000 });
    for _ in 0..3 {
        log.about("p3", Fact::ProcessExited { code: Some(1), signal: None, error: None });
        log.about("p3", Fact::ProcessStarted {});
        log.about("p3", Fact::ProcessRestarted { reason: None });
    }
    log.about("p3", Fact::ProcessExited { code: Some(2), signal: None, error: None });
    log.by(Actor::agent("p2"));
    for revision in 1..=3 {
        let (name, bytes) = ("plan".to_owned(), 7);
        let fact = match revision {
            1 => Fact::PadCreated { name, revision, bytes },
            _ => Fact::PadWritten { name, revision, bytes },
        };
        log.add(About::project(), fact);
    }
    log.by(Actor::System);
    let server = || "github".to_owned();
    log.add(About::project(), Fact::ServerStarted { server: server(), owner: None });
    let error = "it ended".to_owned();
    log.add(About::project(), Fact::ServerFailed { server: server(), owner: None, error });
    let (hook, reason) = ("phone".to_owned(), "ntfy.example answered 401".to_owned());
    log.add(About::project(), Fact::HookFailed { hook, reason });
    log.about(
        "p1",
        Fact::AgentLimited { reason: "weekly limit".into(), until: Some("9am".into()) },
    );
    log.minutes(30);
    log
}

#[test]
fn a_digest_says_what_needs_the_person_first() {
    let digest = morning().digest(9);
    let expected = [
        "Needs you",
        "tests: message 2 from lead may not have arrived: not on its screen",
        "lead reached a usage limit, until 9am: weekly limit (30 min)",
        "dev exited with code 2",
        "shared server github failed: it ended",
        "Agents",
        "lead (p1): 0 turns; working 10 min, limited 30 min; sent 2",
        "reached a usage limit, until 9am: weekly limit (30 min)",
        "tests (p2): 1 turn; working 7 min, idle 30 min, blocked 3 min; 2 messages: 1 delivered, 1 stalled; 1 commit with 2 files",
        "blocked: Allow git push? [Yes / No] (3 min)",
        "person answered “Allow git push?”: Yes",
        "commit 0123456789 fix the lexer on main, 2 files",
        "message 2 from lead may not have arrived: not on its screen",
        "Processes",
        "dev: exited with code 1 3 times, restarted 3 times, exited with code 2",
        "Ports",
        "dev: port 3000: opened",
        "Scratchpads",
        "plan: created by tests, changed by tests 2 times",
        "Shared servers",
        "github: started, failed: it ended",
        "Project",
        "hook phone: failed: ntfy.example answered 401",
    ];
    assert_eq!(texts(&digest), expected);
    assert_eq!((digest.missing, digest.lost, digest.left_out), (0, 0, 0));
    assert_eq!(digest.agents[1].files, ["a.rs", "b.rs"]);
    let limit = &digest.needs_you[1];
    let place = (limit.process_id.as_deref(), limit.run, limit.offset);
    assert_eq!(place, (Some("p1"), Some(1), Some((limit.seq - 1) * 100)), "to jump there");
    assert!(digest.needs_you.iter().all(|entry| entry.seq > 0 && !entry.time.is_empty()));
}

#[test]
fn what_was_so_at_the_beginning_is_known_from_before_it() {
    let mut log = Log::new();
    log.agent("p1", "lead").about("p1", working()).minutes(1).about("p1", blocked("Go on?"));
    log.minutes(20);
    let since = log.last() + 1;
    let nothing_new = digest_of(
        &log.events,
        log.window(since, Some(log.now - 5 * MINUTE)),
        &log.known_state,
        SIZE,
    );
    let expected = [
        "Needs you",
        "lead is blocked: Go on? [Yes / No] (20 min)",
        "Agents",
        "lead (p1): 0 turns; blocked 5 min",
        "blocked: Go on? [Yes / No] (20 min)",
    ];
    assert_eq!(texts(&nothing_new), expected);
    log.about("p1", working()).minutes(2);
    let continues = Window { from_ms: Some(START + 21 * MINUTE), ..log.window(since, None) };
    let digest = digest_of(&log.events, continues, &log.known_state, SIZE);
    let expected =
        ["Agents", "lead (p1): 0 turns; working 2 min", "blocked: Go on? [Yes / No] (20 min)"];
    assert_eq!(texts(&digest), expected);
}

#[test]
fn what_the_log_does_not_say_is_unknown() {
    let mut log = Log::new();
    log.agent("p1", "lead").about("p1", blocked("Go on?")).minutes(5);
    log.agent("p2", "tests").minutes(1).about("p2", idle()).minutes(5);
    let since = log.last();
    // Only the last event was kept: it says what p2 does, and nothing about p1.
    let window = Window { from_ms: Some(START), ..log.window(1, None) };
    let kept = &log.events[log.events.len() - 1..];
    let digest = digest_of(kept, window, &log.known_state, SIZE);
    let expected = [
        "Needs you",
        "lead is blocked since before the events that were read",
        "Agents",
        "lead (p1): 0 turns; blocked 11 min",
        "tests (p2): 0 turns; idle 5 min, unknown 6 min",
        "up to 5 events of this time missing: the log has a limited size, or is damaged",
        "where a time is unknown, no event says what the agent did",
    ];
    assert_eq!(texts(&digest), expected);
    assert_eq!((digest.since, digest.next), (1, since + 1));
}

#[test]
fn events_that_are_known_to_be_lost_are_not_called_dropped() {
    let mut log = Log::new();
    log.add(About::project(), Fact::SystemStarted { version: "1".into() });
    let recovered = |lost| Fact::SystemRecovered { torn_bytes: 0, lost, not_stored: Some(2) };
    log.add(About::project(), recovered(vec![(3, 1_002)]));
    log.events[1].seq = 1_003;
    let window = Window { last: 1_003, ..log.window(1, None) };
    let digest = digest_of(&log.events, window, &log.known_state, SIZE);
    // Number 2 was neither lost nor kept.
    assert_eq!((digest.lost, digest.missing), (1_002, 0));
    let later = Window { since: 1_000, ..window };
    assert_eq!(digest_of(&log.events, later, &log.known_state, SIZE).lost, 5);
}

#[test]
fn a_run_that_ended_while_no_server_watched_is_unknown_from_then_on() {
    let mut log = Log::new();
    log.agent("p1", "lead").about("p1", working()).minutes(2);
    log.agent("p2", "other").minutes(10);
    log.add(About::project(), Fact::SystemStarted { version: "1".into() });
    log.about("p1", Fact::ProcessLost {});
    log.events.last_mut().unwrap().recovered = true;
    let digest = log.minutes(5).digest(1);
    let lead = &digest.agents[0];
    let times =
        StateTimes { working_ms: 2 * MINUTE, unknown_ms: 10 * MINUTE, ..StateTimes::default() };
    assert_eq!(lead.time, times);
    assert_eq!(texts(&digest)[1], "lead was lost, with its end unknown");
}

#[test]
fn a_clock_that_was_set_changes_no_duration() {
    let mut log = Log::new();
    log.agent("p1", "lead").about("p1", working()).minutes(2);
    let before = format_time(log.now);
    log.now -= 10_000 * MINUTE;
    let ms = -(10_000 * MINUTE as i64);
    log.add(About::project(), Fact::SystemClockChanged { before, ms }).minutes(3);
    log.about("p1", idle()).minutes(1);
    let times = StateTimes { working_ms: 5 * MINUTE, idle_ms: MINUTE, ..StateTimes::default() };
    assert_eq!(log.digest(1).agents[0].time, times);
}

#[test]
fn answered_and_ended_things_need_nobody() {
    let mut log = Log::new();
    log.agent("p1", "lead").about("p1", blocked("Go on?")).about("p1", working());
    log.about("p1", Fact::AttentionRaised { reason: "look".into() });
    log.about("p1", Fact::AttentionCleared {});
    log.agent("p2", "gone").about("p2", blocked("Really?"));
    log.about("p2", Fact::ProcessStopped { code: None, signal: Some(15) });
    log.about("p2", Fact::ProcessClosed {});
    log.about("p1", accepted(1));
    log.about("p1", Fact::MessageStalled { message_id: 1, evidence: "late".into() });
    log.about("p1", Fact::MessageDelivered { message_id: 1, evidence: "seen".into() });
    let hash = || Some("h".to_owned());
    log.add(About::project(), Fact::ProjectFileChanged { hash: hash() });
    assert_eq!(log.digest(1).needs_you[0].text, "patterm.toml has changed and is not trusted");
    log.add(About::project(), Fact::ProjectFileTrusted { hash: "h".into() });
    assert_eq!(log.digest(1).needs_you, []);
}

#[test]
fn a_long_digest_is_cut_and_says_so() {
    let mut log = Log::new();
    for number in 1..=60 {
        let id = format!("p{number}");
        log.agent(&id, &"n".repeat(1_000)).about(&id, accepted(number));
        log.about(&id, Fact::AttentionRaised { reason: "x".repeat(1 << 16) });
        for _ in 0..20 {
            log.about(&id, blocked(&"é".repeat(1 << 12))).about(&id, idle());
        }
        let name = format!("pad{number}");
        log.add(About::project(), Fact::PadCreated { name, revision: 1, bytes: 1 });
    }
    let size = DigestSize { agents: 10, entries: 40 };
    let digest = digest_of(&log.events, log.window(1, None), &log.known_state, size);
    let bytes = serde_json::to_string(&digest).unwrap().len();
    assert!(bytes < 64 << 10, "{bytes}");
    assert_eq!((digest.agents.len(), digest.needs_you.len()), (10, 40));
    assert!(digest.left_out > 1_000, "{}", digest.left_out);
    let last = digest.lines().pop().unwrap().text;
    assert!(last.ends_with("entries had no room; `patterm events` has all events"), "{last}");
}

/// A generated log: agents that change their states, with a clock that is set now and then.
fn generated(u: &mut Unstructured<'_>) -> arbitrary::Result<Log> {
    let mut log = Log::new();
    log.now += 1_000_000 * MINUTE;
    log.agent("p1", "a").agent("p2", "b").agent("p3", "c");
    let mut message = 0;
    for _ in 0..u.int_in_range(1..=60)? {
        log.now += u.int_in_range(0..=10 * MINUTE)?;
        let id = *u.choose(&["p1", "p2", "p3"])?;
        let reason = reason();
        match u.int_in_range(0..=12_u8)? {
            0 => log.agent(id, "a"),
            1 => log.about(id, Fact::ProcessExited { code: None, signal: None, error: None }),
            2 => log.about(id, Fact::ProcessStarted {}),
            3 | 4 => log.about(id, working()),
            5 => log.about(id, idle()),
            6 => log.about(id, blocked("?")),
            7 => log.about(id, Fact::AgentLimited { reason, until: None }),
            8 => log.about(id, Fact::AgentTurnEnded { ms: 1, tokens: None }),
            9 => {
                message += 1;
                log.by(Actor::agent("p1")).about(id, accepted(message)).by(Actor::System)
            }
            10 if message > 0 => {
                let message_id = u.int_in_range(1..=message)?;
                log.about(id, Fact::MessageDelivered { message_id, evidence: String::new() })
            }
            11 => log.about(id, git_commit(json!({"commit": "c", "files": [format!("{id}.rs")]}))),
            _ => {
                let before = format_time(log.now);
                let ms = u.int_in_range(-1_000_000_i64..=1_000_000)?;
                log.now = log.now.saturating_add_signed(ms);
                log.add(About::project(), Fact::SystemClockChanged { before, ms })
            }
        };
    }
    log.now += u.int_in_range(0..=10 * MINUTE)?;
    Ok(log)
}

/// What adds up.
fn sums(digest: &Digest, id: &str) -> ([u64; 5], [u64; 3]) {
    let found = digest.agents.iter().find(|agent| agent.process_id == id).cloned();
    let AgentDigest { time, turns, sent, commits, .. } = found.unwrap_or_default();
    let StateTimes { working_ms, idle_ms, blocked_ms, limited_ms, unknown_ms } = time;
    ([working_ms, idle_ms, blocked_ms, limited_ms, unknown_ms], [turns, sent, commits])
}

#[test]
fn two_digests_of_parts_add_up_to_one_of_the_whole() {
    arbtest::arbtest(|u| {
        let log = generated(u)?;
        let whole = digest_of(&log.events, log.window(1, None), &log.known_state, SIZE);
        // Everything up to `last` is seen at a moment before the next event.
        let last = u.int_in_range(1..=log.events.len())?;
        let wall = |at: usize| patterm_wire::events::parse_time(&log.events[at].time).unwrap();
        let next = log.events.get(last);
        let between = match next {
            // The clock was set there: the time before it is the one that it showed before.
            Some(next) if next.kind == "system.clock_changed" => wall(last - 1),
            Some(_) => u.int_in_range(wall(last - 1)..=wall(last))?,
            None => u.int_in_range(wall(last - 1)..=log.now)?,
        };
        let mut known_state = KnownState::default();
        for event in &log.events[..last] {
            let about = About {
                process_id: event.process_id.clone(),
                run: event.run,
                offset: event.offset,
            };
            known_state.note(&about, &event.fact().unwrap());
        }
        let first = Window { last: last as u64, until_ms: between, ..log.window(1, None) };
        let first = digest_of(&log.events, first, &known_state, SIZE);
        let second = log.window(last as u64 + 1, Some(between));
        let second = digest_of(&log.events, second, &log.known_state, SIZE);
        assert_eq!((first.missing, second.missing, second.since), (0, 0, first.next));
        for id in ["p1", "p2", "p3"] {
            let (whole, first, second) = (sums(&whole, id), sums(&first, id), sums(&second, id));
            for (at, whole) in whole.0.iter().enumerate() {
                assert_eq!(*whole, first.0[at] + second.0[at], "state {at} of {id}");
            }
            for (at, whole) in whole.1.iter().enumerate() {
                assert_eq!(*whole, first.1[at] + second.1[at], "count {at} of {id}");
            }
        }
        Ok(())
    });
}

#[test]
fn times_of_an_agent_never_exceed_the_window_and_no_event_is_told_twice() {
    arbtest::arbtest(|u| {
        let log = generated(u)?;
        let since = u.int_in_range(1..=log.last() + 1)?;
        let digest = log.digest(since);
        for agent in &digest.agents {
            assert!(agent.time.total_ms() <= 61 * 10 * MINUTE + 2_000_000, "{agent:?}");
            let mut numbers: Vec<_> = agent.entries.iter().map(|entry| entry.seq).collect();
            numbers.dedup();
            assert_eq!(numbers.len(), agent.entries.len(), "{:?}", agent.entries);
        }
        Ok(())
    });
}
