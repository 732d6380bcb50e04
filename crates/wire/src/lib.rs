//! JSON-RPC 2.0 messages and the two ways they are framed on a stream, as values: bytes in,
//! messages out. Nothing here does I/O, reads a clock, or knows what MCP is.

pub mod base64;
pub mod error;
pub mod follow;
pub mod frame;
pub mod id;
pub mod line;
pub mod message;
mod nesting;
pub mod printable;
pub mod reply;
pub mod restore;
pub mod servers;
pub mod view;

pub use error::ErrorObject;
pub use frame::{BadFrame, Decoder, Frame, Framing};
pub use id::Id;
pub use message::{Incoming, Malformed, Message};
pub use nesting::id_in_prefix;

/// The largest message taken unless the caller sets another limit. It leaves room for a
/// pasted log or a screenshot and keeps a hostile sender from filling the memory.
pub const DEFAULT_MESSAGE_LIMIT: usize = 64 << 20;
