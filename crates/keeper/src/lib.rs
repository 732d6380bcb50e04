//! Where programs are started and kept. The *keeper* is a process of its own, one per project: it
//! opens a PTY for each program, keeps a duplicate of every descriptor for the next server, and
//! starts the server again when that dies. Each program has an *init* above it, a fork of the
//! keeper, that gathers and ends everything the program ever starts. No output passes through
//! either.
//!
//! It is the only crate with `unsafe`. It knows nothing of MCP or screens.

mod adopted;
mod bounds;
mod client;
mod control;
pub mod descriptors;
mod detach;
mod ending;
mod init;
mod keep;
pub mod log;
pub mod memory;
mod message;
mod pane;
mod peer;
mod size;
mod spawn;
mod status;

pub use client::{END_PATIENCE, Keeper, Life, PATIENCE, connect, is_listened_at, launch};
pub use detach::{Said, start_server};
pub use keep::{Options, WANTED, run};
pub use message::Survivor;
pub use pane::{Pane, PaneEvent};
pub use peer::{PeerLife, peer_life};
pub use size::Size;
pub use spawn::{Program, SpawnError, SpawnFault};
pub use status::{Exit, Status};
