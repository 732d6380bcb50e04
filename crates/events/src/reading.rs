//! Reading pages of events, from memory or from the files.

use std::borrow::Cow;
use std::collections::VecDeque;

use patterm_wire::events::{EventClass, EventPage, EventQuery, Fact};
use serde::Deserialize;

use crate::error::EventError;
use crate::line::StoredEvent;
use crate::merge::{Merged, Piece};
use crate::segment::Segment;

/// Events of one page at most.
pub const MOST_EVENTS: usize = 1_000;

/// Events of one page, unless a reader asks for another number.
const USUAL_EVENTS: usize = 100;

/// Bytes of one page: no reader has to take more at once.
const PAGE_BYTES: usize = 1 << 20;

/// How much further events are searched, each time that too few match.
pub(crate) const FURTHER: u64 = 8;

/// What decides whether an event is wanted.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    process_id: Option<Cow<'a, str>>,
}

/// A part of the log to read from.
#[derive(Debug)]
pub(crate) enum EventSource {
    /// All events that are wanted.
    Memory(Vec<StoredEvent>),
    /// Files that contain them.
    Files(Vec<Vec<Segment>>),
}

/// Texts of events in the order of their numbers.
pub(crate) type Texts = EventPage<String>;

/// A page that is being collected.
#[derive(Debug)]
struct Collected<'q> {
    query: &'q EventQuery,
    limit: usize,
    /// Whether the newest events are wanted, rather than the first.
    newest: bool,
    events: VecDeque<(u64, String)>,
    bytes: usize,
    /// How many events there are, wanted or not.
    seen: u64,
    next: Option<u64>,
}

impl Collected<'_> {
    /// Takes an event; `false` if the page is full without it.
    fn take(&mut self, event: StoredEvent) -> bool {
        let head = serde_json::from_str::<Head<'_>>(&event.json);
        let is_wanted =
            head.is_ok_and(|head| self.query.matches(&head.kind, head.process_id.as_deref()));
        if !is_wanted {
            self.seen += 1;
            return true;
        }
        let is_full = |page: &Self| {
            !page.events.is_empty()
                && (page.events.len() >= page.limit || page.bytes + event.json.len() > PAGE_BYTES)
        };
        while is_full(self) {
            if !self.newest {
                self.next = Some(event.seq);
                return false;
            }
            self.bytes -= self.events.pop_front().map_or(0, |(_, json)| json.len());
        }
        self.seen += 1;
        self.bytes += event.json.len();
        self.events.push_back((event.seq, event.json));
        true
    }
}

/// Reads a page from `since` on; `last` is the number of the last event.
pub(crate) fn read(
    source: EventSource,
    query: &EventQuery,
    since: u64,
    last: u64,
) -> Result<Texts, EventError> {
    let limit = query.limit.unwrap_or(USUAL_EVENTS).clamp(1, MOST_EVENTS);
    let newest = query.since.is_none();
    let mut page =
        Collected { query, limit, newest, events: VecDeque::new(), bytes: 0, seen: 0, next: None };
    match source {
        EventSource::Memory(events) => {
            let _ = events.into_iter().all(|event| page.take(event));
        }
        EventSource::Files(files) => {
            let mut events = Merged::new(files, since)?;
            while let Some((_, piece)) = events.next()? {
                // What is damaged was reported when it was found, and counts as dropped here.
                if let Piece::Event(event) = piece
                    && (event.seq > last || !page.take(event))
                {
                    break;
                }
            }
        }
    }
    let next = page.next.unwrap_or(last + 1);
    let first = if newest { page.events.front().map_or(next, |(seq, _)| *seq) } else { since };
    // Within the newest events nothing is missing that a reader could know of.
    let dropped =
        if newest { 0 } else { next.saturating_sub(first.max(1)).saturating_sub(page.seen) };
    Ok(Texts { events: page.events.into_iter().map(|(_, json)| json).collect(), next, dropped })
}

/// Passes all events from `since` to `last`, each with its class if that is known.
pub(crate) fn visit(
    source: EventSource,
    since: u64,
    last: u64,
    mut take: impl FnMut(&StoredEvent, Option<EventClass>),
) -> Result<(), EventError> {
    let mut pass = |event: &StoredEvent| {
        let head = serde_json::from_str::<Head<'_>>(&event.json).ok();
        take(event, head.and_then(|head| Fact::class_of(&head.kind)));
    };
    match source {
        EventSource::Memory(events) => {
            events.iter().take_while(|event| event.seq <= last).for_each(pass);
        }
        EventSource::Files(files) => {
            let mut events = Merged::new(files, since)?;
            while let Some((_, piece)) = events.next()? {
                match piece {
                    Piece::Event(event) if event.seq > last => break,
                    Piece::Event(event) => pass(&event),
                    // What is damaged was reported when it was found, and counts as dropped.
                    Piece::Damaged(..) => {}
                }
            }
        }
    }
    Ok(())
}

/// Where to begin to search for the newest events, further and further back.
pub(crate) fn starts(limit: Option<usize>, last: u64) -> impl Iterator<Item = u64> {
    let first = u64::try_from(limit.unwrap_or(USUAL_EVENTS).min(MOST_EVENTS)).unwrap_or(u64::MAX);
    let mut back = Some(first);
    std::iter::from_fn(move || {
        let now = back?;
        back = (now < last).then(|| now.saturating_mul(FURTHER));
        Some((last + 1).saturating_sub(now).max(1))
    })
}

/// Whether a page has as many events as were asked for.
pub(crate) fn is_full(page: &Texts, limit: Option<usize>) -> bool {
    page.events.len() >= limit.unwrap_or(USUAL_EVENTS).clamp(1, MOST_EVENTS)
}
