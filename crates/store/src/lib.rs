//! A project's state on disk: its key and folders, private files that no other user can have
//! written, state files that are replaced atomically, and a reserve of disk space for them. It
//! also holds the limits that all parts of a server share, and watches folders for changes. It knows nothing about processes,
//! agents, tools or the network.

pub mod clock;
pub mod folders;
pub mod hex;
pub mod limits;
pub mod private;
pub mod project;
pub mod reserve;
pub mod state;
pub mod sync;

pub use project::Project;
