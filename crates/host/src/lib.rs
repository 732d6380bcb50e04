//! The patterm server: one per project. It identifies its callers, provides the tools, speaks
//! MCP over its socket, and owns the project's state. It knows nothing about what is drawn.

pub mod caller;
mod caller_origin;
mod digest;
pub mod enclosing_keeper;
mod git_recorder;
mod greeting;
pub mod host;
mod lifecycle;
pub mod log;
mod log_lines;
mod mcp;
mod native_tools;
pub mod on_disk;
mod other_project;
mod passed_environment;
mod past;
#[cfg(test)]
mod paused_time_tests;
mod port_recorder;
mod process_activity;
mod recorded;
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
mod unused;
mod up;
mod usage;
mod viewers;
pub mod web;

pub use greeting::{GREETING_REFUSED, Greeting, PERSON};
pub use host::Host;
pub use patterm_panes::environment::{PANE_VARIABLE, minimal_environment};
pub use patterm_store::project::Project;
pub use server::{Server, Settings, StartError};

/// The version that this server and its binary report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
