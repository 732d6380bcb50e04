//! A moment of a process, as callers name it: a place in its output, or a time.

use patterm_events::EventLog;
use patterm_keeper::log::{offset_after, time_at};
use patterm_panes::Offset;
use patterm_panes::data_plane::ProcessRun;
use patterm_wire::events::{EventQuery, Fact, format_time, parse_time};
use patterm_wire::tools::ScreenMoment;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::error::{ErrorKind, ToolError};

/// Changes of the clock that are looked at: the newest.
const CLOCK_CHANGES: usize = 100;

/// An argument that names a moment.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Moment {
    Offset(u64),
    Time(String),
}

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

impl From<ScreenMoment> for Moment {
    fn from(moment: ScreenMoment) -> Self {
        match moment {
            ScreenMoment::Offset(offset) => Self::Offset(offset),
            ScreenMoment::Time(time) => Self::Time(time),
        }
    }
}

impl Moment {
    /// The place in the output of a run, which began at `begin`. Errors name the argument.
    pub(crate) fn offset(
        &self,
        argument: &'static str,
        run: &ProcessRun,
        begin: Offset,
        events: &EventLog,
    ) -> Result<Offset, ToolError> {
        let end = run.log.end();
        let offset = match self {
            Self::Offset(offset) => *offset,
            Self::Time(time) => offset_at(argument, time, run, begin, events)?,
        };
        if offset > end {
            return Err(ToolError::invalid(
                argument,
                format_args!("is {offset}, but the output ends at {end}"),
            ));
        }
        if offset < begin.get() {
            let why = format_args!("is {offset}, but the current run began at {begin}");
            return Err(ToolError::invalid(argument, why));
        }
        Ok(Offset::new(offset))
    }
}

/// The error for a moment whose output was dropped.
pub(crate) fn gone(run: &ProcessRun, begin: Offset) -> ToolError {
    let first = run.first_moment(begin);
    let time = time_at(&run.log.times(first.get(), u64::MAX), first.get());
    let time = time.map_or_else(String::new, |time| format!(" ({})", format_time(time)));
    let message = format!(
        "that screen is gone: the log has a limited size, and its first screen is that at offset {first}{time} now"
    );
    ToolError::new(ErrorKind::Unavailable, message)
}

fn offset_at(
    argument: &'static str,
    given: &str,
    run: &ProcessRun,
    begin: Offset,
    events: &EventLog,
) -> Result<u64, ToolError> {
    let with_ms = given.strip_suffix('Z').filter(|rest| !rest.contains('.'));
    let time = with_ms.map_or_else(|| given.to_owned(), |rest| format!("{rest}.000Z"));
    let Some(time) = parse_time(&time) else {
        let given: String = given.chars().take(40).collect();
        let why =
            format_args!("is {given:?}; it takes an offset or a time like 2026-11-16T09:12:03Z");
        return Err(ToolError::invalid(argument, why));
    };
    let marks = run.log.times(begin.get(), u64::MAX);
    let end = run.log.end();
    let offset = |time: u64| offset_after(&marks, time).unwrap_or(end);
    let Some(first) = marks.first() else {
        let message = "it is not known when its output was printed; use an offset";
        return Err(ToolError::new(ErrorKind::Unavailable, message));
    };
    if time < first.wall_ms {
        if run.log.start() > begin.get() {
            return Err(gone(run, begin));
        }
        let why = format_args!("is before its first output, at {}", format_time(first.wall_ms));
        return Err(ToolError::invalid(argument, why));
    }
    if let Some(again) = second_time(time, events) {
        let (first, second) = (offset(time), offset(again));
        if first != second {
            let why = format_args!(
                "is ambiguous, because the clock was set back: it was {given} at offset {first} and, \
                 later, at about offset {second}; pass one of them"
            );
            return Err(ToolError::invalid(argument, why));
        }
    }
    Ok(offset(time))
}

/// If the clock showed a time once more after it was set back: when that was, counted on as if it had not been set. The
/// log counts like this.
pub(crate) fn second_time(time: u64, events: &EventLog) -> Option<u64> {
    let types = vec!["system.clock_changed".to_owned()];
    let query = EventQuery { types, limit: Some(CLOCK_CHANGES), ..EventQuery::default() };
    let page = events.read(&query).ok()?;
    page.events.iter().find_map(|event| match event.fact()? {
        Fact::SystemClockChanged { before, ms } => {
            let before = parse_time(&before)?;
            let after = before.checked_add_signed(ms)?;
            (after..before).contains(&time).then(|| before + (time - after))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use patterm_events::{About, DEFAULT_BYTES};
    use patterm_store::clock::{self, Clock};
    use tokio::sync::watch;

    use super::*;

    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 490_000 * HOUR;

    #[test]
    fn a_time_that_the_clock_showed_twice_has_two_moments() {
        let dir = tempfile::tempdir().unwrap();
        let now = |up_ms, wall_ms| clock::Moment { boot: "b".into(), up_ms, wall_ms };
        let clock = Arc::new(watch::Sender::new(now(HOUR, NOW)));
        let events = EventLog::open(dir.path(), DEFAULT_BYTES, Clock::Fake(clock.clone())).unwrap();
        let record = || events.record(About::project(), Fact::ViewDetached {});
        record();
        // Ten minutes later it is set back by an hour.
        clock.send_replace(now(HOUR + 600_000, NOW + 600_000 - HOUR));
        record();
        let twice = NOW - 600_000;
        assert_eq!(second_time(twice, &events), Some(NOW - 600_000 + HOUR));
        assert_eq!(second_time(NOW - HOUR, &events), None);
        assert_eq!(second_time(NOW + 600_000, &events), None);
    }
}
