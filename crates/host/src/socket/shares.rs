//! Who holds the connections of a server: each agent has a share of them, and some are reserved for callers
//! outside of agents' panes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_panes::process::ProcessId;

use crate::caller_origin::{CallerOrigin, OriginLookup};

/// One agent's share of all connections: a quarter, far more than its helpers need.
const PARTS_PER_HOLDER: usize = 4;

/// The part that only callers outside of agents' panes get, so that a person can always look and act: a tenth.
const RESERVED_PARTS: usize = 10;

/// How many holders an error names.
const NAMED_HOLDERS: usize = 5;

/// Whose connection it is, as far as that is known when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// An agent, with everything in its panes.
    Agent(ProcessId),
    /// Callers that cannot be located, such as those in containers.
    Elsewhere,
    /// All others, including a person's.
    Others,
}

impl Holder {
    pub(super) fn of(lookup: &OriginLookup) -> Self {
        match lookup {
            OriginLookup::Done(CallerOrigin::Agents(id)) => Self::Agent(id.clone()),
            OriginLookup::Done(CallerOrigin::Elsewhere | CallerOrigin::Nowhere) => Self::Elsewhere,
            OriginLookup::Done(_) | OriginLookup::UnderWay(_) => Self::Others,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Elsewhere => f.write_str("callers in containers"),
            Self::Others => f.write_str("callers outside of agents' panes"),
        }
    }
}

type Held = Arc<Mutex<HashMap<Holder, usize>>>;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Shares {
    most: usize,
    held: Held,
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    holder: Holder,
    held: Held,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut held = lock(&self.held);
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

impl Shares {
    pub(super) fn new(most: usize) -> Self {
        Self { most, held: Held::default() }
    }

    /// Admits one more connection; the error says which limit is reached, and who holds the connections.
    pub(super) fn admit(&self, holder: Holder) -> Result<Seat, String> {
        let mut held = lock(&self.held);
        let (all, most) = (held.values().sum::<usize>(), self.most);
        let own = held.get(&holder).copied().unwrap_or(0);
        if holder != Holder::Others {
            let share = (most / PARTS_PER_HOLDER).max(1);
            if own >= share {
                return Err(format!(
                    "{holder} already has {own} connections, its share of the limit of {most}; close one first"
                ));
            }
            let others = held.get(&Holder::Others).copied().unwrap_or(0);
            let shared = most - most / RESERVED_PARTS;
            if all - others >= shared {
                return Err(format!(
                    "agents already have {shared} connections, and the rest of the limit of {most} is reserved \
                     for people (held by {}); close one first",
                    named(&held)
                ));
            }
        }
        if all >= most {
            return Err(format!(
                "there are already {most} connections, which is the limit (held by {}); close one first",
                named(&held)
            ));
        }
        *held.entry(holder.clone()).or_default() += 1;
        Ok(Seat { holder, held: self.held.clone() })
    }
}

/// Those who hold the most connections.
fn named(held: &HashMap<Holder, usize>) -> String {
    let mut all: Vec<_> = held.iter().collect();
    all.sort_by_key(|(holder, count)| (Reverse(**count), holder.to_string()));
    let text = |(holder, count): &(&Holder, &usize)| format!("{holder}: {count}");
    all.iter().take(NAMED_HOLDERS).map(text).collect::<Vec<_>>().join(", ")
}

fn lock(held: &Held) -> MutexGuard<'_, HashMap<Holder, usize>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str) -> Holder {
        Holder::Agent(ProcessId::of(id))
    }

    fn fill(shares: &Shares, holder: &Holder) -> (Vec<Seat>, String) {
        let mut seats = Vec::new();
        loop {
            match shares.admit(holder.clone()) {
                Ok(seat) => seats.push(seat),
                Err(refusal) => return (seats, refusal),
            }
        }
    }

    #[test]
    fn an_agent_gets_its_share_and_a_closed_connection_is_free_again() {
        let shares = Shares::new(1_000);
        let (mut seats, refusal) = fill(&shares, &agent("p1"));
        assert_eq!(seats.len(), 250);
        assert!(refusal.starts_with("p1 already has 250 connections"), "{refusal}");
        assert!(refusal.contains("limit of 1000"), "{refusal}");
        assert!(shares.admit(agent("p2")).is_ok(), "another agent has its own share");
        seats.pop();
        assert!(shares.admit(agent("p1")).is_ok());
        drop(seats);
        assert!(lock(&shares.held).is_empty());
    }

    #[test]
    fn many_agents_together_leave_the_reserve_to_people() {
        let shares = Shares::new(1_000);
        let agents = ["p1", "p2", "p3", "p4", "p5"].map(|id| fill(&shares, &agent(id)));
        assert_eq!(agents.iter().map(|(seats, _)| seats.len()).sum::<usize>(), 900);
        let refusal = &agents[4].1;
        assert!(refusal.contains("reserved for people (held by p1: 250, p2: 250"), "{refusal}");
        let (people, refusal) = fill(&shares, &Holder::Others);
        assert_eq!(people.len(), 100);
        assert!(refusal.starts_with("there are already 1000 connections"), "{refusal}");
    }
}
