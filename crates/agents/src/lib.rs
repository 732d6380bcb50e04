//! Agents: their presets, how they are started and resumed, their activity, and the texts that are
//! typed into them. This crate uses the panes and the project file; it does not know tools, MCP,
//! timers or the socket.

pub mod activity;
mod activity_state;
mod agent_recorder;
mod agents;
mod answer;
mod conversations;
pub mod delivery;
mod error;
pub mod identity;
mod observer;
pub mod presets;

pub use agents::{AgentParts, Agents, NewAgent, Relaunch};
pub use answer::{AnswerOutcome, ChosenOption};
pub use conversations::Conversations;
pub use error::AgentError;
