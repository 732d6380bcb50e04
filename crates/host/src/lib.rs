//! The patterm server: one per project. It knows who calls, offers the tools, speaks MCP over
//! its socket, and owns the project's state. It knows nothing of terminals drawn on a screen.

pub mod caller;
mod caller_origin;
mod elsewhere;
pub mod enclosing_keeper;
mod greeting;
pub mod host;
mod lifecycle;
pub mod log;
mod mcp;
mod native_tools;
mod process_activity;
pub mod registry;
mod restore;
pub mod runtime;
mod selections;
pub mod server;
mod shared;
mod shared_tools;
pub mod shutdown;
mod socket;
mod timer_texts;
#[cfg(test)]
mod timers_tests;
pub mod tools;
mod typing;
pub mod web;

pub use greeting::{GREETING_REFUSED, Greeting, PERSON};
pub use host::Host;
pub use patterm_panes::environment::{PANE_VARIABLE, minimal_environment};
pub use patterm_store::project::Project;
pub use server::{Server, Settings, StartError};

/// The version this server and the binary around it report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
