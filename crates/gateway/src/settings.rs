//! Settings of a shared server.

use std::time::Duration;

/// Who shares an instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// Everybody.
    #[default]
    All,
    /// Each agent or token has its own instance.
    Caller,
    /// Each client session has its own instance.
    Session,
}

/// Limits of one server; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls in flight.
    pub in_flight: usize,
    /// Calls in flight per caller.
    pub in_flight_of_one: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Instances, if it is not shared by everybody.
    pub sessions: usize,
    /// How long a call may take.
    pub call: Duration,
    /// How long it may be unused before it is stopped; `None` for no limit.
    pub idle: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A model runs a handful of calls at a time; a hundred agents run a thousand.
            in_flight: 1_024,
            in_flight_of_one: 128,
            message_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            sessions: 64,
            // Longer than the timeouts of the clients that were measured.
            call: Duration::from_secs(600),
            idle: None,
        }
    }
}
