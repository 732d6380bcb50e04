//! Shared MCP servers: each server runs once, on any backend, and serves all clients at the same
//! time, over the agents' own connections and over HTTP.
//!
//! The crate knows the MCP messages it relays, container engines and HTTP. It does not know panes,
//! the project file, presets or patterm's own tools: the host passes those in through traits.

mod ambiguous;
pub mod backend;
mod cache;
mod call_slot;
mod catalogue;
#[cfg(test)]
#[path = "../../../fuzz/checks/gateway.rs"]
mod checks;
mod error;
mod events;
mod filter;
mod gateway;
pub mod http;
mod http_client;
mod instance;
mod json_scan;
mod lines;
mod names;
mod observer;
mod queue;
pub mod raw;
mod relay;
#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod timeout_pool;

pub use ambiguous::ambiguity;
pub use cache::{CachedServer, ServerCache};
pub use catalogue::{Catalogue, SharedTool};
pub use error::{GatewayError, GatewayErrorKind};
pub use filter::{ToolPatterns, matches_pattern};
pub use gateway::{Caller, ClientHandle, Gateway, ServerSpec};
pub use http_client::{HttpClient, error_with_causes};
pub use instance::{ServerState, ServerStatus};
pub use observer::{ServerChange, ServerObserver};
pub use session::{Notification, PROBE_TIMEOUT};
pub use settings::{ServerLimits, Share};
