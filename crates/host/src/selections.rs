//! Calls of `select_process` on their way to people. Each attached view decides whether it can
//! show a process without moving the focus of a keyboard that is in use, and reports what it
//! did; the caller gets only the outcome.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::follow::Selection;
use tokio::sync::watch;
use tokio::time::Instant;

use patterm_panes::process::ProcessId;

/// How long a view may take to respond: a suspended or hanging one must not block the caller.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Calls that are kept for views that have not read them yet: more than anybody would look at
/// in a row.
const KEPT: usize = 16;

/// Adds unanswered calls of a follower. If it answers none of them, only the newest are kept.
pub(crate) fn add_open(open: &mut Vec<Selection>, new: Vec<Selection>) {
    open.extend(new);
    open.drain(..open.len().saturating_sub(KEPT));
}

/// The outcome of a call: how many views did what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SelectionOutcome {
    /// They show the process.
    pub(crate) shown: usize,
    /// They marked it, because a person is typing there or the caller does not own it.
    pub(crate) marked: usize,
    /// They have not responded.
    pub(crate) unconfirmed: usize,
}

/// All calls and their followers.
#[derive(Debug)]
pub(crate) struct Selections {
    inner: Mutex<Inner>,
    /// The number of the last call.
    asked: watch::Sender<u64>,
    /// Notified when a view has responded or disconnected.
    answered: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The followers, and whether they respond to calls.
    followers: BTreeMap<u64, bool>,
    last_follower: u64,
    last: u64,
    kept: VecDeque<Selection>,
    open: BTreeMap<u64, Open>,
}

/// A call that waits for responses.
#[derive(Debug)]
struct Open {
    left: BTreeSet<u64>,
    outcome: SelectionOutcome,
}

impl Default for Selections {
    fn default() -> Self {
        let (asked, answered) = (watch::Sender::new(0), watch::Sender::new(()));
        Self { inner: Mutex::default(), asked, answered }
    }
}

impl Selections {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last call, for watching.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// Whether there are any followers.
    pub(crate) fn has_followers(&self) -> bool {
        !self.lock().followers.is_empty()
    }

    /// Adds a follower; returns its number and that of the last call before it.
    pub(crate) fn enter(&self, answers: bool) -> (u64, u64) {
        let mut inner = self.lock();
        inner.last_follower += 1;
        let number = inner.last_follower;
        inner.followers.insert(number, answers);
        (number, inner.last)
    }

    /// Removes a follower, and stops waiting for its responses.
    pub(crate) fn leave(&self, follower: u64) {
        let mut inner = self.lock();
        inner.followers.remove(&follower);
        for open in inner.open.values_mut() {
            open.left.remove(&follower);
        }
        drop(inner);
        self.answered.send_replace(());
    }

    /// The calls after this one, oldest first.
    pub(crate) fn since(&self, last: u64) -> Vec<Selection> {
        let inner = self.lock();
        inner.kept.iter().filter(|selection| selection.number > last).cloned().collect()
    }

    /// Records the response of a follower to a call.
    pub(crate) fn answer(&self, follower: u64, number: u64, shown: bool) {
        let mut inner = self.lock();
        if let Some(open) = inner.open.get_mut(&number)
            && open.left.remove(&follower)
        {
            open.outcome.shown += usize::from(shown);
            open.outcome.marked += usize::from(!shown);
        }
        drop(inner);
        self.answered.send_replace(());
    }

    /// Asks every view to show or mark a process; returns what they did.
    pub(crate) async fn ask(
        &self,
        id: &ProcessId,
        mark_only: bool,
        drafts: Vec<String>,
    ) -> SelectionOutcome {
        let call = self.open(id, mark_only, drafts);
        self.outcome(call, ANSWER_PATIENCE).await
    }

    async fn outcome(&self, call: Call<'_>, patience: Duration) -> SelectionOutcome {
        let mut answered = self.answered.subscribe();
        let until = Instant::now() + patience;
        while call.is_waiting() {
            tokio::select! {
                _ = answered.changed() => {}
                () = tokio::time::sleep_until(until) => break,
            }
        }
        call.outcome()
    }

