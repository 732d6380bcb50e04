//! The patterm server: one per project. It knows who calls, offers the tools, speaks MCP over
//! its socket, and owns the project's state. It knows nothing of terminals drawn on a screen.

mod activity;
mod adoption;
mod agents;
pub mod caller;
mod declared;
mod delivery;
mod elsewhere;
mod environment;
mod greeting;
pub mod host;
pub mod identity;
mod keeping;
mod life;
pub mod log;
mod mcp;
mod open_files;
pub mod pads;
mod plane;
mod ports;
mod presets;
pub mod process;
pub mod project_file;
pub mod registry;
mod restore;
pub mod runtime;
mod selections;
pub mod server;
mod shared;
pub mod shutdown;
mod socket;
mod standpoint;
pub mod surroundings;
mod timers;
pub mod tools;
mod tree;
pub mod web;

pub use environment::{PANE_VARIABLE, minimal_environment};
pub use greeting::{GREETING_REFUSED, Greeting, PERSON};
pub use host::Host;
pub use patterm_store::project::Project;
pub use server::{Server, Settings, StartError};

/// The version this server and the binary around it report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
