//! Processes in panes: which there are, how they are started, stopped and found again by the next
//! server, what they print and show. It knows nothing of agents' CLIs, of the project file, of
//! tools or of MCP.

mod adoption;
pub mod data_plane;
pub mod environment;
mod error;
pub mod keeper_client;
mod left_behind;
pub mod lifecycle;
mod panes;
pub mod ports;
pub mod process;
mod recovery;
pub mod tree;

pub use error::PaneError;
pub use left_behind::is_of_agents;
pub use lifecycle::NewProcess;
pub use panes::Panes;
pub use recovery::Recovered;