    fn open(&self, id: &ProcessId, mark_only: bool, drafts: Vec<String>) -> Call<'_> {
        let mut inner = self.lock();
        inner.last += 1;
        let number = inner.last;
        let answering = inner.followers.iter().filter(|(_, answers)| **answers);
        let left: BTreeSet<u64> = answering.map(|(follower, _)| *follower).collect();
        let unconfirmed = inner.followers.len() - left.len();
        let outcome = SelectionOutcome { unconfirmed, ..SelectionOutcome::default() };
        inner.open.insert(number, Open { left, outcome });
        inner.kept.push_back(Selection { number, process: id.to_string(), mark_only, drafts });
        if inner.kept.len() > KEPT {
            inner.kept.pop_front();
        }
        drop(inner);
        self.asked.send_replace(number);
        Call { selections: self, number }
    }
}

/// A call whose caller is waiting.
struct Call<'a> {
    selections: &'a Selections,
    number: u64,
}

impl Call<'_> {
    fn is_waiting(&self) -> bool {
        let inner = self.selections.lock();
        inner.open.get(&self.number).is_some_and(|open| !open.left.is_empty())
    }

    fn outcome(&self) -> SelectionOutcome {
        let inner = self.selections.lock();
        let outcome = inner.open.get(&self.number).map(|open| SelectionOutcome {
            unconfirmed: open.outcome.unconfirmed + open.left.len(),
            ..open.outcome
        });
        outcome.unwrap_or_default()
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.selections.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ProcessId {
        ProcessId::of("p1")
    }

    #[tokio::test]
    async fn a_caller_learns_what_each_view_did_and_which_did_not_respond() {
        let selections = Selections::default();
        assert_eq!(selections.ask(&id(), false, Vec::new()).await, SelectionOutcome::default());
        let [(one, _), (two, _), (gone, _)] = [(); 3].map(|()| selections.enter(true));
        let (_old, _) = selections.enter(false);
        let answers = async {
            let last = *selections.changes().wait_for(|last| *last == 2).await.unwrap();
            selections.answer(one, last, true);
            selections.answer(one, last, true);
            selections.answer(two, last, false);
            selections.answer(two, last + 1, false);
            selections.leave(gone);
        };
        let p1 = id();
        let (outcome, ()) = tokio::join!(selections.ask(&p1, false, Vec::new()), answers);
        assert_eq!(outcome, SelectionOutcome { shown: 1, marked: 1, unconfirmed: 1 });
        // Neither responds any more, and the caller does not wait forever.
        let call = selections.open(&id(), false, Vec::new());
        let outcome = selections.outcome(call, Duration::ZERO).await;
        assert_eq!(outcome, SelectionOutcome { unconfirmed: 3, ..SelectionOutcome::default() });
        assert!(selections.lock().open.is_empty());
    }

    #[test]
    fn a_follower_that_never_responds_gets_only_the_newest_calls() {
        let call = |number: u64| Selection {
            number,
            process: "p1".into(),
            mark_only: false,
            drafts: Vec::new(),
        };
        let mut open = Vec::new();
        for number in 1..=3 * KEPT as u64 {
            add_open(&mut open, vec![call(number)]);
        }
        let numbers: Vec<_> = open.iter().map(|call| call.number).collect();
        let newest: Vec<_> = (2 * KEPT as u64 + 1..=3 * KEPT as u64).collect();
        assert_eq!(numbers, newest);
    }

    #[tokio::test]
    async fn a_view_gets_all_calls_since_it_connected() {
        let selections = Selections::default();
        selections.ask(&id(), false, Vec::new()).await;
        let (_, last) = selections.enter(false);
        for mark_only in [true, false] {
            selections.ask(&id(), mark_only, Vec::new()).await;
        }
        let seen: Vec<_> = selections.since(last).iter().map(|call| call.mark_only).collect();
        assert_eq!(seen, [true, false]);
    }
}
