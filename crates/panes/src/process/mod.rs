//! The process table: entries with ids that are never reused, their tree and their status.

mod name;
mod record;
mod recorder;
mod run_number;
mod table;

pub use name::{has_hidden_character, is_readable};
pub use record::{
    AgentEntry, Attention, Cause, DeclaredEntry, Exit, Interruption, Kind, Process, ProcessId,
    Recipe, Status,
};
pub use run_number::RunNumber;
pub use table::Processes;
