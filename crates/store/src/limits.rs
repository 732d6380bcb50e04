//! Limits of a server, each with its reason.

use std::time::Duration;

/// Limits that a setting may change.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message from a client.
    pub message_bytes: usize,
    /// Bytes of one response. TypeScript clients give up at 10 MiB buffered; 8 MiB minus a
    /// margin for framing stays clear of that.
    pub answer_bytes: usize,
    /// Simultaneous connections: a hundred agents with ten helpers each.
    pub connections: usize,
    /// Unanswered calls of one connection: an agent may wait for a thousand things at once,
    /// and each costs a few kilobytes.
    pub calls_in_flight: usize,
    /// Messages in one batch.
    pub batch_messages: usize,
    /// Processes, including those that ended: as many as a person or a team of agents can
    /// keep track of.
    pub processes: usize,
    /// Agents that run at the same time: each is a CLI that takes hundreds of megabytes.
    pub agents: usize,
    /// Agents above an agent: nobody can keep track of more levels of sub-agents.
    pub agent_depth: usize,
    /// Bytes of one process's output kept on disk: a day of a busy dev server.
    pub log_bytes: u64,
    /// Bytes of the log of events: weeks of a busy team.
    pub event_bytes: u64,
    /// Bytes of memory for the scrolled-off lines of all screens together: almost a million
    /// lines, and with 200 panes less than half of the 300 MiB that a server may use.
    pub history_bytes: usize,
    /// Calls of `wait_for_pattern` on one process, and calls of `wait_for_agents` in all.
    pub waiters: usize,
    /// Scratchpads: more than anybody reads through.
    pub pads: usize,
    /// Bytes of one scratchpad: any content must fit into one response. Control characters
    /// take six bytes in JSON, and seven in the JSON text that the response also contains.
    pub pad_bytes: usize,
    /// Seconds that programs get to exit by themselves when the server shuts down; `None`
    /// uses the user's settings.
    pub end_grace_seconds: Option<u64>,
    /// Seconds without clients after which a background server shuts down if nothing else uses
    /// it; `None` for never. Long enough that a person who comes back from lunch finds it.
    pub unused_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            answer_bytes: (8 << 20) - (64 << 10),
            connections: 1_000,
            calls_in_flight: 2_000,
            batch_messages: 100,
            processes: 1_000,
            agents: 50,
            agent_depth: 3,
            log_bytes: 64 << 20,
            event_bytes: 64 << 20,
            history_bytes: 96 << 20,
            waiters: 2_000,
            pads: 500,
            pad_bytes: 512 << 10,
            end_grace_seconds: None,
            unused_seconds: Some(2 * 3600),
        }
    }
}

impl Limits {
    /// The names by which limits are set.
    pub const NAMES: [&str; 16] = [
        "message_bytes",
        "answer_bytes",
        "connections",
        "calls_in_flight",
        "batch_messages",
        "processes",
        "agents",
        "agent_depth",
        "log_bytes",
        "event_bytes",
        "history_bytes",
        "waiters",
        "pads",
        "pad_bytes",
        "end_grace_seconds",
        "unused_seconds",
    ];

    /// Changes limits according to a text like `processes=50,waiters=10`. The error names
    /// the problem and the valid choices.
    pub fn set_from(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number: u64 =
                value.trim().parse().ok().filter(|number| *number > 0).ok_or_else(|| {
                    format!("`{part}` takes a number above 0, for example processes=50")
                })?;
            self.set(name.trim(), number)?;
        }
        Ok(())
    }

    /// Changes one limit.
    pub fn set(&mut self, name: &str, number: u64) -> Result<(), String> {
        let size = usize::try_from(number).unwrap_or(usize::MAX);
        match name {
            "message_bytes" => self.message_bytes = size.max(LEAST_MESSAGE_BYTES),
            "answer_bytes" => self.answer_bytes = size,
            "connections" => self.connections = size,
            "calls_in_flight" => self.calls_in_flight = size,
            "batch_messages" => self.batch_messages = size,
            "processes" => self.processes = size,
            "agents" => self.agents = size,
            "agent_depth" => self.agent_depth = size,
            "log_bytes" => self.log_bytes = number.max(LEAST_LOG_BYTES),
            "event_bytes" => self.event_bytes = number.max(LEAST_EVENT_BYTES),
            "history_bytes" => self.history_bytes = size,
            "waiters" => self.waiters = size,
            "pads" => self.pads = size,
            "pad_bytes" => self.pad_bytes = size,
            "end_grace_seconds" => self.end_grace_seconds = Some(number),
            "unused_seconds" => self.unused_seconds = (number < NEVER_UNUSED).then_some(number),
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("unknown limit `{name}`; the limits are {known}"));
            }
        }
        Ok(())
    }
}

/// From here on, an unused server never shuts down: a year.
const NEVER_UNUSED: u64 = 365 * 24 * 3600;

/// A shorter limit would reject every useful message.
pub(crate) const LEAST_MESSAGE_BYTES: usize = 1 << 10;

/// Each class of events needs a few files of a useful size.
const LEAST_EVENT_BYTES: u64 = 1 << 20;

/// A log's first two files need this much.
pub const LEAST_LOG_BYTES: u64 = 1 << 20;

/// Unread bytes above which the server does nothing more for a client until it reads. One
/// response may exceed it; with the largest one, a client that does not read costs at most 8
/// MiB. The kernel buffers three times as much for a client that reads.
pub const OUTBOX_BYTES: usize = 64 << 10;

/// How long a client may leave its responses unread before it is disconnected: longer than a
/// debugger or a suspended terminal would pause it, short enough to free its memory.
pub const UNREAD_PATIENCE: Duration = Duration::from_secs(120);

/// How long calls may continue after their client closed its side.
pub const ENDING_GRACE: Duration = Duration::from_secs(5);

/// How long calls may continue once the server shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Notices (progress, changed lists) of one connection that wait for its outbox. Progress
/// beyond it is dropped, because the next report supersedes it.
pub const NOTICES: usize = 64;

/// Messages of one connection handled in a row before other connections get their turn.
pub const FAIR_TURN: usize = 64;

/// Bytes read from a client at once.
pub const READ_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_by_name_and_errors_name_the_problem() {
        let mut limits = Limits::default();
        limits.set_from("processes=50, waiters = 7,").unwrap();
        assert_eq!((limits.processes, limits.waiters), (50, 7));
        assert!(limits.set_from("panes=1").unwrap_err().contains("unknown limit `panes`"));
        for wrong in ["processes", "processes=", "processes=0", "processes=-1", "processes=many"] {
            assert!(limits.set_from(wrong).unwrap_err().contains("takes a number"), "{wrong}");
        }
        assert_eq!(limits.processes, 50);
        for name in Limits::NAMES {
            limits.set(name, 1).unwrap();
        }
    }
}
