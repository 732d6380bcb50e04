//! Starts programs and keeps them running. The *keeper* is a separate process, one per project: it
//! opens a PTY for each program, holds a duplicate of every descriptor for the next server, and
//! restarts the server when it dies. Each program has an *init* above it, a fork of the keeper,
//! that adopts and ends everything the program ever starts. No output passes through either.
//!
//! It is the only crate with `unsafe`. It does not know MCP, screens, the project file or what the
//! programs are.

mod adopted;
mod client;
mod control;
mod crash;
pub mod descriptors;
mod detach;
mod ending;
mod environment;
mod helper;
mod init;
mod keeper_loop;
mod limits;
pub mod log;
pub mod memory;
mod message;
mod pane;
mod peer;
mod size;
mod spawn;
mod status;

pub use client::{
    END_TIMEOUT, KeeperConnection, KeeperProcess, REPLY_TIMEOUT, connect, has_listener, launch,
    timespec,
};
pub use crash::{CrashGuard, TerminalRestore, restore_terminal};
pub use detach::start_server;
pub use environment::Environment;
pub use helper::{HelperLimits, HelperOutput, run_helper};
pub use keeper_loop::{KeeperOptions, START_REQUEST, run};
pub use message::Survivor;
pub use pane::{Pane, PaneEvent};
pub use peer::{PeerProcess, peer_process};
pub use size::Size;
pub use spawn::{Program, SpawnError, SpawnFault};
pub use status::{Exit, ProgramStatus};
