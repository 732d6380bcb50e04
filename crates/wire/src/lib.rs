//! JSON-RPC 2.0 messages and the two ways they are framed on a stream, as values: bytes in, messages out.
//! And what patterm's own clients ask of the server, as types. Nothing here does I/O, reads a clock, or
//! knows what MCP is.

pub mod base64;
pub mod declared;
pub mod digest;
pub mod environment;
pub mod error;
pub mod events;
pub mod follow;
pub mod frame;
pub mod hooks;
pub mod id;
pub mod line;
pub mod logs;
pub mod message;
pub mod method;
mod nesting;
pub mod overview;
pub mod past;
pub mod printable;
pub mod reason;
pub mod recording;
pub mod reply;
pub mod requests;
pub mod restore;
pub mod servers;
pub mod tools;
pub mod usage;
pub mod view;

pub use error::ErrorObject;
pub use frame::{BadFrame, Decoder, Frame, Framing};
pub use id::Id;
pub use message::{Incoming, Malformed, Message};
pub use method::Method;
pub use nesting::id_in_prefix;

/// The largest message accepted unless the caller sets another limit: large enough for a pasted log or a
/// screenshot, small enough that a hostile sender cannot fill the memory.
pub const DEFAULT_MESSAGE_LIMIT: usize = 64 << 20;
