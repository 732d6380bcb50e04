//! What is known about the log in addition to its files: what was dropped, what was lost, and the state that all events
//! up to a number describe. It is written before anything is dropped, so that the events after it are always there.

use std::collections::BTreeMap;
use std::path::Path;

use patterm_store::state::{self, StateError};
use patterm_wire::events::EventClass;
use serde::{Deserialize, Serialize};

use crate::known_state::KnownState;

pub(crate) const FILE: &str = "checkpoint.json";
const VERSION: u32 = 1;

/// Power losses that are remembered: more than a log of this size has seen.
const MOST_LOST: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The last event that is part of `known_state`.
    pub(crate) through: u64,
    /// The state that those events describe.
    #[serde(alias = "told")]
    pub(crate) known_state: KnownState,
    /// By class: the last event that was dropped.
    #[serde(default)]
    dropped_through: BTreeMap<String, u64>,
    /// The first and last numbers that were lost or skipped when the machine stopped.
    #[serde(default)]
    pub(crate) lost: Vec<(u64, u64)>,
    /// The boot in which the log was opened.
    #[serde(default)]
    pub(crate) boot: String,
    /// It was closed, so that nothing of it can be lost.
    #[serde(default)]
    pub(crate) closed: bool,
}

impl Checkpoint {
    pub(crate) fn read(folder: &Path) -> Result<Self, StateError> {
        Ok(state::read(&folder.join(FILE), VERSION)?.unwrap_or_default())
    }

    /// Writes it, with the reserve of the project's disk if necessary: it is needed to free space.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), StateError> {
        state::write_reserved(&folder.join(FILE), VERSION, self)
    }

    pub(crate) fn dropped_through(&self, class: EventClass) -> u64 {
        self.dropped_through.get(class.name()).copied().unwrap_or(0)
    }

    pub(crate) fn note_dropped(&mut self, class: EventClass, through: u64) {
        self.dropped_through.insert(class.name().to_owned(), through);
        // What no class has any more needs no explanation.
        let oldest = EventClass::ALL.map(|class| self.dropped_through(class)).into_iter().min();
        self.lost.retain(|(_, last)| Some(*last) > oldest);
    }

    pub(crate) fn note_lost(&mut self, range: (u64, u64)) {
        self.lost.push(range);
        let excess = self.lost.len().saturating_sub(MOST_LOST);
        self.lost.drain(..excess);
    }

    pub(crate) fn is_lost(&self, seq: u64) -> bool {
        self.lost.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }
}
