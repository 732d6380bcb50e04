//! The digest of a stretch of events: a value made from events, without clocks or files.

mod agent;
mod message;
mod needs;
mod tally;
#[cfg(test)]
mod tests;
mod text;
mod time_axis;

use std::collections::BTreeMap;

use patterm_wire::digest::{AgentDigest, Digest, DigestEntry};
use patterm_wire::events::{Actor, EventRecord, Fact, format_time};

use crate::known_state::KnownState;
use agent::ProcessTrack;
use message::MessageBook;
use needs::{Found, OpenServers};
use tally::Tallies;
use text::actor_name;
use time_axis::TimeAxis;

/// What a digest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The number of its first event.
    pub(crate) since: u64,
    /// When it begins, in milliseconds since 1970; with its first event if that is not known.
    pub(crate) from_ms: Option<u64>,
    /// The number of its last event, which is the last one there is.
    pub(crate) last: u64,
    /// When it ends.
    pub(crate) until_ms: u64,
}

/// From where on the log is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// From this number on, no event was dropped of which a digest tells.
    pub(crate) told_from: u64,
    /// From this number on, no event was dropped at all.
    pub(crate) all_from: u64,
}

/// How long a digest may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestSize {
    /// Agents.
    pub agents: usize,
    /// Entries of all agents together, and of all other sections together.
    pub entries: usize,
}

/// Collects events in the order of their numbers. Those before the window only say how things were at its beginning.
#[derive(Debug)]
pub(crate) struct Digester {
    window: Window,
    axis: TimeAxis,
    /// When the window began.
    begun: Option<u64>,
    processes: BTreeMap<String, ProcessTrack>,
    messages: MessageBook,
    tallies: Tallies,
    servers: OpenServers,
    /// The last change of the project file that nobody trusted.
    untrusted: Option<DigestEntry>,
    /// The last event of a server that ended, and the first one of the next, if they are in what was read.
    outage: Option<(u64, u64)>,
    /// The numbers of the events of the window that were read.
    seen: SeenNumbers,
    /// How many are known to be lost.
    lost: u64,
    /// The time of the first event of the window.
    first_ms: Option<u64>,
}

impl Digester {
    /// `known_state` is the state after the last event.
    pub(crate) fn new(window: Window, known_state: &KnownState) -> Self {
        let known = known_state.processes.iter();
        let processes = known.map(|(id, process)| (id.clone(), ProcessTrack::of_known(process)));
        Self {
            window,
            axis: TimeAxis::default(),
            begun: None,
            processes: processes.collect(),
            messages: MessageBook::default(),
            tallies: Tallies::default(),
            servers: OpenServers::default(),
            untrusted: None,
            outage: None,
            seen: SeenNumbers::default(),
            lost: 0,
            first_ms: None,
        }
    }

    /// There is an event that no digest tells of.
    pub(crate) fn skip(&mut self, seq: u64) {
        if self.is_inside(seq) {
            self.seen.add(seq);
        }
    }

    /// Takes the next event.
    pub(crate) fn feed(&mut self, event: &EventRecord) {
        let (before, wall, fact) = (self.axis.last(), self.axis.wall_of(event), event.fact());
        let set_by = match &fact {
            Some(Fact::SystemClockChanged { ms, .. }) => *ms,
            _ => 0,
        };
        let asked = self.window.from_ms.map(|from| self.axis.of_wall(from));
        let now = self.axis.advance(wall, set_by);
        let inside = self.is_inside(event.seq);
        if inside {
            self.seen.add(event.seq);
            self.first_ms.get_or_insert(wall);
            if self.begun.is_none() {
                self.begin(asked.map_or(now, |asked| asked.clamp(before, now)));
            }
        }
        let Some(fact) = fact else { return };
        if matches!(fact, Fact::SystemStarted { .. }) {
            self.outage = Some((before, now));
        }
        if let Fact::SystemRecovered { lost, not_stored, .. } = &fact {
            self.note_lost(lost, not_stored.filter(|_| inside));
        }
        self.note_process(event, &fact, now, inside);
        self.messages.feed(event, &fact, inside);
        self.servers.feed(event, &fact);
        self.note_project_file(event, &fact);
        if let (Fact::MessageAccepted { .. }, Actor::Agent { process_id }, true) =
            (&fact, &event.actor, inside)
        {
            self.processes.entry(process_id.clone()).or_default().note_sent();
        }
        if inside {
            self.note_inside(event, &fact);
        }
    }

    fn is_inside(&self, seq: u64) -> bool {
        (self.window.since..=self.window.last).contains(&seq)
    }

    fn begin(&mut self, at: u64) {
        self.begun = Some(at);
        self.processes.values_mut().for_each(ProcessTrack::begin);
    }

    fn note_lost(&mut self, ranges: &[(u64, u64)], not_stored: Option<u64>) {
        let Window { since, last, .. } = self.window;
        for (first, end) in ranges {
            let (first, end) = ((*first).max(since), (*end).min(last));
            self.lost += (end + 1).saturating_sub(first);
        }
        self.lost += not_stored.unwrap_or(0);
    }

    fn note_process(&mut self, event: &EventRecord, fact: &Fact, now: u64, inside: bool) {
        let Some(id) = &event.process_id else { return };
        let by = actor_name(&event.actor, |id| self.name_of(id));
        let outage = self.outage.filter(|_| event.recovered).map(|(from, _)| from);
        let begun = self.begun;
        let track = self.processes.entry(id.clone()).or_default();
        track.feed(&agent::Step { event, fact, now, begun, outage, inside, by });
    }

