//! Waiters in groups, each with one set of all its patterns. Compiling a set takes time for each pattern in it, so a
//! new waiter must not make the set of all others be compiled again: it begins as a group of its own, and groups are
//! merged when there are many of a similar size, or when searching them one by one has cost more than compiling one
//! set.

use regex::{Regex, RegexSet, RegexSetBuilder};
use tokio::sync::oneshot;

use super::waiters::MatchOutcome;
use crate::offset::Offset;

/// The memory limit of a set of patterns, and again of its automaton. Beyond it the patterns are tried one by one.
const SET_BYTES: usize = 32 << 20;

/// This many groups of a similar size become one. A waiter is compiled again once for each power of it.
const FAN_OUT: usize = 8;

/// Compiling a pattern into a set takes about as long as searching this many bytes.
const COMPILE_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) pattern: Regex,
    /// The pattern may depend on where a line begins or ends.
    pub(super) anchored: bool,
    /// Output before this offset does not count.
    pub(super) from: Offset,
    /// `None` once it has its answer or no longer waits.
    pub(super) answer: Option<oneshot::Sender<MatchOutcome>>,
}

/// Waiters whose patterns are searched at once.
#[derive(Debug, Default)]
struct Group {
    /// In the order of the set. Those without `answer` no longer wait; they leave when the set is compiled again.
    waiters: Vec<Waiter>,
    /// How many still wait.
    waiting: usize,
    /// How many lines matched only patterns that nobody waits for any more.
    wasted: usize,
    /// All patterns; compiled when they are first searched.
    set: Option<Result<RegexSet, regex::Error>>,
}

impl Group {
    fn of(waiters: Vec<Waiter>) -> Self {
        Self { waiting: waiters.len(), waiters, ..Self::default() }
    }

    fn compile(&mut self) {
        if self.set.is_none() && self.waiters.len() > 1 {
            let patterns = self.waiters.iter().map(|waiter| waiter.pattern.as_str());
            let mut set = RegexSetBuilder::new(patterns);
            self.set = Some(set.size_limit(SET_BYTES).dfa_size_limit(SET_BYTES).build());
        }
    }

    /// Whether any pattern matches; this is found much faster than which ones do. `true` if only trying them one by
    /// one can tell.
    fn may_match(&mut self, text: &str) -> bool {
        self.compile();
        match (&self.set, &*self.waiters) {
            (Some(Ok(set)), _) => set.is_match(text),
            (None, [only]) => only.pattern.is_match(text),
            _ => true,
        }
    }

    /// Passes every waiter whose pattern matches a line to `answer`, which returns whether that waiter got an
    /// answer.
    fn search(&mut self, line: &str, answer: &mut impl FnMut(&mut Waiter) -> bool) {
        if !self.may_match(line) {
            return;
        }
        let mut answered = 0;
        let mut found = |waiter: &mut Waiter| answered += usize::from(answer(waiter));
        match &self.set {
            Some(Ok(set)) => set.matches(line).iter().for_each(|n| found(&mut self.waiters[n])),
            _ => {
                let matching = |waiter: &&mut Waiter| waiter.pattern.is_match(line);
                self.waiters.iter_mut().filter(matching).for_each(found);
            }
        }
        self.waiting -= answered;
        self.wasted += usize::from(answered == 0);
        self.tidy();
    }

    /// Drops the waiters that are done, once they make up half of the group or have wasted as much time as compiling
    /// the set without them takes.
    fn tidy(&mut self) {
        let done = self.waiters.len() - self.waiting;
        if done > 0 && (done * 2 >= self.waiters.len() || self.wasted > self.waiters.len()) {
            self.waiters.retain(|waiter| waiter.answer.is_some());
            (self.set, self.wasted) = (None, 0);
        }
    }
}

/// All waiters of one run.
#[derive(Debug, Default)]
pub(super) struct WaiterGroups {
    /// The sizes fall from the first to the last.
    groups: Vec<Group>,
    /// How many bytes were searched in more than one group since a waiter came or went, times the groups beyond the
    /// first.
    searched: usize,
}

