//! Shared MCP servers: each runs once, wherever it runs, and serves all callers at the same time.

mod raw;
pub mod refusal;
mod relay;

pub use refusal::{Refusal, RefusalKind};
