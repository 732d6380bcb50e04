//! The newest events, in memory: what followers usually read.

use std::collections::VecDeque;

use crate::line::StoredEvent;

/// Bytes of events that are kept in memory: minutes of a busy project.
const TAIL_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    events: VecDeque<StoredEvent>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn push(&mut self, event: StoredEvent) {
        self.bytes += event.json.len();
        self.events.push_back(event);
        while self.bytes > TAIL_BYTES {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.json.len();
        }
    }

    /// All events from this number on; `None` if the files have to be read.
    pub(crate) fn from(&self, since: u64) -> Option<Vec<StoredEvent>> {
        self.events.front().filter(|oldest| oldest.seq <= since)?;
        let first = self.events.partition_point(|event| event.seq < since);
        Some(self.events.range(first..).cloned().collect())
    }
}
