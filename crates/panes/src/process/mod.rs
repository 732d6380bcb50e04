//! Processes: entries with ids that are never reused, who stands below whom, and how each stands.

mod record;
mod table;

pub use record::{
    AgentEntry, Attention, Cause, DeclaredEntry, Exit, Interruption, Kind, Process, ProcessId,
    Recipe, Status,
};
pub use table::Processes;
