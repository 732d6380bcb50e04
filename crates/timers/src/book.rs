//! All timers of a project as a value: which are set, what was observed, and which are ready to
//! fire at a moment. It uses no clock, file or process.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::countdown::Countdown;
use crate::error::TimerError;
use crate::limits::{ALL_BODY_BYTES, OF_ONE_OWNER, OF_THE_PROJECT, REMEMBERED};
use crate::observation::{Observation, WatchState};
use crate::record::{End, Ended, Mode, Timer, TimerId, Wake, Watched};
use patterm_panes::process::ProcessId;
use patterm_store::clock::Moment;

/// A timer to be set.
#[derive(Debug, Clone)]
pub struct NewTimer {
    /// The process that gets the text.
    pub owner: ProcessId,
    /// The process that sets it; `None` if that is outside the project.
    pub set_by: Option<ProcessId>,
    /// Its name, for its owner.
    pub label: Option<String>,
    /// The text; `None` for a fixed line.
    pub body: Option<String>,
    /// Its condition.
    pub condition: Condition,
}

/// The condition of a new timer.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A delay has passed.
    After {
        /// In milliseconds.
        ms: u64,
    },
    /// Processes are idle.
    Idle {
        /// How many of them must be idle.
        mode: Mode,
        /// They must have exited.
        exits: bool,
        /// Ids and names.
        watched: Vec<(ProcessId, String)>,
        /// The time after which it fires in any case.
        max_wait_ms: Option<u64>,
    },
}

/// Why a timer fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its time has passed.
    Time,
    /// The watched processes are idle or have exited.
    Idle,
}

/// The timers of a project.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Book {
    /// The highest number assigned so far.
    last: u64,
    timers: Vec<Timer>,
    /// The timers that ended last.
    ended: Vec<Ended>,
}

impl Book {
    /// Continues after an earlier server. The texts of `fired` are known to have been
    /// queued, even if that server did not record it here; timers of closed owners end.
    pub(crate) fn recover(
        &mut self,
        now: &Moment,
        fired: &[TimerId],
        has_owner: impl Fn(&ProcessId) -> bool,
    ) {
        // If a damaged book was set aside, higher ids than ours may have been used: a
        // text that is queued under such an id must not be mistaken for that of a new
        // timer.
        let highest = fired.iter().filter_map(TimerId::number).max().unwrap_or(0);
        self.last = self.last.max(highest);
        self.end_where(End::Fired, |timer| fired.contains(&timer.id));
        self.end_where(End::OwnerClosed, |timer| !has_owner(&timer.owner));
        for timer in &mut self.timers {
            timer.watched_mut().iter_mut().for_each(Watched::restart_counting);
            if let Some(time) = timer.countdown_mut() {
                time.carry_over(now);
            }
        }
    }

    /// Sets a timer; returns it, and whether it already existed.
    pub(crate) fn set(
        &mut self,
        new: NewTimer,
        now: &Moment,
        observe: impl Fn(&ProcessId) -> Observation,
    ) -> Result<(Timer, bool), TimerError> {
        if let Some(timer) = self.timers.iter_mut().find(|timer| is_same(timer, &new)) {
            renew(timer, new, now);
            return Ok((timer.clone(), true));
        }
        self.check_room(&new)?;
        let NewTimer { owner, set_by, label, body, condition } = new;
        let wake = match condition {
            Condition::After { ms } => Wake::Delay(Countdown::begin(now, ms)),
            Condition::Idle { mode, exits, watched, max_wait_ms } => {
                let arm = |(id, name)| {
                    let seen = observe(&id);
                    Watched::arm(id, name, seen)
                };
                let max_wait = max_wait_ms.map(|ms| Countdown::begin(now, ms));
                let watched = watched.into_iter().map(arm).collect();
                Wake::Idle { mode, exits, watched, max_wait }
            }
        };
        self.last += 1;
        let (id, set_at) = (TimerId::new(self.last), now.wall_ms);
        let timer = Timer { id, owner, set_by, label, body, set_at, paused: false, wake };
        self.timers.push(timer.clone());
        Ok((timer, false))
    }

    fn check_room(&self, new: &NewTimer) -> Result<(), TimerError> {
        if self.timers.len() >= OF_THE_PROJECT {
            return Err(TimerError::ProjectFull);
        }
        let owner = &new.owner;
        if self.timers.iter().filter(|timer| timer.owner == *owner).count() >= OF_ONE_OWNER {
            return Err(TimerError::OwnerFull(owner.clone()));
        }
        let length = |body: &Option<String>| body.as_ref().map_or(0, String::len);
        let held: usize = self.timers.iter().map(|timer| length(&timer.body)).sum();
        if held + length(&new.body) > ALL_BODY_BYTES {
            return Err(TimerError::BodiesFull);
        }
        Ok(())
    }

    /// Records the state of a process; returns whether that must be saved.
    pub(crate) fn observe(&mut self, id: &ProcessId, observation: Observation) -> bool {
        let listening = self.timers.iter_mut().filter(|timer| !timer.paused);
        let watched = listening.flat_map(|timer| timer.watched_mut());
        let of_it = watched.filter(|watched| watched.id == *id);
        of_it.map(|watched| watched.observe(observation)).fold(false, |any, worth| any | worth)
    }

    /// The processes that timers watch.
    pub(crate) fn watched_processes(&self) -> HashSet<ProcessId> {
        let listening = self.timers.iter().filter(|timer| !timer.paused);
        let watched = listening.flat_map(Timer::watched);
        watched.map(|watched| watched.id.clone()).collect()
    }