impl WaiterGroups {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|group| group.waiting).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        let all = self.groups.iter().flat_map(|group| &group.waiters);
        all.filter(|waiter| waiter.answer.is_some())
    }

    pub(super) fn add(&mut self, waiter: Waiter) {
        self.groups.push(Group::of(vec![waiter]));
        self.searched = 0;
        loop {
            let class = |group: &Group| group.waiters.len().max(1).ilog(FAN_OUT);
            let Some(last) = self.groups.last().map(class) else { return };
            let similar = self.groups.iter().rev().take_while(|group| class(group) == last).count();
            if similar < FAN_OUT {
                return;
            }
            self.merge(self.groups.len() - similar);
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        for group in &mut self.groups {
            let found = group.waiters.iter_mut().find(|waiter| waiter.number == number);
            if let Some(waiter) = found {
                group.waiting -= usize::from(waiter.answer.take().is_some());
                group.tidy();
            }
        }
        self.drop_empty();
    }

    /// Passes every waiter whose pattern matches a line to `answer`, which returns whether that waiter got an answer.
    pub(super) fn search(&mut self, line: &str, mut answer: impl FnMut(&mut Waiter) -> bool) {
        for group in &mut self.groups {
            group.search(line, &mut answer);
        }
        self.drop_empty();
        self.note_searched(line.len());
    }

    /// Whether any pattern may match in a text.
    pub(super) fn may_match(&mut self, text: &str) -> bool {
        let found = self.groups.iter_mut().any(|group| group.may_match(text));
        self.note_searched(text.len());
        found
    }

    /// Removes all waiters.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.groups).into_iter().flat_map(|group| group.waiters)
    }

    /// Merges all groups once that is cheaper than searching them one by one.
    fn note_searched(&mut self, bytes: usize) {
        let extra = self.groups.len().saturating_sub(1);
        self.searched = self.searched.saturating_add(bytes.saturating_mul(extra));
        if extra > 0 && self.searched / COMPILE_BYTES > self.len() {
            self.merge(0);
            self.searched = 0;
        }
    }

    /// Merges the groups from this one on.
    fn merge(&mut self, first: usize) {
        let all = self.groups.split_off(first).into_iter().flat_map(|group| group.waiters);
        let waiting: Vec<_> = all.filter(|waiter| waiter.answer.is_some()).collect();
        self.groups.push(Group::of(waiting));
    }

    fn drop_empty(&mut self) {
        self.groups.retain(|group| group.waiting > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(number: u64) -> (Waiter, oneshot::Receiver<MatchOutcome>) {
        let (answer, found) = oneshot::channel();
        let pattern = Regex::new(&format!("^line {number}$")).unwrap();
        (
            Waiter { number, pattern, anchored: true, from: Offset::START, answer: Some(answer) },
            found,
        )
    }

    /// Answers the waiters that a line matches; returns their numbers.
    fn answered(groups: &mut WaiterGroups, line: &str) -> Vec<u64> {
        let mut numbers = Vec::new();
        groups.search(line, |waiter| {
            let Some(answer) = waiter.answer.take() else { return false };
            numbers.push(waiter.number);
            answer.send(MatchOutcome::Line(line.to_owned())).is_ok()
        });
        numbers
    }

    #[test]
    fn each_waiter_is_answered_once_whatever_groups_there_are() {
        let (mut groups, mut found) = (WaiterGroups::default(), Vec::new());
        for number in 0..1_000 {
            let (waiter, receiver) = waiter(number);
            groups.add(waiter);
            found.push(receiver);
            if number.is_multiple_of(3) {
                assert_eq!(answered(&mut groups, &format!("line {number}")), [number]);
            }
            if number % 7 == 1 {
                groups.remove(number);
            }
        }
        let is_left = |number: &u64| !number.is_multiple_of(3) && number % 7 != 1;
        assert_eq!(groups.len(), (0..1_000).filter(is_left).count());
        assert_eq!(groups.iter().count(), groups.len());
        for number in 0..1_000 {
            let line = format!("line {number}");
            let expected = if is_left(&number) { vec![number] } else { vec![] };
            assert_eq!(answered(&mut groups, &line), expected, "{line}");
            assert!(answered(&mut groups, &line).is_empty(), "{line} for the second time");
        }
        assert!(groups.is_empty());
    }

    #[test]
    fn a_new_waiter_compiles_few_others_again_and_a_flood_ends_in_one_group() {
        let (mut groups, mut found) = (WaiterGroups::default(), Vec::new());
        let mut compiled = 0;
        for number in 0..4_096 {
            let (waiter, receiver) = waiter(number);
            groups.add(waiter);
            found.push(receiver);
            let fresh = groups.groups.iter().filter(|group| group.set.is_none());
            compiled +=
                fresh.map(|group| group.waiters.len()).filter(|count| *count > 1).sum::<usize>();
            assert!(!groups.may_match("no such line"));
        }
        assert!(compiled <= 5 * 4_096, "{compiled} patterns were compiled for 4,096 waiters");
        assert!(groups.groups.len() <= 5 * FAN_OUT, "{} groups", groups.groups.len());
        let (waiter, receiver) = waiter(4_096);
        groups.add(waiter);
        found.push(receiver);
        while groups.groups.len() > 1 {
            assert!(!groups.may_match(&"x".repeat(64 << 10)));
        }
        assert_eq!(groups.len(), 4_097);
    }
}
