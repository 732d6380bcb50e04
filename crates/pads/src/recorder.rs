//! Events about scratchpads: the revision of the file is compared with the one that was recorded.

use std::collections::BTreeMap;

use patterm_events::{About, EventLog};
use patterm_wire::events::{Actor, Fact};

use crate::index::{Change, EDITOR};
use crate::name::PadName;

/// How patterm changed a pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Written,
    Appended,
}

/// What has been recorded about pads.
#[derive(Debug, Default)]
pub(crate) struct PadRecorder {
    events: EventLog,
    revisions: BTreeMap<String, u64>,
}

impl PadRecorder {
    /// Continues after the events of earlier servers.
    pub(crate) fn new(events: EventLog) -> Self {
        Self { revisions: events.known_state().pads, events }
    }

    /// Whether this is what was recorded last about a pad.
    pub(crate) fn is_recorded(&self, name: &str, revision: u64) -> bool {
        self.revisions.get(name) == Some(&revision)
    }

    /// A change by a caller.
    pub(crate) fn changed(&mut self, name: &PadName, change: &Change, way: Way) {
        let is_new = self.revisions.insert(name.to_string(), change.number()).is_none();
        self.events.record(About::project(), fact(name, change, is_new, way));
    }

    /// The content that a file has. A change that nobody recorded was made by an editor, or by a server that died.
    pub(crate) fn found(&mut self, name: &PadName, change: &Change) {
        if self.is_recorded(name.as_str(), change.number()) {
            return;
        }
        let is_new = self.revisions.insert(name.to_string(), change.number()).is_none();
        if change.changed_by == EDITOR {
            let (name, revision, bytes) = (name.to_string(), change.number(), change.bytes);
            let fact = Fact::PadEditedOutside { name, revision, bytes };
            self.events.record_by(Actor::System, About::project(), fact);
        } else {
            let fact = fact(name, change, is_new, Way::Written);
            self.events.record_recovered(About::project(), fact);
        }
    }

    /// A pad no longer exists.
    pub(crate) fn removed(&mut self, name: &str) {
        if self.revisions.remove(name).is_some() {
            self.events.record(About::project(), Fact::PadDeleted { name: name.to_owned() });
        }
    }

    /// These are all pads that exist.
    pub(crate) fn keep_only(&mut self, names: &[PadName]) {
        let is_gone = |known: &&String| !names.iter().any(|name| name.as_str() == **known);
        let gone: Vec<_> = self.revisions.keys().filter(is_gone).cloned().collect();
        gone.iter().for_each(|name| self.removed(name));
    }
}

fn fact(name: &PadName, change: &Change, is_new: bool, way: Way) -> Fact {
    let (name, revision, bytes) = (name.to_string(), change.number(), change.bytes);
    match way {
        _ if is_new => Fact::PadCreated { name, revision, bytes },
        Way::Written => Fact::PadWritten { name, revision, bytes },
        Way::Appended => Fact::PadAppended { name, revision, bytes },
    }
}
