//! The common past of several processes: where a step leads.

use patterm_events::EventLog;
use patterm_panes::process::ProcessId;
use patterm_wire::events::EventRecord;
use patterm_wire::past::{EventGroup, PastDirection, PastPlace, PastScreen, PastState, PastStep};

use super::PastError;
use super::found;
use super::process::PastProcess;
use super::search;
use crate::host::Host;
use crate::tools::second_time;

/// Where a step leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) at_ms: u64,
    pub(super) found: Option<PastPlace>,
    pub(super) again_ms: Option<u64>,
}

impl Reached {
    fn at(at_ms: u64) -> Self {
        Self { at_ms, ..Self::default() }
    }
}

/// The past of some processes.
#[derive(Debug)]
pub(super) struct CommonPast {
    /// The ids as they were given.
    ids: Vec<String>,
    processes: Vec<PastProcess>,
    events: EventLog,
    pub(super) first_ms: u64,
    pub(super) now_ms: u64,
}

impl CommonPast {
    pub(super) fn read(host: &Host, ids: &[String]) -> Self {
        let known = ids.iter().filter_map(|id| {
            let process = host.panes.processes.get(&ProcessId::of(id))?;
            let run = host.panes.run_of(&process.id)?;
            Some(PastProcess::new(&process, run, &host.events))
        });
        let processes: Vec<_> = known.collect();
        // The times of logs go on while the clock is behind because it was set back.
        let printed = processes.iter().filter_map(|process| process.printed_until(u64::MAX));
        let wall_ms = host.panes.clock().wall_ms();
        let now_ms = printed.max().map_or(wall_ms, |printed| printed.max(wall_ms));
        let first_ms = processes.iter().filter_map(PastProcess::first_ms).min();
        let first_ms = first_ms.unwrap_or(now_ms).min(now_ms);
        Self { ids: ids.to_vec(), processes, events: host.events.clone(), first_ms, now_ms }
    }

    /// What each process showed at a time. That of something that was found is shown up to there, and not what was
    /// printed in the same moment.
    pub(super) fn screens(&self, at_ms: u64, found: Option<&PastPlace>) -> Vec<PastScreen> {
        let screen = |id: &String| {
            let process = self.processes.iter().find(|process| process.id == *id);
            let place = found.filter(|found| found.process_id.as_ref() == Some(id));
            let place = place.and_then(|place| place.offset);
            let state = process.map_or(PastState::Nothing, |process| process.state(at_ms, place));
            PastScreen { process_id: id.clone(), state }
        };
        self.ids.iter().map(screen).collect()
    }

    /// Where a step leads from a time; `None` if there is nothing of that kind.
    pub(super) fn step(&self, from_ms: u64, step: &PastStep) -> Result<Option<Reached>, PastError> {
        Ok(match step {
            PastStep::To { at_ms } => {
                let again_ms = second_time(*at_ms, &self.events);
                Some(Reached { again_ms, ..Reached::at(*at_ms) })
            }
            PastStep::By { ms } => Some(Reached::at(from_ms.saturating_add_signed(*ms))),
            PastStep::Beginning => Some(Reached::at(self.first_ms)),
            PastStep::Now => Some(Reached::at(self.now_ms)),
            PastStep::Change { direction: PastDirection::Back } => {
                Some(Reached::at(self.change_before(from_ms)))
            }
            PastStep::Change { direction: PastDirection::Forward } => {
                let after = self.processes.iter().filter_map(|it| it.printed_after(from_ms)).min();
                Some(Reached::at(after.unwrap_or(self.now_ms)))
            }
            PastStep::Event { group, direction } => self.event(from_ms, *group, *direction)?,
            PastStep::Search { text, direction } => {
                let line = search::nearest(&self.processes, from_ms, text, *direction);
                line.map(|line| Reached {
                    at_ms: line.at_ms,
                    found: Some(line.place()),
                    again_ms: None,
                })
            }
        })
    }

    /// The moment before the last change that is visible at a time.
    fn change_before(&self, from_ms: u64) -> u64 {
        let until =
            |at_ms: u64| self.processes.iter().filter_map(|it| it.printed_until(at_ms)).max();
        let last = until(from_ms).unwrap_or(self.first_ms);
        until(last.saturating_sub(1)).unwrap_or(self.first_ms)
    }

    fn event(
        &self,
        from_ms: u64,
        group: EventGroup,
        direction: PastDirection,
    ) -> Result<Option<Reached>, PastError> {
        let wanted = |event: &EventRecord| found::is_in(group, event, &self.ids);
        let event = match direction {
            PastDirection::Back => self.events.last_before(from_ms, wanted)?,
            PastDirection::Forward => self.events.first_after(from_ms, wanted)?,
        };
        let next = event.and_then(|event| {
            let at_ms = found::time_of(&event)?;
            Some(Reached { found: Some(found::place(&event)), ..Reached::at(at_ms) })
        });
        // Before the first output there is nothing to see.
        Ok(next.filter(|next| (self.first_ms..=self.now_ms).contains(&next.at_ms)))
    }
}