    /// The ready timer that was due first, among those that `among` selects.
    pub(crate) fn ready(
        &self,
        now: &Moment,
        among: impl Fn(&TimerId) -> bool,
    ) -> Option<(&Timer, Why)> {
        let ready = self.timers.iter().filter_map(|timer| Some((timer, why(timer, now)?)));
        // In the order in which they became due, even if that is noticed late.
        ready.filter(|(timer, _)| among(&timer.id)).min_by_key(|(timer, why)| match why {
            Why::Idle => 0,
            Why::Time => timer.countdown().and_then(Countdown::due).unwrap_or(0),
        })
    }

    /// When the next of the selected timers is due, as time since boot.
    pub(crate) fn next_due(&self, among: impl Fn(&TimerId) -> bool) -> Option<u64> {
        let timers = self.timers.iter().filter(|timer| !timer.paused && among(&timer.id));
        timers.filter_map(|timer| timer.countdown()?.due()).min()
    }

    pub(crate) fn end(&mut self, id: &TimerId, how: End) {
        self.end_where(how, |timer| timer.id == *id);
    }

    /// Ends the timers of a closed process; returns whether it had any.
    pub(crate) fn close_owner(&mut self, owner: &ProcessId) -> bool {
        self.end_where(End::OwnerClosed, |timer| timer.owner == *owner)
    }

    /// How a timer ended, if it is one of the last that did.
    pub(crate) fn how_ended(&self, id: &TimerId) -> Option<End> {
        self.ended.iter().find(|ended| ended.id == *id).map(|ended| ended.how)
    }

    pub(crate) fn pause(&mut self, id: &TimerId, now: &Moment) {
        if let Some(timer) = self.timers.iter_mut().find(|timer| timer.id == *id && !timer.paused) {
            timer.paused = true;
            if let Some(time) = timer.countdown_mut() {
                time.hold(now);
            }
        }
    }

    /// Continues a paused timer. Its watched processes are armed again, as if it were set now.
    pub(crate) fn resume(
        &mut self,
        id: &TimerId,
        now: &Moment,
        observe: impl Fn(&ProcessId) -> Observation,
    ) {
        if let Some(timer) = self.timers.iter_mut().find(|timer| timer.id == *id && timer.paused) {
            timer.paused = false;
            if let Some(time) = timer.countdown_mut() {
                time.release(now);
            }
            for watched in timer.watched_mut() {
                watched.rearm(observe(&watched.id));
            }
        }
    }

    pub(crate) fn all(&self) -> &[Timer] {
        &self.timers
    }

    /// Finds a timer; the error says what happened to it.
    pub(crate) fn find(&self, id: &TimerId) -> Result<&Timer, TimerError> {
        self.timers.iter().find(|timer| timer.id == *id).ok_or_else(|| self.gone(id))
    }

    /// Records the end of every countdown on the wall clock, before the book is saved.
    pub(crate) fn note_wall(&mut self, now: &Moment) {
        for time in self.timers.iter_mut().filter_map(Timer::countdown_mut) {
            time.note_wall(now);
        }
    }

    fn gone(&self, id: &TimerId) -> TimerError {
        let ended = self.how_ended(id);
        let was_there = id.number().is_some_and(|number| (1..=self.last).contains(&number));
        let id = id.clone();
        match ended {
            Some(End::Fired) => TimerError::Fired(id),
            Some(End::Cancelled) => TimerError::Cancelled(id),
            Some(End::OwnerClosed) => TimerError::OwnerClosed(id),
            None if was_there => TimerError::Over(id),
            None => TimerError::Unknown(id),
        }
    }

    fn end_where(&mut self, how: End, which: impl Fn(&Timer) -> bool) -> bool {
        let before = self.timers.len();
        let going = self.timers.extract_if(.., |timer| which(timer));
        self.ended.extend(going.map(|timer| Ended { id: timer.id, how }));
        let surplus = self.ended.len().saturating_sub(REMEMBERED);
        self.ended.drain(..surplus);
        self.timers.len() < before
    }
}

/// Whether a timer is ready to fire, and why.
fn why(timer: &Timer, now: &Moment) -> Option<Why> {
    if timer.paused {
        return None;
    }
    if let Wake::Idle { mode, exits, watched, .. } = &timer.wake {
        let is_met = match mode {
            _ if *exits => watched.iter().all(|watched| watched.state().has_ended()),
            Mode::All => watched.iter().all(|watched| watched.state().is_idle()),
            // If every watched process is closed, none can become idle: do not wait forever.
            Mode::Any => {
                watched.iter().any(Watched::became_idle)
                    || watched.iter().all(|watched| watched.state() == WatchState::Closed)
            }
        };
        if is_met {
            return Some(Why::Idle);
        }
    }
    timer.countdown().is_some_and(|time| time.is_over(now)).then_some(Why::Time)
}

/// Whether a waiting timer has the same owner, condition and text as a new one.
fn is_same(timer: &Timer, new: &NewTimer) -> bool {
    let Wake::Idle { mode, exits, watched, .. } = &timer.wake else { return false };
    let Condition::Idle { mode: wanted, exits: ended, watched: ids, .. } = &new.condition else {
        return false;
    };
    let has = |id: &ProcessId| watched.iter().any(|watched| watched.id == *id);
    !timer.paused
        && (mode, exits) == (wanted, ended)
        && timer.owner == new.owner
        && timer.body == new.body
        && watched.len() == ids.len()
        && ids.iter().all(|(id, _)| has(id))
}

/// Gives an existing timer the label and time of a new one.
fn renew(timer: &mut Timer, new: NewTimer, now: &Moment) {
    if new.label.is_some() {
        timer.label = new.label;
    }
    if let (Wake::Idle { max_wait, .. }, Condition::Idle { max_wait_ms, .. }) =
        (&mut timer.wake, new.condition)
    {
        *max_wait = max_wait_ms.map(|ms| Countdown::begin(now, ms));
    }
}
