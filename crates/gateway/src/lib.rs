//! Shared MCP servers: each server runs once, on any backend, and serves all clients at the same
//! time, over the agents' own connections and over HTTP.
//!
//! The crate knows the MCP messages it relays, container engines and HTTP. It does not know panes,
//! the project file, presets or patterm's own tools: the host passes those in through traits.

mod ambiguous;
pub mod backend;
mod catalogue;
#[cfg(test)]
#[path = "../../../fuzz/checks/gateway.rs"]
mod checks;
mod events;
mod filter;
mod gateway;
pub mod http;
mod lines;
mod memory;
mod names;
mod queue;
pub mod raw;
mod refusal;
mod relay;
#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod server;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod timers;

pub use ambiguous::ambiguity;
pub use catalogue::{Catalogue, SharedTool};
pub use filter::{Tools, fits};
pub use gateway::{Caller, Gateway, Line, Wanted};
pub use memory::{Memory, Remembered};
pub use refusal::{Refusal, RefusalKind};
pub use server::ServerStatus;
pub use session::{PROBE_PATIENCE, Told};
pub use settings::{Bounds, Share};
