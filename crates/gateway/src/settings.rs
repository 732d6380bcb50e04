//! Settings of a shared server. The host reads them from the project file.

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
pub struct ServerLimits {
    /// Calls in flight.
    pub in_flight: usize,
    /// Calls in flight per caller.
    pub in_flight_per_caller: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Instances, if it is not shared by everybody.
    pub instances: usize,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// How long it may be unused before it is stopped; `None` for no limit.
    pub idle_timeout: Option<Duration>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            // A model runs a handful of calls at a time; a hundred agents run a thousand.
            in_flight: 1_024,
            in_flight_per_caller: 128,
            message_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            instances: 64,
            // Longer than the timeouts of the clients that were measured.
            call_timeout: Duration::from_secs(600),
            idle_timeout: None,
        }
    }
}
