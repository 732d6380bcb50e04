//! Processes in panes: the process table, how processes are started, stopped and recovered by the next server, and
//! their output and screens. This crate knows nothing about agents' CLIs, the project file, tools or MCP.

mod adoption;
pub mod data_plane;
pub mod env_file;
pub mod environment;
mod environments;
mod error;
mod git_traces;
mod git_tracing;
pub mod keeper_client;
mod left_behind;
pub mod lifecycle;
mod offset;
mod panes;
pub mod ports;
pub mod process;
mod recovery;
mod side_command;
mod side_panes;
mod size;
pub mod tree;
pub mod variables;

pub use environments::{EnvironmentPolicy, Environments};
pub use error::PaneError;
pub use git_traces::{GitTraces, TracedRun};
pub use left_behind::is_of_agents;
pub use lifecycle::{NewProcess, StartExtra};
pub use offset::Offset;
pub use panes::Panes;
pub use recovery::Recovered;
pub use side_command::{HookCommand, SideCommandError};