    /// What happened to other things than agents.
    fn note_inside(&mut self, event: &EventRecord, fact: &Fact) {
        let is_agent = event
            .process_id
            .as_ref()
            .is_some_and(|id| self.processes.get(id).is_some_and(|process| process.is_agent()));
        let by = actor_name(&event.actor, |id| self.name_of(id));
        let name = event.process_id.as_deref().map(|id| self.name_of(id));
        self.tallies.feed(event, fact, is_agent, name.as_deref(), &by);
    }

    fn note_project_file(&mut self, event: &EventRecord, fact: &Fact) {
        match fact {
            Fact::ProjectFileChanged { hash: Some(_) } => {
                let text = "patterm.toml has changed and is not trusted".to_owned();
                self.untrusted = Some(text::entry(event, text));
            }
            Fact::ProjectFileChanged { hash: None } | Fact::ProjectFileTrusted { .. } => {
                self.untrusted = None;
            }
            _ => {}
        }
    }

    fn name_of(&self, id: &str) -> String {
        let name = self.processes.get(id).and_then(|process| process.name.clone());
        name.unwrap_or_else(|| id.to_owned())
    }

    /// The digest. `known_state` has the state of processes about which nothing was read.
    pub(crate) fn finish(
        mut self,
        known_state: &KnownState,
        kept: Kept,
        size: DigestSize,
    ) -> Digest {
        let Window { since, from_ms, last, until_ms } = self.window;
        let end = self.axis.of_wall(until_ms).max(self.axis.last());
        if self.begun.is_none() {
            let from = from_ms.map_or(end, |from| self.axis.of_wall(from));
            self.begin(from.clamp(self.axis.last().min(end), end));
        }
        let begun = self.begun.unwrap_or(end);
        self.add_known(known_state);
        for process in self.processes.values_mut() {
            process.end(end, begun);
        }
        let dropped = self.seen.missing(since, kept.told_from.min(last + 1));
        let damaged = self.seen.missing(kept.all_from.max(since), last + 1);
        let names: BTreeMap<String, String> =
            self.processes.keys().map(|id| (id.clone(), self.name_of(id))).collect();
        let untrusted = self.untrusted.take().filter(|_| {
            known_state.project_file.is_some() && known_state.project_file != known_state.trusted
        });
        let mut digest = Digest {
            since,
            next: last + 1,
            from: from_ms.or(self.first_ms).map(format_time),
            until: format_time(until_ms),
            missing: (dropped + damaged).saturating_sub(self.lost),
            lost: self.lost,
            ..Digest::default()
        };
        let messages = self.messages.finish(&names);
        let found = Found {
            processes: &self.processes,
            names: &names,
            messages: &messages,
            servers: self.servers,
            untrusted,
            end,
        };
        let (needs_you, excess) = found.needs(size.entries);
        (digest.needs_you, digest.left_out) = (needs_you, excess);
        let agents = self.processes.into_iter().filter(|(_, process)| process.is_in_digest());
        let agents = agents.map(|(id, process)| {
            let of = messages.get(&id);
            let name = names.get(&id).cloned().unwrap_or_else(|| id.clone());
            process.into_digest(id, name, of)
        });
        digest.agents = shorten_agents(agents.collect(), size, &mut digest.left_out);
        self.tallies.finish(&mut digest, size.entries);
        digest
    }

    /// Takes the state of processes that did not change in what was read.
    fn add_known(&mut self, known_state: &KnownState) {
        for (id, process) in &known_state.processes {
            let track = self.processes.entry(id.clone()).or_default();
            track.add_known(process);
        }
    }
}

/// Numbers as ranges, in their order.
#[derive(Debug, Default)]
struct SeenNumbers(Vec<(u64, u64)>);

impl SeenNumbers {
    fn add(&mut self, seq: u64) {
        match self.0.last_mut() {
            Some((_, end)) if *end == seq => *end += 1,
            _ => self.0.push((seq, seq + 1)),
        }
    }

    /// How many numbers of a range are not among them.
    fn missing(&self, from: u64, to: u64) -> u64 {
        let inside =
            self.0.iter().map(|(first, end)| (*end).min(to).saturating_sub((*first).max(from)));
        to.saturating_sub(from).saturating_sub(inside.sum())
    }
}

/// Keeps the agents with the most to tell, and of each the newest entries.
fn shorten_agents(
    mut agents: Vec<AgentDigest>,
    size: DigestSize,
    left_out: &mut u64,
) -> Vec<AgentDigest> {
    let weight =
        |agent: &AgentDigest| (agent.entries.len() as u64 + agent.turns, agent.time.working_ms);
    agents.sort_by_key(|agent| std::cmp::Reverse(weight(agent)));
    for agent in agents.drain(size.agents.min(agents.len())..) {
        *left_out += 1 + agent.entries.len() as u64;
    }
    let each = (size.entries / agents.len().max(1)).max(1);
    for agent in &mut agents {
        let excess = agent.entries.len().saturating_sub(each);
        agent.entries.drain(..excess);
        *left_out += excess as u64;
    }
    agents.sort_by_key(|agent| process_order(&agent.process_id));
    agents
}

/// Processes in the order of their numbers.
fn process_order(id: &str) -> (u64, String) {
    let number = id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse();
    (number.unwrap_or(u64::MAX), id.to_owned())
}

/// Makes a digest of events, which may begin before the window.
#[cfg(test)]
fn digest_of(
    events: &[EventRecord],
    window: Window,
    known_state: &KnownState,
    size: DigestSize,
) -> Digest {
    let first = events.first().map_or(1, |event| event.seq);
    let kept = Kept { told_from: first, all_from: first };
    let mut digester = Digester::new(window, known_state);
    events.iter().filter(|event| event.seq <= window.last).for_each(|event| digester.feed(event));
    digester.finish(known_state, kept, size)
}
