//! Agents: the presets of their CLIs as data, how they are started and go on with their
//! conversations, what they do at the moment, and the texts that are typed into them. It knows the
//! panes they run in and the project file, and nothing of tools, MCP, timers or the socket.

pub mod activity;
mod activity_state;
mod agents;
mod conversations;
pub mod delivery;
mod error;
pub mod identity;
mod observer;
pub mod presets;

pub use agents::{AgentParts, Agents, NewAgent, Relaunch};
pub use conversations::Conversations;
pub use error::AgentError;
