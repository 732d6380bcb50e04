//! Events before they are stored.

use patterm_wire::events::{Actor, Fact};

/// What an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The process.
    pub process_id: Option<String>,
    /// Its run.
    pub run: Option<u64>,
    /// The place in its output.
    pub offset: Option<u64>,
}

impl About {
    /// The project as a whole.
    #[must_use]
    pub fn project() -> Self {
        Self::default()
    }

    /// A process.
    #[must_use]
    pub fn process(id: impl ToString) -> Self {
        Self { process_id: Some(id.to_string()), ..Self::default() }
    }

    /// A run of it.
    #[must_use]
    pub fn run(self, run: u64) -> Self {
        Self { run: Some(run), ..self }
    }

    /// A place in its output.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }
}

/// An event to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// What happened.
    pub fact: Fact,
    /// What it is about.
    pub about: About,
    /// Who caused it.
    pub actor: Actor,
    /// An earlier server died before it stored the event.
    pub recovered: bool,
}

impl NewEvent {
    /// Whether it must be on the disk before anything continues: the approvals of a person.
    pub(crate) fn is_approval(&self) -> bool {
        matches!(self.fact, Fact::DialogAnswered { .. } | Fact::ProjectFileTrusted { .. })
    }
}
