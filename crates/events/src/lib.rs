//! The log of a project's events: what happened, in order, and who caused it. It is append-only, has a limited size,
//! survives crashes, and detects damage. It knows nothing about processes, agents or tools: the parts that own a fact
//! write it, with an [`EventLog`].

mod acting;
mod checkpoint;
mod class_log;
mod digest;
mod error;
mod known_state;
mod line;
mod log;
#[cfg(test)]
mod log_tests;
mod merge;
mod new_event;
mod newest;
mod reading;
mod segment;
mod store;
#[cfg(test)]
mod store_tests;
mod syncing;
mod tail;
mod timeline;
mod verify;

pub use acting::{acting, current_actor, in_scope};
pub use digest::DigestSize;
pub use error::EventError;
pub use known_state::{KnownProcess, KnownState, KnownStatus};
pub use log::{DigestStart, EventLog};
pub use new_event::{About, NewEvent};
pub use reading::MOST_EVENTS;
pub use store::DEFAULT_BYTES;
