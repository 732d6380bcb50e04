//! The time bar: panes as they were at a moment of the past, and the steps that lead there. One request is under way at
//! a time; steps that are made meanwhile wait, and are sent together.

use std::collections::BTreeMap;

use patterm_screen::{Screen, Size};
use patterm_wire::base64;
use patterm_wire::past::{PastPlace, PastRequest, PastResult, PastState, PastStep};

use crate::layout::PaneId;

/// Steps that wait for the answer to a request, apart from those by a duration, which add up: more than anybody presses
/// keys in that time.
const WAITING_STEPS: usize = 32;

/// Which panes show the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeScope {
    /// This pane; the others go on.
    Pane(PaneId),
    /// All panes, at the same moment.
    Page,
}

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeTyping {
    /// A time to go to.
    Time,
    /// A text to search for.
    Search,
}

/// What a process showed at the moment.
#[derive(Debug)]
pub(crate) enum PastPane {
    Screen(Box<Screen>),
    /// It was not started yet; it was at this time.
    NotStarted(Option<u64>),
    /// Its output was dropped; the oldest that is left is of this time.
    Dropped(Option<u64>),
    Nothing,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The moment is shown.
    Shown,
    /// This step found nothing.
    Missed(PastStep),
    /// The clock showed this time twice; this is the second time.
    Twice(u64),
}

/// The time bar.
#[derive(Debug)]
pub(crate) struct TimeBar {
    /// Its number: answers to an earlier bar are ignored.
    pub(crate) number: u64,
    pub(crate) scope: TimeScope,
    /// The moment that is shown, in milliseconds since 1970; `None` until the first answer.
    pub(crate) at_ms: Option<u64>,
    /// The earliest moment, and the latest one when the server answered.
    pub(crate) first_ms: u64,
    pub(crate) now_ms: u64,
    /// What was found there.
    pub(crate) found: Option<PastPlace>,
    /// The processes, by their ids.
    panes: BTreeMap<String, PastPane>,
    /// The steps that were not sent yet.
    waiting: Vec<PastStep>,
    /// The last step of the request that is under way.
    sent: Option<Option<PastStep>>,
    pub(crate) typing: Option<TimeTyping>,
    /// The time that is being typed.
    pub(crate) time: String,
    pub(crate) search: String,
}

impl TimeBar {
    pub(crate) fn new(number: u64, scope: TimeScope) -> Self {
        Self {
            number,
            scope,
            at_ms: None,
            first_ms: 0,
            now_ms: 0,
            found: None,
            panes: BTreeMap::new(),
            waiting: Vec::new(),
            sent: None,
            typing: None,
            time: String::new(),
            search: String::new(),
        }
    }

    /// Whether a pane shows the past.
    pub(crate) fn covers(&self, pane: PaneId) -> bool {
        match self.scope {
            TimeScope::Pane(only) => only == pane,
            TimeScope::Page => true,
        }
    }

    /// What a process showed; `None` until that is known.
    pub(crate) fn pane(&self, process: &str) -> Option<&PastPane> {
        self.panes.get(process)
    }

    /// Adds a step. What it makes superfluous is left out.
    pub(crate) fn add(&mut self, step: PastStep) {
        use PastStep::{Beginning, By, Now, To};
        if matches!(step, To { .. } | Beginning | Now) {
            self.waiting.clear();
        }
        if let (Some(By { ms: sum }), By { ms }) = (self.waiting.last_mut(), &step) {
            *sum = sum.saturating_add(*ms);
        } else if self.waiting.len() < WAITING_STEPS {
            self.waiting.push(step);
        }
    }

    /// The next request, for these processes, if none is under way.
    pub(crate) fn request(&mut self, processes: Vec<String>) -> Option<PastRequest> {
        if self.sent.is_some() {
            return None;
        }
        let steps = std::mem::take(&mut self.waiting);
        self.sent = Some(steps.last().cloned());
        Some(PastRequest { processes, from_ms: self.at_ms, steps })
    }

    /// Whether steps wait for the answer to a request.
    pub(crate) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the answer to the request.
    pub(crate) fn take(&mut self, result: PastResult) -> Arrival {
        let step = self.sent.take().flatten();
        self.at_ms = Some(result.at_ms);
        (self.first_ms, self.now_ms) = (result.first_ms, result.now_ms);
        let screens = result.screens.into_iter();
        self.panes = screens.map(|screen| (screen.process_id, past_pane(screen.state))).collect();
        match (result.is_missed, step, result.again_ms) {
            (true, Some(step), _) => Arrival::Missed(step),
            (_, step, again_ms) => {
                // Without a step the place is the same as before.
                if step.is_some() {
                    self.found = result.found;
                }
                again_ms.map_or(Arrival::Shown, Arrival::Twice)
            }
        }
    }

    /// The request failed; the steps that wait are dropped.
    pub(crate) fn failed(&mut self) {
        self.sent = None;
        self.waiting.clear();
    }

    /// The text that is being typed.
    pub(crate) fn typed(&mut self) -> Option<&mut String> {
        match self.typing? {
            TimeTyping::Time => Some(&mut self.time),
            TimeTyping::Search => Some(&mut self.search),
        }
    }
}

fn past_pane(state: PastState) -> PastPane {
    match state {
        PastState::Shown { rows, columns, bytes, .. } => {
            let mut screen = Screen::new(Size::new(rows, columns));
            // It must not answer, notify or copy anything.
            screen.set_replay(true);
            screen.feed(&base64::decode(&bytes));
            PastPane::Screen(Box::new(screen))
        }
        PastState::NotStarted { started_ms } => PastPane::NotStarted(started_ms),
        PastState::Dropped { first_ms } => PastPane::Dropped(first_ms),
        PastState::Nothing | PastState::Unknown => PastPane::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::past::{EventGroup, PastDirection};

    use super::*;

    #[test]
    fn steps_that_wait_are_sent_together_and_only_what_counts_of_them() {
        let mut bar = TimeBar::new(1, TimeScope::Page);
        let by = |ms| PastStep::By { ms };
        assert_eq!(bar.request(vec!["p1".into()]).unwrap().steps, []);
        for step in [by(-1_000), PastStep::Beginning, by(-1_000), by(-10_000)] {
            bar.add(step);
        }
        assert!(bar.request(Vec::new()).is_none(), "one is under way");
        assert_eq!(bar.take(PastResult { at_ms: 7, ..PastResult::default() }), Arrival::Shown);
        let request = bar.request(vec!["p1".into()]).unwrap();
        assert_eq!((request.from_ms, request.steps), {
            (Some(7), vec![PastStep::Beginning, by(-11_000)])
        });
        let direction = PastDirection::Back;
        let event = PastStep::Event { group: EventGroup::All, direction };
        (0..99).for_each(|_| bar.add(event.clone()));
        bar.take(PastResult::default());
        assert_eq!(bar.request(Vec::new()).unwrap().steps.len(), WAITING_STEPS);
        let missed = PastResult { is_missed: true, ..PastResult::default() };
        assert_eq!(bar.take(missed), Arrival::Missed(event));
    }
}
