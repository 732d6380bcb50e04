//! Where a project's state is kept: its key and folders, files that no other user can have written,
//! state files that are replaced whole, and room on the disk for them. It knows the limits that all
//! parts of a server share, and nothing of processes, agents, tools or the network.

pub mod clock;
pub mod hex;
pub mod limits;
pub mod private;
pub mod project;
pub mod reserve;
pub mod state;
pub mod sync;

pub use project::Project;
