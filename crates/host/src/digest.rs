//! Digests for people and for agents.

use patterm_events::{DigestSize, DigestStart, EventError};
use patterm_store::state::StateError;
use patterm_wire::digest::{Digest, DigestRequest, LookedRequest};
use patterm_wire::events::parse_time;

use crate::host::Host;
use crate::viewers::LookedUntil;

/// A digest for a person: a few screens.
const FOR_PEOPLE: DigestSize = DigestSize { agents: 50, entries: 150 };

/// A digest for a model, which reads all of it: a few thousand words at most.
const FOR_MODELS: DigestSize = DigestSize { agents: 16, entries: 40 };

/// Without a beginning, a model gets what happened in this time, in milliseconds.
const FOR_MODELS_MS: u64 = 3_600_000;

/// A digest for a person. It needs a thread that may block.
pub(crate) fn for_person(host: &Host, request: &DigestRequest) -> Result<Digest, EventError> {
    let start = match (request.since, request.since_ms, request.viewer) {
        (Some(since), ..) => DigestStart::Seq(since),
        (None, Some(ms), _) => DigestStart::Time(ms),
        (None, None, Some(viewer)) => host.viewers.start(viewer),
        (None, None, None) => DigestStart::Beginning,
    };
    host.events.digest(start, FOR_PEOPLE)
}

/// A digest for a model.
pub(crate) fn for_model(host: &Host, since: Option<u64>) -> Result<Digest, EventError> {
    let start = since.map_or_else(
        || DigestStart::Time(host.events.now().1.saturating_sub(FOR_MODELS_MS)),
        DigestStart::Seq,
    );
    host.events.digest(start, FOR_MODELS)
}

/// A person has looked.
pub(crate) fn note_looked(host: &Host, request: &LookedRequest) -> Result<(), StateError> {
    let (next, at_ms) = host.events.now();
    let now = LookedUntil { next, at_ms };
    let shown = request.shown.as_ref().map(|(next, until)| {
        let at_ms = parse_time(until).unwrap_or(at_ms).min(at_ms);
        LookedUntil { next: *next, at_ms }
    });
    host.viewers.note(request.viewer, shown.unwrap_or(now), now)
}
