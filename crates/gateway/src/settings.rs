//! What a project says of a shared server.

use std::time::Duration;

/// Who shares one running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// Everybody.
    #[default]
    All,
    /// Each agent or token has one of its own.
    Caller,
    /// Each session of a client has one of its own.
    Session,
}

/// Bounds of one server; 0 is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls in flight.
    pub in_flight: usize,
    /// Calls in flight of one caller.
    pub in_flight_of_one: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Running copies of it, where it is not shared by all.
    pub sessions: usize,
    /// How long a call may take.
    pub call: Duration,
    /// After so long without a call it is put to sleep; `None` for never.
    pub idle: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A model works with a handful at a time; a hundred agents are a thousand.
            in_flight: 1_024,
            in_flight_of_one: 128,
            message_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            sessions: 64,
            // Longer than the clients that were measured wait themselves.
            call: Duration::from_secs(600),
            idle: None,
        }
    }
}
